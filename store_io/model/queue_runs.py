"""Gathers all runs of a store's segments by queue, as columns.

A store of a thousand segments and ten thousand queues has ten million runs. One table holds them; a segment's own `runs` become a
part of it, a queue's are gathered from it when they are looked at. If they are too many for memory, the mapping of `stored_runs`
takes the table's place: each segment's lie in a temporary file once more, queue after queue. They are read for some neighbouring
queues at a time, so a walk through the queues in their order reads each run once.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.rows import (
    MATCH_DIFFERS,
    MATCH_EQUAL,
    MATCH_MISSING,
    MATCH_SHIFTED,
    RUN_DTYPE,
    RUN_LMQ,
    RUN_QUEUE,
    RUN_UNQUEUED,
    WALK_AUDIT,
    QueueKey,
    SegmentSummary,
)
from store_io.base.spill import Spilled, part_of, spill

FAR = 1 << 61  # numbers of such size come from damage; sums of smaller ones fit into 64 bits
BLOCK_QUEUES = 64
NO_RUNS = np.zeros(0, RUN_DTYPE)
BLOCK_RUNS = 1 << 17  # read together, or those of one queue that has more


def message_runs(segment: SegmentSummary, start: int = 0) -> np.ndarray:
    """Return the runs of the audit's walk in which each message is once.

    start: runs that begin before this byte of the segment are left out.
    """
    runs = segment.runs
    own = (runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_LMQ) & (runs["first_position"] >= start)
    found: np.ndarray = runs[own]
    return found


def messages_in(rows: np.ndarray) -> int:
    """Return messages of these runs, those of an inner batch one by one. A damaged INNER_NUM can be negative and counts as 0."""
    return int(np.maximum(rows["messages"], 0).sum())


def left_in(rows: np.ndarray) -> int:
    """Return messages of these runs that a repair leaves out: at least one for each record, whatever its INNER_NUM says."""
    return int(np.maximum(rows["messages"], rows["records"]).sum())


def matched(rows: np.ndarray) -> np.ndarray:
    """Say to which of these runs an entry leads."""
    match = rows["match"]
    found: np.ndarray = (match == MATCH_EQUAL) | (match == MATCH_SHIFTED) | (match == MATCH_DIFFERS)
    return found


class RunsByQueue(Mapping[QueueKey, "QueueRuns"]):
    """Queue -> its runs of the audit's walk, in the order of segments and runs; queues by key."""

    def __init__(self, bases: np.ndarray, keys: Sequence[QueueKey], bounds: np.ndarray):
        """Take the parts of the runs.

        bases: those of the segments.
        keys: the queues that have runs.
        bounds: the begin of the runs of each queue, and the end.
        """
        self.bases, self.keys_in_order, self.bounds = bases, keys, bounds

    def __len__(self) -> int:
        return len(self.keys_in_order)

    def __iter__(self) -> Iterator[QueueKey]:
        return iter(self.keys_in_order)

    def __getitem__(self, key: QueueKey) -> QueueRuns:
        number = bisect_left(self.keys_in_order, key)
        if number == len(self.keys_in_order) or self.keys_in_order[number] != key:
            raise KeyError(key)
        return QueueRuns(self, number, int(self.bounds[number]), int(self.bounds[number + 1]))

    def of(self, key: QueueKey) -> QueueRuns:
        """Return the runs of a queue, which may have none."""
        return self.get(key) or QueueRuns()

    @abstractmethod
    def rows(self, number: int, start: int, end: int) -> np.ndarray:
        """Return the runs [start, end) of all, which are those of one queue. Not to be changed."""

    @abstractmethod
    def segments(self, number: int, start: int, end: int) -> np.ndarray:
        """Return the number of the segment that each lies in."""


def bases_of(segments: Sequence[SegmentSummary]) -> np.ndarray:
    return np.array([s.base_offset for s in segments], np.int64)


def counted(runs: np.ndarray, queues: Sequence[QueueKey], lmq_expected: bool, known: Mapping[QueueKey, object]) -> np.ndarray:
    """Say which of a segment's runs a queue has by the audit's walk.

    lmq_expected, known: as `StoreRuns.by_queue` has them.
    """
    chosen: np.ndarray = (runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_UNQUEUED)
    lmq = runs["kind"] == RUN_LMQ
    if not lmq_expected and lmq.any():
        unknown = np.array([key not in known for key in queues], bool)
        chosen &= ~(lmq & unknown[runs["queue"]])
    return chosen


class StoreRuns:
    """The runs of these segments, in their order. The segments' `runs` are replaced by equal parts of `rows`."""

    def __init__(self, segments: Sequence[SegmentSummary]):
        self.rows = np.concatenate([s.runs for s in segments]) if segments else NO_RUNS
        self.bases = bases_of(segments)
        self.edges = np.cumsum([0, *(len(s.runs) for s in segments)])
        for segment, start, end in zip(segments, self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            segment.runs = self.rows[start:end]

    def by_queue(self, segments: Sequence[SegmentSummary], lmq_expected: bool, known: Mapping[QueueKey, object]) -> RunsByQueue:
        """Return the runs of each queue of these segments.

        lmq_expected: whether runs of multi-dispatch queues count for queues other than the `known` ones too.
        """
        numbers: dict[QueueKey, int] = {}
        queue_of = np.full(len(self.rows), -1, np.int32)
        named: Sequence[QueueKey] = ()
        places = np.zeros(0, np.int32)
        for segment, start, end in zip(segments, self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            chosen = counted(self.rows[start:end], segment.queues, lmq_expected, known)
            own = self.rows["queue"][start:end]
            used = np.zeros(len(segment.queues), bool)
            used[own[chosen]] = True
            if segment.queues is not named:
                named, places = segment.queues, np.full(len(segment.queues), -1, np.int32)
            for local in np.flatnonzero(used & (places < 0)).tolist():
                places[local] = numbers.setdefault(segment.queues[local], len(numbers))
            queue_of[start:end] = np.where(chosen, places[own], -1) if len(places) else -1
        # Neighbours by key lie side by side: a walk through the queues in that order meets each block once.
        ranks = np.full(len(numbers) + 1, -1, np.int32)
        keys = sorted(numbers)
        ranks[[numbers[key] for key in keys]] = np.arange(len(keys))
        queue_of = ranks[queue_of]
        order = np.argsort(queue_of, kind="stable")[int((queue_of < 0).sum()) :]
        bounds = np.searchsorted(queue_of[order], np.arange(len(keys) + 1))
        return _InTable(self, order, keys, bounds)


class _InTable(RunsByQueue):
    """Runs by queue, as places in the table."""

    def __init__(self, table: StoreRuns, places: np.ndarray, keys: Sequence[QueueKey], bounds: np.ndarray):
        super().__init__(table.bases, keys, bounds)
        self._table, self._places = table, places
        self._block: tuple[int, int, np.ndarray] = (0, 0, NO_RUNS)  # (start, end, rows) of some neighbouring queues

    def rows(self, number: int, start: int, end: int) -> np.ndarray:
        # Gathered with those of the queue's neighbours, which lie beside them in each segment.
        low, high, block = self._block
        if not low <= start <= end <= high:
            first = number - number % BLOCK_QUEUES
            low, high = (int(self.bounds[at]) for at in (first, min(first + BLOCK_QUEUES, len(self))))
            places = self._places[low:high]
            order = np.argsort(places)
            block = np.empty(high - low, RUN_DTYPE)
            block[order] = self._table.rows[places[order]]
            self._block = low, high, block
        return block[start - low : end - low]

    def segments(self, number: int, start: int, end: int) -> np.ndarray:
        found: np.ndarray = np.searchsorted(self._table.edges, self._places[start:end], side="right") - 1
        return found


class QueueRuns:
    """One queue's runs: `rows` gathers them when it is asked, so that ten thousand queues do not hold all twice."""

    __slots__ = ("_end", "_number", "_source", "_start")

    def __init__(self, source: RunsByQueue | None = None, number: int = 0, start: int = 0, end: int = 0):
        self._source, self._number, self._start, self._end = source, number, start, end

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def rows(self) -> np.ndarray:
        """Return the runs as RUN_DTYPE. Not to be changed."""
        return self._source.rows(self._number, self._start, self._end) if self._source is not None else NO_RUNS

    @property
    def segments(self) -> np.ndarray:
        """Return the number of the segment that each lies in."""
        if self._source is None:
            return np.zeros(0, np.int64)
        return self._source.segments(self._number, self._start, self._end)

    @property
    def positions(self) -> np.ndarray:
        """Return the begin of each run in the CommitLog, by its segment's name: a physical offset."""
        if self._source is None:
            return np.zeros(0, np.int64)
        found: np.ndarray = self._source.bases[self.segments] + self.rows["first_position"]
        return found


class Beginning(NamedTuple):
    """The place at which a queue's offsets begin again, and the queue on disk holds the messages after it.

    Its topic was deleted and made again, or its files were removed. No start puts the earlier messages back that have no entry.
    position: the physical offset of the first message of the later life.
    queue_offset: its own.
    """

    position: int
    queue_offset: int


def beginnings(rows: np.ndarray, positions: np.ndarray, steps: np.ndarray, batch: bool, keyed: bool) -> list[Beginning]:
    """Return the places at which one queue begins again.

    steps: how many queue offsets each of its runs takes up.
    keyed: its entries are in RocksDB. There a later message's entry takes the place of an earlier one's and sets the queue's end,
    so others may stay beyond.
    A damaged queue offset is no such place: an entry at that offset leads to another message, or the offsets continue after it as
    they did before. Nor is a place after which no earlier message lacks its entry.
    """
    own = np.flatnonzero(rows["kind"] == RUN_QUEUE)
    if len(own) < 2:
        return []
    own = own[np.argsort(positions[own], kind="stable")]
    rows, positions = rows[own], positions[own]
    firsts, ends = rows["queue_offset"], rows["queue_offset"] + steps[own]
    falls = np.flatnonzero(firsts[1:] < ends[:-1]) + 1
    if not len(falls):
        return []
    exact = (rows["match"] == MATCH_EQUAL) & (batch | (rows["delta"] == 0))
    absent, led_to = rows["match"] == MATCH_MISSING, matched(rows)
    entries = rows["delta"] if batch else firsts + rows["delta"]
    found = []
    for at in falls[exact[falls]].tolist():
        first, single = int(firsts[at]), rows["records"][at] == 1
        if single and at + 1 < len(rows) and firsts[at + 1] in (ends[at - 1], ends[at - 1] + 1):
            continue
        again = ends[:at] > first
        # A file is written from its front to its end: what comes after an entry leads to later messages.
        kept = led_to[:at] & (entries[:at] >= entries[at])
        if (absent[:at] & again).any() and (keyed or not kept.any()):
            found.append(Beginning(int(positions[at]), first))
    return found


def stretches(first: np.ndarray, count: np.ndarray) -> list[tuple[int, int]]:
    """Return the ranges [first, first + count); ranges that begin at the end of the last one are joined.

    Exact for all numbers.
    """
    if not len(first):
        return []
    breaks = (first[1:] != first[:-1] + count[:-1]) | (np.abs(first[1:]) > FAR) | (first[1:] == np.iinfo(np.int64).min)
    starts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
    ends = np.concatenate((starts[1:], [len(first)]))
    total = np.concatenate(([0], np.cumsum(count)))
    lengths = total[ends] - total[starts]
    return [(a, a + n) for a, n in zip(first[starts].tolist(), lengths.tolist(), strict=True)]


@dataclass(frozen=True)
class _OfSegment:
    """A segment's runs, sorted by queue. Their `queue` is the queue's place among all queues, not the segment's own number."""

    data: Spilled | bytes

    def rows(self, start: int, end: int) -> np.ndarray:
        size = RUN_DTYPE.itemsize
        return np.frombuffer(part_of(self.data, start * size, (end - start) * size), RUN_DTYPE)


def stored_runs(segments: Sequence[SegmentSummary], lmq_expected: bool, known: Mapping[QueueKey, object]) -> RunsByQueue:
    """Return the runs of each queue, as `StoreRuns.by_queue` gives them."""
    keys = sorted({key for segment in segments for key in segment.queues})
    ranks = {key: rank for rank, key in enumerate(keys)}
    counts = np.zeros(len(keys), np.int64)
    parts: list[tuple[_OfSegment, int]] = []
    named: Sequence[QueueKey] | None = None
    for segment in segments:
        runs = segment.runs
        if segment.queues is not named:
            named, rank_of = segment.queues, np.array([ranks[key] for key in segment.queues], np.int32)
        chosen = np.flatnonzero(counted(runs, segment.queues, lmq_expected, known))
        own = rank_of[runs["queue"][chosen]]
        order = np.argsort(own, kind="stable")
        rows = runs[chosen[order]]
        rows["queue"] = own[order]
        counts += np.bincount(own, minlength=len(keys))
        parts.append((_OfSegment(spill(rows.tobytes())), len(rows)))
    met = np.flatnonzero(counts)
    bounds = np.concatenate(([0], np.cumsum(counts[met])))
    firsts = _blocks(bounds)
    edges = np.append(met, len(keys))[firsts]
    cuts = np.array([np.searchsorted(part.rows(0, count)["queue"], edges) for part, count in parts])
    own_keys = [keys[rank] for rank in met.tolist()]
    return _InFiles(bases_of(segments), own_keys, bounds, [part for part, _ in parts], firsts, cuts)


def _blocks(bounds: np.ndarray) -> np.ndarray:
    """Return the number of the first queue of each block, and the number of queues."""
    firsts = [0]
    while firsts[-1] < len(bounds) - 1:
        within = int(np.searchsorted(bounds, bounds[firsts[-1]] + BLOCK_RUNS, side="right")) - 1
        firsts.append(max(within, firsts[-1] + 1))
    return np.array(firsts, np.int64)


class _InFiles(RunsByQueue):
    """Runs by queue, of which one block is in memory."""

    def __init__(
        self,
        bases: np.ndarray,
        keys: Sequence[QueueKey],
        bounds: np.ndarray,
        parts: Sequence[_OfSegment],
        firsts: np.ndarray,
        cuts: np.ndarray,
    ):
        """Take the parts of the runs.

        firsts: as `_blocks` gives them.
        cuts: for each segment the begin of the runs of each block, and the end.
        """
        super().__init__(bases, keys, bounds)
        self._parts, self._firsts, self._cuts = parts, firsts, cuts
        self._block: tuple[int, np.ndarray, np.ndarray] | None = None  # (its number, rows, the segment of each)

    def rows(self, number: int, start: int, end: int) -> np.ndarray:
        low, rows, _ = self._opened(number)
        return rows[start - low : end - low]

    def segments(self, number: int, start: int, end: int) -> np.ndarray:
        low, _, segments = self._opened(number)
        return segments[start - low : end - low]

    def _opened(self, number: int) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the block of a queue: (the place of its first run among all, the rows, their segments)."""
        place = int(np.searchsorted(self._firsts, number, side="right")) - 1
        block = self._block
        if block is None or block[0] != place:
            block = self._block = None  # never two of them
            starts, ends = self._cuts[:, place], self._cuts[:, place + 1]
            there = np.flatnonzero(starts < ends)
            rows = np.concatenate([self._parts[n].rows(int(starts[n]), int(ends[n])) for n in there.tolist()])
            order = np.argsort(rows["queue"], kind="stable")
            block = self._block = place, rows[order], np.repeat(there, ends[there] - starts[there])[order]
        return int(self.bounds[self._firsts[place]]), block[1], block[2]
