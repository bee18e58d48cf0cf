"""Keys of one segment's messages against the entries of the index files, in order.

Both are written in the CommitLog's order, so one pass over two streams suffices: what messages should have put, and what
is in the files. Where the two disagree, a small alignment decides which entry is wrong, absent or too many.
Source of order, hash and time difference: IndexService.buildIndex, IndexFile.putKey (formats.md 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout
from schemas.layouts import index_layout as layout
from schemas.rows import Extent, Finding, QueueKey, SegmentSummary
from schemas.severity_cases import Case, severity_in
from store_io.base.compiled import native
from store_io.base.compiled.native import Address, kept, load_i32, load_i64, peek_i32, peek_i64
from store_io.base.errors import StoreError
from store_io.base.findings import Findings
from store_io.kinds.index.odd_entries import NEAR_BYTES, NONE, MessageKeys, OddEntries, WrongTimes
from store_io.log.entries import index_entries
from store_io.log.entries.index_entries import (
    BLOCK_ENTRIES,
    PHY_OFFSET_POSITION,
    SECONDS_POSITION,
    IndexFileRef,
    first_entry_from,
    read_range,
)
from store_io.log.records import message_columns, segment_items
from store_io.log.records.message_columns import HAS_TAGS, Columns, entries_in_order
from store_io.log.scan.followers import FollowedScan, SegmentPlace
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import OpenFiles
from store_io.source.segment_window import SegmentWindow

CHUNK_ENTRIES = 32_768
ALIGN_EXPECTED, ALIGN_FOUND = 48, 96  # entries of either stream that an alignment looks at
MAX_AGAIN, MAX_MESSAGES_AGAIN = 1024, 4  # entries, and their messages, that one look at what was put again may take
MAX_IN_VAIN = 1 << 18  # entries of one segment's looks that found no end: then it looks no more
NO_TIME = -(1 << 62)  # the time that an entry counts from is not known

NEED_EXPECTED, NEED_FOUND, DISAGREE = 0, 1, 2

_EXACT, _HALF, _NEITHER, _SKIP = 5, 2, -1, -1

EXPECTED_DTYPE = np.dtype(
    [
        ("phy_offset", "i8"),
        ("key_hash", "i4"),
        ("optional", "?"),  # a tag key, which only 5.4.0 and later put
        ("store_time", "i8"),
        ("position", "i8"),  # of the message in the segment
        ("end", "i8"),
    ],
    align=True,
)
FOUND_DTYPE = np.dtype(
    [
        ("file", "i4"),  # its number
        ("number", "i8"),  # the entry's, in the file
        ("phy_offset", "i8"),
        ("key_hash", "i4"),
        ("seconds", "i4"),
        ("begin", "i8"),  # the time that the seconds count from
    ],
    align=True,
)


@kept(commitlog_layout, message_columns)
def _seconds(store_time, begin):  # type: ignore[no-untyped-def]
    """Return the time difference that putKey stores."""
    if begin <= 0:
        return np.int64(0)
    seconds = (store_time - begin) // 1000 if store_time >= begin else np.int64(0)
    return min(seconds, np.int64(0x7FFFFFFF))


@kept(commitlog_layout, message_columns)
def _advance(expected, i, found, j, wrong):  # type: ignore[no-untyped-def]
    """Step through both streams as long as they agree. Gives (i, j, entries in `wrong`, why it stopped).

    wrong: (i, j) of each pair with a wrong time difference.
    """
    wrongs = 0
    while i < len(expected):
        if j == len(found):
            return i, j, wrongs, NEED_FOUND
        if expected[i].phy_offset == found[j].phy_offset and expected[i].key_hash == found[j].key_hash:
            if found[j].begin != NO_TIME and found[j].seconds != _seconds(expected[i].store_time, found[j].begin):
                wrong[wrongs, 0] = i
                wrong[wrongs, 1] = j
                wrongs += 1
            i += 1
            j += 1
        elif expected[i].optional and found[j].phy_offset > expected[i].phy_offset:
            i += 1
        else:
            return i, j, wrongs, DISAGREE
    return i, j, wrongs, NEED_EXPECTED


# What `_agree` gets and gives back, in one int64 array.
_ROW, _KEY, _ENTRY, _ENTRIES, _BEGIN, _FIRST_BEGIN, _LOW_PHY, _HIGH_PHY, _AGREED = range(9)


@kept(commitlog_layout, index_entries, layout, message_columns, native, segment_items)
def _agree(rows: Address, count, key_hash: Address, entries: Address, state, outside):  # type: ignore[no-untyped-def]
    """Step through messages and entries, both as stored, as long as they agree in everything; gives why it stopped.

    `state` has the next message, its next key and the next entry; how many entries there are, the time that they count from and
    the time that the first does.  Times that differ are a disagreement, too.
    """
    i, k, j, end, begin = state[_ROW], state[_KEY], state[_ENTRY], state[_ENTRIES], state[_BEGIN]
    low_phy, high_phy = state[_LOW_PHY], state[_HIGH_PHY]
    why = NEED_EXPECTED
    while i < count:
        row = rows + i * segment_items.ROW
        phy = peek_i64(row + segment_items.PHY_OFFSET)
        keys = peek_i32(row + segment_items.KEY_COUNT)
        tag = np.int64(0)
        if peek_i32(row + segment_items.FLAGS) & HAS_TAGS:
            if peek_i32(row + segment_items.SYS_FLAG) & commitlog_layout.SYS_TRANSACTION_MASK != commitlog_layout.SYS_ROLLBACK:
                tag = np.int64(1)
        if phy < low_phy or phy > high_phy:
            if keys:  # see `_entries_of`
                if outside[2] == 0:
                    outside[0] = phy
                outside[1] = phy
                outside[2] += 1
                outside[3] += keys
            i += 1
            continue
        if k < keys + tag:
            store_time = peek_i64(row + segment_items.STORE_TIME)
            seconds = _seconds(store_time, begin)
            hashes = key_hash + 4 * peek_i32(row + segment_items.KEY_START)
            while k < keys + tag:
                if j == end:
                    why = NEED_FOUND
                    break
                entry = entries + layout.ENTRY_BYTES * j
                if load_i64(entry + PHY_OFFSET_POSITION) == phy and load_i32(entry) == peek_i32(hashes + 4 * k):
                    first = j == 0 and state[_FIRST_BEGIN] != begin
                    wanted = _seconds(store_time, state[_FIRST_BEGIN]) if first else seconds
                    if load_i32(entry + SECONDS_POSITION) != wanted and not (first and state[_FIRST_BEGIN] == NO_TIME):
                        why = DISAGREE
                        break
                    j += 1
                elif k < keys or load_i64(entry + PHY_OFFSET_POSITION) <= phy:
                    why = DISAGREE
                    break
                k += 1
            if why != NEED_EXPECTED:
                break
        i += 1
        k = np.int64(0)
    state[_ROW], state[_KEY], state[_ENTRY] = i, k, j
    return why


@kept(commitlog_layout, message_columns)
def _align(expected, found, whole):  # type: ignore[no-untyped-def]
    """Align the beginnings of two streams; return (partners, expected entries decided, found entries decided).

    partners: for each expected entry the number of the found entry for the same key, or -1. The decided part ends with an exact
    pair, because keys repeat and a hash alone proves little. If the arrays are the `whole` rest of both streams, the decided part
    ends with them.
    """
    n, m = len(expected), len(found)
    score = np.zeros((n + 1, m + 1), np.int64)
    step = np.zeros((n + 1, m + 1), np.uint8)  # 1: a pair, 2: expected and absent, 3: found and too many
    for j in range(1, m + 1):
        score[0, j] = score[0, j - 1] + _SKIP
        step[0, j] = 3
    best, best_i, best_j = np.int64(0), 0, 0
    for i in range(1, n + 1):
        skip = 0 if expected[i - 1].optional else _SKIP
        score[i, 0] = score[i - 1, 0] + skip
        step[i, 0] = 2
        for j in range(1, m + 1):
            same_phy = expected[i - 1].phy_offset == found[j - 1].phy_offset
            same_hash = expected[i - 1].key_hash == found[j - 1].key_hash
            pair = _EXACT if same_phy and same_hash else _HALF if same_phy or same_hash else _NEITHER
            value, how = score[i - 1, j - 1] + pair, 1
            if score[i - 1, j] + skip > value:
                value, how = score[i - 1, j] + skip, 2
            if score[i, j - 1] + _SKIP > value:
                value, how = score[i, j - 1] + _SKIP, 3
            score[i, j] = value
            step[i, j] = how
            if value > best and (how == 1 and pair == _EXACT or whole and i == n and j == m):
                best, best_i, best_j = value, i, j
    partners = np.full(n, -1, np.int64)
    i, j = best_i, best_j
    while i > 0 or j > 0:
        how = step[i, j]
        if how == 1:
            i -= 1
            j -= 1
            partners[i] = j
        elif how == 2:
            i -= 1
        else:
            j -= 1
    return partners, best_i, best_j


class _Part(NamedTuple):
    """Entries [low, high) of an index file. file: its number."""

    file: int
    ref: IndexFileRef
    low: int
    high: int


class _Found:
    """The entries of all index files that belong to one segment, as one stream read in chunks."""

    def __init__(self, opener: Callable[[str], ByteFile], parts: list[_Part]):
        self._open, self._left = opener, list(parts)
        self._parts = {part.file: part for part in parts}
        self.rows = np.zeros(0, FOUND_DTYPE)
        self.at = 0
        self.read = 0
        self.raw = np.empty(CHUNK_ENTRIES * layout.ENTRY_BYTES, np.uint8)  # entries as they are stored, outside of the rows
        self._raw: _Part | None = None  # of them
        self._true_begins: dict[int, int] = {}  # of files whose header has another begin than its message

    def set_begin(self, file: int, begin: int) -> None:
        """Set the time from which entries 2 and later of a file count."""
        self._true_begins[file] = begin
        self.rows["begin"][(self.rows["file"] == file) & (self.rows["number"] > 1)] = begin

    @property
    def exhausted(self) -> bool:
        return not self._left

    def _take(self) -> _Part:
        """Return the next chunk."""
        part = self._left.pop(0)
        taken = part._replace(high=min(part.high, part.low + CHUNK_ENTRIES))
        if taken.high < part.high:
            self._left.insert(0, part._replace(low=taken.high))
        self.read += taken.high - taken.low
        return taken

    def _give_back(self, file: int, low: int, high: int) -> None:
        """Read entries [low, high) of a file once more, which come right before those that are not read yet."""
        if self._left and self._left[0].file == file:
            self._left.pop(0)
        whole = self._parts[file]
        if low < whole.high:
            self._left.insert(0, whole._replace(low=low))
        self.read -= high - low

    def _begins(self, part: _Part) -> tuple[int, int]:
        """Return the time that the part's entries count from, and the time that the first of them does."""
        begin = self._true_begins.get(part.file, part.ref.begin_timestamp)
        before = part.ref.previous_end_timestamp
        return begin, begin if part.low > 1 else before if before > 0 else NO_TIME

    def take_raw(self) -> int:
        """Fill `raw` with a chunk; gives the number of its entries."""
        part = self._raw = self._take()
        data = self.raw[: (part.high - part.low) * layout.ENTRY_BYTES]
        data[self._open(part.ref.path).read_into(part.ref.position(part.low), data) :] = 0
        return part.high - part.low

    def raw_begins(self) -> tuple[int, int]:
        """Return the time that the entries in `raw` count from, and the time that the first of them does."""
        return self._begins(self._raw) if self._raw else (NO_TIME, NO_TIME)

    def leave_raw(self, used: int) -> None:
        """Leave the entries of `raw` from number `used` on to `refill`."""
        if self._raw:
            self._give_back(self._raw.file, self._raw.low + used, self._raw.high)
        self._raw = None

    def leave_rows(self) -> None:
        """Give back all entries that are left in the rows: they are to come through `take_raw`."""
        left = self.rows[self.at :]
        for file in np.unique(left["file"])[::-1].tolist():
            numbers = left["number"][left["file"] == file]
            self._give_back(file, int(numbers[0]), int(numbers[-1]) + 1)
        self.at = len(self.rows)

    def refill(self) -> None:
        """Drop what is before `at` and add a chunk."""
        part = self._take()
        entries = read_range(self._open(part.ref.path), part.ref, part.low, part.high)
        fresh = np.zeros(len(entries), FOUND_DTYPE)
        fresh["file"], fresh["number"] = part.file, np.arange(part.low, part.high)
        fresh["begin"], fresh["begin"][:1] = self._begins(part)
        for name, stored in (("phy_offset", "phy_offset"), ("key_hash", "key_hash"), ("seconds", "time_difference")):
            fresh[name] = entries[stored]
        self.rows, self.at = np.concatenate([self.rows[self.at :], fresh]), 0


class _HeaderTimes:
    """Holds times in headers of index files against the messages of one segment.

    set_begin: takes the number of a file, and the time from which its entries count if its header has a wrong one.
    """

    def __init__(
        self,
        files: Sequence[IndexFileRef],
        place: SegmentPlace,
        keys: MessageKeys,
        open_file: Callable[[str], ByteFile],
        set_begin: Callable[[int, int], None],
        findings: Findings,
    ):
        self._files, self._keys, self._open, self._set_begin, self._findings = files, keys, open_file, set_begin, findings
        # (number of the file, phy_offset, time, position of the time) of each header's first and last message that lies here
        self._left = [
            (number, phy, time, at)
            for number, ref in enumerate(files)
            for phy, time, at in (
                (ref.begin_phy_offset, ref.begin_timestamp, layout.BEGIN_TIMESTAMP_POSITION),
                (ref.end_phy_offset, ref.end_timestamp, layout.END_TIMESTAMP_POSITION),
            )
            if time is not None and ref.entries and place.holds(phy)
        ]

    def check(self, columns: Columns) -> None:
        """Check these messages: two times of a header are the store times of the messages at its two physical offsets."""
        rows = columns.rows[: columns.count if self._left else 0]
        for known in list(self._left):
            number, phy, time, at = known
            hit = np.flatnonzero(rows["phy_offset"] == phy)
            if not len(hit):
                continue
            self._left.remove(known)
            stored = int(rows["store_time"][hit[0]])
            if stored == time:
                continue
            ref = self._files[number]
            torn = ref.may_be_torn and at == layout.END_TIMESTAMP_POSITION
            if at == layout.BEGIN_TIMESTAMP_POSITION:
                header_fits, message_fits = self._fitting(ref, phy, (time, stored))
                if header_fits > message_fits:
                    continue  # the message's own time is wrong, which the scan of the segment reports
                if message_fits > header_fits:
                    self._set_begin(number, stored)
            self._findings.add(
                Finding(
                    Code.INDEX_HEADER_WRONG,
                    ref.path,
                    at,
                    at + 8,
                    severity=severity_in(Code.INDEX_HEADER_WRONG, Case.AFTER_CRASH, torn),
                    phy_offset=phy,
                    expected=str(stored),
                    actual=str(time),
                    message="a time in the header differs from its message's store time",
                )
            )

    def _fitting(self, ref: IndexFileRef, phy: int, begins: Sequence[int]) -> list[int]:
        """Count for each begin time the entries whose time difference then leads to their message's store time.

        Only the file's first entries are looked at, without the very first. All counts are 0 if the file does not begin with the
        message at `phy`, or if one of the entries leads to a message before that.
        """
        try:
            entries = read_range(self._open(ref.path), ref, 1, min(2 + BLOCK_ENTRIES, ref.entries + 1))
        except StoreError:
            return [0 for _ in begins]
        offsets = entries["phy_offset"].tolist()
        if offsets[0] != phy or min(offsets) < phy:
            return [0 for _ in begins]
        times = {at: self._keys.store_time(at) for at in set(offsets)}  # whatever part of them was decoded together
        there = [(times[at], seconds) for at, seconds in zip(offsets[1:], entries["time_difference"].tolist()[1:], strict=True)]
        return [sum(time is not None and int(_seconds(time, begin)) == seconds for time, seconds in there) for begin in begins]


class IndexMerge:
    """Compares batch by batch, in scan order; `finish` judges what is left over."""

    def __init__(self, files: Sequence[IndexFileRef], scan: FollowedScan):
        place, findings = scan.place, scan.findings
        self._refs, self._path = files, place.path
        self._base, self._end, self._log_end = place.base_offset, place.base_offset + place.size, place.log_end
        self._findings = findings
        self._files = OpenFiles(scan.source, len(files))
        self._open = self._files.open
        self._broken = False
        parts = self._parts()
        self._compared = {part.file: part.high - part.low for part in parts}  # entries per file
        self._found = _Found(self._open, parts)
        self._low_phy = min(self._first_phy(f) for f in files)
        self._high_phy = max(f.end_phy_offset for f in files)
        self._expected = np.zeros(0, EXPECTED_DTYPE)
        self._at, self._dropped = 0, 0  # expected entries: the next one's place, and how many are no longer in the array
        self._outside = np.array([-1, -1, 0, 0], np.int64)
        self._state = np.zeros(_AGREED, np.int64)
        self._state[_LOW_PHY], self._state[_HIGH_PHY] = self._low_phy, self._high_phy
        self._wrong = np.empty((2 * CHUNK_ENTRIES, 2), np.int64)
        self._missing: list[int] | None = None  # first and last expected, position, end, keys of the open finding
        self._keys = MessageKeys(place, scan.verdict, lambda position: scan.messages_from(position, NEAR_BYTES))
        self._odd = OddEntries(files, place, self._keys)
        self._header_times = _HeaderTimes(files, place, self._keys, self._open, self._found.set_begin, findings)
        self._wrong_times = WrongTimes(files)
        self._looked_in_vain = 0

    def close(self) -> None:
        """Close the index files."""
        self._files.close()

    def _parts(self) -> list[_Part]:
        """Return for each file the entries that belong to this segment, in the files' order."""
        parts = []
        for index, ref in enumerate(self._refs):
            if not ref.entries:
                continue
            try:
                file = self._open(ref.path)
                low = first_entry_from(file, ref, self._base)
                high = ref.entries + 1 if self._end >= self._log_end else first_entry_from(file, ref, self._end)
            except StoreError:  # a failed read is noted: `base.failed_reads`
                self._broken = True
                return []
            if low < high:
                parts.append(_Part(index, ref, low, high))
        return parts

    def _first_phy(self, ref: IndexFileRef) -> int:
        """Return the physical offset of the file's first message.

        The first two entries decide if the header agrees with neither.
        """
        if not ref.entries or self._broken:
            return ref.begin_phy_offset
        try:
            first = read_range(self._open(ref.path), ref, 1, min(3, ref.entries + 1))["phy_offset"].astype(np.int64)
        except StoreError:  # a failed read is noted: `base.failed_reads`
            self._broken = True
            return ref.begin_phy_offset
        ordered = 0 <= first[0] <= first[-1]
        return ref.begin_phy_offset if ref.begin_phy_offset in first or not ordered else int(first[0])

    def add(self, columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> None:
        """Take the next messages."""
        self._header_times.check(columns)
        if self._broken:
            return
        row, key = self._step_through(columns) if self._at == len(self._expected) else (0, 0)
        if self._broken or row == columns.count:
            return
        left = self._expected[self._at :]
        self._dropped += self._at
        self._expected, self._at = np.concatenate([left, self._entries_of(columns, row, key)]), 0
        self._run(final=False)

    def _entries_of(self, columns: Columns, first: int, first_key: int) -> np.ndarray:
        """Return the entries that messages from row `first` on should have put.

        first_key: the first key of the first of these messages that counts. Entries of messages outside of the index's own range
        are only counted.
        """
        rows = columns.rows[first : columns.count]
        outside = (rows["phy_offset"] < self._low_phy) | (rows["phy_offset"] > self._high_phy)
        if outside.any():
            self._count_outside(rows[outside & (rows["key_count"] > 0)])
            rows = rows[~outside]
        of, hashes = entries_in_order(rows, tag_index=True)
        of, hashes = of[first_key:], hashes[first_key:]
        made = np.zeros(len(of), EXPECTED_DTYPE)
        for name in ("phy_offset", "store_time", "position"):
            made[name] = rows[name][of]
        made["end"] = made["position"] + rows["total_size"][of]
        made["key_hash"] = columns.key_hash[hashes]
        made["optional"] = hashes - rows["key_start"][of] == rows["key_count"][of]
        return made

    def _count_outside(self, rows: np.ndarray) -> None:
        if len(rows):
            total = self._outside
            total[0] = total[0] if total[2] else rows["phy_offset"][0]
            total[1] = rows["phy_offset"][-1]
            total[2:] += len(rows), rows["key_count"].sum()

    def _step_through(self, columns: Columns) -> tuple[int, int]:
        """Pass over messages and entries that agree; return the first message that is left, and its first key."""
        found, state = self._found, self._state
        if found.at < len(found.rows):
            found.leave_rows()
            state[_ENTRY] = state[_ENTRIES] = 0
        state[_ROW] = state[_KEY] = 0
        try:
            while True:
                state[_BEGIN], state[_FIRST_BEGIN] = found.raw_begins()
                why = _agree(columns.row_bytes, columns.count, columns.key_hash, found.raw, state, self._outside)
                if why == NEED_EXPECTED:
                    break
                if why == DISAGREE or found.exhausted:
                    found.leave_raw(int(state[_ENTRY]))
                    state[_ENTRY] = state[_ENTRIES] = 0
                    break
                state[_ENTRIES], state[_ENTRY] = found.take_raw(), 0
        except StoreError:
            self._broken = True
        return int(state[_ROW]), int(state[_KEY])

    def _run(self, final: bool) -> None:
        found = self._found
        try:
            while True:
                self._at, at, wrongs, why = _advance(self._expected, self._at, found.rows, found.at, self._wrong)
                for i, j in self._wrong[:wrongs].tolist():
                    self._time_wrong(i, j)
                found.at = at
                if why == NEED_EXPECTED:
                    return
                if len(found.rows) - found.at < (1 if why == NEED_FOUND else ALIGN_FOUND) and not found.exhausted:
                    found.refill()
                    continue
                if len(self._expected) - self._at < ALIGN_EXPECTED and not final:
                    return
                self._disagree(final)
        except StoreError:
            self._broken = True

    # ---- where they disagree -------------------------------------------------------------------------------------------

    def _disagree(self, final: bool) -> None:
        """Decide at least one entry of either stream. final: no message follows those that are expected."""
        found, at = self._found, self._at
        if self._odd.gave_up:  # it is no index of these messages
            self._odd.pass_over(int(np.count_nonzero(~self._expected["optional"][at:])))
            self._at = len(self._expected)
            return
        if found.at == len(found.rows):
            self._absent(at, len(self._expected))
            self._at = len(self._expected)
            return
        if again := self._put_again():
            self._too_many(found.at, found.at + again)
            found.at += again
            return
        if self._expected[at]["optional"]:  # a release that puts none
            self._at += 1
            return
        expected, there = self._expected[at : at + ALIGN_EXPECTED], found.rows[found.at : found.at + ALIGN_FOUND]
        ends = at + len(expected) == len(self._expected) and found.at + len(there) == len(found.rows)
        partners, decided, taken = _align(expected, there, final and ends and found.exhausted)
        if not decided:
            self._no_pair()
            return
        j = found.at
        for k, partner in enumerate(partners[:decided].tolist()):
            if partner < 0:
                if not expected[k]["optional"]:
                    self._absent(at + k, at + k + 1)
                continue
            while j < found.at + partner:
                self._too_many(j, j + 1)
                j += 1
            self._compare(at + k, j)
            j += 1
        self._at, found.at = at + decided, found.at + taken

    def _put_again(self) -> int:
        """Count the entries before the expected one that only repeat keys of earlier messages, as a restart leaves them.

        An alignment does not show such entries: messages of one batch have the same unique key, so most of their pairs fit in
        part.
        """
        found, at = self._found, self._at
        limit, phy, key_hash = int(self._expected[at]["phy_offset"]), -1, int(self._expected[at]["key_hash"])
        keys, messages, count = NONE, 0, 0
        if self._looked_in_vain > MAX_IN_VAIN:
            return 0
        for count in range(MAX_AGAIN):
            if found.at + count == len(found.rows):
                if found.exhausted:
                    break
                found.refill()
            entry = found.rows[found.at + count]
            there, entry_hash = int(entry["phy_offset"]), int(entry["key_hash"])
            if (there, entry_hash) == (limit, key_hash):
                return count
            if there != phy:
                phy, messages = there, messages + 1
                keys = self._keys.at(phy) if phy <= limit and messages <= MAX_MESSAGES_AGAIN else NONE
            if entry_hash not in keys:
                break
        self._looked_in_vain += count
        return 0

    def _no_pair(self) -> None:
        """Take what comes first on one side, as nothing of what comes next on either side fits together."""
        found, j = self._found, self._found.at
        wanted = self._expected["phy_offset"][self._at : self._at + ALIGN_EXPECTED]  # no more, however many there are by chance
        there = found.rows["phy_offset"][j : j + ALIGN_FOUND]
        phy, ahead = wanted[0], there[:3]
        if phy < ahead[0] < self._end and (ahead[1:] >= ahead[:-1]).all():
            end = self._at + int(np.searchsorted(wanted, ahead[0]))
            self._absent(self._at, end)
            self._at = end
            return
        end = j + 1
        if ahead[0] < phy:
            fits = np.flatnonzero(there >= phy)
            end = j + (int(fits[0]) if len(fits) else len(there))
        self._too_many(j, end)
        found.at = end

    def _absent(self, low: int, high: int) -> None:
        """Note that expected entries [low, high) are in no file."""
        expected = self._expected[low:high]
        keys = int(np.count_nonzero(~expected["optional"]))
        if keys <= 0:
            return
        first, last = self._dropped + low, self._dropped + high
        start, end, phy = int(expected[0]["position"]), int(expected[-1]["end"]), int(expected[0]["phy_offset"])
        if self._missing and first - self._missing[1] <= 1:
            self._missing[1], self._missing[3] = last, end
            self._missing[4] += keys
            return
        self._flush_missing()
        self._missing = [first, last, start, end, keys, phy]

    def _flush_missing(self) -> None:
        if self._missing:
            _, _, start, end, keys, phy = self._missing
            text = f"{keys:,} keys of messages in this range have no index entry"
            missing = Finding(Code.INDEX_ENTRY_MISSING, self._path, start, end, phy_offset=phy, message=text, count=keys)
            self._findings.add(missing)
        self._missing = None

    def _too_many(self, low: int, high: int) -> None:
        """Note that found entries [low, high) have no place."""
        entries = self._found.rows[low:high][["file", "number", "phy_offset", "key_hash"]]
        self._odd.add(entries.tolist(), self._findings)

    def _compare(self, i: int, j: int) -> None:
        """Compare expected entry i with found entry j, both for the same key."""
        wanted, entry = self._expected[i], self._found.rows[j]
        same_phy, same_hash = wanted["phy_offset"] == entry["phy_offset"], wanted["key_hash"] == entry["key_hash"]
        if same_phy and same_hash:
            if entry["begin"] != NO_TIME and entry["seconds"] != _seconds(wanted["store_time"], entry["begin"]):
                self._time_wrong(i, j)
            return
        self._wrong_times.close()
        ref = self._refs[entry["file"]]
        start = ref.position(int(entry["number"]))
        expected, actual = (f"hash {row['key_hash']}, physical offset {row['phy_offset']}" for row in (wanted, entry))
        self._findings.add(
            Finding(
                Code.INDEX_ENTRY_WRONG,
                ref.path,
                start + (PHY_OFFSET_POSITION if same_hash else 0),
                start + (PHY_OFFSET_POSITION if same_phy else SECONDS_POSITION),
                phy_offset=int(wanted["phy_offset"]),
                expected=expected,
                actual=actual,
                message="an index entry does not fit its message",
            )
        )

    def _time_wrong(self, i: int, j: int) -> None:
        """Note that found entry j is expected entry i with another time difference."""
        wanted, entry = self._expected[i], self._found.rows[j]
        expected = int(_seconds(wanted["store_time"], entry["begin"]))
        file, number = int(entry["file"]), int(entry["number"])
        self._wrong_times.add(file, number, int(wanted["phy_offset"]), expected, int(entry["seconds"]))

    # ---- what is left over ---------------------------------------------------------------------------------------------

    def finish(self, extents: Sequence[Extent], summary: SegmentSummary) -> None:
        """End the stream of messages. extents: the segment's, all of them."""
        if not self._broken:
            self._finish(extents)
        first, last, messages, keys = (int(n) for n in self._outside)
        summary.index_unindexed, summary.index_entries_seen = (first, last, messages, keys), self._found.read

    def _finish(self, extents: Sequence[Extent]) -> None:
        found = self._found
        found.leave_raw(int(self._state[_ENTRY]))
        self._run(final=True)
        try:
            while True:
                self._too_many(found.at, len(found.rows))
                found.at = len(found.rows)
                if found.exhausted:
                    break
                found.refill()
        except StoreError:
            self._broken = True
        self._flush_missing()
        self._wrong_times.close()
        self._wrong_times.judge(self._compared, self._findings)
        self._odd.judge(extents, self._findings)


@dataclass(frozen=True)
class IndexFollower:
    """Holds the messages of all segments against these index files."""

    files: tuple[IndexFileRef, ...]

    def follow(self, scan: FollowedScan) -> IndexMerge:
        return IndexMerge(self.files, scan)
