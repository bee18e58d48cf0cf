"""Reads files of other machines by as few requests as possible, and each byte once.

Each request costs time. A file is opened by reading its beginning; the rest comes when it is needed, by ranges of
REQUEST_BYTES. If ranges are read one after the other, the next ones are already under way. Fetched bytes are kept on this
machine's disk for all processes (`disk_cache`). If they cannot be kept there, or little of a file is read, requests are as
small as the read that causes them, and grow while the file is read further; the process then keeps the bytes that it used last in
memory. All bytes are kept under the version that the file had: no two versions are ever mixed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter, OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from store_io.base.locks import ProcessLock, made_once
from store_io.source import disk_cache
from store_io.source.byte_file import BasicFile
from store_io.source.disk_cache import GRAIN_BYTES, KeptFile, Opened

REQUEST_BYTES = 8 << 20
AHEAD = 2  # requests before these are needed
KEPT_BYTES = 96 << 20  # in memory, of all files of a process
PASSING_BYTES = 64 << 20  # the same of files that are read through
ENTRY_BYTES = 500  # that keeping a grain takes besides its bytes, about
KEPT_FILES = 100_000  # whose length and version are kept
_THREADS = 16


Place = tuple[str, str]  # (bucket or server, key or path)
GrainName = tuple[Place, str, int]  # (place, version, number)


class Reading(NamedTuple):
    """How a file is read.

    root: the root of its store.
    since: ns; bytes that the run read after that time are used again without a request.
    sparsely: few bytes are read, here and there.
    """

    root: str
    since: int
    sparsely: bool = False


class RemoteFile(BasicFile):
    """Reads one file by `_first` and `_part` of the subclass, for one thread at a time."""

    def __init__(self, place: Place, path: str, reading: Reading):
        self.path, self._place, self._reading = path, place, reading
        self._disk = KeptFile.of(reading.root, f"file {'/'.join(place)}")
        self._ahead: dict[tuple[int, int], Future[None]] = {}  # grains under way
        try:
            self.size, self._version, _ = self._opened()
        except BaseException:
            self.close()
            raise
        self._large = self._disk is not None and not reading.sparsely and disk_cache.has_room(self.size)
        self._asked, self._end = GRAIN_BYTES, 0  # by a small request; the grain after what was fetched last
        self._last = self._run = 0  # the range of REQUEST_BYTES that was read last; how many there were in a row

    def _first(self, most: int) -> tuple[bytes, int, str]:
        """Return (the first bytes, at most `most`, the file's length, its version). Raises StoreError."""
        raise NotImplementedError

    def _part(self, start: int, size: int) -> bytes:
        """Return exactly these bytes of the opened version. Several threads may call it. Raises StoreError."""
        raise NotImplementedError

    def _opened(self) -> Opened:
        """Return the file as the run knows it, else as its server says, whose answer has the first bytes."""
        root, since, sparsely = self._reading
        disk = self._disk
        with disk.locked(0, 1) if disk is not None else contextlib.nullcontext():
            opened = disk.opened(since) if disk is not None else _kept().opened(self._place, since)
            if opened is not None:
                return opened
            now = time.time_ns()
            large = disk is not None and not sparsely and disk_cache.has_room(REQUEST_BYTES)
            first, size, version = self._first(REQUEST_BYTES if large else GRAIN_BYTES)
            _count(root, len(first))
            self._version, opened = version, Opened(size, version, now)
            if disk is not None and not (version and disk.begin(opened)):
                self._disk = None
            self._keep(0, first, _kept())
        _kept().put_opened(self._place, opened)
        return opened

    # ---- reading ---------------------------------------------------------------------------------------------------

    def _fill(self, position: int, view: memoryview) -> int:
        self._read_ahead(position // REQUEST_BYTES)
        grain = position // GRAIN_BYTES
        for first, end in list(self._ahead):
            if first <= grain < end:
                self._ahead.pop((first, end)).result()
        return self._held(position, view) or self._fetched(position, view)

    def _held(self, position: int, view: memoryview) -> int:
        """Fill the view from disk or memory. Return the number of bytes."""
        if self._disk is not None and (done := self._disk.read_into(position, view)):
            return done
        grain, within = divmod(position, GRAIN_BYTES)
        data = _kept().get(self._name(grain)) or _passing().get(self._name(grain))
        if data is None:
            return 0
        part = data[within : within + len(view)]
        view[: len(part)] = part
        return len(part)

    def _fetched(self, position: int, view: memoryview) -> int:
        grain, last = position // GRAIN_BYTES, (position + len(view) - 1) // GRAIN_BYTES
        first, end = self._range_around(grain, last)
        data = self._ask(first, end, _passing() if self._run > 1 else _kept())
        part = data[position - first * GRAIN_BYTES :][: len(view)]
        view[: len(part)] = part
        return len(part)

    def _range_around(self, grain: int, last: int) -> tuple[int, int]:
        """Return the grains to ask for if this grain is missing, and those up to `last` are needed."""
        each = REQUEST_BYTES // GRAIN_BYTES
        low = grain // each * each
        high = min(low + each, -(-self.size // GRAIN_BYTES))
        if not self._large:
            follows = grain == self._end
            self._asked = min(2 * self._asked, REQUEST_BYTES) if follows else GRAIN_BYTES
            low, high = grain, min(high, max(grain + self._asked // GRAIN_BYTES, last + 1))
        first, end = grain, grain + 1
        while first > low and not self._has(first - 1):
            first -= 1
        while end < high and not self._has(end):
            end += 1
        self._end = end
        return first, end

    def _read_ahead(self, block: int) -> None:
        """Begin to fetch the ranges after this one if ranges are read one after the other."""
        if block == self._last:
            return
        self._run = self._run + 1 if block == self._last + 1 else 0
        self._last = block
        each = REQUEST_BYTES // GRAIN_BYTES
        needed = range((block + 1) * each, min((block + 1 + AHEAD) * each, -(-self.size // GRAIN_BYTES)))
        self._drop_ahead(range(block * each, needed.stop))
        if not self._run or not (self._large or self._asked == REQUEST_BYTES):
            return
        for low in needed[::each]:
            missing = [grain for grain in range(low, min(low + each, needed.stop)) if not self._has(grain)]
            if missing and not any(first <= missing[0] < end for first, end in self._ahead):
                asked = missing[0], missing[-1] + 1
                self._ahead[asked] = _threads(os.getpid()).submit(self._ask_ahead, *asked)

    def _drop_ahead(self, needed: range) -> None:
        """Let go of requests for other grains that have ended or still wait."""
        for (first, end), asked in list(self._ahead.items()):
            if first not in needed and (asked.done() or asked.cancel()):
                del self._ahead[first, end]

    def _ask_ahead(self, first: int, end: int) -> None:
        """Fetch grains without a result: a Future would keep the bytes."""
        self._ask(first, end, _passing())

    def _ask(self, first: int, end: int, memory: KeptGrains) -> bytes:
        """Return these grains, from the server unless another process has fetched them just now."""
        start, end_at = first * GRAIN_BYTES, min(end * GRAIN_BYTES, self.size)
        disk = self._disk
        with disk.fetching(first, end) if disk is not None else contextlib.nullcontext():
            if disk is not None and disk.has(first):
                there = bytearray(end_at - start)
                if disk.read_into(start, memoryview(there)) == len(there):
                    return bytes(there)
            _count(self._reading.root, end_at - start)
            data = self._part(start, end_at - start)
            self._keep(first, data, memory)
        return data

    def _keep(self, first: int, data: bytes, memory: KeptGrains) -> None:
        if self._disk is not None:
            if self._disk.put(first, data):
                return
            self._large = False
        for number, at in enumerate(range(0, len(data), GRAIN_BYTES), first):
            memory.put(self._name(number), data[at : at + GRAIN_BYTES])

    def _name(self, grain: int) -> GrainName:
        return self._place, self._version, grain

    def _has(self, grain: int) -> bool:
        if self._disk is not None and self._disk.has(grain):
            return True
        return any(grains.get(self._name(grain)) is not None for grains in (_kept(), _passing()))

    def close(self) -> None:
        self._drop_ahead(range(0))
        if self._disk is not None and not self._ahead:  # else what is under way is kept yet
            self._disk.close()


class KeptGrains:
    """Holds in memory the grains that a process used last, and lengths of files. Threads may share it."""

    def __init__(self, most_bytes: int):
        self._most = most_bytes
        self._bytes = 0
        self._grains: OrderedDict[GrainName, bytes] = OrderedDict()
        self._opened: OrderedDict[Place, Opened] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: GrainName) -> bytes | None:
        """Return the grain; None if it is not kept."""
        with self._lock:
            if name in self._grains:
                self._grains.move_to_end(name)
            return self._grains.get(name)

    def put(self, name: GrainName, data: bytes) -> None:
        """Keep it, in place of those that were not used for longest."""
        with self._lock:
            if name in self._grains:
                self._bytes -= _weight(self._grains.pop(name))
            self._grains[name] = data
            self._bytes += _weight(data)
            while self._bytes > self._most and len(self._grains) > 1:
                self._bytes -= _weight(self._grains.popitem(last=False)[1])

    def opened(self, place: Place, since: int) -> Opened | None:
        """Return the file as it was asked for since then; None: ask the server."""
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


def _weight(data: bytes) -> int:
    return len(data) + ENTRY_BYTES


@made_once(1)
def _grains_of(process: int) -> tuple[KeptGrains, KeptGrains]:
    return KeptGrains(KEPT_BYTES), KeptGrains(PASSING_BYTES)


def _kept() -> KeptGrains:
    return _grains_of(os.getpid())[0]


def _passing() -> KeptGrains:
    return _grains_of(os.getpid())[1]


@made_once(1)
def _threads(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "read-ahead")


# ---- what was fetched ----------------------------------------------------------------------------------------------

_fetched: Counter[str] = Counter()
_counting = ProcessLock()


def _count(root: str, size: int) -> None:
    with _counting.own:
        _fetched[root] += size


def fetched_bytes(root: str = "") -> int:
    """Return the number of bytes that this process has fetched of the store with this root; "": of all stores."""
    with _counting.own:
        return _fetched[root] if root else _fetched.total()
