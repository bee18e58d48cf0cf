"""Keeps one ConsumeQueue in RocksDB as the broker holds it: entries by key, a maximum, a minimum (rocksdb.md 3, 4).

The ends are those that the family `offset` has. Entries are never removed by recovery; what is beyond the maximum is not served,
and overwritten when its number comes again.
Source: RocksDBConsumeQueueOffsetTable, RocksDBConsumeQueueTable.binarySearchInCQ, read at 5.3.1 and 5.3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from schemas.advice import Refusal
from schemas.rows import QueueKey
from store_io.base.java.java_compat import int64
from store_io.base.ranges import Ranges, subtract, union

PUT_DTYPE = np.dtype([("first", "i8"), ("count", "i8"), ("first_phy", "i8"), ("last_phy", "i8"), ("scan", "i4")])
"""Runs that dispatch put: number of the first entry, how many, physical offsets of the first and the last record, the scan's
number."""
NO_PUTS = np.zeros(0, PUT_DTYPE)
NONE = -1


class QueueEnd(NamedTuple):
    """A stored maximum or minimum: the record's physical offset, and the queue offset."""

    phy_offset: int
    queue_offset: int


@dataclass(frozen=True)
class StoredEnds:
    """The ends of queues in a database.

    mark: the end of the last record whose entry is stored, 0 without one.
    refusal: why the database does not open.
    """

    mark: int = 0
    maxima: Mapping[QueueKey, QueueEnd] = field(default_factory=dict)
    minima: Mapping[QueueKey, QueueEnd] = field(default_factory=dict)
    refusal: Refusal | None = None


class EntryUnreadable(Exception):
    """Reading the entry, or the end, meets bad bytes: RocksDB throws, and so does what asked for it."""


StoredEntry = Callable[[QueueKey, int], int | None]


"""(queue, queue offset) -> the physical offset to which the stored entry leads; None: there is none. Raises EntryUnreadable."""


class BadEnds(Protocol):
    """The ends of queues if the family `offset` has bad bytes.

    They are the answers to a broker that asks by key, and the reach of its lists.
    """

    def lists(self, key: QueueKey) -> bool:
        """Say whether the queue's maximum comes before the first bad bytes: there a list ends, without an error."""

    def maximum(self, key: QueueKey) -> QueueEnd | None:
        """Return the stored maximum, or None. Raises EntryUnreadable."""

    def minimum(self, key: QueueKey) -> QueueEnd | None:
        """Return the stored minimum, or None. Raises EntryUnreadable."""

    def hidden(self) -> Iterable[QueueKey]:
        """Return queues with entries, whose maximum the bad bytes may hold."""


@dataclass
class RocksQueue:
    """A queue in RocksDB.

    stored: reads entries of the database.
    cut_back: truncation moved the maximum.
    or_else: the other answer, if the release itself leaves two open.
    maximum_bad, minimum_bad: bad bytes hold it; reading it throws.
    """

    key: QueueKey
    folder: str
    stored: StoredEntry
    maximum: QueueEnd | None = None
    stored_minimum: QueueEnd | None = None
    known_minimum: QueueEnd | None = None  # in the broker's heap
    puts: np.ndarray = field(default_factory=lambda: NO_PUTS)
    min_offset: int = 0
    cut_back: bool = False
    or_else: RocksQueue | None = None
    batch: bool = False
    maximum_bad: bool = False
    minimum_bad: bool = False

    @property
    def max_offset(self) -> int:
        """Return the answer of getMaxOffsetInQueue: the stored maximum is the last used one.

        Bad bytes can hold the greatest long.
        """
        return int64(self.maximum.queue_offset + 1) if self.maximum is not None else 0

    @property
    def max_phy(self) -> int:
        return self.maximum.phy_offset if self.maximum is not None else NONE

    def snapshot(self, log_min: int) -> RocksQueue:
        """Return the queue as it is now.

        The broker is asked for the minimum, and remembers its answer; -1 if reading an entry throws.
        """
        try:
            minimum = self.ask_minimum(log_min)
        except EntryUnreadable:
            minimum = NONE
        other = self.or_else.snapshot(log_min) if self.or_else is not None else None
        if other is not None and (other.min_offset, other.maximum) == (minimum, self.maximum):
            other = None  # what was put since then has made the two the same
        return replace(self, min_offset=minimum, or_else=other)

    def initialise(self, number: int) -> None:
        """Follow initializeWithOffset: no entry goes, and the queue continues with this number."""
        self.maximum = QueueEnd(0, int64(number - 1))
        self.known_minimum = self.stored_minimum = QueueEnd(0, number)

    # ---- entries ---------------------------------------------------------------------------------------------------

    def add(self, rows: np.ndarray) -> None:
        """Take in puts, in their order: the last record put is the new maximum, whatever its number."""
        self.puts = np.concatenate([self.puts, rows]) if len(self.puts) else rows
        last = rows[-1]
        self.maximum = QueueEnd(int(last["last_phy"]), int(last["first"] + last["count"]) - 1)
        self.cut_back = self.maximum_bad = False
        if self.or_else is not None:
            self.or_else.add(rows)

    def entry(self, number: int) -> int | None:
        """Return the physical offset to which the entry leads.

        Inside a put only its ends are known: any value between them is given.
        """
        row = self._held(number)
        if row is None:
            return self.stored(self.key, number)
        if number == row["first"] + row["count"] - 1:
            return int(row["last_phy"])
        return int(row["first_phy"]) + int(number != row["first"])

    def _held(self, number: int) -> np.void | None:
        """Return the last put with this number."""
        rows = self.puts
        held = np.flatnonzero((rows["first"] <= number) & (number < rows["first"] + rows["count"]))
        return rows[held[-1]] if len(held) else None

    def held_inside(self, number: int) -> np.void | None:
        """Return the put inside of which this number lies, so that the place of its entry is not known. None if it is known."""
        row = self._held(number)
        return None if row is None or number in (row["first"], row["first"] + row["count"] - 1) else row

    # ---- minimum ---------------------------------------------------------------------------------------------------

    def ask_minimum(self, log_min: int) -> int:
        """Return the answer of RocksDBConsumeQueueOffsetTable.getMinCqOffset, with all that it remembers.

        log_min: the minimum of the CommitLog.
        """
        known = self.known_minimum if self.known_minimum is not None else self.stored_minimum
        if known is not None and known.phy_offset >= log_min:
            self.known_minimum = known
            return known.queue_offset
        if self.maximum_bad or self.minimum_bad and known is None:
            raise EntryUnreadable(f"the ends of queue {self.key[1]} of topic {self.key[0]!r}")
        low = known.queue_offset if known is not None else 0
        found, corrected = self._corrected_minimum(low, log_min)
        if found is not None:
            self.known_minimum = self.stored_minimum = found
        return self.known_minimum.queue_offset if corrected and self.known_minimum is not None else low

    def _corrected_minimum(self, low: int, log_min: int) -> tuple[QueueEnd | None, bool]:
        """Follow correctMinCqOffset: return (what it stores, whether it says that it corrected)."""
        if self.maximum is None:
            return QueueEnd(log_min, 0), True
        if self.maximum.phy_offset < log_min:
            return QueueEnd(log_min, self.max_offset), True
        found: QueueEnd | None = None
        least, high = low, self.maximum.queue_offset
        while high >= low:
            middle = low + (high - low) // 2
            phy = self.entry(middle)
            if phy is None or phy < log_min:
                low = middle + 1
                continue
            found = QueueEnd(phy, middle)
            if phy == log_min:
                break
            high = middle - 1
        if found is not None:
            return found, True
        return (self.maximum if self.maximum.queue_offset != least else None), False

    # ---- truncation ------------------------------------------------------------------------------------------------

    def truncate(self, end: int, log_min: int) -> str:
        """Cut the maximum if it lies at or beyond the cut (truncateDirtyOffset). Returns why that throws, or "".

        From 5.3.2 on a throw is only logged; up to 5.3.1 load() fails over it.
        """
        if self.maximum is None or self.maximum.phy_offset < end:
            return ""
        try:
            return self._truncate(self.maximum, end, log_min)
        except EntryUnreadable as unreadable:
            return str(unreadable)

    def _truncate(self, maximum: QueueEnd, end: int, log_min: int) -> str:
        least = self.ask_minimum(log_min)
        minimum = self.known_minimum
        if minimum is None or minimum.queue_offset != least or minimum.phy_offset > end:  # "[BUG] correctMaxCqOffset error"
            return f"queue {self.key[1]} of topic {self.key[0]!r} begins beyond the end of the log, {end:,}"
        found: QueueEnd | None = None
        low, high = least, maximum.queue_offset
        while high >= low:
            middle = low + (high - low) // 2
            phy = self.entry(middle)
            if phy is None:
                low = middle + 1
            elif phy == end:
                break
            elif phy > end:
                high = middle - 1
            else:
                found = QueueEnd(phy, middle)
                low = middle + 1
        if found is not None:
            self.maximum = found
        elif maximum.queue_offset != least:
            self.maximum = minimum
        return ""

    # ---- what is served --------------------------------------------------------------------------------------------

    def stored_and_served(self) -> Ranges:
        """Return the numbers that are served as they are stored, if they are. Consumers find none if the minimum is not known."""
        if self.min_offset < 0:
            return []
        put = union((int(r["first"]), int(r["first"] + r["count"])) for r in self.puts)
        return subtract([(self.min_offset, self.max_offset)] if self.min_offset < self.max_offset else [], put)

    def put_and_served(self) -> Sequence[tuple[int, int, int, int]]:
        """Return (first queue offset, last + 1, first and last physical offset) of puts that are served.

        A later put takes the entries of an earlier one with the same queue offsets.
        """
        rows = self.puts[(self.puts["first"] < self.max_offset) & (self.puts["first"] + self.puts["count"] > self.min_offset)]
        ends = np.minimum(rows["first"] + rows["count"], self.max_offset)
        firsts = np.maximum(rows["first"], self.min_offset)
        firsts, ends, numbers = _last_put(firsts, ends)
        phys = rows["first_phy"][numbers], rows["last_phy"][numbers]
        return list(zip(firsts.tolist(), ends.tolist(), *(column.tolist() for column in phys), strict=True))


def _last_put(firsts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (first, end, number) of the parts of these ranges that no later one of them covers."""
    order = np.argsort(firsts, kind="stable")
    starts = firsts[order]
    if not (starts[1:] < np.maximum.accumulate(ends[order])[:-1]).any():
        return firsts, ends, np.arange(len(firsts))
    edges = np.unique(np.concatenate([firsts, ends]))
    found: list[tuple[int, int, int]] = []
    open_puts: list[tuple[int, int]] = []  # (-number, end): the last one first
    at = 0
    for low, high in pairwise(edges.tolist()):
        while at < len(order) and starts[at] <= low:
            heappush(open_puts, (-int(order[at]), int(ends[order[at]])))
            at += 1
        while open_puts and open_puts[0][1] <= low:
            heappop(open_puts)
        if open_puts:
            number = -open_puts[0][0]
            if found and found[-1][1:] == (low, number):
                found[-1] = found[-1][0], high, number
            else:
                found.append((low, high, number))
    columns = np.array(found, np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]
