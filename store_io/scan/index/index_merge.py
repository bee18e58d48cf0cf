"""Keys of one segment's messages against the entries of the index files, in order.

Both are written in the CommitLog's order, so one pass over two streams suffices: what messages should have put, and what
stands in the files. Where the two disagree, a small alignment decides which entry is wrong, absent or too many.
Source of order, hash and time difference: IndexService.buildIndex, IndexFile.putKey (formats.md 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from schemas import commitlog_layout
from schemas import finding_codes as codes
from schemas import index_layout as layout
from schemas.rows import NOTE, Extent, Finding
from store_io.base import native
from store_io.base.errors import StoreError
from store_io.base.native import kept, load_i32, load_i64, peek_i32, peek_i64
from store_io.formats.commitlog import message_columns, segment_items
from store_io.formats.commitlog.message_columns import HAS_TAGS, Columns
from store_io.formats.commitlog.segment_items import grown
from store_io.rules.message_verdict import Verdict
from store_io.scan.index.index_files import (
    BLOCK_ENTRIES,
    PHY_OFFSET_POSITION,
    SECONDS_POSITION,
    IndexFileRef,
    SegmentPlace,
    first_entry_from,
    read_entries,
)
from store_io.scan.index.odd_entries import NONE, MessageKeys, OddEntries
from store_io.scan.index.wrong_times import WrongTimes
from store_io.scan.segment_findings import Findings
from store_io.source.byte_source import ByteFile, ByteSource

CHUNK_ENTRIES = 32_768
ALIGN_EXPECTED, ALIGN_FOUND = 48, 96  # entries of either stream that an alignment looks at
MOST_AGAIN, MOST_MESSAGES_AGAIN = 1024, 4  # entries, and their messages, that one look at what was put again may take
MOST_IN_VAIN = 1 << 18  # entries of one segment's looks that found no end: then it looks no more
NO_TIME = -(1 << 62)  # the time that an entry counts from is not known

NEED_EXPECTED, NEED_FOUND, DISAGREE = 0, 1, 2

_EXACT, _HALF, _NEITHER, _SKIP = 5, 2, -1, -1


@kept(commitlog_layout, message_columns)
def _expect(  # type: ignore[no-untyped-def]
    rows, first, first_key, count, key_hash, low_phy, high_phy, phy, hashes, times, optional, places, ends, used, outside
):
    """Append what messages [first, count) should have put to the expected stream; gives the entries in use.

    first_key: of the first message, the keys before this one are left out.  optional: tag keys, which only 5.4.0 and later put.
    outside: (first, last phy_offset, messages, keys) of those below `low_phy` or above `high_phy`, which are only counted.
    """
    for i in range(first, count):
        row = rows[i]
        keys = row.key_count
        tag = 0
        transaction = row.sys_flag & commitlog_layout.SYS_TRANSACTION_MASK
        if row.flags & HAS_TAGS and transaction != commitlog_layout.SYS_ROLLBACK:
            tag = 1
        if keys + tag == 0:
            continue
        if row.phy_offset < low_phy or row.phy_offset > high_phy:
            if keys:  # a tag key alone proves nothing: the writer may have been older than the rules asked for
                if outside[2] == 0:
                    outside[0] = row.phy_offset
                outside[1] = row.phy_offset
                outside[2] += 1
                outside[3] += keys
            continue
        for k in range(first_key if i == first else 0, keys + tag):
            phy[used] = row.phy_offset
            hashes[used] = key_hash[row.key_start + k]
            times[used] = row.store_time
            optional[used] = k == keys
            places[used] = row.position
            ends[used] = row.position + row.total_size
            used += 1
    return used


@kept(commitlog_layout, message_columns)
def _seconds(store_time, begin):  # type: ignore[no-untyped-def]
    """The time difference that putKey stores."""
    if begin <= 0:
        return np.int64(0)
    seconds = (store_time - begin) // 1000 if store_time >= begin else np.int64(0)
    return min(seconds, np.int64(0x7FFFFFFF))


@kept(commitlog_layout, message_columns)
def _advance(phy, hashes, times, optional, i, expected, found_phy, found_hash, found_seconds, begins, j, found, wrong):  # type: ignore[no-untyped-def]
    """Step through both streams as long as they agree. Gives (i, j, entries in `wrong`, why it stopped).

    wrong: (i, j) where the time difference is not what it should be.
    """
    wrongs = 0
    while i < expected:
        if j == found:
            return i, j, wrongs, NEED_FOUND
        if phy[i] == found_phy[j] and hashes[i] == found_hash[j]:
            if begins[j] != NO_TIME and found_seconds[j] != _seconds(times[i], begins[j]):
                wrong[wrongs, 0] = i
                wrong[wrongs, 1] = j
                wrongs += 1
            i += 1
            j += 1
        elif optional[i]:
            i += 1
        else:
            return i, j, wrongs, DISAGREE
    return i, j, wrongs, NEED_EXPECTED


# What `_agree` is told and what it leaves behind, in one int64 array.
_ROW, _KEY, _ENTRY, _ENTRIES, _BEGIN, _FIRST_BEGIN, _LOW_PHY, _HIGH_PHY, _AGREED = range(9)


@kept(commitlog_layout, layout, message_columns, native, segment_items)
def _agree(rows, count, key_hash, entries, state, outside):  # type: ignore[no-untyped-def]
    """Step through messages and entries, both as they stand, as long as they agree in everything; gives why it stopped.

    rows, key_hash, entries: addresses.  `state` tells the next message, its next key and the next entry; how many entries there
    are, the time that they count from and the time that the first does.  Times that differ are a disagreement, too.
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
            if keys:  # see `_expect`
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
                elif k < keys:
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
def _align(phy, hashes, optional, found_phy, found_hash, whole):  # type: ignore[no-untyped-def]
    """Best alignment of the two streams' beginnings: per expected entry the found one that stands for it, or -1.

    Gives (partners, expected entries decided, found entries decided). What is decided ends with an exact pair, because keys
    repeat and a hash alone proves little; or, where the arrays are the `whole` rest of both streams, with their ends.
    """
    n, m = len(phy), len(found_phy)
    score = np.zeros((n + 1, m + 1), np.int64)
    step = np.zeros((n + 1, m + 1), np.uint8)  # 1: a pair, 2: expected and absent, 3: found and too many
    for j in range(1, m + 1):
        score[0, j] = score[0, j - 1] + _SKIP
        step[0, j] = 3
    best, best_i, best_j = np.int64(0), 0, 0
    for i in range(1, n + 1):
        skip = 0 if optional[i - 1] else _SKIP
        score[i, 0] = score[i - 1, 0] + skip
        step[i, 0] = 2
        for j in range(1, m + 1):
            same_phy = phy[i - 1] == found_phy[j - 1]
            same_hash = hashes[i - 1] == found_hash[j - 1]
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


class _Found:
    """The entries of all index files that belong to one segment, as one stream read in chunks."""

    def __init__(self, opener: Callable[[str], ByteFile], ranges: list[tuple[int, IndexFileRef, int, int]]):
        self._open, self._ranges = opener, ranges
        self._refs = {index: ref for index, ref, _, _ in ranges}
        self.phy = np.zeros(0, np.int64)
        self.hashes = np.zeros(0, np.int32)
        self.seconds = np.zeros(0, np.int32)
        self.begins = np.zeros(0, np.int64)  # the time that each entry counts from
        self.numbers = np.zeros(0, np.int64)
        self.files = np.zeros(0, np.int32)
        self.at = 0
        self.read = 0
        self._ends = {index: high for index, _, _, high in ranges}
        self.raw = np.zeros(CHUNK_ENTRIES * layout.ENTRY_BYTES, np.uint8)  # entries as they stand, outside of the arrays
        self._raw: tuple[int, IndexFileRef, int, int] | None = None  # of them: the file, and their first and last number
        self._true_begins: dict[int, int] = {}  # of files whose header tells another begin than its message

    def set_begin(self, file: int, begin: int) -> None:
        """The time that a file's entries count from, but for its first one."""
        self._true_begins[file] = begin
        self.begins[(self.files == file) & (self.numbers > 1)] = begin

    @property
    def exhausted(self) -> bool:
        return not self._ranges

    def _take(self) -> tuple[int, IndexFileRef, int, int]:
        """The next chunk: its file, and the numbers of its entries, half-open."""
        index, ref, low, high = self._ranges[0]
        end = min(high, low + CHUNK_ENTRIES)
        self._ranges[0] = index, ref, end, high
        if end == high:
            self._ranges.pop(0)
        self.read += end - low
        return index, ref, low, end

    def _give_back(self, index: int, ref: IndexFileRef, number: int, end: int) -> None:
        """Entries [number, end) of a file, which come right before those that are not read yet, are read once more."""
        if self._ranges and self._ranges[0][0] == index:
            self._ranges.pop(0)
        if number < self._ends[index]:
            self._ranges.insert(0, (index, ref, number, self._ends[index]))
        self.read -= end - number

    def _begin(self, index: int, ref: IndexFileRef) -> int:
        return self._true_begins.get(index, ref.begin_timestamp)

    def take_raw(self) -> int:
        """Fill `raw` with a chunk; gives the number of its entries."""
        _, ref, low, end = self._raw = self._take()
        data = self.raw[: (end - low) * layout.ENTRY_BYTES]
        data[self._open(ref.path).read_into(ref.position(low), data) :] = 0
        return end - low

    def raw_begins(self) -> tuple[int, int]:
        """The time that the entries in `raw` count from, and the time that the first of them does."""
        if self._raw is None:
            return NO_TIME, NO_TIME
        index, ref, low, _ = self._raw
        begin = self._begin(index, ref)
        return begin, _first_begin(ref) if low == 1 else begin

    def leave_raw(self, used: int) -> None:
        """Entries of `raw` from number `used` of it on are to come through `refill`."""
        if self._raw is not None:
            index, ref, low, end = self._raw
            self._give_back(index, ref, low + used, end)
        self._raw = None

    def leave_arrays(self) -> None:
        """What is left in the arrays is to come through `take_raw`."""
        for index in np.unique(self.files[self.at :])[::-1].tolist():
            numbers = self.numbers[self.at :][self.files[self.at :] == index]
            self._give_back(index, self._refs[index], int(numbers[0]), int(numbers[-1]) + 1)
        self.at = len(self.phy)

    def refill(self) -> None:
        """Drop what is behind `at` and add a chunk."""
        kept = slice(self.at, None)
        self.at = 0
        index, ref, low, end = self._take()
        entries = read_entries(self._open(ref.path), ref, low, end)
        begins = np.full(len(entries), self._begin(index, ref), np.int64)
        if low == 1 and len(entries):
            begins[0] = _first_begin(ref)
        self.phy = np.concatenate([self.phy[kept], entries["phy_offset"]])
        self.hashes = np.concatenate([self.hashes[kept], entries["key_hash"]])
        self.seconds = np.concatenate([self.seconds[kept], entries["time_difference"]])
        self.begins = np.concatenate([self.begins[kept], begins])
        self.numbers = np.concatenate([self.numbers[kept], np.arange(low, low + len(entries))])
        self.files = np.concatenate([self.files[kept], np.full(len(entries), index, np.int32)])


def _first_begin(ref: IndexFileRef) -> int:
    return ref.previous_end_timestamp if ref.previous_end_timestamp > 0 else NO_TIME


class IndexMerge:
    """Compares batch by batch, in scan order; `finish` judges what is left over.

    verdict: the audit's verdict of the frame at a position of this segment.
    """

    def __init__(
        self,
        source: ByteSource,
        files: Sequence[IndexFileRef],
        place: SegmentPlace,
        findings: Findings,
        verdict: Callable[[int], Verdict],
    ):
        self._source, self._refs, self._path = source, files, place.path
        self._base, self._end, self._log_end = place.base_offset, place.base_offset + place.size, place.log_end
        self._findings = findings
        self._open_files: dict[str, ByteFile] = {}
        # (number of the file, phy_offset, time, position of the time) of each header's first and last message that lies here
        self._header_times = [
            (number, phy, time, at)
            for number, ref in enumerate(files)
            for phy, time, at in (
                (ref.begin_phy_offset, ref.begin_timestamp, layout.BEGIN_TIMESTAMP_POSITION),
                (ref.end_phy_offset, ref.end_timestamp, layout.END_TIMESTAMP_POSITION),
            )
            if time is not None and ref.entries and self._base <= phy < self._end
        ]
        self._broken = False
        ranges = self._ranges()
        self._compared = {index: high - low for index, _, low, high in ranges}  # entries per file
        self._found = _Found(self._open, ranges)
        self._low_phy = min(self._first_phy(f) for f in files)
        self._high_phy = max(f.end_phy_offset for f in files)
        self._phy = np.zeros(0, np.int64)
        self._hashes = np.zeros(0, np.int32)
        self._times = np.zeros(0, np.int64)
        self._optional = np.zeros(0, bool)
        self._places = np.zeros(0, np.int64)
        self._ends = np.zeros(0, np.int64)
        self._at = self._used = 0
        self._dropped = 0  # expected entries that are no longer in the arrays
        self._outside = np.array([-1, -1, 0, 0], np.int64)
        self._state = np.zeros(_AGREED, np.int64)
        self._state[_LOW_PHY], self._state[_HIGH_PHY] = self._low_phy, self._high_phy
        self._wrong = np.zeros((2 * CHUNK_ENTRIES, 2), np.int64)
        self._missing: list[int] | None = None  # first and last expected, position, end, keys of the open finding
        self._keys = MessageKeys(place, verdict)
        self._odd = OddEntries(files, place, self._keys)
        self._wrong_times = WrongTimes(files)
        self._looked_in_vain = 0

    def close(self) -> None:
        """Close the index files."""
        for file in self._open_files.values():
            file.close()
        self._open_files.clear()

    def _open(self, path: str) -> ByteFile:
        if path not in self._open_files:
            self._open_files[path] = self._source.open(path)
        return self._open_files[path]

    def _ranges(self) -> list[tuple[int, IndexFileRef, int, int]]:
        """Per file the entries that belong to this segment, in the files' order."""
        ranges = []
        for index, ref in enumerate(self._refs):
            if not ref.entries:
                continue
            try:
                file = self._open(ref.path)
                low = first_entry_from(file, ref, self._base)
                high = ref.entries + 1 if self._end >= self._log_end else first_entry_from(file, ref, self._end)
            except StoreError:  # the file's own scan says what is wrong with it
                self._broken = True
                return []
            if low < high:
                ranges.append((index, ref, low, high))
        return ranges

    def _first_phy(self, ref: IndexFileRef) -> int:
        """Where the file's messages begin: by its first two entries, where the header says something else than both."""
        if not ref.entries or self._broken:
            return ref.begin_phy_offset
        try:
            first = read_entries(self._open(ref.path), ref, 1, min(3, ref.entries + 1))["phy_offset"].astype(np.int64)
        except StoreError:  # the file's own scan says what is wrong with it
            self._broken = True
            return ref.begin_phy_offset
        ordered = 0 <= first[0] <= first[-1]
        return ref.begin_phy_offset if ref.begin_phy_offset in first or not ordered else int(first[0])

    def _check_header_times(self, columns: Columns) -> None:
        """A header's two times are the store times of the messages at its two physical offsets."""
        rows = columns.rows[: columns.count]
        for known in list(self._header_times):
            number, phy, time, at = known
            hit = np.flatnonzero(rows["phy_offset"] == phy)
            if not len(hit):
                continue
            self._header_times.remove(known)
            stored = int(rows["store_time"][hit[0]])
            if stored == time:
                continue
            ref = self._refs[number]
            torn = ref.may_be_torn and at == layout.END_TIMESTAMP_POSITION
            if at == layout.BEGIN_TIMESTAMP_POSITION:
                header_fits, message_fits = self._fitting(ref, rows, time), self._fitting(ref, rows, stored)
                if header_fits > message_fits:
                    continue  # the message's own time is wrong, which the scan of the segment tells
                if message_fits > header_fits:
                    self._found.set_begin(number, stored)
            self._findings.add(
                Finding(
                    codes.INDEX_HEADER,
                    ref.path,
                    at,
                    at + 8,
                    severity=NOTE if torn else "",
                    phy_offset=phy,
                    expected=str(stored),
                    actual=str(time),
                    message="a time in the header differs from its message's store time",
                )
            )

    def _fitting(self, ref: IndexFileRef, rows: np.ndarray, begin: int) -> int:
        """How many of the file's first entries, but for the very first, count from `begin` to their message's time."""
        try:
            entries = read_entries(self._open(ref.path), ref, 2, min(2 + BLOCK_ENTRIES, ref.entries + 1))
        except StoreError:
            return 0
        times = dict(zip(rows["phy_offset"].tolist(), rows["store_time"].tolist(), strict=True))
        there = zip(entries["phy_offset"].tolist(), entries["time_difference"].tolist(), strict=True)
        return sum(phy in times and int(_seconds(times[phy], begin)) == seconds for phy, seconds in there)

    @property
    def outside(self) -> tuple[int, int, int, int]:
        """See `SegmentSummary.index_unindexed`."""
        first, last, messages, keys = (int(n) for n in self._outside)
        return first, last, messages, keys

    @property
    def seen(self) -> int:
        """Entries that were compared."""
        return self._found.read

    def add(self, columns: Columns) -> None:
        """The next messages."""
        if self._header_times and columns.count:
            self._check_header_times(columns)
        if self._broken:
            return
        row, key = self._step_through(columns) if self._at == self._used else (0, 0)
        if self._broken or row == columns.count:
            return
        self._make_room(columns.key_hash_count)
        self._used = _expect(
            columns.rows,
            row,
            key,
            columns.count,
            columns.key_hash,
            self._low_phy,
            self._high_phy,
            self._phy,
            self._hashes,
            self._times,
            self._optional,
            self._places,
            self._ends,
            self._used,
            self._outside,
        )
        self._run(final=False)

    def _step_through(self, columns: Columns) -> tuple[int, int]:
        """As far as messages and entries agree, nothing is kept. Gives the first message that is left, and its first key."""
        found, state = self._found, self._state
        if found.at < len(found.phy):
            found.leave_arrays()
            state[_ENTRY] = state[_ENTRIES] = 0
        state[_ROW] = state[_KEY] = 0
        rows, key_hash, raw = columns.rows.ctypes.data, columns.key_hash.ctypes.data, found.raw.ctypes.data
        try:
            while True:
                state[_BEGIN], state[_FIRST_BEGIN] = found.raw_begins()
                why = _agree(rows, columns.count, key_hash, raw, state, self._outside)
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

    def _make_room(self, more: int) -> None:
        """Move what is still expected to the front, with room for `more`."""
        left = slice(self._at, self._used)
        for name in ("_phy", "_hashes", "_times", "_optional", "_places", "_ends"):
            array = getattr(self, name)
            kept = array[left].copy()
            array = grown(array, len(kept) + more, 0)
            array[: len(kept)] = kept
            setattr(self, name, array)
        self._dropped += self._at
        self._used -= self._at
        self._at = 0

    def _run(self, final: bool) -> None:
        found = self._found
        try:
            while True:
                self._at, at, wrongs, why = _advance(
                    self._phy, self._hashes, self._times, self._optional, self._at, self._used,
                    found.phy, found.hashes, found.seconds, found.begins, found.at, len(found.phy), self._wrong,
                )  # fmt: skip
                for i, j in self._wrong[:wrongs].tolist():
                    self._time_wrong(i, j)
                found.at = at
                if why == NEED_EXPECTED:
                    return
                if len(found.phy) - found.at < (1 if why == NEED_FOUND else ALIGN_FOUND) and not found.exhausted:
                    found.refill()
                    continue
                if self._used - self._at < ALIGN_EXPECTED and not final:
                    return
                self._disagree(final)
        except StoreError:
            self._broken = True

    # ---- where they disagree -------------------------------------------------------------------------------------------

    def _disagree(self, final: bool) -> None:
        """Decide at least one entry of either stream. final: no message follows those that are expected."""
        found, at = self._found, self._at
        if found.at == len(found.phy) or not self._odd.room:  # or it is no index of these messages: give up
            self._absent(at, self._used)
            self._at = self._used
            return
        if again := self._put_again():
            self._too_many(found.at, found.at + again)
            found.at += again
            return
        expected = slice(at, min(self._used, at + ALIGN_EXPECTED))
        there = slice(found.at, found.at + ALIGN_FOUND)
        whole = final and expected.stop == self._used and there.stop >= len(found.phy) and found.exhausted
        partners, decided, taken = _align(
            self._phy[expected], self._hashes[expected], self._optional[expected], found.phy[there], found.hashes[there], whole
        )
        if not decided:
            self._no_pair()
            return
        j = found.at
        for k in range(decided):
            partner = int(partners[k])
            if partner < 0:
                if not self._optional[at + k]:
                    self._absent(at + k, at + k + 1)
                continue
            while j < found.at + partner:
                self._too_many(j, j + 1)
                j += 1
            self._compare(at + k, j)
            j += 1
        self._at, found.at = at + decided, found.at + taken

    def _put_again(self) -> int:
        """How many entries, up to the very one that is expected, only repeat keys of messages from before, as a restart leaves
        them. An alignment could not tell: messages of one batch have the same unique key, so most pairs of theirs fit in part.
        """
        found, at = self._found, self._at
        limit, phy, key_hash = int(self._phy[at]), -1, int(self._hashes[at])
        keys, messages, count = NONE, 0, 0
        if self._looked_in_vain > MOST_IN_VAIN:
            return 0
        for count in range(MOST_AGAIN):
            if found.at + count == len(found.phy):
                if found.exhausted:
                    break
                found.refill()
            there, entry_hash = int(found.phy[found.at + count]), int(found.hashes[found.at + count])
            if (there, entry_hash) == (limit, key_hash):
                return count
            if there != phy:
                phy, messages = there, messages + 1
                keys = self._keys.at(phy) if phy <= limit and messages <= MOST_MESSAGES_AGAIN else NONE
            if entry_hash not in keys:
                break
        self._looked_in_vain += count
        return 0

    def _no_pair(self) -> None:
        """Nothing of what comes next on either side fits together: take one side's part that is in nobody's way."""
        found, j = self._found, self._found.at
        phy, ahead = self._phy[self._at], found.phy[j : j + 3]
        if phy < ahead[0] < self._end and (ahead[1:] >= ahead[:-1]).all():
            end = self._at + int(np.searchsorted(self._phy[self._at : self._used], ahead[0]))
            self._absent(self._at, end)
            self._at = end
            return
        end = j + 1
        if ahead[0] < phy:
            fits = np.flatnonzero(found.phy[j:] >= phy)
            end = j + int(fits[0]) if len(fits) else len(found.phy)
        self._too_many(j, end)
        found.at = end

    def _absent(self, low: int, high: int) -> None:
        """Expected entries [low, high) are in no file."""
        keys = int(high - low - np.count_nonzero(self._optional[low:high]))
        if keys <= 0:
            return
        first, last = self._dropped + low, self._dropped + high
        start, end, phy = int(self._places[low]), int(self._ends[high - 1]), int(self._phy[low])
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
            self._findings.add(Finding(codes.INDEX_MISSING, self._path, start, end, phy_offset=phy, message=text, count=keys))
        self._missing = None

    def _too_many(self, low: int, high: int) -> None:
        """Found entries [low, high) have no place."""
        found = self._found
        end = min(high, low + self._odd.room)
        parts = (found.files, found.numbers, found.phy, found.hashes)
        self._odd.add(zip(*(part[low:end].tolist() for part in parts), strict=True), high - end)

    def _compare(self, i: int, j: int) -> None:
        """Expected entry i and found entry j stand for the same key."""
        found = self._found
        if self._phy[i] != found.phy[j] or self._hashes[i] != found.hashes[j]:
            same_hash = self._hashes[i] == found.hashes[j]
            self._wrong_entry(
                j,
                PHY_OFFSET_POSITION if same_hash else 0,
                PHY_OFFSET_POSITION if self._phy[i] == found.phy[j] else SECONDS_POSITION,
                i,
                f"hash {self._hashes[i]}, physical offset {self._phy[i]}",
                f"hash {found.hashes[j]}, physical offset {found.phy[j]}",
            )
        elif found.begins[j] != NO_TIME and found.seconds[j] != _seconds(self._times[i], found.begins[j]):
            self._time_wrong(i, j)

    def _time_wrong(self, i: int, j: int) -> None:
        """Expected entry i stands at j with another time difference."""
        found = self._found
        expected = int(_seconds(self._times[i], found.begins[j]))
        self._wrong_times.add(int(found.files[j]), int(found.numbers[j]), int(self._phy[i]), expected, int(found.seconds[j]))

    def _wrong_entry(self, j: int, low: int, high: int, i: int, expected: str, actual: str) -> None:
        self._wrong_times.close()
        ref = self._refs[self._found.files[j]]
        start = ref.position(int(self._found.numbers[j]))
        self._findings.add(
            Finding(
                codes.INDEX_WRONG,
                ref.path,
                start + low,
                start + high,
                phy_offset=int(self._phy[i]),
                expected=expected,
                actual=actual,
                message="an index entry does not fit its message",
            )
        )

    # ---- what is left over ---------------------------------------------------------------------------------------------

    def finish(self, extents: Sequence[Extent]) -> None:
        """No message follows. extents: the segment's, all of them."""
        if self._broken:
            return
        found = self._found
        found.leave_raw(int(self._state[_ENTRY]))
        self._run(final=True)
        try:
            while True:
                self._too_many(found.at, len(found.phy))
                found.at = len(found.phy)
                if found.exhausted:
                    break
                found.refill()
        except StoreError:
            self._broken = True
        self._flush_missing()
        self._wrong_times.close()
        self._wrong_times.judge(self._compared, self._findings)
        self._odd.judge(extents, self._findings)
