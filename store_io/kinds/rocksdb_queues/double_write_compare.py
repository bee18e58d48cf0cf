"""Compares the two kinds of queues of a double write, files and RocksDB, number by number (rocksdb.md 8).

Bounded: a window of each at a time, and ranges per queue. What the entries of the store that is read lead to is compared where
the CommitLog is read (log.entries.queue_probe).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from schemas.advice import Gap
from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import ENTRY_DTYPE
from schemas.rows import MappedFile, QueueKey
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import MAX_LONG
from store_io.base.ranges import least_offset
from store_io.broker.queues.rocksdb_queue_state import QueueEnd
from store_io.log.entries.queue_store import FileQueueStore, QueuePaths, is_used
from store_io.log.entries.stored_entries import EntryReader, plain_entries
from store_io.rocksdb.database import StoredDatabase
from store_io.source.byte_source import ByteSource, StoreLocation, open_source

WINDOW_ENTRIES = 1 << 15
MAX_GAPS = 100  # of a queue and kind; the last one takes in all that follow
DIFFERS, NOT_IN_ROCKSDB, NOT_IN_FILES = range(3)


class TwinQueue(NamedTuple):
    """A queue: its files, the numbers that are used there, and what RocksDB has as its ends."""

    key: QueueKey
    files: tuple[MappedFile, ...]
    used: tuple[int, int]
    maximum: QueueEnd | None
    minimum: QueueEnd | None

    @property
    def first_number(self) -> int:
        """Return the queue offset from which on both kinds should have entries.

        A start that gives a queue its number in RocksDB names physical offset 0; entries before that number are in files alone.
        """
        return self.minimum.queue_offset if self.minimum is not None and self.minimum.phy_offset == 0 else 0


@dataclass(frozen=True)
class TwinGap:
    """Numbers [first, end) of a queue, `count` of which differ in the same way.

    phy_first, phy_last: the least and the greatest physical offset to which these entries lead: those in files, if there are any.
    shown: the first differing entry as text, in files and in RocksDB.
    """

    key: QueueKey
    kind: int
    first: int
    end: int
    count: int
    phy_first: int
    phy_last: int
    shown: tuple[str, str]


@dataclass(frozen=True)
class TwinTask:
    """A task that compares some queues of a store.

    log_min: the minimum of the CommitLog.
    tags: whether tags codes can be compared.
    """

    store: int
    location: StoreLocation
    database: StoredDatabase
    queues: tuple[TwinQueue, ...]
    log_min: int
    tags: bool = True
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return 2 * sum(file.size for queue in self.queues for file in queue.files)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for queue in self.queues for file in queue.files)

    def run(self) -> TwinResult:
        return compare_twins(self)


@dataclass
class TwinResult:
    """The result of a comparison of a queue's files with RocksDB.

    keyed_from: least physical offset to which an entry in RocksDB leads, -1 without one.
    problem: why they could not be compared.
    """

    gaps: list[TwinGap] = field(default_factory=list)
    keyed_from: int = -1
    problem: Gap | None = None


def compare_twins(task: TwinTask, source: ByteSource | None = None) -> TwinResult:
    """Never raises over bytes."""
    result = TwinResult()
    try:
        own = source or open_source(task.location)
        reader = EntryReader(own, task.database)
        files = FileQueueStore(own, QueuePaths({queue.key: queue.files for queue in task.queues}, {}, {}))
        try:
            for queue in task.queues:
                comparison = _Comparison(task, queue, files, reader)
                result.gaps += comparison.run()
                result.keyed_from = least_offset(result.keyed_from, comparison.keyed_from)
        finally:
            files.close()
            reader.close()
    except StoreError as why:
        return TwinResult(problem=why.gap())
    return result


class _Comparison:
    """One queue. keyed_from: see TwinResult."""

    def __init__(self, task: TwinTask, queue: TwinQueue, files: FileQueueStore, reader: EntryReader):
        self._task, self._queue, self._files, self._reader = task, queue, files, reader
        self._gaps: dict[int, list[TwinGap]] = {}
        self.keyed_from = -1

    def run(self) -> list[TwinGap]:
        queue = self._queue
        low, high = max(queue.used[0], queue.first_number), queue.used[1]
        maximum = queue.maximum.queue_offset + 1 if queue.maximum is not None else 0
        self._in_rocksdb_alone(queue.first_number, min(low, maximum))
        for first, end in self._with_files(low, high):
            self._window(first, end, maximum)
        self._in_rocksdb_alone(max(high, min(low, maximum)), maximum)
        return [gap for kind in sorted(self._gaps) for gap in self._gaps[kind]]

    def _with_files(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield windows of the numbers for which there are files."""
        for file in sorted(self._queue.files, key=lambda f: f.start):
            first = max(low, file.start // layout.ENTRY_BYTES)
            end = min(high, (file.start + file.size) // layout.ENTRY_BYTES)
            for at in range(first, end, WINDOW_ENTRIES):
                yield at, min(at + WINDOW_ENTRIES, end)

    def _in_rocksdb_alone(self, first: int, end: int) -> None:
        for numbers, rows in self._reader.windows(self._queue.key, first, min(end, MAX_LONG)):
            found = plain_entries(rows)
            there = found["phy_offset"] >= self._task.log_min
            self._meet(found[there])
            self._add(NOT_IN_FILES, numbers[there], None, found[there])

    def _window(self, first: int, end: int, maximum: int) -> None:
        in_files = self._files.entries(self._queue.key).read(first, end - first).astype(ENTRY_DTYPE)
        keyed = np.zeros(end - first, ENTRY_DTYPE)
        for numbers, rows in self._reader.windows(self._queue.key, first, min(end, maximum)):
            keyed[numbers - first] = plain_entries(rows)
        there, here = (is_used(rows) & (rows["phy_offset"] >= self._task.log_min) for rows in (in_files, keyed))
        self._meet(keyed[here])
        names = ("phy_offset", "size", "tags_code") if self._task.tags else ("phy_offset", "size")
        same = np.logical_and.reduce([in_files[name] == keyed[name] for name in names])
        numbers = np.arange(first, end)
        differs, in_files_alone, keyed_alone = there & here & ~same, there & ~here, here & ~there
        self._add(DIFFERS, numbers[differs], in_files[differs], keyed[differs])
        self._add(NOT_IN_ROCKSDB, numbers[in_files_alone], in_files[in_files_alone], None)
        self._add(NOT_IN_FILES, numbers[keyed_alone], None, keyed[keyed_alone])

    def _meet(self, keyed: np.ndarray) -> None:
        """Take entries in RocksDB."""
        if len(keyed):
            self.keyed_from = least_offset(self.keyed_from, int(keyed["phy_offset"].min()))

    def _add(self, kind: int, numbers: np.ndarray, in_files: np.ndarray | None, keyed: np.ndarray | None) -> None:
        """Add differing numbers as gaps of consecutive numbers.

        in_files, keyed: the entries of these numbers, or None.
        """
        rows = in_files if in_files is not None else keyed
        if rows is None or not len(numbers):
            return
        gaps = self._gaps.setdefault(kind, [])
        edges = np.flatnonzero(np.diff(numbers) != 1) + 1
        for part in np.split(np.arange(len(numbers)), edges):
            low, high = int(part[0]), int(part[-1])
            phy = rows["phy_offset"][low : high + 1]
            first, end = int(numbers[low]), int(numbers[high]) + 1
            least, most = int(phy.min()), int(phy.max())
            if gaps and (first == gaps[-1].end or len(gaps) >= MAX_GAPS):
                last = gaps[-1]
                least, most = min(least, last.phy_first), max(most, last.phy_last)
                gaps[-1] = replace(last, end=end, count=last.count + end - first, phy_first=least, phy_last=most)
                continue
            shown = _shown(in_files, low), _shown(keyed, low)
            gaps.append(TwinGap(self._queue.key, kind, first, end, end - first, least, most, shown))


def _shown(rows: np.ndarray | None, at: int) -> str:
    if rows is None:
        return "no entry"
    row = rows[at]
    return f"phy_offset {int(row['phy_offset'])}, size {int(row['size'])}, tags code {int(row['tags_code'])}"
