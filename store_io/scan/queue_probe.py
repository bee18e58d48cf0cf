"""Messages of one segment against their ConsumeQueue entries: a direct probe at the place that the queue offset names.

What is not there is looked for in the queue by physical offset. Source of an entry's content: ConsumeQueue
.putMessagePositionInfo, ConsumeQueueExt, BatchConsumeQueue.putBatchMessagePositionInfo (formats.md 3 to 5).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas import consumequeue_layout as layout
from schemas import finding_codes as codes
from schemas.entries import STORED_BATCH_DTYPE, STORED_ENTRY_DTYPE
from schemas.rows import (
    MATCH_DIFFERS,
    MATCH_EQUAL,
    MATCH_MISSING,
    MATCH_NONE,
    MATCH_SHIFTED,
    NOTE,
    Finding,
    MappedFile,
    QueueKey,
)
from store_io.base.errors import StoreError
from store_io.base.java_compat import decode_utf8, int64, string_hash
from store_io.formats.commitlog.message_columns import SCHEDULE
from store_io.formats.commitlog.segment_items import FAR, KIND_BATCH
from store_io.rules.releases import DEFAULT_DELAY_LEVELS, parse_delay_levels
from store_io.scan.segment_findings import Findings
from store_io.source.byte_source import ByteFile, ByteSource

BATCH_CONSTANTS = (("compacted", -1), ("reserved", 0))  # what every entry holds, whatever its message
ARENA_ENTRIES = 3 << 20  # entries kept in memory, all queues together, unless there are very many queues
MOST_ENTRIES, LEAST_ENTRIES = 8192, 64  # kept of one queue
FIRST_ENTRIES = 64  # read of a queue at first; then as many as the rest of the segment takes, judged by these
OPEN_FILES = 512
SCAN_BYTES = 1 << 20
EXT_BYTES = 1 << 16  # of a queue's ext file, kept in memory
SAMPLES = 9  # entries of a file that tell which physical offsets it holds
BATCH_SPAN_BYTES = 64 << 20  # of the CommitLog: for so much, a BatchConsumeQueue's entries are read at once

# What a delayed message's deliver time may be behind its store time, in ms, besides its level's delay: that of any level of the
# table that most brokers have, since the table may have changed (P13); the first, 1 s, also stands for an unknown level.
OTHER_DELAYS = tuple(parse_delay_levels(DEFAULT_DELAY_LEVELS).values())
DELAY_UNIT_MS = 1000  # every level's delay is a multiple
MOST_DELAY_MS = 366 * 86_400_000  # no table that anybody uses has a longer one

NOT_LOADED, ABSENT, UNREADABLE = -1, -2, -3  # instead of a slot

# Columns of `QueueProbe.states`.
SLOT, FIRST, DELTA, MISSING_UNTIL, LOADED, EXT_ADDRESS, EXT_FIRST, EXT_LOADED, STATE_COLUMNS = range(9)


class QueueFiles:
    """The files of one queue as one array of entries; what no file holds reads as zeros."""

    def __init__(self, files: Sequence[MappedFile], entry_bytes: int, opener: Callable[[str], ByteFile]):
        self.entry_bytes = entry_bytes
        self.files = [f for f in files if f.start % entry_bytes == 0]
        self._open = opener
        self._bounds: list[tuple[int, int]] | None = None  # per file, the physical offsets that it may lead to

    def read(self, first: int, count: int) -> np.ndarray:
        """Bytes of entries [first, first + count)."""
        data = np.zeros(count * self.entry_bytes, np.uint8)
        self.read_into(first, data)
        return data

    def read_into(self, first: int, data: np.ndarray) -> None:
        """Fill `data` with the entries from `first` on; zeros must stand in it."""
        start = first * self.entry_bytes
        end = start + len(data)
        for file in self.files:
            low, high = max(start, file.start), min(end, file.start + file.size)
            if low < high:
                self._open(file.path).read_into(low - file.start, data[low - start : high - start])

    def file_at(self, number: int) -> tuple[str, int]:
        """(path, position) of an entry that a file holds."""
        at = number * self.entry_bytes
        for file in self.files:
            if file.start <= at < file.start + file.size:
                return file.path, at - file.start
        raise KeyError(number)

    def entries_within(self, low: int, high: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """(entry numbers, entries) that lead to physical offsets in [low, high), by these and then by number.

        Robust: whatever order they stand in, and with damaged ones among them.
        """
        numbers: list[np.ndarray] = [np.zeros(0, np.int64)]
        entries: list[np.ndarray] = [np.zeros(0, dtype)]
        for file in self._holding(low, high, dtype):
            step = SCAN_BYTES // self.entry_bytes
            first, end = file.start // self.entry_bytes, (file.start + file.size) // self.entry_bytes
            for at in range(first, end, step):
                part = self.read(at, min(step, end - at)).view(dtype)
                phy = part["phy_offset"]
                kept = np.flatnonzero((phy >= low) & (phy < high) & _used(part))
                numbers.append(at + kept)
                entries.append(part[kept])
        number, entry = np.concatenate(numbers), np.concatenate(entries)
        order = np.lexsort((number, entry["phy_offset"].astype(np.int64)))
        return number[order], entry[order]

    def _holding(self, low: int, high: int, dtype: np.dtype) -> list[MappedFile]:
        """The files that can hold entries of that range, judged by some entries of each and the first of the next."""
        if self._bounds is None:
            samples = []
            for file in self.files:
                first, count = file.start // self.entry_bytes, file.size // self.entry_bytes
                picks = np.unique(np.linspace(0, max(0, count - 1), SAMPLES).astype(np.int64))
                samples.append(np.array([self.read(first + int(k), 1).view(dtype)[0] for k in picks] if count else [], dtype))
            self._bounds = []
            least_of_next = 1 << 62
            for sample in reversed(samples):
                known = sample["phy_offset"][_used(sample)]
                whole = len(known) and bool(_used(sample[-1:])[0])
                least = int(known.min()) if len(known) else 0
                self._bounds.insert(0, (least, max(int(known.max()), least_of_next) if whole else 1 << 62))
                least_of_next = least if len(known) else 1 << 62
        return [f for f, (least, most) in zip(self.files, self._bounds, strict=True) if least < high and most >= low]


def _used(entries: np.ndarray | np.void) -> np.ndarray:
    """Which entries lead to a message: not unwritten, no pre-blank slot."""
    size = entries["size"]
    used: np.ndarray = (size != 0) & ~((entries["phy_offset"] == 0) & (size == layout.PRE_BLANK_SIZE))
    return used


@dataclass(frozen=True)
class ProbedFiles:
    """Files of the queues that messages of a segment may stand in."""

    queues: Mapping[QueueKey, tuple[MappedFile, ...]]
    batch_queues: Mapping[QueueKey, tuple[MappedFile, ...]]
    ext: Mapping[QueueKey, tuple[MappedFile, ...]]


@dataclass(frozen=True)
class _Part:
    """Bytes [low, high) of entry `number` of a queue."""

    queue: QueueFiles
    number: int
    low: int
    high: int


class QueueProbe:
    """Matches a segment's messages, batch by batch, in scan order.

    part: gives the bytes of a part ("tags") of a message. What compares most messages is `segment_runs`; here is what fetches
    entries for it, and what judges the few that do not fit.
    """

    def __init__(
        self,
        source: ByteSource,
        files: ProbedFiles,
        base_offset: int,
        size: int,
        findings: Findings,
        part: Callable[[np.void, str], bytes],
    ):
        self._source, self._findings, self._part = source, findings, part
        self._files, self._batch_files, self._ext_files = files.queues, files.batch_queues, files.ext
        self._low, self._high = base_offset, base_offset + size
        self.per_slot = max(LEAST_ENTRIES, min(MOST_ENTRIES, ARENA_ENTRIES // max(1, len(files.queues))))
        self._states = np.zeros((0, STATE_COLUMNS), np.int64)
        self._slots = 0
        # Per slot `per_slot` entries as they stand in the files. Memory that no queue needs is never touched.
        self._arena = np.zeros(len(files.queues) * self.per_slot * layout.ENTRY_BYTES, np.uint8)
        self.arena_address = self._arena.ctypes.data
        self.batch_matches = np.zeros(0, np.uint8), np.zeros(0, np.int64)
        self._queues: dict[int, QueueFiles] = {}
        self._loaded_at: dict[int, int] = {}  # physical offset of the message that a queue's entries were last loaded for
        self._sorted: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._batches: dict[int, tuple[int, int, np.ndarray, np.ndarray]] = {}
        self._ext: dict[int, ExtUnits] = {}
        self._open_files: dict[str, ByteFile] = {}
        self._odd_delays: set[int] = set()  # queues with a note on a deliver time of an unknown level

    def close(self) -> None:
        """Close what is open."""
        for file in self._open_files.values():
            file.close()
        self._open_files.clear()

    def _open(self, path: str) -> ByteFile:
        file = self._open_files.pop(path, None)
        if file is None:
            if len(self._open_files) >= OPEN_FILES:
                self._open_files.pop(next(iter(self._open_files))).close()
            file = self._source.open(path)
        self._open_files[path] = file  # now the last to be closed
        return file

    def know(self, keys: Sequence[QueueKey]) -> np.ndarray:
        """A row per queue, by `topic_ref`, with the columns above.

        SLOT: in the arena, or one of the states above; FIRST, LOADED: the number of the slot's first entry, and how many it
        holds; DELTA: where the last entry stood, against its message's queue offset; MISSING_UNTIL: no entry leads to a
        message below this physical offset, unless it stands at DELTA.  EXT_ADDRESS, EXT_FIRST, EXT_LOADED: where in memory
        bytes of the queue's ext file are, the offset of the first, and how many.
        """
        known = len(self._states)
        if len(keys) > known:
            new = np.zeros((len(keys), STATE_COLUMNS), np.int64)
            new[:known] = self._states
            new[known:, MISSING_UNTIL] = -(1 << 63)
            for ref in range(known, len(keys)):
                new[ref, SLOT] = NOT_LOADED if self._files.get(keys[ref]) else ABSENT
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
        """Bring the entries from the item's place on into the arena. A file that cannot be read has a scan of its own, which
        says so; its messages are then not looked for."""
        ref = int(item["topic_ref"])
        state = self._states[ref]
        first = max(0, min(FAR, int(item["queue_offset"]) + int(state[DELTA])))
        try:
            if state[SLOT] == NOT_LOADED:
                queue = self._queue(ref, keys[ref])
                state[SLOT] = self._slots
                self._slots += 1
                count = FIRST_ENTRIES
            else:
                queue = self._queue(ref, keys[ref])
                count = self._wanted(item, ref) if first == state[FIRST] + state[LOADED] else FIRST_ENTRIES
            count = min(count, self.per_slot)
            self._loaded_at[ref] = int(item["phy_offset"])
            low = int(state[SLOT]) * self.per_slot * layout.ENTRY_BYTES
            slot = self._arena[low : low + count * layout.ENTRY_BYTES]
            slot[:] = 0
            queue.read_into(first, slot)
            state[FIRST], state[LOADED] = first, count
        except StoreError:
            state[SLOT] = UNREADABLE

    def _wanted(self, item: np.void, ref: int) -> int:
        """How many entries the queue takes in the rest of the segment, if it goes on as since its last load, and some more."""
        phy_offset, loaded = int(item["phy_offset"]), int(self._states[ref, LOADED])
        since, left = phy_offset - self._loaded_at[ref], self._high - phy_offset
        return loaded * left * 9 // (since * 8) + FIRST_ENTRIES if since > 0 and left > 0 else FIRST_ENTRIES

    def resolve(self, item: np.void, keys: Sequence[QueueKey]) -> tuple[int, int]:
        """(match, delta) of a message that has no equal entry at the expected place."""
        ref = int(item["topic_ref"])
        try:
            return self._resolve(item, ref, keys[ref])
        except StoreError:
            self._states[ref, SLOT] = UNREADABLE
            return MATCH_NONE, 0

    def _queue(self, ref: int, key: QueueKey) -> QueueFiles:
        if ref not in self._queues:
            self._queues[ref] = QueueFiles(self._files[key], layout.ENTRY_BYTES, self._open)
        return self._queues[ref]

    def _resolve(self, item: np.void, ref: int, key: QueueKey) -> tuple[int, int]:
        queue, state, phy_offset = self._queue(ref, key), self._states[ref], int(item["phy_offset"])
        queue_offset = int(item["queue_offset"])
        for delta in (int(state[DELTA]), 0):
            number = int64(queue_offset + delta)
            if 0 <= number < FAR:
                entry = queue.read(number, 1).view(STORED_ENTRY_DTYPE)[0]
                if entry["phy_offset"] == phy_offset and _used(entry):
                    return self._found(item, ref, key, number, entry)
        if ref not in self._sorted:
            numbers, entries = queue.entries_within(self._low, self._high, STORED_ENTRY_DTYPE)
            self._sorted[ref] = numbers, entries["phy_offset"].astype(np.int64)
        numbers, phy_offsets = self._sorted[ref]
        low, high = np.searchsorted(phy_offsets, [phy_offset, phy_offset + 1])
        if low == high:
            state[MISSING_UNTIL] = phy_offsets[low] if low < len(phy_offsets) else (1 << 63) - 1
            return MATCH_MISSING, 0
        twins = numbers[low:high]
        number = int(twins[np.argmin(np.abs(twins - queue_offset))])
        return self._found(item, ref, key, number, queue.read(number, 1).view(STORED_ENTRY_DTYPE)[0])

    def _found(self, item: np.void, ref: int, key: QueueKey, number: int, entry: np.void) -> tuple[int, int]:
        """An entry leads to this message: is it right?"""
        delta = int64(number - int(item["queue_offset"]))  # wraps for a damaged queue offset, and back when it is added
        self._states[ref, DELTA] = delta
        size_wrong = bool(entry["size"] != item["total_size"])
        tags_wrong = not self._tags_allowed(item, ref, key, int(entry["tags_code"]))
        if not size_wrong and not tags_wrong:
            return (MATCH_SHIFTED if delta else MATCH_EQUAL), delta
        if tags_wrong and not self._ext_told(item, ref, key, number, int(entry["tags_code"])):
            if not size_wrong:
                return MATCH_DIFFERS, delta
            tags_wrong = False
        low = layout.ENTRY_SIZE_POSITION if size_wrong else layout.ENTRY_TAGS_CODE_POSITION
        high = layout.ENTRY_BYTES if tags_wrong else layout.ENTRY_TAGS_CODE_POSITION
        expected = [int(item["total_size"])] * size_wrong + [int(item["tags_code"])] * tags_wrong
        actual = [int(entry["size"])] * size_wrong + [int(entry["tags_code"])] * tags_wrong
        self._wrong(item, key, _Part(self._queues[ref], number, low, high), expected, actual)
        return MATCH_DIFFERS, delta

    def _wrong(self, item: np.void, key: QueueKey, part: _Part, expected: list[int], actual: list[int]) -> None:
        path, position = part.queue.file_at(part.number)
        self._findings.add(
            Finding(
                codes.ENTRY_WRONG,
                path,
                position + part.low,
                position + part.high,
                phy_offset=int(item["phy_offset"]),
                topic=key[0],
                queue_id=key[1],
                queue_offset=int(item["queue_offset"]),
                expected=", ".join(map(str, expected)),
                actual=", ".join(map(str, actual)),
                message=f"the entry does not fit its message, which is at physical offset {int(item['phy_offset']):,}",
            )
        )

    def _ext_told(self, item: np.void, ref: int, key: QueueKey, number: int, found: int) -> bool:
        """Say what is wrong with the ext unit that an entry leads to; gives whether the entry, too, is to be told as wrong.

        A unit that differs is told beside the entry, since its message may be the one that is wrong. An address is one if the
        queue has ext files, or an entry beside this one holds an address as well: a tags code with a damaged byte looks alike.
        """
        if found > layout.EXT_ADDRESS_MAX:
            return True
        offset = found - layout.EXT_ADDRESS_BASE
        files = self._ext_files.get(key)
        unit = self._ext[ref].at(offset) if files else None
        if files and unit is not None:
            file = next(f for f in files if f.start <= offset < f.start + f.size)
            at = offset - file.start
            tags, time = unit
            wanted = int(item["tags_code"]), int(item["store_time"])
            if (tags == wanted[0]) != (time == wanted[1]):  # one of the two shows that it is this message's unit
                self._findings.add(
                    Finding(
                        codes.EXT_DAMAGED,
                        file.path,
                        at,
                        at + layout.EXT_UNIT_HEADER_BYTES,
                        topic=key[0],
                        queue_id=key[1],
                        queue_offset=int(item["queue_offset"]),
                        expected=f"tags code {wanted[0]}, store time {wanted[1]}",
                        actual=f"tags code {tags}, store time {time}",
                        message=f"the ext unit does not fit its message, which is at physical offset {int(item['phy_offset']):,}",
                    )
                )
            return True
        queue = self._queues[ref]
        beside = np.concatenate([queue.read(n, 1).view(STORED_ENTRY_DTYPE) for n in (number - 1, number + 1) if 0 <= n < FAR])
        if not (beside["tags_code"] <= layout.EXT_ADDRESS_MAX).any():
            return True
        path, position = queue.file_at(number)
        self._findings.add_beside(
            Finding(
                codes.EXT_DANGLING,
                path,
                position + layout.ENTRY_TAGS_CODE_POSITION,
                position + layout.ENTRY_BYTES,
                phy_offset=int(item["phy_offset"]),
                topic=key[0],
                queue_id=key[1],
                queue_offset=int(item["queue_offset"]),
                expected=f"a unit at {offset} of the ext files",
                actual="none",
                message="entries that lead to no ext unit",
            ),
            layout.ENTRY_TAGS_CODE_POSITION,
        )
        return False

    def _odd_delay(self, item: np.void, ref: int, key: QueueKey, delay: int) -> None:
        """A note, once per queue: a level of a table that is not known had that delay, or the entry is damaged."""
        if ref in self._odd_delays:
            return
        self._odd_delays.add(ref)
        path, position = self._queues[ref].file_at(int64(int(item["queue_offset"]) + int(self._states[ref, DELTA])))
        self._findings.add(
            Finding(
                codes.ENTRY_WRONG,
                path,
                position + layout.ENTRY_TAGS_CODE_POSITION,
                position + layout.ENTRY_BYTES,
                severity=NOTE,
                topic=key[0],
                queue_id=key[1],
                queue_offset=int(item["queue_offset"]),
                expected=f"deliver time {int(item['tags_code'])}",
                actual=f"deliver time {int(item['store_time']) + delay}",
                message=f"no delay level has the delay of this entry, {delay:,} ms: was messageDelayLevel changed?",
            )
        )

    def _tags_allowed(self, item: np.void, ref: int, key: QueueKey, found: int) -> bool:
        """Whether an entry of this message may carry that tags code.

        Besides the code itself: a delayed message's deliver time under another level table, or its tag hash, where the
        release had no table yet (pitfalls P12, P13; whole seconds that no known level has are noted); the address of an ext
        unit that holds the code.
        """
        if found == item["tags_code"]:
            return True
        if item["flags"] & SCHEDULE:
            delay = found - int(item["store_time"])
            if delay in OTHER_DELAYS or found == self._tag_hash(item):
                return True
            if 0 <= delay <= MOST_DELAY_MS and delay % DELAY_UNIT_MS == 0:
                self._odd_delay(item, ref, key, delay)
                return True
        if found > layout.EXT_ADDRESS_MAX or not self._ext_files.get(key):
            return False
        if ref not in self._ext:
            self._ext[ref] = ExtUnits(self._ext_files[key], self._open)
        units = self._ext[ref]
        unit = units.at(found - layout.EXT_ADDRESS_BASE)
        self._states[ref, EXT_ADDRESS:STATE_COLUMNS] = units.data.ctypes.data, units.start, len(units.data)
        if unit is None or unit[1] != item["store_time"]:
            return False
        return unit[0] == item["tags_code"] or bool(item["flags"] & SCHEDULE) and unit[0] == self._tag_hash(item)

    def _tag_hash(self, item: np.void) -> int:
        return string_hash(decode_utf8(self._part(item, "tags")))

    def _match_batch(self, items: np.ndarray, ref: int, key: QueueKey) -> tuple[np.ndarray, np.ndarray]:
        """As `match`, for messages of one BatchConsumeQueue: an entry is found by physical offset, wherever it stands."""
        if not self._batch_files.get(key):
            return np.full(len(items), MATCH_MISSING, np.uint8), np.zeros(len(items), np.int64)
        if ref not in self._queues:
            self._queues[ref] = QueueFiles(self._batch_files[key], layout.BATCH_ENTRY_BYTES, self._open)
        queue = self._queues[ref]
        low, high = int(items["phy_offset"][0]), int(items["phy_offset"][-1]) + 1
        known = self._batches.get(ref)
        if known is None or not known[0] <= low < high <= known[1]:
            high = max(high, low + BATCH_SPAN_BYTES)
            known = self._batches[ref] = (low, high, *queue.entries_within(low, high, STORED_BATCH_DTYPE))
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
                _Part(queue, int(deltas[i]), spans[0][1], spans[-1][1] + spans[-1][0].itemsize),
                [int(wanted[name][i]) for name in wrong],
                [int(entry[i][name]) for name in wrong],
            )
        return matches, deltas


class ExtUnits:
    """The units of one queue's ConsumeQueueExt, by byte offset, through a read-ahead buffer: `data`, which begins at `start`."""

    def __init__(self, files: Sequence[MappedFile], opener: Callable[[str], ByteFile]):
        self._files, self._open = files, opener
        self.data, self.start = np.zeros(0, np.uint8), 0

    def at(self, offset: int) -> tuple[int, int] | None:
        """(tags code, store time) of the unit there; None where there is none. Source: ConsumeQueueExt.get."""
        file = next((f for f in self._files if f.start <= offset < f.start + f.size), None)
        if file is None or offset + layout.EXT_UNIT_HEADER_BYTES > file.start + file.size:
            return None
        end = offset + layout.EXT_UNIT_HEADER_BYTES
        if not (self.start <= offset and end <= self.start + len(self.data)):
            self.data = np.zeros(min(EXT_BYTES, file.start + file.size - offset), np.uint8)
            self._open(file.path).read_into(offset - file.start, self.data)
            self.start = offset
        size, tags_code, store_time, _ = struct.unpack(
            layout.EXT_UNIT_FORMAT, self.data[offset - self.start : end - self.start].tobytes()
        )
        return (tags_code, store_time) if size >= layout.EXT_UNIT_HEADER_BYTES else None
