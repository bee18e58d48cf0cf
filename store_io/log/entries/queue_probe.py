"""Messages of one segment against their ConsumeQueue entries: a direct probe at the place that the queue offset names.

What is not there is looked for in the queue by physical offset. Source of an entry's content: ConsumeQueue
.putMessagePositionInfo, ConsumeQueueExt, BatchConsumeQueue.putBatchMessagePositionInfo (formats.md 3 to 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import STORED_BATCH_DTYPE
from schemas.rows import MATCH_DIFFERS, MATCH_EQUAL, MATCH_MISSING, MATCH_NONE, MATCH_SHIFTED, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreError
from store_io.base.findings import Findings
from store_io.base.java.java_compat import MAX_LONG, decode_utf8, int64, string_hash
from store_io.broker.releases import DEFAULT_DELAY_LEVELS, parse_delay_levels
from store_io.log.entries.queue_store import ExtUnits, QueueEntries, QueueStore, is_used
from store_io.log.records.message_columns import SCHEDULE
from store_io.log.records.segment_items import FAR, KIND_BATCH
from store_io.log.scan.segment_findings import Span, message_finding

BATCH_CONSTANTS = (("compacted", -1), ("reserved", 0))  # what every entry holds, whatever its message
ARENA_ENTRIES = 3 << 20  # entries kept in memory, all queues together, unless there are very many queues
MIN_ENTRIES = 64  # kept of one queue
FIRST_ENTRIES = 64  # read of a queue at first; then as many as the rest of the segment takes, judged by these
BATCH_SPAN_BYTES = 64 << 20  # of the CommitLog: for so much, a BatchConsumeQueue's entries are read at once

# What a delayed message's deliver time may be after its store time, in ms, besides its level's delay: that of any level of the
# table that most brokers have, since the table may have changed (P13); the first, 1 s, is also an unknown level's.
OTHER_DELAYS = tuple(parse_delay_levels(DEFAULT_DELAY_LEVELS).values())
DELAY_UNIT_MS = 1000  # every level's delay is a multiple
MAX_DELAY_MS = 366 * 86_400_000  # no table that anybody uses has a longer one

NOT_LOADED, ABSENT, UNREADABLE = -1, -2, -3  # instead of a slot

# Columns of `QueueProbe.states`.
SLOT, FIRST, DELTA, MISSING_UNTIL, LOADED, EXT_ADDRESS, EXT_FIRST, EXT_LOADED, STATE_COLUMNS = range(9)


class QueueProbe:
    """Matches a segment's messages, batch by batch, in scan order.

    part: gives the bytes of a part ("tags") of a message.
    `segment_runs` compares most messages. This class fetches entries for it, and judges the few that do not fit.
    """

    def __init__(
        self,
        store: QueueStore,
        base_offset: int,
        size: int,
        findings: Findings,
        part: Callable[[np.void, str], bytes],
    ):
        self._store, self._findings, self._part = store, findings, part
        self._low, self._high = base_offset, base_offset + size
        self.per_slot = max(MIN_ENTRIES, min(store.entries_at_once, ARENA_ENTRIES // max(1, store.queue_count)))
        self._states = np.zeros((0, STATE_COLUMNS), np.int64)
        self._slots, self._slots_end = 0, store.queue_count
        # Per slot `per_slot` entries as they are stored. Memory that no queue needs is never touched.
        self.arena = np.empty(self._slots_end * self.per_slot * layout.ENTRY_BYTES, np.uint8)
        self.batch_matches = np.zeros(0, np.uint8), np.zeros(0, np.int64)
        self._queues: dict[int, QueueEntries] = {}
        self._loaded_at: dict[int, int] = {}  # physical offset of the message that a queue's entries were last loaded for
        self._sorted: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._batches: dict[int, tuple[int, int, np.ndarray, np.ndarray]] = {}
        self._ext: dict[int, ExtUnits | None] = {}
        self._odd_delays: set[int] = set()  # queues with a note on a deliver time of an unknown level

    def close(self) -> None:
        """Close what is open."""
        self._store.close()

    def know(self, keys: Sequence[QueueKey]) -> np.ndarray:
        """Return the state of each queue: a row per `topic_ref`, with the columns above.

        SLOT: the queue's slot in the arena, or one of the states above.
        FIRST, LOADED: the number of the slot's first entry, and how many entries the slot holds.
        DELTA: the number of the last entry minus its message's queue offset.
        MISSING_UNTIL: messages below this physical offset have no entry, unless it is at DELTA.
        EXT_ADDRESS, EXT_FIRST, EXT_LOADED: the address in memory of bytes of the queue's ext file, the offset of the first byte,
        and the number of bytes.
        """
        known = len(self._states)
        if len(keys) > known:
            new = np.zeros((len(keys), STATE_COLUMNS), np.int64)
            new[:known] = self._states
            new[known:, MISSING_UNTIL] = -(1 << 63)
            for ref in range(known, len(keys)):
                new[ref, SLOT] = NOT_LOADED if self._store.has(keys[ref]) else ABSENT
            self._states = new
        return self._states

    def match_batch(self, items: np.ndarray, kinds: np.ndarray, keys: Sequence[QueueKey]) -> None:
        """Set `batch_matches` to (MATCH_*, entry number) per item of a BatchConsumeQueue; without kinds there is none."""
        if not len(kinds):
            self.batch_matches = np.zeros(0, np.uint8), np.zeros(0, np.int64)
            return
        matches, deltas = self.batch_matches = np.full(len(items), MATCH_NONE, np.uint8), np.zeros(len(items), np.int64)
        for ref in np.unique(items["topic_ref"][kinds == KIND_BATCH]):
            mine = np.flatnonzero((items["topic_ref"] == ref) & (kinds == KIND_BATCH))
            try:
                matches[mine], deltas[mine] = self._match_batch(items[mine], int(ref), keys[ref])
            except StoreError:
                matches[mine] = MATCH_NONE

    def load(self, item: np.void, keys: Sequence[QueueKey]) -> None:
        """Read the queue's entries, from the item's entry number on, into the arena.

        If a file cannot be read, which is noted (`base.failed_reads`), messages are not looked for in it.
        Raises IndexError if the store has more queues than it counts: compiled code would read beyond the arena.
        """
        ref, phy_offset = int(item["topic_ref"]), int(item["phy_offset"])
        slot, held, delta, _, loaded = self._states[ref, :EXT_ADDRESS].tolist()
        first = max(0, min(FAR, int(item["queue_offset"]) + delta))
        try:
            queue = self._queue(ref, keys[ref])
            count = FIRST_ENTRIES
            if slot == NOT_LOADED:
                slot = self._slots
                if slot == self._slots_end:
                    raise IndexError(f"{keys[ref]} is one queue more than the {self._slots_end} that its store counts")
                self._slots += 1
            elif first == held + loaded:
                count = self._wanted(phy_offset - self._loaded_at[ref], self._high - phy_offset, loaded)
            count = min(count, self.per_slot)
            self._loaded_at[ref] = phy_offset
            low = slot * self.per_slot * layout.ENTRY_BYTES
            queue.read_into(first, self.arena[low : low + count * layout.ENTRY_BYTES])
            self._states[ref, SLOT], self._states[ref, FIRST], self._states[ref, LOADED] = slot, first, count
        except StoreError:
            self._states[ref, SLOT] = UNREADABLE

    def _wanted(self, since: int, left: int, loaded: int) -> int:
        """Estimate how many entries a queue takes in the `left` bytes of the segment, and add some more.

        since: the bytes since the queue's last load, in which it took `loaded` entries.
        """
        return loaded * left * 9 // (since * 8) + FIRST_ENTRIES if since > 0 and left > 0 else FIRST_ENTRIES

    def resolve(self, item: np.void, keys: Sequence[QueueKey]) -> tuple[int, int]:
        """Return (match, delta) of a message that has no equal entry at the expected place."""
        ref = int(item["topic_ref"])
        try:
            return self._resolve(item, ref, keys[ref])
        except StoreError:
            self._states[ref, SLOT] = UNREADABLE
            return MATCH_NONE, 0

    def _queue(self, ref: int, key: QueueKey, batch: bool = False) -> QueueEntries:
        if ref not in self._queues:
            self._queues[ref] = self._store.entries(key, batch)
        return self._queues[ref]

    def _resolve(self, item: np.void, ref: int, key: QueueKey) -> tuple[int, int]:
        queue, state, phy_offset = self._queue(ref, key), self._states[ref], int(item["phy_offset"])
        queue_offset = int(item["queue_offset"])
        for delta in (int(state[DELTA]), 0):
            number = int64(queue_offset + delta)
            if 0 <= number < FAR:
                entry = queue.read(number, 1)[0]
                if entry["phy_offset"] == phy_offset and is_used(entry):
                    return self._found(item, ref, key, number, entry)
        if ref not in self._sorted:
            numbers, entries = queue.entries_within(self._low, self._high)
            self._sorted[ref] = numbers, entries["phy_offset"].astype(np.int64)
        numbers, phy_offsets = self._sorted[ref]
        low, high = np.searchsorted(phy_offsets, [phy_offset, phy_offset + 1])
        if low == high:
            state[MISSING_UNTIL] = phy_offsets[low] if low < len(phy_offsets) else MAX_LONG
            return MATCH_MISSING, 0
        twins = numbers[low:high]
        number = int(twins[np.argmin(np.abs(twins - queue_offset))])
        return self._found(item, ref, key, number, queue.read(number, 1)[0])

    def _found(self, item: np.void, ref: int, key: QueueKey, number: int, entry: np.void) -> tuple[int, int]:
        """Judge an entry that leads to this message."""
        delta = int64(number - int(item["queue_offset"]))  # wraps for a damaged queue offset, and back when it is added
        self._states[ref, DELTA] = delta
        size_wrong = bool(entry["size"] != item["total_size"])
        tags_wrong = not self._tags_allowed(item, ref, key, int(entry["tags_code"]))
        if not size_wrong and not tags_wrong:
            return (MATCH_SHIFTED if delta else MATCH_EQUAL), delta
        if tags_wrong and not self._blames_entry(item, ref, key, number, int(entry["tags_code"])):
            if not size_wrong:
                return MATCH_DIFFERS, delta
            tags_wrong = False
        low = layout.ENTRY_SIZE_POSITION if size_wrong else layout.ENTRY_TAGS_CODE_POSITION
        high = layout.ENTRY_BYTES if tags_wrong else layout.ENTRY_TAGS_CODE_POSITION
        expected = [int(item["total_size"])] * size_wrong + [int(item["tags_code"])] * tags_wrong
        actual = [int(entry["size"])] * size_wrong + [int(entry["tags_code"])] * tags_wrong
        self._wrong(item, key, self._span(ref, number, low, high), expected, actual)
        return MATCH_DIFFERS, delta

    def _span(self, ref: int, number: int, low: int, high: int = layout.ENTRY_BYTES) -> Span:
        """Return bytes [low, high) of an entry."""
        path, position = self._queues[ref].place(number)
        return Span(path, None, None) if position is None else Span(path, position + low, position + high)

    def _wrong(self, item: np.void, key: QueueKey, span: Span, expected: list[int], actual: list[int]) -> None:
        values = {"expected": ", ".join(map(str, expected)), "actual": ", ".join(map(str, actual))}
        text = f"the entry does not fit its message, which is at physical offset {int(item['phy_offset']):,}"
        self._findings.add(message_finding(Code.QUEUE_ENTRY_WRONG, span, item, key, message=text, **values))

    def _blames_entry(self, item: np.void, ref: int, key: QueueKey, number: int, found: int) -> bool:
        """Say whether a wrong tags code is the entry's fault. Faults of the ext unit to which it leads are reported here.

        A unit that differs is reported beside the entry, since its message may be the one that is wrong. An address is one if the
        queue has ext files, or an entry beside this one holds an address as well: a tags code with a damaged byte looks alike.
        """
        if found > layout.EXT_ADDRESS_MAX:
            return True
        offset = found - layout.EXT_ADDRESS_BASE
        units = self._ext.get(ref)
        unit = units.at(offset) if units else None
        if units and unit:
            wanted = int(item["tags_code"]), int(item["store_time"])
            if (unit.tags_code == wanted[0]) != (unit.store_time == wanted[1]):  # one of the two shows that it is this message's
                path, at = units.place(offset)
                assert at is not None  # units are in files
                self._findings.add(
                    message_finding(
                        Code.QUEUE_EXT_DAMAGED, Span(path, at, at + layout.EXT_UNIT_HEADER_BYTES), item, key, phy_offset=None,
                        expected=f"tags code {wanted[0]}, store time {wanted[1]}",
                        actual=f"tags code {unit.tags_code}, store time {unit.store_time}",
                        message=f"the ext unit does not fit its message, which is at physical offset {int(item['phy_offset']):,}",
                    )
                )  # fmt: skip
            return True
        beside = np.concatenate([self._queues[ref].read(n, 1) for n in (number - 1, number + 1) if 0 <= n < FAR])
        if not (beside["tags_code"] <= layout.EXT_ADDRESS_MAX).any():
            return True
        span = self._span(ref, number, layout.ENTRY_TAGS_CODE_POSITION)
        self._findings.add_beside(
            message_finding(
                Code.QUEUE_EXT_DANGLING, span, item, key, expected=f"a unit at {offset} of the ext files",
                actual="none", message="entries that lead to no ext unit",
            ),
            layout.ENTRY_TAGS_CODE_POSITION,
        )  # fmt: skip
        return False

    def _odd_delay(self, item: np.void, ref: int, key: QueueKey, delay: int) -> None:
        """Add a note, once per queue, on a delay that no known level has.

        Either a level of an unknown table had that delay, or the entry is damaged.
        """
        if ref in self._odd_delays:
            return
        self._odd_delays.add(ref)
        number = int64(int(item["queue_offset"]) + int(self._states[ref, DELTA]))
        span = self._span(ref, number, layout.ENTRY_TAGS_CODE_POSITION)
        self._findings.add(
            message_finding(
                Code.QUEUE_ENTRY_WRONG, span, item, key,
                severity=severity_in(Code.QUEUE_ENTRY_WRONG, Case.SETTING_CHANGED), phy_offset=None,
                expected=f"deliver time {int(item['tags_code'])}", actual=f"deliver time {int(item['store_time']) + delay}",
                message=f"no delay level has the delay of this entry, {delay:,} ms: was messageDelayLevel changed?",
            )
        )  # fmt: skip

    def _tags_allowed(self, item: np.void, ref: int, key: QueueKey, found: int) -> bool:
        """Say whether an entry of this message may carry that tags code.

        Allowed are the code itself; a delayed message's deliver time under another level table, or its tag hash, if the release
        had no table yet (pitfalls P12, P13); the address of an ext unit that holds the code. A delay of whole seconds that no
        known level has is allowed too, and gets a note.
        """
        if found == item["tags_code"]:
            return True
        if item["flags"] & SCHEDULE:
            delay = found - int(item["store_time"])
            if delay in OTHER_DELAYS or found == self._tag_hash(item):
                return True
            if 0 <= delay <= MAX_DELAY_MS and delay % DELAY_UNIT_MS == 0:
                self._odd_delay(item, ref, key, delay)
                return True
        if found > layout.EXT_ADDRESS_MAX:
            return False
        if ref not in self._ext:
            self._ext[ref] = self._store.ext_units(key)
        units = self._ext[ref]
        if units is None:
            return False
        unit = units.at(found - layout.EXT_ADDRESS_BASE)
        self._states[ref, EXT_ADDRESS:STATE_COLUMNS] = units.data.ctypes.data, units.start, len(units.data)
        if unit is None or unit.store_time != item["store_time"]:
            return False
        return unit.tags_code == item["tags_code"] or bool(item["flags"] & SCHEDULE) and unit.tags_code == self._tag_hash(item)

    def _tag_hash(self, item: np.void) -> int:
        return string_hash(decode_utf8(self._part(item, "tags")))

    def _match_batch(self, items: np.ndarray, ref: int, key: QueueKey) -> tuple[np.ndarray, np.ndarray]:
        """Return (MATCH_*, entry number) of messages of one BatchConsumeQueue: an entry is found by physical offset, wherever it
        is."""
        if not self._store.has(key, batch=True):
            return np.full(len(items), MATCH_MISSING, np.uint8), np.zeros(len(items), np.int64)
        queue = self._queue(ref, key, batch=True)
        low, high = int(items["phy_offset"][0]), int(items["phy_offset"][-1]) + 1
        known = self._batches.get(ref)
        if known is None or not known[0] <= low < high <= known[1]:
            high = max(high, low + BATCH_SPAN_BYTES)
            known = self._batches[ref] = (low, high, *queue.entries_within(low, high))
        _, _, numbers, entries = known
        matches = np.full(len(items), MATCH_MISSING, np.uint8)
        deltas = np.zeros(len(items), np.int64)
        if not len(numbers):
            return matches, deltas
        place = np.searchsorted(entries["phy_offset"].astype(np.int64), items["phy_offset"])
        place = np.minimum(place, len(numbers) - 1)
        entry = entries[place]
        here = entry["phy_offset"] == items["phy_offset"]
        deltas[here] = numbers[place[here]]
        fields = (
            ("size", "total_size"),
            ("tags_code", "tags_code"),
            ("store_time", "store_time"),
            ("base", "batch_base"),
            ("count", "batch_count"),
        )
        wanted = {of_entry: items[of_item].astype(np.int64) for of_entry, of_item in fields}
        wanted |= {of_entry: np.full(len(items), value) for of_entry, value in BATCH_CONSTANTS}
        equal = np.ones(len(items), bool)
        for name, values in wanted.items():
            equal &= entry[name] == values
        matches[here] = np.where(equal[here], MATCH_EQUAL, MATCH_DIFFERS)
        for i in np.flatnonzero(here & ~equal):
            wrong = [name for name, values in wanted.items() if entry[i][name] != values[i]]
            spans = [STORED_BATCH_DTYPE.fields[name] for name in wrong]  # type: ignore[index]
            self._wrong(
                items[i],
                key,
                self._span(ref, int(deltas[i]), spans[0][1], spans[-1][1] + spans[-1][0].itemsize),
                [int(wanted[name][i]) for name in wrong],
                [int(entry[i][name]) for name in wrong],
            )
        return matches, deltas
