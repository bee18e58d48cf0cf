"""Mapped files and their queues (recovery.md sections 2 and 6). Nothing is written to the store: pages are private copies."""

import mmap
import os
from pathlib import Path

from tests.support.second_witness.java import parse_number


class Refused(Exception):
    """load() returns false (or throws)."""


class NotMade(Exception):
    """A file cannot be made where it belongs."""


class Segment:
    def __init__(self, path, start, size, data):
        self.path, self.start, self.size, self.data = path, start, size, data
        self.wrote = size

    @property
    def name(self):
        return self.path.name

    @property
    def full(self):
        return self.wrote == self.size


def private_map(path, size):
    """The file's first `size` bytes; what is missing reads as zeros."""
    have = path.stat().st_size
    if have >= size:
        with open(path, "rb") as f:
            return mmap.mmap(f.fileno(), size, access=mmap.ACCESS_COPY)
    data = mmap.mmap(-1, size)
    data[:have] = path.read_bytes()
    return data


class Disk:
    """Which files exist, as far as recovery deletes or creates some."""

    def __init__(self, root):
        self.root = Path(root)
        self.before = set()
        for folder, _, names in os.walk(self.root):
            self.before.update(os.path.relpath(os.path.join(folder, n), self.root) for n in names)
        self.now = set(self.before)

    def relative(self, path):
        return os.path.relpath(path, self.root)

    def delete(self, path):
        self.now.discard(self.relative(path))

    def create(self, path):
        self.now.add(self.relative(path))


class FileQueue:
    def __init__(self, folder, file_size, rules, disk):
        self.folder, self.file_size, self.rules, self.disk = Path(folder), file_size, rules, disk
        self.files = []

    def load(self):
        if not self.folder.is_dir():
            return
        listing = sorted(self.folder.iterdir(), key=lambda p: p.name)
        for i, path in enumerate(listing):
            if path.is_dir() and self.rules.at_least("5.1.0"):
                continue
            length = path.stat().st_size
            if length == 0 and i == len(listing) - 1 and self.rules.at_least("5.1.3"):
                self.disk.delete(path)
                continue
            if path.is_dir() or length != self.file_size:
                if self.rules.release == "4.9.2":
                    return
                raise Refused(f"{self.disk.relative(path)}: length {length}, configured {self.file_size}")
            start = parse_number(path.name, 64)
            if start is None:
                raise Refused(f"{self.disk.relative(path)}: the name is not a number")
            self.files.append(Segment(path, start, length, private_map(path, length)))

    @property
    def last(self):
        return self.files[-1] if self.files else None

    @property
    def max_offset(self):
        return self.last.start + self.last.wrote if self.files else 0

    @property
    def min_offset(self):
        return self.files[0].start if self.files else -1

    def truncate(self, end):
        for f in list(self.files):
            if f.start + f.size > end:
                if end >= f.start:
                    f.wrote = end % f.size
                else:
                    self.delete(f)

    def delete(self, f):
        self.files.remove(f)
        self.disk.delete(f.path)

    def destroy(self):
        for f in list(self.files):
            self.delete(f)

    def last_for_append(self, start_offset):
        """(file, created as the first one of the queue)"""
        if self.files and not self.last.full:
            return self.last, False
        first = not self.files
        if not self.can_be_made():
            raise NotMade
        start = start_offset - start_offset % self.file_size if first else self.last.start + self.file_size
        path = self.folder / f"{start:020d}"
        f = Segment(path, start, self.file_size, mmap.mmap(-1, self.file_size))
        f.wrote = 0
        self.files.append(f)
        self.disk.create(path)
        return f, first

    def can_be_made(self):
        """ensureDirOK and RandomAccessFile: whether the folder is there or can be made."""
        path = os.path.relpath(self.folder, self.disk.root)
        if "\0" in path or len(path.encode()) > 4000 or any(len(name.encode()) > 255 for name in path.split("/")):
            return False
        return "," not in path or not self.rules.at_least("4.9.4") or self.folder.is_dir()

    def find(self, offset):
        for f in self.files:
            if f.start <= offset < f.start + f.size:
                return f
        return self.files[0] if self.files and offset == 0 else None
