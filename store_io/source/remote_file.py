"""Files of other machines, read in blocks that all files of the process share.

Requests are what this costs. A file is opened by reading its first block; later blocks are asked for when they are needed. Where
one block is read after the other, the next ones are on their way; where that lasts, two of them by one request. A block is kept
under the version that its file had: no two versions are ever mixed.
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
AHEAD = 2  # requests for blocks before these are needed
LONG_RUN = 8  # blocks, read one after the other, from which on a request asks for two
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
        self._waiting: dict[int, _Awaited] = {}
        self._last = self._run = 0  # the block that was read last; how many there were in a row

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
            data = waiting.block(block) if waiting is not None else self._fetch(block, 1)
            kept.put(name, data)
        if block == self._last + 1:
            self._run += 1
            self._read_ahead(block + 1, 2 if self._run >= LONG_RUN else 1)
        elif block != self._last:
            self._run = 0
        self._last = block
        return data

    def _read_ahead(self, first: int, together: int) -> None:
        """Have the blocks from `first` on under way, so many by one request."""
        count = -(-self.size // BLOCK_BYTES)
        end = min(first + AHEAD * together, count)
        self._drop_waiting(range(first, end))
        at = first
        while at < end:
            if at in self._waiting or _kept().get((self._place, self._version, at)) is not None:
                at += 1
                continue
            if end < min(at + together, count):  # the rest of this request is not needed yet
                break
            asked = _Awaited(at, _threads(os.getpid()).submit(self._fetch, at, together))
            self._waiting.update(dict.fromkeys(range(at, min(at + together, count)), asked))
            at += together

    def _drop_waiting(self, needed: range) -> None:
        """Forget all other blocks, and the requests for nothing else."""
        dropped = {block: self._waiting.pop(block) for block in list(self._waiting) if block not in needed}
        left = {id(asked) for asked in self._waiting.values()}
        for asked in dropped.values():
            if id(asked) not in left:
                asked.data.cancel()

    def _fetch(self, block: int, count: int) -> bytes:
        """So many blocks from this one on, fewer at the file's end."""
        start = block * BLOCK_BYTES
        return self._part(start, min(count * BLOCK_BYTES, self.size - start))

    def close(self) -> None:
        self._drop_waiting(range(0))


class _Awaited(NamedTuple):
    """A request under way. first: the block with which its data begin."""

    first: int
    data: Future[bytes]

    def block(self, number: int) -> bytes:
        """One of its blocks, once it is there. Raises StoreError."""
        start = (number - self.first) * BLOCK_BYTES
        return self.data.result()[start : start + BLOCK_BYTES]


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
