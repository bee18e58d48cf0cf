"""All runs of a store's segments by queue, as columns: a store of a thousand segments and ten thousand queues has ten million.

One table holds them; a segment's own `runs` become a part of it, a queue's are gathered from it when they are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from schemas.rows import RUN_DTYPE, RUN_LMQ, RUN_UNQUEUED, WALK_AUDIT, QueueKey, SegmentSummary

FAR = 1 << 61  # numbers of such size come from damage; sums of smaller ones fit into 64 bits
NO_RUNS = np.zeros(0, RUN_DTYPE)


class StoreRuns:
    """The runs of these segments, in their order. The segments' `runs` are replaced by equal parts of `rows`."""

    def __init__(self, segments: Sequence[SegmentSummary]):
        self.rows = np.concatenate([s.runs for s in segments]) if segments else NO_RUNS
        self.bases = np.array([s.base_offset for s in segments], np.int64)
        self.edges = np.cumsum([0, *(len(s.runs) for s in segments)])
        for segment, start, end in zip(segments, self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            segment.runs = self.rows[start:end]

    def by_queue(self, segments: Sequence[SegmentSummary], lmq_expected: bool, known: Mapping[QueueKey, object]) -> _ByQueue:
        """The audit's runs of each queue, in the order of segments and runs; queues in the order in which they are met.

        lmq_expected: whether runs of multi-dispatch queues count for queues other than the `known` ones too.
        """
        numbers: dict[QueueKey, int] = {}
        queue_of = np.full(len(self.rows), -1, np.int32)
        rows = self.rows
        wanted = (rows["walk"] & WALK_AUDIT != 0) & (rows["kind"] != RUN_UNQUEUED)
        lmq = rows["kind"] == RUN_LMQ
        for segment, start, end in zip(segments, self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            chosen = wanted[start:end]
            if not lmq_expected and lmq[start:end].any():
                unknown = np.array([key not in known for key in segment.queues], bool)
                chosen &= ~(lmq[start:end] & unknown[rows["queue"][start:end]])
            own = rows["queue"][start:end]
            met, first = np.unique(own[chosen], return_index=True)
            places = np.full(len(segment.queues), -1, np.int32)
            for local in met[np.argsort(first)].tolist():
                places[local] = numbers.setdefault(segment.queues[local], len(numbers))
            queue_of[start:end] = np.where(chosen, places[own], -1) if len(places) else -1
        order = np.argsort(queue_of, kind="stable")[int((queue_of < 0).sum()) :].astype(np.int64)
        bounds = np.searchsorted(queue_of[order], np.arange(len(numbers) + 1))
        return _ByQueue(self, order, {key: (int(bounds[n]), int(bounds[n + 1])) for key, n in numbers.items()})


class _ByQueue:
    """Queue -> its runs, as places in the table."""

    def __init__(self, table: StoreRuns, order: np.ndarray, parts: Mapping[QueueKey, tuple[int, int]]):
        self.table, self.parts = table, parts
        self._order = order

    def __getitem__(self, key: QueueKey) -> QueueRuns:
        start, end = self.parts[key]
        return QueueRuns(self.table, self._order[start:end])


class QueueRuns:
    """One queue's runs: `rows` gathers them anew each time, so that ten thousand queues do not hold all twice."""

    def __init__(self, table: StoreRuns | None = None, places: np.ndarray | None = None):
        self._table = table
        self._places = places if places is not None else np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def rows(self) -> np.ndarray:
        """The runs as RUN_DTYPE."""
        return self._table.rows[self._places] if self._table is not None else NO_RUNS

    @property
    def segments(self) -> np.ndarray:
        """The number of the segment that each lies in."""
        if self._table is None:
            return np.zeros(0, np.int64)
        found: np.ndarray = np.searchsorted(self._table.edges, self._places, side="right") - 1
        return found

    @property
    def positions(self) -> np.ndarray:
        """Where each begins in the CommitLog, by its segment's name: a physical offset."""
        if self._table is None:
            return np.zeros(0, np.int64)
        found: np.ndarray = self._table.bases[self.segments] + self._table.rows["first_position"][self._places]
        return found


def stretches(first: np.ndarray, count: np.ndarray) -> list[tuple[int, int]]:
    """[first, first + count) of each, where one goes on with the last one's end as one range; exact whatever the numbers."""
    if not len(first):
        return []
    breaks = (first[1:] != first[:-1] + count[:-1]) | (np.abs(first[1:]) > FAR) | (first[1:] == np.iinfo(np.int64).min)
    starts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
    ends = np.concatenate((starts[1:], [len(first)]))
    total = np.concatenate(([0], np.cumsum(count)))
    lengths = total[ends] - total[starts]
    return [(a, a + n) for a, n in zip(first[starts].tolist(), lengths.tolist(), strict=True)]
