"""ConsumeQueue, BatchConsumeQueue and ConsumeQueueExt files: entries, and what a release's recover() makes of a queue.

Bytes are looked at in bounded windows, column by column. Holes of sparse files (most of a preallocated file) are not read.
Source: ConsumeQueue.recover, BatchConsumeQueue.recover, ConsumeQueueExt.recover and truncateByMaxAddress,
MappedFileQueue.truncateDirtyFiles and findMappedFileByOffset, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0 (recovery.md 6, 7.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.finding_codes import Code
from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import BATCH_DTYPE, ENTRY_DTYPE
from schemas.rows import Finding, MappedFile, QueueEdges, QueueKey, QueueSummary
from store_io.base.errors import StoreChanged, StoreError
from store_io.base.findings import Findings
from store_io.base.ranges import union
from store_io.broker.loading import files_up_to
from store_io.log.entries.file_entries import (
    entries_of,
    unit_bytes,
    valid_entries,
)
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.piece_digest import PieceDigest, file_digest

WINDOW_BYTES = 1 << 20
FIRST_WINDOW_BYTES = 1 << 14
MAX_RANGES = 1 << 16  # of used entries of one queue, kept apart
MAX_UNIT_BYTES = 1 << 15


# ---- one queue, scanned --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueTask:
    """One queue to scan. Picklable.

    files: as load() maps them, in its order; none if it refuses them.
    audit_files: all files of the queue that can be read, in order of their names; empty: the same as `files`.
    ext_files: as load() maps them if enableConsumeQueueExt is on.
    log_min: the first physical offset of the CommitLog, -1 without one.
    first_recovered: the place in `files` of the first file that recover() reads (`BrokerRules.first_recovered`).
    last_only: only the part that recover() reads.
    known: (path, entries, digest) of the part that an earlier run has compared.
    """

    store: int
    key: QueueKey
    location: StoreLocation
    files: tuple[MappedFile, ...]
    first_recovered: int = field(kw_only=True)
    audit_files: tuple[MappedFile, ...] = ()
    ext_files: tuple[MappedFile, ...] = ()
    batch: bool = False
    ext_enabled: bool = False
    log_min: int = -1
    digest: bool = True
    last_only: bool = False
    known: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True)
class QueueGroup:
    """Queues that are read in one task: thousands of small ones do not become thousands of tasks."""

    tasks: tuple[QueueTask, ...]
    not_after: float = 0

    @property
    def store(self) -> int:
        return self.tasks[0].store

    @property
    def bytes_to_read(self) -> int:
        return sum(file.size for one in self.tasks for file in one.audit_files)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file.path for one in self.tasks for file in (*one.files, *one.audit_files)))

    def run(self) -> list[QueueSummary]:
        source = open_source(self.tasks[0].location)
        return [scan_queue(one, source) for one in self.tasks]


@dataclass
class _FileFacts:
    """The facts that one pass over a file finds.

    prefix: the number of entries from the first slot, which is taken untested, to the first invalid one after it.
    prefix_phy: the largest phy_offset among them.
    prefix_end: max_phy_offset after the last of them.
    first_valid: whether slot 0 passes the test.
    ext_address: the last ext address in a valid prefix; 1: none.
    """

    prefix: int = 0
    prefix_phy: int = -1
    prefix_end: int = -1
    first_valid: bool = False
    ext_address: int = 1
    open_end: bool = True  # the prefix has not met an invalid entry yet
    edges: tuple[tuple[int, int, int], ...] = ()  # (number, phy_offset, size) of the prefix's first and last entry
    below: int = 0  # leading entries of the prefix below the CommitLog's minimum
    parted: bool = True  # after them all are above it, but for the first, which may be at it


def scan_queue(task: QueueTask, source: ByteSource | None = None) -> QueueSummary:
    """Scan a queue; return its state after recover(), and the slots that are used. Never raises over bytes.

    A file that cannot be read, or that changed, gives `problem` alone. `used` holds at most MAX_RANGES ranges: holes after the
    last but one of them are not kept apart, but counted. `deleted` names ext files too.
    """
    summary = QueueSummary(task.key, task.batch, files=list(task.files))
    try:
        own = source or open_source(task.location)
        facts = {}
        audit = _Audit(task, summary)
        loaded = task.files[task.first_recovered :] if task.last_only else task.files
        for file in loaded if task.last_only else task.audit_files or task.files:
            if file.path not in facts:
                facts[file.path] = _scan_file(own, task, file, audit)
        for file in loaded:
            if file.path not in facts:
                facts[file.path] = _scan_file(own, task, file, None)
        audit.finish()
        recovered = _recover(task, summary, facts)
        if task.ext_enabled:
            ext = _scan_ext(own, task, summary)
            if recovered:
                _recover_ext(own, task, summary, ext)
        elif task.ext_files:
            _scan_ext(own, task, summary)
            summary.refusal = None
    except StoreError as why:
        return QueueSummary(task.key, task.batch, files=list(task.files), problem=why.gap())
    return summary


class _Audit:
    """Folds windows, in order of entry numbers, into the summary's audit fields."""

    def __init__(self, task: QueueTask, summary: QueueSummary):
        self.task, self.summary = task, summary
        self.leading = True  # nothing but pre-blank and expired entries so far
        self.ranges: list[tuple[int, int]] = []
        self._zeros = 0  # entries of files since the last used one

    def window(self, first: int, data: np.ndarray, rows: np.ndarray) -> None:
        """Take entries from number `first` on, as bytes and as rows."""
        used = _nonzero_rows(data, rows)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], used, [False])).view(np.int8)))
        before = -self._zeros
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            self._add(first + start, first + end, start - before)
            before = end
        self._zeros = len(rows) - before
        if self.leading:
            expired = valid_entries(rows) & (rows["phy_offset"] < self.task.log_min)
            if not self.task.batch:
                expired |= (rows["phy_offset"] == 0) & (rows["size"] == layout.PRE_BLANK_SIZE)
            count = len(rows) if expired.all() else int(np.argmin(expired))
            if count:
                self.summary.expired_end = first + count
            self.leading = count == len(rows)

    def hole(self, entries: int) -> None:
        """Take so many entries of a file's hole: zeros."""
        self.leading = False
        self._zeros += entries

    def _add(self, start: int, end: int, zeros: int) -> None:
        """Add used entries. zeros: entries of files between them and the last used ones."""
        ranges = self.ranges
        if ranges and (start == ranges[-1][1] or start > ranges[-1][1] and len(ranges) >= MAX_RANGES):
            ranges[-1] = (ranges[-1][0], end)
            self.summary.zeros_among_used += zeros
        else:
            ranges.append((start, end))

    def finish(self) -> None:
        self.summary.used = union(self.ranges)
        self.summary.used_end = self.summary.used[-1][1] if self.summary.used else 0


def _nonzero_rows(data: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Say which entries have a byte that is not zero."""
    if rows.dtype == BATCH_DTYPE:
        return np.asarray(data[: len(rows) * layout.BATCH_ENTRY_BYTES].reshape(-1, layout.BATCH_ENTRY_BYTES).any(axis=1))
    found: np.ndarray = (rows["phy_offset"] | rows["tags_code"] | rows["size"]) != 0
    return found


def _scan_file(source: ByteSource, task: QueueTask, file: MappedFile, audit: _Audit | None) -> _FileFacts:
    """Read a file once: its facts, its digest, and the audit's view of its entries."""
    facts = _FileFacts()
    unit = unit_bytes(task.batch)
    digest = PieceDigest() if task.digest and audit is not None else None
    used = _UsedDigest(digest, task, file) if digest is not None else None
    buffer = np.empty(WINDOW_BYTES // unit * unit, np.uint8)
    # Data in a sparse file is mostly short, so a stretch of it is read in growing windows.
    window = first_window = FIRST_WINDOW_BYTES // unit * unit
    with source.open(file.path) as stream:
        if stream.size != file.size:
            raise StoreChanged.in_size(file.path, stream.size, file.size)
        at = 0
        while at < file.size:
            data_at = min(stream.next_data(at), file.size)
            if data_at - at >= 2 * unit:
                # A hole: zeros, and with them the end of any prefix and of what leads.
                skipped = file.size if data_at == file.size else data_at // unit * unit
                if digest is not None:
                    digest.feed_zeros(skipped - at)
                _end_prefix(facts, at, task.log_min)
                if audit is not None:
                    audit.hole((skipped - at) // unit)
                at, window = skipped, first_window
                continue
            data = buffer[: min(window, file.size - at)]
            window = min(len(buffer), 4 * window)
            stream.read_into(at, data)
            rows = entries_of(data, task.batch)
            if used is not None:
                used.feed(at, data)
            if audit is not None:
                audit.summary.bytes_read += len(data)
                audit.window(file.start // unit + at // unit, data, rows)
            _extend_prefix(facts, at, rows, task.log_min)
            at += len(data)
    if digest is not None and audit is not None:
        audit.summary.digests[file.path] = digest.text()
    if used is not None and audit is not None:
        audit.summary.used_digests[file.path] = used.entries, used.text
        audit.summary.changed |= used.changed
    return facts


class _UsedDigest:
    """The digest of a file's bytes up to its last entry that is not zero, beside the whole file's digest.

    It also says whether the part that an earlier run has compared is still the same.
    """

    def __init__(self, digest: PieceDigest, task: QueueTask, file: MappedFile):
        self._digest, self._unit = digest, unit_bytes(task.batch)
        self.entries, self.text = 0, ""
        self._known = next(((entries, text) for path, entries, text in task.known if path == file.path), (0, ""))
        self.changed = self._known[0] > 0  # until it is met

    def feed(self, at: int, data: np.ndarray) -> None:
        """Take the next bytes, from position `at` on."""
        whole = data[: len(data) // self._unit * self._unit].reshape(-1, self._unit)
        last = len(whole)
        if last and not whole[-1].any():
            used = np.flatnonzero(whole.any(axis=1))
            last = int(used[-1]) + 1 if len(used) else 0
        first_entry, fed = at // self._unit, 0
        known = self._known[0] - first_entry
        for stop in sorted({last, known}):
            if 0 < stop <= len(whole):
                self._digest.feed(data[fed : stop * self._unit])
                fed = stop * self._unit
                if stop == known:
                    self.changed = self._digest.copy().text() != self._known[1]
                if stop == last:
                    self.entries, self.text = first_entry + last, self._digest.copy().text()
        self._digest.feed(data[fed:])


def _end_prefix(facts: _FileFacts, at: int, log_min: int) -> None:
    """End the prefix with the zeros from position `at` on.

    If they are the file's first slot they are taken untested, with phy_offset and end 0.
    """
    if at == 0:
        facts.prefix, facts.prefix_phy, facts.prefix_end = 1, 0, 0
        facts.edges, facts.below, facts.parted = ((0, 0, 0),), int(log_min > 0), False
    facts.open_end = False


def _extend_prefix(facts: _FileFacts, at: int, rows: np.ndarray, log_min: int) -> None:
    if not facts.open_end or not len(rows):
        return
    good = valid_entries(rows)
    if at == 0:
        facts.first_valid = bool(good[0])
        good = good.copy()
        good[0] = True
    count = len(rows) if good.all() else int(np.argmin(good))
    facts.open_end = count == len(rows)
    if not count:
        return
    phy = rows["phy_offset"][:count]
    whole_so_far = facts.below == facts.prefix
    if whole_so_far:
        above = phy >= log_min
        facts.below += int(np.argmax(above)) if above.any() else count
    next_one = max(facts.below + 1 - facts.prefix, 0) if whole_so_far and facts.below < facts.prefix + count else 0
    if facts.below < facts.prefix + count:
        facts.parted &= bool((phy[next_one:] > log_min).all())
    ends = [(facts.prefix + i, int(phy[i]), int(rows["size"][i])) for i in (0, count - 1)]
    facts.edges = (*(facts.edges[:1] or ends[:1]), ends[1])
    facts.prefix += count
    facts.prefix_phy = max(facts.prefix_phy, int(phy.max())) if at else int(phy.max())
    last = rows[count - 1]
    facts.prefix_end = int(last["phy_offset"])
    if rows.dtype == ENTRY_DTYPE:
        with np.errstate(over="ignore"):  # wraps, as in Java
            facts.prefix_end = int(last["phy_offset"] + np.int64(last["size"]))
        addresses = np.flatnonzero(rows["tags_code"][:count] <= layout.EXT_ADDRESS_MAX)
        if len(addresses) and facts.first_valid:
            facts.ext_address = int(rows["tags_code"][addresses[-1]])


def _recover(task: QueueTask, summary: QueueSummary, facts: dict[str, _FileFacts]) -> bool:
    """Do recover() over the files that it reads, and its truncation. Says whether the queue had a file at all."""
    files = task.files
    if not files:
        return False
    unit = unit_bytes(task.batch)
    i = task.first_recovered
    while True:
        file, fact = files[i], facts[files[i].path]
        entries = fact.prefix if fact.first_valid else 0
        if entries:
            summary.max_phy_offset = fact.prefix_end
            if fact.ext_address <= layout.EXT_ADDRESS_MAX:
                summary.ext_address = fact.ext_address
        position = entries * unit
        if position != file.size or i + 1 == len(files):
            break
        i += 1
    summary.wrote = file.start + position
    kept = files_up_to(summary.wrote, files, summary.deleted)
    if kept:
        last = facts[kept[-1].path]
        summary.last_prefix, summary.last_prefix_phy, summary.last_prefix_max_phy = last.prefix, last.prefix_phy, last.prefix_end
        if not task.batch:
            seen = [f.path for f in (kept[0], kept[-1]) if f.path in facts]
            known = tuple(dict.fromkeys((path, *edge) for path in seen for edge in facts[path].edges))
            first = facts.get(kept[0].path)
            summary.edges = QueueEdges(known)
            if first is not None:
                summary.edges = QueueEdges(known, kept[0].path, first.prefix, task.log_min, first.below, first.parted)
    return True


# ---- ext files -----------------------------------------------------------------------------------------------------


NO_ROOM = -32769  # in place of a unit's size: the file ends where one would have to be


def ext_units(file: ByteFile) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield (position, unit size, units as rows of bytes) for each stretch of equally large units of a file.

    The last item has no rows. Its position is the end of the walk, its size the stored one there (0: unwritten, negative: full,
    positive: a unit that leads past the file's end, NO_ROOM).
    """
    at, base, data = 0, 0, np.zeros(0, np.uint8)
    none = np.zeros((0, 0), np.uint8)
    while True:
        if at + MAX_UNIT_BYTES > base + len(data) and base + len(data) < file.size or not len(data):
            base, data = at, np.frombuffer(file.read(at, WINDOW_BYTES), np.uint8)
        left = data[at - base :]
        if len(left) < 2:
            yield at, NO_ROOM, none
            return
        size = int(left[0].view(np.int8)) << 8 | int(left[1])
        if size <= 0 or at + size > file.size:
            yield at, size, none
            return
        count = len(left) // size
        table = left[: count * size].reshape(count, size)
        if size >= 2:
            same = (table[:, 0] == left[0]) & (table[:, 1] == left[1])
            count = count if same.all() else int(np.argmin(same))
        else:
            count = 1  # the next size overlaps this one
        yield at, size, table[:count]
        at += size * count


def _scan_ext(source: ByteSource, task: QueueTask, summary: QueueSummary) -> dict[str, int]:
    """Walk all ext files: findings, digests and the refusal; path -> position after the last unit."""
    ends: dict[str, int] = {}
    found = _ExtFaults(task.key)
    for file in task.ext_files:
        with source.open(file.path) as stream:
            if stream.size != file.size:
                raise StoreChanged.in_size(file.path, stream.size, file.size)
            last_unit = 0
            for position, size, units in ext_units(stream):
                ends[file.path] = position
                if len(units):
                    last_unit = position + size * (len(units) - 1)
                    _check_units(found, file, position, size, units)
                    continue
                if size == NO_ROOM:
                    # A writer leaves four bytes after the last unit.
                    left = f"{file.size - position} bytes"
                    found.add(file, (last_unit, last_unit + 2), "room after the unit", left)
                    summary.refusal = summary.refusal or Refusal(RefusalKind.EXT_NO_ROOM, file.path, position=position)
                elif size > 0:
                    found.add(file, (position, position + 2), f"at most {file.size - position}", str(size))
                    summary.refusal = summary.refusal or Refusal(RefusalKind.EXT_UNIT_BEYOND, file.path, position=position)
                elif size < layout.EXT_FILE_FULL:
                    found.add(file, (position, position + 2), "a unit's size, 0 or -1", str(size))
            if task.digest:
                summary.digests[file.path] = file_digest(stream, file.size, file.size)
            summary.bytes_read += stream.size
    summary.findings += found.findings.found
    return ends


def _check_units(found: _ExtFaults, file: MappedFile, position: int, size: int, units: np.ndarray) -> None:
    """Check that a unit's size is that of its 20 bytes and of its bit map."""
    header = layout.EXT_UNIT_HEADER_BYTES
    if size < header:
        found.add(file, (position, position + 2), f"at least {header}", str(size), len(units))
        return
    maps = units[:, header - 2 : header].copy().view(">i2")[:, 0].astype(np.int64)
    for i in np.flatnonzero(np.maximum(maps, 0) != size - header).tolist():
        at = position + i * size
        found.add(file, (at, at + header), f"a bit map of {size - header} bytes", f"{int(maps[i])} bytes")


class _ExtFaults:
    """The findings on ext units of one queue."""

    def __init__(self, key: QueueKey):
        self._key, self.findings = key, Findings()

    def add(self, file: MappedFile, span: tuple[int, int], expected: str, actual: str, count: int = 1) -> None:
        """Add a finding on bytes [start, end) of the file."""
        (topic, queue_id), (start, end) = self._key, span
        message = f"{file.path}: the ext unit at {start} is not one that a broker writes."
        self.findings.add(
            Finding(
                Code.QUEUE_EXT_DAMAGED, file.path, start, end, topic=topic, queue_id=queue_id, expected=expected, actual=actual,
                message=message, count=count,
            )
        )  # fmt: skip


def _recover_ext(source: ByteSource, task: QueueTask, summary: QueueSummary, ends: dict[str, int]) -> None:
    """Say which ext files are deleted: ConsumeQueueExt.recover, then truncateByMaxAddress."""
    if summary.refusal or not task.ext_files:
        return
    last = task.ext_files[-1]
    deleted: list[str] = []
    kept = files_up_to(last.start + ends[last.path], task.ext_files, deleted)
    if summary.ext_address <= layout.EXT_ADDRESS_MAX:
        offset = summary.ext_address - layout.EXT_ADDRESS_BASE
        unit = _unit_at(source, kept, offset, last, ends[last.path])
        if isinstance(unit, Refusal):
            summary.refusal = unit
            return
        if unit > 0:
            files_up_to(offset + unit, kept, deleted)
    summary.deleted += deleted


def _unit_at(source: ByteSource, files: Sequence[MappedFile], offset: int, last: MappedFile, last_wrote: int) -> int | Refusal:
    """Return the size of the unit at an offset of the ext queue; 0 without a unit. A refusal if reading it throws."""
    found = next((f for f in files if f.start <= offset < f.start + f.size), files[0] if files and offset == 0 else None)
    if found is None:
        return 0
    position = offset % found.size
    wrote = last_wrote if found == last else found.size
    if position >= wrote or position + 2 > wrote:
        return 0
    with source.open(found.path) as file:
        data = file.read(position, min(layout.EXT_UNIT_HEADER_BYTES, wrote - position))
    size = int.from_bytes(data[:2], "big", signed=True)
    if size < 1:
        return 0
    bit_map = int.from_bytes(data[18:20], "big", signed=True)
    if len(data) < layout.EXT_UNIT_HEADER_BYTES or position + layout.EXT_UNIT_HEADER_BYTES + max(bit_map, 0) > wrote:
        return Refusal(RefusalKind.EXT_UNIT_UNWRITTEN, found.path, position=position)
    return size
