"""Decoded rows -> runs: what the broker's decisions are folded over, and what index building is folded over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from schemas import commitlog_layout as layout
from schemas.rows import (
    INDEX_RUN_DTYPE,
    MATCH_DIFFERS,
    MATCH_EQUAL,
    RUN_DTYPE,
    RUN_QUEUE,
    RUN_UNQUEUED,
    Cuts,
    QueueKey,
)
from store_io.message_columns import HAS_TAGS

# What a row is to its queue. The first three are RUN_*; a message of a BatchConsumeQueue topic counts in messages, not entries.
KIND_BATCH = 3
NO_CUTS = np.zeros(0, np.int64)


@njit(cache=True, nogil=True)
def row_kinds(rows, count, batch_refs, kinds):  # type: ignore[no-untyped-def]
    """Fill `kinds` for the first `count` rows. batch_refs: per topic ref, whether it is a BatchConsumeQueue's."""
    for i in range(count):
        transaction = rows[i].sys_flag & layout.SYS_TRANSACTION_MASK
        if transaction == layout.SYS_PREPARED or transaction == layout.SYS_ROLLBACK:
            kinds[i] = RUN_UNQUEUED
        elif batch_refs[rows[i].topic_ref]:
            kinds[i] = KIND_BATCH
        else:
            kinds[i] = RUN_QUEUE


@njit(cache=True, nogil=True)
def _extend_runs(rows, kinds, matches, deltas, cuts, low, high, walk, plausible, base, open_run, open_cut, runs, used):  # type: ignore[no-untyped-def]
    """Fold rows [low, high) into `runs`. Gives (next row, runs in use); next row < high: no room in `runs`.

    open_run: per queue two slots (with a ConsumeQueue entry or without), the number of the run that may still grow, or -1.
    """
    for i in range(low, high):
        row = rows[i]
        kind = kinds[i]
        batch = kind == KIND_BATCH
        first = row.batch_base if batch else row.queue_offset
        messages = np.int64(row.batch_count) if batch else np.int64(1)
        slot = 2 * row.topic_ref + (1 if kind == RUN_UNQUEUED else 0)
        kind_out = RUN_QUEUE if batch else kind
        regular = row.phy_offset == base + row.position and not (batch and (first < 0 or messages < 0))
        cut = cuts[i] if len(cuts) else np.int64(0)
        on_disk = matches[i] == MATCH_EQUAL or matches[i] == MATCH_DIFFERS
        number = open_run[slot]
        if number >= 0 and regular:
            run = runs[number]
            if (
                run.walk == walk
                and run.kind == kind_out
                and run.match == matches[i]
                and run.plausible == plausible
                and run.regular == 1
                and run.last_phy_offset < row.phy_offset
                and (kind == RUN_UNQUEUED or first == run.queue_offset + run.messages)
                and deltas[i] == (run.delta + run.records if batch and on_disk else run.delta)
                and open_cut[slot] == cut
            ):
                run.records += 1
                run.messages += messages
                run.last_phy_offset = row.phy_offset
                run.last_size = row.total_size
                run.bytes += row.total_size
                run.last_store_time = row.store_time
                continue
        if used == len(runs):
            return i, used
        run = runs[used]
        run.walk = walk
        run.kind = kind_out
        run.match = matches[i]
        run.plausible = plausible
        run.regular = 1 if row.phy_offset == base + row.position else 0
        run.queue = row.topic_ref
        run.queue_offset = first
        run.records = 1
        run.messages = messages
        run.delta = deltas[i]
        run.first_position = row.position
        run.first_phy_offset = row.phy_offset
        run.first_size = row.total_size
        run.last_phy_offset = row.phy_offset
        run.last_size = row.total_size
        run.bytes = row.total_size
        run.first_store_time = row.store_time
        run.last_store_time = row.store_time
        run.tags_code = row.tags_code
        open_run[slot] = used if regular else -1
        open_cut[slot] = cut
        used += 1
    return high, used


@njit(cache=True, nogil=True)
def _extend_index_runs(rows, cuts, low, high, walk, base, tag_index, runs, used, open_cut, numbers, before):  # type: ignore[no-untyped-def]
    """Fold rows [low, high) into index runs; the last run in use may still grow, when its cut is `open_cut`.

    numbers, before: of length 0, or per row the run's number and the keys that the run had before this row.
    Gives (next row, runs in use, cut of the open run).
    """
    for i in range(low, high):
        row = rows[i]
        keys = np.int64(row.key_count)
        if tag_index and row.flags & HAS_TAGS and row.sys_flag & layout.SYS_TRANSACTION_MASK != layout.SYS_ROLLBACK:
            keys += 1
        regular = row.phy_offset == base + row.position
        cut = cuts[i] if len(cuts) else np.int64(0)
        end = row.phy_offset + row.total_size
        grows = False
        if used > 0 and regular:
            run = runs[used - 1]
            grows = run.walk == walk and run.regular == 1 and run.last_phy_offset < row.phy_offset and cut == open_cut
        if not grows:
            if used == len(runs):
                return i, used, open_cut
            run = runs[used]
            run.walk = walk
            run.regular = 1 if regular else 0
            run.records = 0
            run.keys = 0
            run.first_phy_offset = row.phy_offset
            run.first_end = end
            run.first_key_phy_offset = -1
            run.last_key_phy_offset = -1
            open_cut = cut
            used += 1
        run = runs[used - 1]
        if len(numbers):
            numbers[i] = used - 1
            before[i] = run.keys
        run.records += 1
        run.last_phy_offset = row.phy_offset
        run.last_end = end
        if keys > 0:
            if run.keys == 0:
                run.first_key_phy_offset = row.phy_offset
                run.first_key_store_time = row.store_time
            run.keys += keys
            run.last_key_phy_offset = row.phy_offset
            run.last_key_store_time = row.store_time
    return high, used, open_cut


def grown(array: np.ndarray, size: int, fill: int) -> np.ndarray:
    """The array, at least `size` long; what is new holds `fill`."""
    if len(array) >= size:
        return array
    larger = np.full(max(size, 2 * len(array)), fill, array.dtype)
    larger[: len(array)] = array
    return larger


class RunBuilder:
    """Runs and index runs of one segment, batch by batch, in scan order."""

    def __init__(self, base_offset: int, tag_index: bool, cuts: Cuts, marks: Sequence[tuple[int, int]] = ()):
        self._base = base_offset
        self._tag_index = tag_index
        self._runs = np.zeros(256, RUN_DTYPE)
        self._used = 0
        self._open_run = np.full(128, -1, np.int64)
        self._open_cut = np.zeros(128, np.int64)
        self._index_runs = np.zeros(64, INDEX_RUN_DTYPE)
        self._index_used = 0
        self._index_cut = 0
        self._cuts = cuts
        self._cut_at = np.array(sorted(cuts.phy_offsets), np.int64)
        self._cuts_on = bool(cuts.phy_offsets or cuts.by_queue or cuts.queue_offsets)
        self._marks = sorted(marks)
        self.answers: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def runs(self) -> np.ndarray:
        return self._runs[: self._used].copy()

    @property
    def index_runs(self) -> np.ndarray:
        return self._index_runs[: self._index_used].copy()

    def cut_numbers(self, rows: np.ndarray, keys: Sequence[QueueKey], first: np.ndarray) -> np.ndarray:
        """A number per row that differs where a cut lies between two of them; without cuts an empty array.

        first: the queue offset that a cut by queue offset means. Counts of thresholds passed only grow along ascending
        physical offsets, and a run never takes in anything else, so their sum serves for all of them.
        """
        if not self._cuts_on:
            return NO_CUTS
        numbers = passed(self._cut_at, rows)
        for ref in np.unique(rows["topic_ref"]):
            key = keys[ref]
            mine = rows["topic_ref"] == ref
            if key in self._cuts.by_queue:
                numbers[mine] += passed(np.array(sorted(self._cuts.by_queue[key]), np.int64), rows[mine])
            if key in self._cuts.queue_offsets:
                at = np.array(sorted(self._cuts.queue_offsets[key]), np.int64)
                numbers[mine] += np.searchsorted(at, first[mine], "right")
        return numbers

    def add(
        self,
        rows: np.ndarray,
        kinds: np.ndarray,
        matches: np.ndarray,
        deltas: np.ndarray,
        cuts: np.ndarray,
        low: int,
        high: int,
        walk: int,
        plausible: bool,
        queues: int,
    ) -> None:
        """Fold rows [low, high) into the runs. queues: how many queues are known by now."""
        self._open_run = grown(self._open_run, 2 * queues, -1)
        self._open_cut = grown(self._open_cut, 2 * queues, 0)
        while low < high:
            low, self._used = _extend_runs(
                rows, kinds, matches, deltas, cuts, low, high, walk, int(plausible), self._base,
                self._open_run, self._open_cut, self._runs, self._used,
            )  # fmt: skip
            if low < high:
                self._runs = np.concatenate([self._runs, np.zeros(len(self._runs), RUN_DTYPE)])

    def add_index(self, rows: np.ndarray, low: int, high: int, walk: int) -> None:
        """Fold messages [low, high) into the index runs, and answer the marks among them."""
        start = low
        cuts = passed(self._cut_at, rows) if len(self._cut_at) else NO_CUTS
        numbers = before = NO_CUTS
        if self._marks:
            numbers, before = np.zeros(high, np.int64), np.zeros(high, np.int64)
        while low < high:
            low, self._index_used, self._index_cut = _extend_index_runs(
                rows, cuts, low, high, walk, self._base, self._tag_index, self._index_runs, self._index_used, self._index_cut,
                numbers, before,
            )  # fmt: skip
            if low < high:
                self._index_runs = np.concatenate([self._index_runs, np.zeros(len(self._index_runs), INDEX_RUN_DTYPE)])
        for number, key in self._marks:
            mine = start + np.flatnonzero(numbers[start:high] == number)
            passed_by = mine[before[mine] < key]
            if len(passed_by) and (number, key) not in self.answers:
                last = passed_by[-1]
                row = rows[last]
                tags = self._tag_index and bool(row["flags"] & HAS_TAGS)
                if row["sys_flag"] & layout.SYS_TRANSACTION_MASK == layout.SYS_ROLLBACK:
                    tags = False
                if before[last] + int(row["key_count"]) + int(tags) >= key:
                    self.answers[number, key] = int(row["phy_offset"]), int(row["store_time"])


def passed(thresholds: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Per row, how many of the three breaks of every threshold (see `Cuts`) lie before or at it."""
    phy = rows["phy_offset"]
    numbers = np.searchsorted(thresholds, phy, "left") + np.searchsorted(thresholds, phy, "right")
    total: np.ndarray = numbers + np.searchsorted(thresholds, phy + rows["total_size"], "left")
    return total
