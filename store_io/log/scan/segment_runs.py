"""Decoded rows -> runs: what the broker's decisions are folded over, and what index building is folded over.

One compiled pass over a batch does all that is asked per message: its ConsumeQueue entry, its run, its index run, its store
time. A row is read once; what needs more than a glance is handed back to Python one message at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas import rows as of_rows
from schemas.layouts import commitlog_layout
from schemas.layouts import consumequeue_layout as layout
from schemas.rows import INDEX_RUN_DTYPE, RUN_DTYPE, Cuts, QueueKey
from store_io.base.compiled import native
from store_io.base.compiled.native import (
    Address,
    compiled_helper,
    kept,
    load_i16,
    load_i32,
    load_i64,
    peek_i32,
    peek_i64,
    prefetch,
)
from store_io.broker import releases
from store_io.log.entries import queue_probe as probed
from store_io.log.entries.queue_probe import QueueProbe
from store_io.log.records import message_columns
from store_io.log.records import segment_items as item
from store_io.log.records.message_columns import DEFAULT_CAPACITY, HAS_TAGS, INNER_ALONE, SCHEDULE, entry_counts
from store_io.log.records.segment_items import FAR, KIND_BATCH, grown

NO_NUMBERS = np.zeros(0, np.int64)
NO_MATCHES = np.zeros(0, np.uint8)
FAR_MS = 1 << 62  # keeps differences of damaged times from wrapping
TOLERANCE_MS = 5_000  # by how much store times may fall: what small corrections of a clock do

DONE, NO_RUN, NO_INDEX_RUN, LOAD, RESOLVE = range(5)
_NEEDS = ("nothing", "room for a run", "room for an index run", "the entries of its queue", "a search for its entry")

# Columns of a run while it is built, all int64, in the order of RUN_DTYPE and INDEX_RUN_DTYPE.
(
    _R_WALK, _R_KIND, _R_MATCH, _R_PLAUSIBLE, _R_REGULAR, _R_QUEUE, _R_QUEUE_OFFSET, _R_RECORDS, _R_MESSAGES, _R_DELTA,
    _R_POSITION, _R_PHY, _R_SIZE, _R_LAST_PHY, _R_LAST_SIZE, _R_BYTES, _R_TIME, _R_LAST_TIME, _R_TAGS,
) = range(len(RUN_DTYPE.names or ()))  # fmt: skip
(
    _I_WALK, _I_REGULAR, _I_RECORDS, _I_KEYS, _I_PHY, _I_LAST_PHY, _I_END, _I_LAST_END, _I_KEY_PHY, _I_KEY_TIME, _I_LAST_KEY_PHY,
    _I_LAST_KEY_TIME,
) = range(len(INDEX_RUN_DTYPE.names or ()))  # fmt: skip

# What a pass gets and gives back, in one int64 array.
(
    _WALK, _PLAUSIBLE, _BASE, _TAG_INDEX, _PROBING, _LMQ, _TIMING, _PER_SLOT,
    _RUNS, _INDEX_RUNS, _INDEX_CUT, _FORCED, _FORCED_MATCH, _FORCED_DELTA, _TIME, _FIRST_TIME, _LAST_TIME, _FALLS, _CURSOR,
) = range(19)  # fmt: skip


@compiled_helper()
def _is_entry_of(row, entry, states):  # type: ignore[no-untyped-def]
    """Say whether the entry at this address is the message's. One with the address of an extension unit leads to its tags."""
    ref, store_time, tags_code = peek_i32(row + item.TOPIC_REF), peek_i64(row + item.STORE_TIME), peek_i64(row + item.TAGS_CODE)
    found_tags = load_i64(entry + 12)
    schedule = peek_i32(row + item.FLAGS) & SCHEDULE
    right = found_tags == tags_code or schedule and found_tags - store_time in probed.OTHER_DELAYS
    if found_tags <= layout.EXT_ADDRESS_MAX and not right:
        unit = (found_tags ^ layout.EXT_ADDRESS_BASE) - states[ref, probed.EXT_FIRST]
        if 0 <= unit and unit + layout.EXT_UNIT_HEADER_BYTES <= states[ref, probed.EXT_LOADED]:
            unit += states[ref, probed.EXT_ADDRESS]
            if load_i16(unit) >= layout.EXT_UNIT_HEADER_BYTES and load_i64(unit + 10) == store_time:
                right = load_i64(unit + 2) == tags_code
    return load_i32(entry + 8) == peek_i32(row + item.TOTAL_SIZE) and right


@compiled_helper()
def _look_up(row, states, arena, per_slot):  # type: ignore[no-untyped-def]
    """Look for the message's entry in its queue. Gives (what is needed first, match, delta)."""
    nothing, missing, none = np.int64(0), np.int64(of_rows.MATCH_MISSING), np.int64(of_rows.MATCH_NONE)
    phy, ref, queue_offset = peek_i64(row + item.PHY_OFFSET), peek_i32(row + item.TOPIC_REF), peek_i64(row + item.QUEUE_OFFSET)
    slot, shift = states[ref, probed.SLOT], states[ref, probed.DELTA]
    if slot == probed.NOT_LOADED:
        return LOAD, none, nothing
    if slot == probed.ABSENT:
        return DONE, missing, nothing
    if slot < 0:
        return DONE, none, nothing
    number = queue_offset + shift
    if -FAR < queue_offset < FAR and 0 <= number < FAR:  # what `QueueProbe.load` can load
        place = number - states[ref, probed.FIRST]
        if place < 0 or place >= states[ref, probed.LOADED]:
            return LOAD, none, nothing
        entry = arena + (slot * per_slot + place) * layout.ENTRY_BYTES
        prefetch(entry + 64)
        if load_i64(entry) == phy:
            if _is_entry_of(row, entry, states):
                return DONE, np.int64(of_rows.MATCH_SHIFTED) if shift else np.int64(of_rows.MATCH_EQUAL), shift
            size = load_i32(entry + 8)
            if phy != 0 or (size != 0 and size != layout.PRE_BLANK_SIZE):
                return RESOLVE, none, nothing
    return RESOLVE if phy >= states[ref, probed.MISSING_UNTIL] else DONE, missing, nothing


@compiled_helper()
def _add_to_run(row, walk, plausible, regular, kind, match, delta, cut, open_runs, runs, used):  # type: ignore[no-untyped-def]
    """Have the message grow the open run of its queue, or begin one. Gives how many runs there are; -1 without room for one."""
    phy, size, ref = peek_i64(row + item.PHY_OFFSET), peek_i32(row + item.TOTAL_SIZE), peek_i32(row + item.TOPIC_REF)
    store_time = peek_i64(row + item.STORE_TIME)
    batch = kind == KIND_BATCH
    first, messages = peek_i64(row + item.QUEUE_OFFSET), np.int64(1)
    if batch:
        first, messages = peek_i64(row + item.BATCH_BASE), np.int64(peek_i32(row + item.BATCH_COUNT))
    elif peek_i32(row + item.FLAGS) & INNER_ALONE:
        messages = np.int64(peek_i32(row + item.BATCH_COUNT))
    lasting = regular and not (batch and (first < 0 or messages <= 0))
    kind_out = np.int64(of_rows.RUN_QUEUE) if batch else kind
    queue = 2 * ref + (1 if kind == of_rows.RUN_UNQUEUED else 0)
    run = open_runs[queue, 0]
    single = batch or run < 0 or runs[run, _R_MESSAGES] == runs[run, _R_RECORDS]  # no inner batch with one entry ends the run
    step = np.int64(0)
    if batch and (match == of_rows.MATCH_EQUAL or match == of_rows.MATCH_DIFFERS) and run >= 0:
        step = runs[run, _R_RECORDS]
    if (
        run >= 0
        and lasting
        and (kind == of_rows.RUN_UNQUEUED or single and first == runs[run, _R_QUEUE_OFFSET] + runs[run, _R_MESSAGES])
        and runs[run, _R_LAST_PHY] < phy
        and runs[run, _R_MATCH] == match
        and runs[run, _R_DELTA] + step == delta
        and runs[run, _R_WALK] == walk
        and runs[run, _R_KIND] == kind_out
        and runs[run, _R_PLAUSIBLE] == plausible
        and open_runs[queue, 1] == cut
    ):
        runs[run, _R_RECORDS] += 1
        runs[run, _R_MESSAGES] += messages
        runs[run, _R_LAST_PHY] = phy
        runs[run, _R_LAST_SIZE] = size
        runs[run, _R_BYTES] += size
        runs[run, _R_LAST_TIME] = store_time
        return used
    if used == len(runs):
        return -1
    runs[used, _R_WALK] = walk
    runs[used, _R_KIND] = kind_out
    runs[used, _R_MATCH] = match
    runs[used, _R_PLAUSIBLE] = plausible
    runs[used, _R_REGULAR] = regular
    runs[used, _R_QUEUE] = ref
    runs[used, _R_QUEUE_OFFSET] = first
    runs[used, _R_RECORDS] = 1
    runs[used, _R_MESSAGES] = messages
    runs[used, _R_DELTA] = delta
    runs[used, _R_POSITION] = peek_i64(row + item.POSITION)
    runs[used, _R_PHY] = phy
    runs[used, _R_SIZE] = size
    runs[used, _R_LAST_PHY] = phy
    runs[used, _R_LAST_SIZE] = size
    runs[used, _R_BYTES] = size
    runs[used, _R_TIME] = store_time
    runs[used, _R_LAST_TIME] = store_time
    runs[used, _R_TAGS] = peek_i64(row + item.TAGS_CODE)
    open_runs[queue, 0] = used if lasting else -1
    open_runs[queue, 1] = cut
    return used + 1


@compiled_helper()
def _index_run_of(row, walk, regular, index_runs, index_used, same_cut):  # type: ignore[no-untyped-def]
    """Return the index run that the message goes to: the last one, if that may grow, or a new one, for which there is room."""
    phy, last = peek_i64(row + item.PHY_OFFSET), index_used - 1
    if (
        last >= 0
        and regular
        and index_runs[last, _I_LAST_PHY] < phy
        and index_runs[last, _I_WALK] == walk
        and index_runs[last, _I_REGULAR] == 1
        and same_cut
    ):
        return last
    index_runs[index_used, _I_WALK] = walk
    index_runs[index_used, _I_REGULAR] = regular
    index_runs[index_used, _I_PHY] = phy
    index_runs[index_used, _I_END] = phy + peek_i32(row + item.TOTAL_SIZE)
    index_runs[index_used, _I_KEY_PHY] = -1
    index_runs[index_used, _I_LAST_KEY_PHY] = -1
    return index_used


@compiled_helper()
def _add_to_index_run(row, tag_index, index_runs, last):  # type: ignore[no-untyped-def]
    """Count the message and its index entries in its index run."""
    phy, store_time = peek_i64(row + item.PHY_OFFSET), peek_i64(row + item.STORE_TIME)
    keys = peek_i32(row + item.KEY_COUNT)
    if tag_index and peek_i32(row + item.FLAGS) & HAS_TAGS:
        if peek_i32(row + item.SYS_FLAG) & commitlog_layout.SYS_TRANSACTION_MASK != commitlog_layout.SYS_ROLLBACK:
            keys += 1
    index_runs[last, _I_RECORDS] += 1
    index_runs[last, _I_LAST_PHY] = phy
    index_runs[last, _I_LAST_END] = phy + peek_i32(row + item.TOTAL_SIZE)
    if keys > 0:
        if index_runs[last, _I_KEYS] == 0:
            index_runs[last, _I_KEY_PHY] = phy
            index_runs[last, _I_KEY_TIME] = store_time
        index_runs[last, _I_KEYS] += keys
        index_runs[last, _I_LAST_KEY_PHY] = phy
        index_runs[last, _I_LAST_KEY_TIME] = store_time


@kept(commitlog_layout, layout, of_rows, message_columns, native, item, probed, releases)
def _fold(  # type: ignore[no-untyped-def]
    cursor, rows: Address, low, high, kinds, matches, deltas, cuts, index_cuts, numbers, before, open_runs, runs, index_runs,
    states, arena: Address, falls,
):  # fmt: skip
    """Fold items [low, high). Gives (the next item, what it needs first).

    matches, deltas: for items of BatchConsumeQueues, or empty.
    cuts, index_cuts: per item, or empty.
    numbers, before: per item the index run it went to and the keys which that had before, or empty.
    open_runs: per queue two rows (with an entry or without): the number of the run that may still grow, or -1; its cut.
    states, arena: those of `QueueProbe`.
    falls: items whose store time fell.
    """
    walk, plausible, base, tag_index = cursor[_WALK], cursor[_PLAUSIBLE], cursor[_BASE], cursor[_TAG_INDEX]
    probing, lmq, timing, per_slot = cursor[_PROBING], cursor[_LMQ], cursor[_TIMING], cursor[_PER_SLOT]
    used, index_used, index_cut = cursor[_RUNS], cursor[_INDEX_RUNS], cursor[_INDEX_CUT]
    time_before, first_time, last_time, fallen = cursor[_TIME], cursor[_FIRST_TIME], cursor[_LAST_TIME], cursor[_FALLS]
    i, need = low, DONE
    while i < high:
        if index_used == len(index_runs):
            need = NO_INDEX_RUN
            break
        row, kind = rows + i * item.ROW, np.int64(kinds[i])
        regular = peek_i64(row + item.PHY_OFFSET) == base + peek_i64(row + item.POSITION)
        match, delta = np.int64(of_rows.MATCH_NONE), np.int64(0)
        if i == cursor[_FORCED]:
            match, delta = cursor[_FORCED_MATCH], cursor[_FORCED_DELTA]
        elif kind == KIND_BATCH:
            if len(matches):
                match, delta = np.int64(matches[i]), deltas[i]
        elif probing and kind != of_rows.RUN_UNQUEUED:
            need, match, delta = _look_up(row, states, arena, per_slot)
            if need != DONE:
                break
            if match == of_rows.MATCH_MISSING and kind == of_rows.RUN_LMQ and not lmq:
                match = np.int64(of_rows.MATCH_NONE)

        cut = cuts[i] if len(cuts) else np.int64(0)
        added = _add_to_run(row, walk, plausible, regular, kind, match, delta, cut, open_runs, runs, used)
        if added < 0:
            need = NO_RUN
            break
        used = added
        i += 1
        if kind == of_rows.RUN_LMQ:
            continue

        here = index_cuts[i - 1] if len(index_cuts) else np.int64(0)
        last = _index_run_of(row, walk % of_rows.WALK_PART, regular, index_runs, index_used, here == index_cut)
        index_used, index_cut = last + 1, here
        if len(numbers):
            numbers[i - 1] = last
            before[i - 1] = index_runs[last, _I_KEYS]
        _add_to_index_run(row, tag_index, index_runs, last)

        if timing:
            store_time = peek_i64(row + item.STORE_TIME)
            first_time = min(first_time, store_time)
            last_time = max(last_time, store_time)
            store_time = max(store_time, -FAR_MS)
            if store_time < time_before - TOLERANCE_MS:
                falls[fallen] = i - 1
                fallen += 1
            time_before = store_time
    cursor[_RUNS], cursor[_INDEX_RUNS], cursor[_INDEX_CUT] = used, index_used, index_cut
    cursor[_TIME], cursor[_FIRST_TIME], cursor[_LAST_TIME], cursor[_FALLS] = time_before, first_time, last_time, fallen
    return i, need


def _asked(answered: tuple[int, int], item_number: int, need: int) -> tuple[int, int]:
    """Return `answered` with this need of that item.

    No item needs anything twice, so a pass over a segment ends whatever its bytes.
    """
    known = answered[1] if answered[0] == item_number else 0
    if known >> need & 1:
        raise RuntimeError(f"item {item_number} of a batch needs {_NEEDS[need]} although it was given that")
    return item_number, known | 1 << need


def inner_messages(items: np.ndarray, kinds: np.ndarray) -> int:
    """Count the messages inside of inner batches beyond one per record, as runs count them."""
    inner = (kinds == KIND_BATCH) | (kinds != of_rows.RUN_LMQ) & (items["flags"] & INNER_ALONE != 0)
    return int((np.maximum(items["batch_count"][inner], 0) - 1).sum())


@dataclass(frozen=True)
class ItemRange:
    """Items [low, high) of some: contiguous rows, their kinds, and the queues by `topic_ref`."""

    items: np.ndarray
    kinds: np.ndarray
    keys: Sequence[QueueKey]
    low: int
    high: int


class RunBuilder:
    """Runs and index runs of one segment, batch by batch, in scan order.

    probe: looks up the entries of the audit's messages; None: entries are not looked up.
    """

    def __init__(
        self,
        base_offset: int,
        tag_index: bool,
        lmq: bool,
        probe: QueueProbe | None,
        cuts: Cuts,
        marks: Sequence[tuple[int, int]] = (),
    ):
        self._probe, self._cuts, self._marks = probe, cuts, sorted(marks)
        self._tag_index = tag_index
        self._runs = np.zeros((256, _R_TAGS + 1), np.int64)
        self._index_runs = np.zeros((64, _I_LAST_KEY_TIME + 1), np.int64)
        self._open_runs = np.full((128, 2), -1, np.int64)
        self._no_states = np.zeros((0, probed.STATE_COLUMNS), np.int64)
        self._cut_at = np.array(sorted(cuts.phy_offsets), np.int64)
        self._others_cut_at = np.array(sorted(cuts.of_others), np.int64)
        self._cuts_on = bool(cuts.phy_offsets or cuts.by_queue or cuts.queue_offsets or cuts.of_others)
        self._falls = np.empty(DEFAULT_CAPACITY, np.int64)
        self._cursor = np.zeros(_CURSOR, np.int64)
        self._cursor[_BASE], self._cursor[_TAG_INDEX], self._cursor[_LMQ] = base_offset, tag_index, lmq
        self._cursor[_TIME], self._cursor[_FIRST_TIME], self._cursor[_LAST_TIME] = -FAR_MS, (1 << 63) - 1, -(1 << 63)
        self.answers: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def runs(self) -> np.ndarray:
        return _records(self._runs[: self._cursor[_RUNS]], RUN_DTYPE)

    @property
    def index_runs(self) -> np.ndarray:
        return _records(self._index_runs[: self._cursor[_INDEX_RUNS]], INDEX_RUN_DTYPE)

    @property
    def store_times(self) -> tuple[int, int]:
        """Return smallest and largest store time of the audit's messages; zeros without one."""
        first, last = int(self._cursor[_FIRST_TIME]), int(self._cursor[_LAST_TIME])
        return (first, last) if first <= last else (0, 0)

    def add(self, part: ItemRange, walk: int, audit: bool, plausible: bool) -> np.ndarray:
        """Fold these items; gives those whose store time fell. Items of BatchConsumeQueues need `match_batch` before.

        audit: look up entries and watch store times.
        """
        items, kinds, keys, high = part.items, part.kinds, part.keys, part.high
        cursor, probe = self._cursor, self._probe
        self._open_runs = grown(self._open_runs, 2 * len(keys), -1)
        cuts, index_cuts = self._cut_numbers(items, kinds, keys)
        numbers = before = NO_NUMBERS
        if self._marks:
            numbers, before = np.full(len(items), -1, np.int64), np.zeros(len(items), np.int64)
        matches, deltas, states, arena = NO_MATCHES, NO_NUMBERS, self._no_states, NO_MATCHES
        if audit and probe:
            matches, deltas = probe.batch_matches
            states, arena, cursor[_PER_SLOT] = probe.know(keys), probe.arena, probe.per_slot
        cursor[_WALK], cursor[_PLAUSIBLE], cursor[_TIMING], cursor[_PROBING] = walk, plausible, audit, audit and probe is not None
        cursor[_FORCED], cursor[_FALLS] = -1, 0
        at, answered = part.low, (part.low, 0)  # the item that was asked about last, and a bit per answer that it was given
        while True:
            at, need = _fold(
                cursor, items, at, high, kinds, matches, deltas, cuts, index_cuts, numbers, before,
                self._open_runs, self._runs, self._index_runs, states, arena, self._falls,
            )  # fmt: skip
            if need == DONE:
                break
            answered = _asked(answered, at, need)
            if need == NO_RUN:
                self._runs = grown(self._runs, len(self._runs) + 1, 0)
            elif need == NO_INDEX_RUN:
                self._index_runs = grown(self._index_runs, len(self._index_runs) + 1, 0)
            elif probe and need == LOAD:
                probe.load(items[at], keys)
            elif probe:
                cursor[_FORCED] = at
                cursor[_FORCED_MATCH], cursor[_FORCED_DELTA] = probe.resolve(items[at], keys)
        if self._marks:
            self._answer(items, numbers, before)
        return self._falls[: cursor[_FALLS]]

    def _cut_numbers(self, items: np.ndarray, kinds: np.ndarray, keys: Sequence[QueueKey]) -> tuple[np.ndarray, np.ndarray]:
        """Return (for runs, for index runs) a number per item. It differs between two items if a cut lies between them.

        Without cuts both arrays are empty. Counts of thresholds passed only grow along ascending physical offsets, and a run
        never takes in anything else, so their sum serves for all of them.
        """
        if not self._cuts_on:
            return NO_NUMBERS, NO_NUMBERS
        everywhere = _passed(self._cut_at, items)
        numbers = everywhere + _passed(self._others_cut_at, items) if len(self._others_cut_at) else everywhere.copy()
        first = np.where(kinds == KIND_BATCH, items["batch_base"], items["queue_offset"])
        for ref in np.unique(items["topic_ref"]):
            key = keys[ref]
            mine = items["topic_ref"] == ref
            if key in self._cuts.by_queue:
                numbers[mine] += _passed(np.array(sorted(self._cuts.by_queue[key]), np.int64), items[mine])
            if key in self._cuts.queue_offsets:
                at = np.array(sorted(self._cuts.queue_offsets[key]), np.int64)
                numbers[mine] += np.searchsorted(at, first[mine], "right")
        return numbers, everywhere

    def _answer(self, items: np.ndarray, numbers: np.ndarray, before: np.ndarray) -> None:
        """Answer the marks that lie among these items."""
        for number, key in self._marks:
            mine = np.flatnonzero((numbers == number) & (before < key))
            if not len(mine) or (number, key) in self.answers:
                continue
            row = items[mine[-1]]
            if before[mine[-1]] + int(entry_counts(row, self._tag_index)) >= key:
                self.answers[number, key] = int(row["phy_offset"]), int(row["store_time"])


def _records(table: np.ndarray, dtype: np.dtype) -> np.ndarray:
    records = np.zeros(len(table), dtype)
    for column, name in enumerate(dtype.names or ()):
        records[name] = table[:, column]
    return records


def _passed(thresholds: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return for each row how many of the three breaks of every threshold (see `Cuts`) lie before or at it."""
    phy = rows["phy_offset"]
    numbers = np.searchsorted(thresholds, phy, "left") + np.searchsorted(thresholds, phy, "right")
    total: np.ndarray = numbers + np.searchsorted(thresholds, phy + rows["total_size"], "left")
    return total
