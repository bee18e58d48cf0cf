"""Files of other machines, read in blocks that all files of the process share.

Requests are what this costs. A file is opened by reading its first block; later blocks are asked for when they are needed. Where
one block is read after the other, the next ones are on their way. A block is kept under the version that its file had: no two
versions are ever mixed.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from store_io.source.byte_file import BasicFile

BLOCK_BYTES = 4 << 20
AHEAD = 2  # blocks that are read before they are asked for
KEPT_BYTES = 96 << 20  # of all files of a process; a queue's file has two blocks
ENTRY_BYTES = 500  # that keeping a block takes besides its bytes, about
KEPT_FILES = 100_000  # whose length and version are kept
_THREADS = 16


Place = tuple[str, str]  # (bucket or server, key or path)
BlockName = tuple[Place, str, int]  # (place, version, number)


class Opened(NamedTuple):
    """A file as it was when it was first asked for. version: "" where it has none.  asked: when that was, ns."""

    size: int
    version: str
    asked: int


class RemoteFile(BasicFile):
    """One file, read in blocks of BLOCK_BYTES by `_first` and `_part` of the subclass.

    since: ns; what the process read of the file after that is used again without a request.
    """

    def __init__(self, place: Place, path: str, since: int):
        self.path, self._place = path, place
        opened = _kept().opened(place, since)
        if opened is None:
            now = time.time_ns()
            first, size, version = self._first(BLOCK_BYTES)
            opened = Opened(size, version, now)
            _kept().put((place, version, 0), first)
            _kept().put_opened(place, opened)
        self.size, self._version = opened.size, opened.version
        self._waiting: dict[int, Future[bytes]] = {}
        self._last = 0

    def _first(self, most: int) -> tuple[bytes, int, str]:
        """(the first bytes, `most` of them unless the file ends before, its length, its version). Raises StoreError."""
        raise NotImplementedError

    def _part(self, start: int, size: int) -> bytes:
        """Exactly these bytes, of the version that was opened; by several threads at a time. Raises StoreError."""
        raise NotImplementedError

    def _fill(self, position: int, view: memoryview) -> int:
        block, within = divmod(position, BLOCK_BYTES)
        data = self._block(block)
        part = data[within : within + len(view)]
        view[: len(part)] = part
        return len(part)

    def _block(self, block: int) -> bytes:
        kept, name = _kept(), (self._place, self._version, block)
        data = kept.get(name)
        waiting = self._waiting.pop(block, None)
        if data is None:
            data = waiting.result() if waiting is not None else self._fetch(block)
            kept.put(name, data)
        if block == self._last + 1:
            self._read_ahead(block)
        self._last = block
        return data

    def _read_ahead(self, block: int) -> None:
        for passed in [number for number in self._waiting if not block < number <= block + AHEAD]:
            self._waiting.pop(passed).cancel()
        for following in range(block + 1, block + 1 + AHEAD):
            if (
                following * BLOCK_BYTES < self.size
                and following not in self._waiting
                and _kept().get((self._place, self._version, following)) is None
            ):
                self._waiting[following] = _threads(os.getpid()).submit(self._fetch, following)

    def _fetch(self, block: int) -> bytes:
        start = block * BLOCK_BYTES
        return self._part(start, min(BLOCK_BYTES, self.size - start))

    def close(self) -> None:
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting = {}


class KeptBlocks:
    """What a process keeps of files: the blocks that were used last, up to KEPT_BYTES, and lengths. Threads may share it."""

    def __init__(self, most_bytes: int = KEPT_BYTES):
        self._most = most_bytes
        self._bytes = 0
        self._blocks: OrderedDict[BlockName, bytes] = OrderedDict()
        self._opened: OrderedDict[Place, Opened] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: BlockName) -> bytes | None:
        """The block, None where it is not kept."""
        with self._lock:
            if name in self._blocks:
                self._blocks.move_to_end(name)
            return self._blocks.get(name)

    def put(self, name: BlockName, data: bytes) -> None:
        """Keep it, in place of those that were not used for longest."""
        with self._lock:
            if name in self._blocks:
                self._bytes -= _held(self._blocks.pop(name))
            self._blocks[name] = data
            self._bytes += _held(data)
            while self._bytes > self._most and len(self._blocks) > 1:
                self._bytes -= _held(self._blocks.popitem(last=False)[1])

    def opened(self, place: Place, since: int) -> Opened | None:
        """The file as it was asked for since then; None: ask the server."""
        with self._lock:
            found = self._opened.get(place)
        return found if found is not None and found.version and found.asked >= since else None

    def put_opened(self, place: Place, opened: Opened) -> None:
        """Keep it, in place of the oldest."""
        with self._lock:
            self._opened.pop(place, None)
            self._opened[place] = opened
            if len(self._opened) > KEPT_FILES:
                self._opened.popitem(last=False)


def _held(data: bytes) -> int:
    return len(data) + ENTRY_BYTES


@functools.lru_cache(maxsize=1)
def _kept_of(process: int) -> KeptBlocks:
    return KeptBlocks()


def _kept() -> KeptBlocks:
    return _kept_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "read-ahead")
