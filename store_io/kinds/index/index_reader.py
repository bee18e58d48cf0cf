"""Index files: header, entries, and whether slots, chains and header agree with one another.

A file is judged by itself here; whether its entries are those of the CommitLog's messages is asked where these are decoded.
Source: IndexHeader, IndexFile.putKey, IndexService.load, read at 4.7.0, 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0 (formats.md 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field

import numpy as np

from schemas.advice import Cause, Gap
from schemas.finding_codes import Code
from schemas.layouts import index_layout as layout
from schemas.layouts.entries import INDEX_DTYPE, STORED_INDEX_DTYPE
from schemas.rows import Finding, IndexFileSummary
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreChanged, StoreError
from store_io.base.findings import MAX_FINDINGS, Findings
from store_io.base.java.java_compat import divide
from store_io.broker.releases import index_bytes
from store_io.broker.settings.read_settings import infer_slots
from store_io.kinds.index.index_chains import HASH, LINK, Chains, ChainsOnTheWay, follow_back, open_ends
from store_io.log.entries.index_entries import entry_position, parse_header
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.piece_digest import PieceDigest

WINDOW_BYTES = 1 << 20
REPLAY_BYTES = 1 << 24  # of entries whose chains are followed together
FAULTS_TOGETHER = 1 << 16  # that are put in order together
_LOOKED_AT_BYTES = 1 << 14
_OF_KIND = {0: Code.INDEX_SLOT_WRONG, HASH: Code.INDEX_ENTRY_WRONG, LINK: Code.INDEX_CHAIN_BROKEN}


@dataclass(frozen=True)
class IndexTask:
    """One index file to scan. Picklable.

    newest: the last one by name.
    unclean: the abort marker is there.
    slots, most: how many hash slots and entries a file has by the settings.
    previous_end: (end timestamp, end physical offset) in the header of the file before; None: there is none, or it is not known.
    """

    store: int
    location: StoreLocation
    slots: int
    most: int
    path: str
    size: int
    newest: bool = False
    unclean: bool = False
    digest: bool = True
    previous_end: tuple[int, int] | None = None
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.size

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def run(self) -> IndexFileSummary:
        return scan_index_file(self)


# ---- one file, scanned ---------------------------------------------------------------------------------------------


def scan_index_file(task: IndexTask, source: ByteSource | None = None) -> IndexFileSummary:
    """Return the file's summary. Never raises over bytes; a file that cannot be read, or changed, gives `problem` alone.

    A file of another length than the settings say is not looked into: the begin of its entries is not known.
    """
    try:
        with (source or open_source(task.location)).open(task.path) as file:
            if file.size != task.size:
                raise StoreChanged.in_size(task.path, file.size, task.size)
            return _Scan(task, file).run()
    except StoreError as why:
        return IndexFileSummary(task.path, task.size, problem=why.gap(task.path))
    except MemoryError:
        return IndexFileSummary(task.path, task.size, problem=Gap(Cause.INDEX_SLOTS, task.path, (task.slots,)))


@dataclass(frozen=True)
class _Fault:
    """A fault of bytes [start, end) of the file.

    severity: empty for the code's own.
    """

    code: Code
    start: int
    end: int
    expected: str
    actual: str
    count: int = 1
    severity: str = ""


@dataclass
class _Scan:
    """The state of one scan.

    torn: bytes [start, end) with all places that disagree as two moments of the same file would; see `_torn_as_note`.
    one_moment: header, slots and entries agree on how many there are.
    """

    task: IndexTask
    file: ByteFile
    findings: Findings = field(default_factory=lambda: Findings(MAX_FINDINGS))
    torn: tuple[int, int] | None = None
    torn_count: int = 0
    one_moment: bool = True

    def __post_init__(self) -> None:
        self.slots, self.most = self.task.slots, self.task.most
        self.table = entry_position(self.slots, 0)
        self.may_be_torn = self.task.newest and self.task.unclean
        self.header = parse_header(self.file.read(0, layout.HEADER_BYTES))
        self.summary = IndexFileSummary(self.task.path, self.task.size, *astuple(self.header))

    def run(self) -> IndexFileSummary:
        s = self.summary
        whole = self.file.size == index_bytes(self.slots, self.most)
        s.entries = max(0, min(self.header.index_count - 1, (self.file.size - self.table) // layout.ENTRY_BYTES - 1))
        chains = ChainsOnTheWay(self.slots, s.entries) if whole else None
        last_data = self._read_all(chains)
        if chains:
            self._check(last_data, chains)
            self._torn_as_note()
        s.findings = self.findings.found
        return s

    def _read_all(self, chains: ChainsOnTheWay | None) -> int:
        """Digest the file, and give its entries to `chains`; the position after its last byte that is not zero."""
        digest = PieceDigest()
        buffer = np.empty(WINDOW_BYTES, np.uint8)
        at = end = 0
        while at < self.file.size:
            data_at = min(self.file.next_data(at), self.file.size)
            if data_at > at:
                take = data_at - at
                digest.feed_zeros(take)
            else:
                take = self._whole_entries(at, min(self.file.size - at, WINDOW_BYTES))
                data = buffer[:take]
                self.summary.bytes_read += self.file.read_into(at, data)
                digest.feed(data)
                if used := _data_end(data):
                    end = at + used
                if chains:
                    chains.feed(at, data)
            at += take
        if self.task.digest:
            self.summary.digest = digest.text()
        return end

    def _whole_entries(self, at: int, size: int) -> int:
        """Return the size of a read that ends with an entry.

        At most `size` bytes from `at` on; all of them if no entry ends there.
        """
        entries = (at + size - self.table) // layout.ENTRY_BYTES
        fewer = self.table + layout.ENTRY_BYTES * entries - at
        return fewer if entries > 0 and fewer > 0 and at + size < self.file.size else size

    def _check(self, last_data: int, chains: ChainsOnTheWay) -> None:
        slots = chains.slots
        last = (last_data - 1 - self.table) // layout.ENTRY_BYTES if last_data > self.table else 0
        count = self._entry_count(slots, last)
        if self._first_data(self.table, self.table + layout.ENTRY_BYTES) is not None:
            severity = severity_in(Code.INDEX_ENTRIES_BEYOND_COUNT, Case.FIRST_SLOT)
            self._add(_Fault(Code.INDEX_ENTRIES_BEYOND_COUNT, *self._range(0), "zeros", "data", severity=severity))
        stray = self._first_data(self._range(count)[1], last_data)
        if stray is not None:
            first = (stray - self.table) // layout.ENTRY_BYTES
            start, end = self._range(first)[0], self._range(last)[1]
            self._disagree(
                _Fault(Code.INDEX_ENTRIES_BEYOND_COUNT, start, min(end, self.file.size), "zeros", "entries", last - first + 1)
            )
        used = chains.used(count)
        if used is None:
            used = self._replay(slots, count)
        if count:
            self._check_header(count, used)
        elif not any(f.code == Code.INDEX_HEADER_WRONG for f in self.findings.found):
            self._check_empty()

    # ---- how many entries -------------------------------------------------------------------------------------------

    def _entry_count(self, slots: np.ndarray, last: int) -> int:
        """Return the number of entries that the file holds, as two of three sources say.

        The sources are the header, the largest number in a slot, and the last data.
        """
        stored = self.header.index_count - 1
        at = layout.INDEX_COUNT_POSITION
        newest = max(0, int(slots.max())) if len(slots) else 0
        if newest >= self.most:
            newest = int(slots[slots < self.most].max(initial=0))
        fits = -1 <= stored < self.most
        stored = max(stored, 0) if fits else stored
        self.one_moment = fits and stored == last == newest
        if fits and stored in (last, newest):
            return stored
        if last == newest or not fits or self.may_be_torn:
            self._disagree(
                _Fault(Code.INDEX_HEADER_WRONG, at, at + 4, f"index count {last + 1}", str(self.header.index_count), 1), fits
            )
            return last
        return stored

    # ---- chains -----------------------------------------------------------------------------------------------------

    def _replay(self, slots: np.ndarray, count: int) -> int:
        """Follow all chains at once, from the newest entry to the first.

        Return the number of slots in use, -1 if that is not known.
        """
        step = REPLAY_BYTES // layout.ENTRY_BYTES
        chains = Chains.of(slots, min(step, count))
        faults = np.zeros((FAULTS_TOGETHER, 4), np.int64)
        buffer = np.empty(min(step, count) * layout.ENTRY_BYTES, np.uint8)
        found, high = [faults[:0]], count + 1
        asked = False
        while high > 1:
            low = max(1, high - step)
            data = buffer[: (high - low) * layout.ENTRY_BYTES]
            self.summary.bytes_read += self.file.read_into(entry_position(self.slots, low), data)
            entries = data.view(STORED_INDEX_DTYPE).astype(INDEX_DTYPE)
            while low < high:
                part = entries[: high - low]
                number, high = follow_back(part, low, slots, chains.of_slots, chains.leading[: len(part)], faults)
                found = self._held_back(found, faults[:number], count)
                if not asked and sum(map(len, found)) + len(chains.wrong_slots[0]) > MAX_FINDINGS:
                    asked = True
                    if self._has_other_slots():
                        return -1
        slot = 0
        while slot < len(slots):
            number, slot = open_ends(chains.of_slots, slot, faults)
            found = self._held_back(found, faults[:number], count)
        self._report_slots(chains, count)
        self._report_entries(np.concatenate(found))
        return chains.used

    def _held_back(self, found: list[np.ndarray], new: np.ndarray, count: int) -> list[np.ndarray]:
        """Return faults of entries that are not reported yet: all, if they are few enough to be put in order together."""
        found = [*found, new.copy()]
        if sum(map(len, found)) < FAULTS_TOGETHER:
            return found
        self._report_entries(np.concatenate(found))
        return [new[:0]]

    def _has_other_slots(self) -> bool:
        """Report a file in which so much is wrong that another number of slots explains it."""
        slots = infer_slots(self.file)
        if slots is None or slots == self.slots:
            return False
        expected, actual = f"maxHashSlotNum={self.slots}", f"chains of {slots} slots"
        self._add(_Fault(Code.SETTING_MISMATCH, 0, layout.HEADER_BYTES, expected, actual))
        return True

    def _report_slots(self, chains: Chains, count: int) -> None:
        """Report slots that hold another number than that of their newest entry."""
        slot, expected, older = chains.wrong_slots
        actual = chains.slots[slot]
        torn = (actual == 0) | (actual > count) & (actual < self.most) | older & self.may_be_torn
        start, kinds = layout.HEADER_BYTES + layout.SLOT_BYTES * slot, np.zeros(len(slot), np.int64)
        for i, n in self._groups(start, layout.SLOT_BYTES, torn, kinds):
            words = f"entry {expected[i]}", f"entry {actual[i]}"
            fault = _Fault(Code.INDEX_SLOT_WRONG, int(start[i]), int(start[i + n - 1]) + 4, *words, n)
            self._disagree(fault, bool(torn[i]))

    def _report_entries(self, faults: np.ndarray) -> None:
        """Report wrong hashes and links of entries."""
        start = self.table + layout.ENTRY_BYTES * faults[:, 1] + np.where(faults[:, 0] == HASH, 0, layout.ENTRY_BYTES - 4)
        order = np.argsort(start, kind="stable")
        faults, start = faults[order], start[order]
        torn = faults[:, 3] == 0
        for i, n in self._groups(start, layout.ENTRY_BYTES, torn, faults[:, 0]):
            kind, _, wanted, there = faults[i].tolist()
            words = (f"a hash of slot {wanted}", f"hash {there}") if kind == HASH else (f"entry {wanted}", f"entry {there}")
            fault = _Fault(_OF_KIND[kind], int(start[i]), int(start[i + n - 1]) + 4, *words, n)
            self._disagree(fault, bool(torn[i]))

    def _groups(self, start: np.ndarray, unit: int, torn: np.ndarray, kinds: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield (the first, how many) of faults of one kind that are neighbours, in order.

        Faults that may be two moments of the file, and those that are only counted, are not among them.
        start: where each begins, ascending; unit: how far the next one is.
        torn: whether each looks like two moments of the file.
        """
        if self.may_be_torn and torn.any():
            self._note_torn(int(start[torn].min()), int(start[torn].max()) + 4, int(torn.sum()))
            rest = np.flatnonzero(~torn)
        else:
            rest = np.arange(len(start))
        if not len(rest):
            return
        apart = (np.diff(start[rest]) != unit) | (np.diff(kinds[rest]) != 0) | (np.diff(torn[rest].astype(np.int8)) != 0)
        firsts = np.concatenate(([0], np.flatnonzero(apart) + 1))
        lengths = np.diff(np.concatenate((firsts, [len(rest)])))
        for first, n in zip(rest[firsts].tolist(), lengths.tolist(), strict=True):
            code = _OF_KIND[int(kinds[first])]
            if self.findings.room(code):
                yield first, n
            else:
                self.findings.add_more(code, "", n)

    # ---- header -----------------------------------------------------------------------------------------------------

    def _check_header(self, count: int, used: int) -> None:
        """Check the header's fields against the first and the last entry. If these look wrong themselves, they are to blame."""
        h = self.header
        counted = h.index_count - 1 == count
        first = self._entries(1, min(3, count + 1))
        last = self._entries(max(1, count - 1), count + 1)
        begin, end = int(first["phy_offset"][0]), int(last["phy_offset"][-1])
        if h.begin_phy_offset != begin and not _entry_to_blame(h.begin_phy_offset, begin, first["phy_offset"][1:], 1):
            at = layout.BEGIN_PHY_OFFSET_POSITION
            self._disagree(_Fault(Code.INDEX_HEADER_WRONG, at, at + 8, str(begin), str(h.begin_phy_offset)), not self.one_moment)
        if h.end_phy_offset != end and not _entry_to_blame(h.end_phy_offset, end, last["phy_offset"][:-1], -1):
            at = layout.END_PHY_OFFSET_POSITION
            torn = not self.one_moment or h.end_phy_offset < end
            self._disagree(_Fault(Code.INDEX_HEADER_WRONG, at, at + 8, str(end), str(h.end_phy_offset)), torn)
        if counted:
            self._check_times(count, last)
        at, slots = layout.HASH_SLOT_COUNT_POSITION, h.hash_slot_count
        if used >= 0 and slots != used:
            if slots == count:
                # 4.7.0 and before count every entry: not damage.
                self._add(_Fault(Code.INDEX_SLOT_OVERCOUNT, at, at + 4, f"{used} slots in use", str(slots)))
            else:
                torn = not self.one_moment or self.torn_count > 0 or slots == used - 1
                self._disagree(_Fault(Code.INDEX_HEADER_WRONG, at, at + 4, f"{used} slots in use", str(slots)), torn)

    def _check_empty(self) -> None:
        """Check a file without entries. A broker makes one just before it puts its first key. The store's first file begins with
        zeros; one after a full file has that one's end as begin and end. Any other has lost its entries."""
        h, before = self.header, self.task.previous_end
        begin, end = (h.begin_timestamp, h.begin_phy_offset), (h.end_timestamp, h.end_phy_offset)
        if not self.task.newest:
            # A clock that was set back names a new file before the full one.
            fresh = begin == end != (0, 0)
        else:
            fresh = begin == end and (before is None or begin[0] == before[0] or begin[1] == before[1])
        if not (fresh and h.hash_slot_count == 0):
            expected, actual = "entries, or a header as of a new file", "no entry"
            self._disagree(_Fault(Code.INDEX_HEADER_WRONG, 0, layout.HEADER_BYTES, expected, actual))

    def _check_times(self, count: int, last: np.ndarray) -> None:
        """Check that the last entry's time difference is that of the header's times; a single entry's message has both."""
        h = self.header
        begin, end = h.begin_timestamp, h.end_timestamp
        if count == 1:
            if begin != end:
                expected = "equal times, as there is one entry"
                self._disagree(_Fault(Code.INDEX_HEADER_WRONG, 0, 16, expected, f"{begin}, {end}"), not self.one_moment)
            return
        wanted = 0 if begin <= 0 else min(max(divide(end - begin, 1000), 0), 0x7FFFFFFF)
        stored, before = int(last["time_difference"][-1]), int(last["time_difference"][0])
        if stored == wanted or count > 2 and abs(stored - before) > abs(wanted - before):
            return
        expected = f"times {stored} s apart, as the last entry says"
        self._disagree(
            _Fault(Code.INDEX_HEADER_WRONG, 0, 16, expected, f"{begin}, {end}"), not self.one_moment or wanted < stored
        )

    # ---- helpers ----------------------------------------------------------------------------------------------------

    def _entries(self, first: int, last: int) -> np.ndarray:
        data = self.file.read(entry_position(self.slots, first), (last - first) * layout.ENTRY_BYTES)
        return np.frombuffer(data, STORED_INDEX_DTYPE).astype(INDEX_DTYPE)

    def _first_data(self, start: int, end: int) -> int | None:
        """Return position of the first byte of [start, end) that is not zero."""
        at = start
        while at < end:
            at = max(at, self.file.next_data(at))
            data = np.frombuffer(self.file.read(at, min(WINDOW_BYTES, end - at)), np.uint8) if at < end else np.zeros(0, np.uint8)
            if len(data) and data.max():
                return at + int(np.argmax(data != 0))
            at += max(len(data), 1)
        return None

    def _range(self, number: int) -> tuple[int, int]:
        start = entry_position(self.slots, number)
        return start, start + layout.ENTRY_BYTES

    def _disagree(self, fault: _Fault, torn: bool = True) -> None:
        """Add a finding. torn: it looks like two moments of the file, which in the newest one after a crash is no damage."""
        if torn and self.may_be_torn:
            self._note_torn(fault.start, fault.end, fault.count)
        else:
            self._add(fault)

    def _note_torn(self, start: int, end: int, count: int) -> None:
        """Remember bytes that look like those of another moment."""
        before = self.torn or (start, end)
        self.torn = min(before[0], start), max(before[1], end)
        self.torn_count += count

    def _add(self, fault: _Fault) -> None:
        expected, actual, path = fault.expected, fault.actual, self.task.path
        message = f"{path}: {actual} at {fault.start:,}; expected {expected}."
        place = path, fault.start, fault.end, fault.severity
        self.findings.add(Finding(fault.code, *place, expected=expected, actual=actual, message=message, count=fault.count))

    def _torn_as_note(self) -> None:
        """Add one note for all pages that were not written yet. The broker died then, or was copied while it ran."""
        if self.torn is not None:
            expected, actual = "all pages of one moment", "pages of several"
            self._add(_Fault(Code.INDEX_PART_FLUSHED, *self.torn, expected, actual, self.torn_count))


def _data_end(data: np.ndarray) -> int:
    """Return the position after the last byte that is not zero; 0 if all are."""
    for high in range(len(data), 0, -_LOOKED_AT_BYTES):
        low = max(0, high - _LOOKED_AT_BYTES)
        if data[low:high].max():
            return low + int(np.flatnonzero(data[low:high])[-1]) + 1
    return 0


def _entry_to_blame(header: int, entry: int, neighbours: np.ndarray, order: int) -> bool:
    """Say whether an end's entry is wrong rather than the header, by the entry beside it.

    order: 1 if the entry beside it comes later.
    """
    if not len(neighbours):
        return False
    beside = int(neighbours[0])
    return beside == header or (entry - beside) * order > 0 or entry < 0


def _begin_time(finding: Finding) -> bool:
    """Say whether it blames the header's begin time alone, which messages have shown to be wrong."""
    place = layout.BEGIN_TIMESTAMP_POSITION, layout.BEGIN_TIMESTAMP_POSITION + 8
    return finding.code == Code.INDEX_HEADER_WRONG and (finding.start, finding.end) == place


def _counts_from_begin(finding: Finding) -> bool:
    """Say whether it may be nothing but a consequence of a wrong begin time."""
    both_times = finding.code == Code.INDEX_HEADER_WRONG and (finding.start, finding.end) == (0, 16)
    return both_times or finding.only_time


def without_header_echoes(findings: Sequence[Finding], summary: IndexFileSummary, slots: int) -> list[Finding]:
    """Return a file's findings without those that blame the header for an entry's fault, or the reverse.

    findings: all of one file, also those that came from comparing its entries with messages, which alone decides. Every segment
    is compared by itself: if one shows that the header's begin time is wrong, the others' findings on it go.
    """
    begins = [f for f in findings if _begin_time(f)]
    if begins:
        begin = next((f for f in begins if f.phy_offset is not None), begins[0])
        findings = [f for f in findings if f is begin or not (_begin_time(f) or _counts_from_begin(f))]
    table = entry_position(slots, 0)
    faulty = [(f.start, f.end) for f in findings if f.start is not None and f.end is not None and f.start >= table]

    def contradicted(finding: Finding) -> bool:
        if finding.code != Code.INDEX_HEADER_WRONG or finding.start == layout.HASH_SLOT_COUNT_POSITION or _begin_time(finding):
            return False
        number = 1 if finding.start == layout.BEGIN_PHY_OFFSET_POSITION else summary.entries
        start = entry_position(slots, number)
        ends = finding.start in (0, layout.BEGIN_PHY_OFFSET_POSITION, layout.END_PHY_OFFSET_POSITION)
        return ends and any(low < start + layout.ENTRY_BYTES - 4 and high > start for low, high in faulty)

    return [finding for finding in findings if not contradicted(finding)]
