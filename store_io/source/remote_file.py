"""Files of other machines, read in blocks that all files of the process share.

Requests are what this costs. A file is opened by reading its first block; later blocks are asked for when they are needed. Where
one block is read after the other, the next ones are on their way; where that lasts, several of them by one request. Blocks are
small where little of many files is read. A block is kept under the version that its file had: no two versions are ever mixed.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from store_io.base.locks import made_once
from store_io.source.byte_file import BasicFile

BLOCK_BYTES = 4 << 20
SMALL_BLOCK_BYTES = 256 << 10  # of files that are read sparsely
AHEAD = 2  # requests for blocks before these are needed
LONG_RUN = 8  # blocks read one after the other: from then on a request asks for two
KEPT_BYTES = 96 << 20  # of all files of a process; a queue's file has two blocks
PASSING_BYTES = 64 << 20  # the same of what is read ahead, and of files that are read through
ENTRY_BYTES = 500  # that keeping a block takes besides its bytes, about
KEPT_FILES = 100_000  # whose length and version are kept
_THREADS = 16


Place = tuple[str, str]  # (bucket or server, key or path)
BlockName = tuple[Place, str, int, int]  # (place, version, bytes of a block, number)


class Opened(NamedTuple):
    """A file as it was when it was first asked for. version: "" where it has none.  asked: when that was, ns."""

    size: int
    version: str
    asked: int


class Reading(NamedTuple):
    """How a file is to be read. since: ns; what the process read of it after that is used again without a request.

    sparsely: little of it, here and there, beside many other files: in smaller blocks, so that those of many files are kept.
    """

    since: int
    sparsely: bool = False


class RemoteFile(BasicFile):
    """One file, read in blocks by `_first` and `_part` of the subclass; by one thread at a time."""

    def __init__(self, place: Place, path: str, reading: Reading):
        self.path, self._place = path, place
        opened = _kept().opened(place, reading.since)
        if opened is None:
            now = time.time_ns()
            asked = SMALL_BLOCK_BYTES if reading.sparsely else BLOCK_BYTES
            first, size, version = self._first(asked)
            opened = Opened(size, version, now)
            _kept().put((place, version, BLOCK_BYTES if size <= asked else asked, 0), first)
            _kept().put_opened(place, opened)
        self.size, self._version = opened.size, opened.version
        self._small = reading.sparsely and self.size > SMALL_BLOCK_BYTES
        self._unit = SMALL_BLOCK_BYTES if self._small else BLOCK_BYTES
        self._waiting: dict[int, Future[None]] = {}  # blocks under way
        self._last = self._run = 0  # the block that was read last; how many there were in a row

    def _first(self, most: int) -> tuple[bytes, int, str]:
        """(the first bytes, `most` of them unless the file ends before, its length, its version). Raises StoreError."""
        raise NotImplementedError

    def _part(self, start: int, size: int) -> bytes:
        """Exactly these bytes, of the version that was opened; by several threads at a time. Raises StoreError."""
        raise NotImplementedError

    def _fill(self, position: int, view: memoryview) -> int:
        block, within = divmod(position, self._unit)
        data = self._small_block(block, (position + len(view) - 1) // self._unit) if self._small else self._block(block)
        part = data[within : within + len(view)]
        view[: len(part)] = part
        return len(part)

    def _name(self, block: int) -> BlockName:
        return self._place, self._version, self._unit, block

    def _has(self, block: int) -> bool:
        return any(blocks.get(self._name(block)) is not None for blocks in (_kept(), _passing()))

    def _small_block(self, block: int, last: int) -> bytes:
        """The block. Those after it, up to the last one that is needed, are read by the same request."""
        data = _kept().get(self._name(block))
        if data is None:
            count = 1
            while block + count <= last and _kept().get(self._name(block + count)) is None:
                count += 1
            data = self._fetch_into(_kept(), block, count)
        return data

    def _block(self, block: int) -> bytes:
        follows, data = block == self._last + 1, _kept().get(self._name(block))
        waiting = self._waiting.pop(block, None)
        if data is None:
            if waiting is not None:
                waiting.result()
            # Kept, what is read through would drive out what is used again, and be gone itself before it is.
            in_run = follows or block == self._last
            through = in_run and self._run >= LONG_RUN and self.size > KEPT_BYTES
            data = _passing().get(self._name(block))
            if data is None:
                data = self._fetch_into(_passing(), block, 1)
            if not through:
                _kept().put(self._name(block), data)
        if follows:
            self._run += 1
            self._read_ahead(block + 1, 2 if self._run >= LONG_RUN else 1)
        elif block != self._last:
            self._run = 0
        self._last = block
        return data

    def _read_ahead(self, first: int, together: int) -> None:
        """Have the blocks from `first` on under way, so many by one request."""
        count = -(-self.size // self._unit)
        end = min(first + AHEAD * together, count)
        self._drop_waiting(range(first, end))
        at = first
        while at < end:
            if at in self._waiting or self._has(at):
                at += 1
                continue
            if end < min(at + together, count):  # the rest of this request is not needed yet
                break
            asked = _threads(os.getpid()).submit(self._ask, at, together)
            self._waiting.update(dict.fromkeys(range(at, min(at + together, count)), asked))
            at += together

    def _drop_waiting(self, needed: range) -> None:
        """Forget all other blocks, and the requests for nothing else."""
        dropped = {self._waiting.pop(block) for block in list(self._waiting) if block not in needed}
        for asked in dropped.difference(self._waiting.values()):
            asked.cancel()

    def _ask(self, block: int, count: int) -> None:
        """`_fetch_into` without its result: a Future would keep the bytes beyond PASSING_BYTES."""
        self._fetch_into(_passing(), block, count)

    def _fetch_into(self, blocks: KeptBlocks, block: int, count: int) -> bytes:
        """Have so many blocks from this one on there, fewer at the file's end; gives the first."""
        start = block * self._unit
        data = self._part(start, min(count * self._unit, self.size - start))
        parts = [data[at : at + self._unit] for at in range(0, len(data), self._unit)]
        for number, part in enumerate(parts, block):
            blocks.put(self._name(number), part)
        return parts[0]

    def close(self) -> None:
        self._drop_waiting(range(0))


class KeptBlocks:
    """What a process keeps of files: the blocks that were used last, and lengths. Threads may share it."""

    def __init__(self, most_bytes: int):
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


@made_once(1)
def _blocks_of(process: int) -> tuple[KeptBlocks, KeptBlocks]:
    return KeptBlocks(KEPT_BYTES), KeptBlocks(PASSING_BYTES)


def _kept() -> KeptBlocks:
    return _blocks_of(os.getpid())[0]


def _passing() -> KeptBlocks:
    return _blocks_of(os.getpid())[1]


@made_once(1)
def _threads(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "read-ahead")
