"""Index entries that are wrong: those without a place, and those whose time difference is wrong.

What an entry without a place leads to decides what it is. A time difference is wrong by itself, or all of a file's are because
the file's begin time is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from schemas.finding_codes import Code
from schemas.layouts import index_layout as layout
from schemas.layouts.commitlog_layout import SYS_ROLLBACK, SYS_TRANSACTION_MASK
from schemas.rows import EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.findings import Findings
from store_io.base.wording import count_text
from store_io.broker.index_keys import TAGS, index_keys, key_hash, key_text, tag_text
from store_io.broker.message_verdict import VALID, Verdict
from store_io.log.entries.index_entries import SECONDS_POSITION, IndexFileRef
from store_io.log.records.message_columns import Columns, entry_counts
from store_io.log.scan.followers import SegmentPlace

MAX_KEPT_KEYS = 1024  # messages whose keys are remembered
MAX_ODD = 65_536  # entries without a place that are held; if half of them repeat nothing, no more are compared
NEAR_BYTES, NEAR_ENTRIES = 256 << 10, 32  # where so many entries lead into so many bytes, messages are decoded together

NONE: frozenset[int] = frozenset()


class MessageKeys:
    """The hashes of the keys of one segment's messages. verdict: the audit's verdict of the frame at a position of it.  columns:
    messages that follow one another from a position on, for NEAR_BYTES or less, with hashes of their keys."""

    def __init__(self, place: SegmentPlace, verdict: Callable[[int], Verdict], columns: Callable[[int], Columns]):
        self._place, self._verdict, self._columns = place, verdict, columns
        self._known: dict[int, frozenset[int]] = {}  # by physical offset

    def at(self, phy_offset: int) -> frozenset[int]:
        """Return the key hashes of the message at this place, or none if this segment has no message there.

        The last answers are remembered.
        """
        if not self._place.holds(phy_offset):
            return NONE
        hashes = self._known.get(phy_offset)
        if hashes is None:
            hashes, _ = self.look_at(phy_offset)
            if len(self._known) >= MAX_KEPT_KEYS:
                self._known.clear()
            self._known[phy_offset] = hashes
        return hashes

    def look_at(self, phy_offset: int) -> tuple[frozenset[int], int]:
        """Return (the same, the message's size) for an offset of this segment; without a message none, and 0."""
        verdict = self._verdict(phy_offset - self._place.base_offset)
        if verdict.kind != VALID or verdict.message is None:
            return NONE, 0
        return _hashes_of(verdict), verdict.size

    def look_around(self, phy_offset: int) -> dict[int, tuple[frozenset[int], int]]:
        """Return what `look_at` finds for each of the messages that are decoded together from this physical offset on.

        Rolled back messages are left out, as the columns do not hold their keys.
        """
        columns = self._columns(phy_offset - self._place.base_offset)
        rows = columns.rows[: columns.count]
        rows = rows[rows["sys_flag"] & SYS_TRANSACTION_MASK != SYS_ROLLBACK]
        places, firsts = (rows["position"] + self._place.base_offset).tolist(), rows["key_start"].tolist()
        counts, hashes = entry_counts(rows, True).tolist(), columns.key_hash.tolist()
        keys = [frozenset(hashes[first : first + count]) for first, count in zip(firsts, counts, strict=True)]
        return dict(zip(places, zip(keys, rows["total_size"].tolist(), strict=True), strict=True))

    def store_time(self, phy_offset: int) -> int | None:
        """Return the store time (ms) of the message at this place, or None if this segment has no message there."""
        verdict = self._verdict(phy_offset - self._place.base_offset) if self._place.holds(phy_offset) else None
        return verdict.message.store_time if verdict is not None and verdict.kind == VALID and verdict.message else None


def _hashes_of(verdict: Verdict) -> frozenset[int]:
    """Return the hashes under which a message is indexed, that of its tag key too."""
    message = verdict.message
    assert message is not None
    keys = index_keys(message)
    if TAGS in message.properties:
        keys.append(tag_text(message.properties[TAGS]))
    return frozenset(key_hash(key_text(message.topic, key)) for key in keys)


class OddEntries:
    """Index entries in places in which no message should have put them. At most `MAX_ODD` of them are kept.

    Those that repeat a message's keys, as after a restart, may be any number. If too many others are kept, the rest of the
    index is not compared with this segment.
    """

    def __init__(self, files: Sequence[IndexFileRef], place: SegmentPlace, keys: MessageKeys):
        self._refs, self._place, self._keys = files, place, keys
        self._odd: list[tuple[int, int, int, int]] = []  # (file, number, phy_offset, hash)
        self._around: Mapping[int, tuple[frozenset[int], int]] = {}  # of the messages that were decoded together last
        self._next_look = 0  # the physical offset from which on others are: bytes are read and decoded so twice at most
        self.gave_up = False
        self._passed_over, self._keys_passed_over = 0, 0

    def add(self, entries: Sequence[tuple[int, int, int, int]], findings: Findings) -> None:
        """Keep odd entries: (number of the file, number of the entry, physical offset, hash)."""
        while len(entries) and not self.gave_up:
            room = MAX_ODD - len(self._odd)
            self._odd += entries[:room]
            entries = entries[room:]
            if len(self._odd) == MAX_ODD:
                self._report_repeated(findings)
                self.gave_up = len(self._odd) > MAX_ODD // 2
        self._passed_over += len(entries)

    def pass_over(self, keys: int) -> None:
        """Note that so many keys of messages were compared with no entry."""
        self._keys_passed_over += keys

    def _report_repeated(self, findings: Findings) -> None:
        """Report those of the kept entries that repeat keys of a message, and forget them."""
        self._odd.sort(key=itemgetter(2))
        known, keys = -1, NONE
        repeated: list[tuple[int, int, int, int]] = []
        left: list[tuple[int, int, int, int]] = []
        for entry in self._odd:
            if entry[2] != known:
                known = entry[2]
                keys = self._keys.look_at(known)[0] if self._place.holds(known) else NONE
            (repeated if entry[3] in keys else left).append(entry)
        self._odd = left
        self._report(sorted(repeated), [Code.INDEX_ENTRY_DUPLICATE] * len(repeated), findings)

    def judge(self, extents: Sequence[Extent], findings: Findings) -> None:
        """Report findings, neighbouring entries of one kind together. extents: the segment's, all of them."""
        self._odd.sort()
        self._report(self._odd, self._kinds(extents), findings)
        if self._odd and (self._passed_over or self._keys_passed_over):
            ref, number = self._refs[self._odd[-1][0]], self._odd[-1][1]
            passed = count_text(self._passed_over, "entry", "entries"), count_text(self._keys_passed_over, "key")
            findings.add(
                Finding(
                    Code.INDEX_ENTRY_DANGLING,
                    ref.path,
                    ref.position(number),
                    ref.position(number + 1),
                    severity_in(Code.INDEX_ENTRY_DANGLING, Case.NOT_LOOKED_AT),
                    message=f"{passed[0]} and {passed[1]} of messages in {self._place.path} were not compared: too many entries"
                    " before them lead elsewhere",
                )
            )

    def _report(self, entries: Sequence[tuple[int, int, int, int]], kinds: Sequence[Code], findings: Findings) -> None:
        """Report entries of these kinds, neighbouring ones of one kind together."""
        group: list[tuple[int, int, int, int]] = []
        group_code = Code.INDEX_ENTRY_DANGLING
        for entry, code in zip([*entries, (-1, -1, -1, -1)], [*kinds, group_code], strict=True):
            if group and (code != group_code or entry[0] != group[-1][0] or entry[1] != group[-1][1] + 1):
                findings.add(self._finding(group_code, group))
                group = []
            group_code = code
            group.append(entry)

    def _kinds(self, extents: Sequence[Extent]) -> list[Code]:
        """Return the finding code of each odd entry.

        Entries are judged in the order of the places to which they lead: so each message is looked at once, and the hashes of
        only one message are kept. An entry that leads into the middle of a message leads to no message.
        """
        starts = [extent.start for extent in extents]
        kinds = [Code.INDEX_ENTRY_DANGLING] * len(self._odd)
        known: tuple[int, Code, frozenset[int]] | None = None
        end = self._place.base_offset  # of the last message met
        order = sorted(range(len(self._odd)), key=lambda n: self._odd[n][2])
        for turn, number in enumerate(order):
            _, _, phy, key_hash = self._odd[number]
            if known is None or known[0] != phy:
                later = order[min(turn + NEAR_ENTRIES, len(order) - 1)]
                near = turn + NEAR_ENTRIES < len(order) and self._odd[later][2] - phy < NEAR_BYTES
                code, hashes, size = (
                    self._kind_at(phy, extents, starts, near) if phy >= end else (Code.INDEX_ENTRY_DANGLING, NONE, 0)
                )
                known, end = (phy, code, hashes), max(end, phy + size)
            _, code, hashes = known
            kinds[number] = Code.INDEX_ENTRY_DUPLICATE if key_hash in hashes else code
        return kinds

    def _kind_at(
        self, phy: int, extents: Sequence[Extent], starts: Sequence[int], near: bool
    ) -> tuple[Code, frozenset[int], int]:
        """Return (the code of an entry that leads there, the hashes of the message's keys, the message's size).

        Without a message the hashes are empty and the size is 0.
        """
        if phy >= self._place.log_end:
            return Code.INDEX_ENTRY_BEYOND_END, NONE, 0
        if not self._place.holds(phy):
            return Code.INDEX_ENTRY_DANGLING, NONE, 0
        extent = extents[bisect_right(starts, phy - self._place.base_offset) - 1]
        if extent.kind == EXTENT_UNWRITTEN:
            return Code.INDEX_ENTRY_BEYOND_END, NONE, 0
        if extent.kind == EXTENT_MESSAGE:
            if near and phy >= self._next_look:
                self._around, self._next_look = self._keys.look_around(phy), phy + NEAR_BYTES // 2
            hashes, size = self._around.get(phy) or self._keys.look_at(phy)
            if size:
                return Code.INDEX_ENTRY_WRONG, hashes, size
        return Code.INDEX_ENTRY_DANGLING, NONE, 0

    def _finding(self, code: Code, group: list[tuple[int, int, int, int]]) -> Finding:
        ref = self._refs[group[0][0]]
        text = {
            Code.INDEX_ENTRY_DUPLICATE: "keys that a message already has in the index",
            Code.INDEX_ENTRY_WRONG: "entries for keys that their message does not have",
            Code.INDEX_ENTRY_BEYOND_END: "entries beyond the last message",
        }.get(code, "entries that lead to no message")
        several = code == Code.INDEX_ENTRY_DUPLICATE and len({entry[2] for entry in group}) > 1
        return Finding(
            code,
            ref.path,
            ref.position(group[0][1]),
            ref.position(group[-1][1] + 1),
            severity=severity_in(code, Case.SEVERAL_MESSAGES, several),
            phy_offset=group[0][2],
            message=f"{text}: {len(group):,}",
            count=len(group),
        )


LEAST_LATE = 3  # so many wrong time differences, if they are most of a file's, have their cause in its header


class WrongTimes:
    """Gathers them; neighbouring ones are one finding."""

    def __init__(self, files: Sequence[IndexFileRef]):
        self._refs = files
        self._late: tuple[int, int, int, int, int, int] | None = None  # the open finding
        self._lates: dict[int, Findings] = {}  # per file, those that are closed
        self._late_counts: dict[int, int] = {}  # per file, the entries concerned, also of those that were too many to keep

    def add(self, file: int, number: int, phy_offset: int, expected: int, actual: int) -> None:
        """Judge entry `number` of file `file`, which belongs to the message at `phy_offset`.

        expected, actual: its time difference, s.
        """
        if self._late and self._late[:2] == (file, number):
            self._late = (file, number + 1, *self._late[2:])
            return
        self.close()
        self._late = file, number + 1, number, phy_offset, expected, actual

    def close(self) -> None:
        """End the range of late entries that is being collected. The next entry is no neighbour."""
        if self._late:
            file, end, first, phy, expected, actual = self._late
            ref, one = self._refs[file], end - first == 1
            self._late_counts[file] = self._late_counts.get(file, 0) + end - first
            self._lates.setdefault(file, Findings()).add(
                Finding(
                    Code.INDEX_ENTRY_WRONG,
                    ref.path,
                    ref.position(first) + (SECONDS_POSITION if one else 0),
                    ref.position(end) - (layout.ENTRY_BYTES - SECONDS_POSITION - 4 if one else 0),
                    phy_offset=phy,
                    expected=f"{expected} s",
                    actual=f"{actual} s",
                    message="the time difference of index entries does not fit their messages",
                    count=end - first,
                    only_time=True,
                )
            )
        self._late = None

    def judge(self, compared: Mapping[int, int], findings: Findings) -> None:
        """Add the findings on time differences, and blame the header's begin time if most differences of a file are wrong.

        The message of that begin time need not be in the copy.
        compared: file -> the number of its entries that were compared.
        """
        for file, lates in self._lates.items():
            count, ref = self._late_counts[file], self._refs[file]
            if count < LEAST_LATE or 2 * count <= compared.get(file, 0):
                findings.add_all(lates.found)
                continue
            first = lates.found[0]
            findings.add(
                Finding(
                    Code.INDEX_HEADER_WRONG,
                    ref.path,
                    layout.BEGIN_TIMESTAMP_POSITION,
                    layout.BEGIN_TIMESTAMP_POSITION + 8,
                    expected=f"a time that the entries count from, as {first.expected} in place of {first.actual}",
                    actual=str(ref.begin_timestamp),
                    message=f"{count:,} time differences do not count from the header's begin time",
                )
            )
