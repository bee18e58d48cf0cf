"""Runs by queue where they are too many for memory: each segment's lie in a temporary file once more, queue after queue.

They are read for some neighbouring queues at a time, so a walk through the queues in their order reads each run once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.rows import RUN_DTYPE, QueueKey, SegmentSummary
from store_io.base.spill import Spilled, part_of, spill
from store_io.model.queue_runs import RunsByQueue, bases_of, counted

BLOCK_RUNS = 1 << 17  # read together, or those of one queue that has more


@dataclass(frozen=True)
class _OfSegment:
    """A segment's runs, sorted by queue. Their `queue` is the queue's place among all queues, not the segment's own number."""

    data: Spilled | bytes

    def rows(self, start: int, end: int) -> np.ndarray:
        size = RUN_DTYPE.itemsize
        return np.frombuffer(part_of(self.data, start * size, (end - start) * size), RUN_DTYPE)


def stored_runs(segments: Sequence[SegmentSummary], lmq_expected: bool, known: Mapping[QueueKey, object]) -> RunsByQueue:
    """The runs of each queue, as `StoreRuns.by_queue` gives them."""
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
    """The number of the first queue of each block, and the number of queues."""
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
