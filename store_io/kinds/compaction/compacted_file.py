"""One file of a compacted topic's log and the entries of the same name, as a task.

Every byte of the log is read through a window by the decoder of the CommitLog: records there store their own position like
those. Found are records without an entry, entries without a record, bytes that are neither, and records that differ from the
CommitLog's message with the same topic, queue and queue offset. Whether the CommitLog still has a message decides how grave
the loss of its copy is.
Source: CompactionLog.CompactionAppendMessageCallback.doAppend, SparseConsumeQueue.putEndPositionInfo (compaction.md 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.layouts.consumequeue_layout import BATCH_ENTRY_BYTES
from schemas.layouts.entries import BATCH_DTYPE
from schemas.rows import Finding, MappedFile, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreChanged, StoreError
from store_io.base.findings import Findings
from store_io.broker.message_verdict import END, VALID, BufferFrames
from store_io.broker.releases import BrokerRules
from store_io.kinds.compaction.log_messages import LogFiles, LogMessages, same_but_place, unput_messages, without_log
from store_io.kinds.compaction.sparse_recovery import SparseEnds, SparseEntry
from store_io.log.entries.file_entries import entries_of, valid_entries
from store_io.log.records.message_columns import Columns, RecordCheck, TopicTable
from store_io.log.records.segment_walk import FAST, Decoding, capacity_for, decoder_of, walk_batches
from store_io.model.queue_runs import stretches
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.piece_digest import PieceDigest
from store_io.source.segment_window import SegmentWindow

MAX_ENTRIES_BYTES = 256 << 20  # of one file of entries; of a larger one the first are read
WINDOW_BYTES = 1 << 20


@dataclass(frozen=True)
class CompactedFileTask:
    """A file of a compacted log and its entries; either may be missing. Picklable.

    last: the newest file of its queue: records may follow its last entry, and the messages that come after it are looked for.
    records: whether the log is read, too.
    put_here: whether the topic is compacted by config/topics.json.
    """

    store: int
    location: StoreLocation
    rules: BrokerRules
    key: QueueKey
    log: MappedFile | None
    entries: MappedFile | None
    commitlog: LogFiles
    last: bool = False
    unclean: bool = False
    records: bool = True
    put_here: bool = False
    window_bytes: int = 4 << 20
    decoder: str = FAST
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return sum(file.size for file in (self.log, self.entries) if file is not None)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in (self.log, self.entries) if file is not None)

    def run(self) -> CompactedFileSummary:
        return scan_compacted_file(self)


@dataclass
class CompactedFileSummary:
    """The findings and figures of one compacted file.

    ends: None without a file of entries.
    records: the number of valid records.
    keyed_by_segment: of a queue without any, how many messages with a key each segment holds, by its first physical offset.
    digests: the path of each file -> the digest of the whole file.
    """

    key: QueueKey
    entries_path: str = ""
    ends: SparseEnds | None = None
    records: int = 0
    keyed_by_segment: dict[int, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    bytes_read: int = 0
    problem: Gap | None = None


def scan_compacted_file(task: CompactedFileTask, source: ByteSource | None = None) -> CompactedFileSummary:
    """Never raises over bytes; a file that cannot be read gives `problem`."""
    found, findings = CompactedFileSummary(task.key), Findings()
    own = source or open_source(task.location)
    messages = LogMessages(own, task.commitlog)
    try:
        rows = np.zeros(0, BATCH_DTYPE)
        if task.entries is not None:
            found.entries_path = task.entries.path
            rows = _read_entries(task.entries, own, found, findings)
        if task.log is not None and task.records:
            _LogFile(task, found, rows, messages, findings).scan(own)
        if task.records and task.last and task.put_here:
            if len(rows):
                findings.add_all(unput_messages(task.key, found.entries_path, rows["base"], messages, task.unclean))
            elif not found.records:
                notes, found.keyed_by_segment = without_log(task.key, messages)
                findings.add_all(notes)
    except StoreError as why:
        found.problem = why.gap()
    finally:
        messages.close()
    found.findings = findings.found
    found.bytes_read += messages.bytes_read
    return found


def _read_entries(file: MappedFile, source: ByteSource, found: CompactedFileSummary, findings: Findings) -> np.ndarray:
    """Return all entries of the file up to the last that is not zero."""
    digest, parts = PieceDigest(), []
    unit = WINDOW_BYTES // BATCH_ENTRY_BYTES * BATCH_ENTRY_BYTES
    with source.open(file.path) as stream:
        at = 0
        while at < stream.size:
            data_at = min(stream.next_data(at), stream.size) // unit * unit  # a hole is zeros, and not read
            if data_at > at:
                digest.feed_zeros(data_at - at)
                at = data_at
            data = np.frombuffer(stream.read(at, min(unit, stream.size - at)), np.uint8)
            digest.feed(data)
            if at < MAX_ENTRIES_BYTES and data.any():
                parts.append((at // BATCH_ENTRY_BYTES, entries_of(data, True)))
            found.bytes_read += len(data)
            at += unit
        if stream.size != file.size:
            found.problem = StoreChanged.in_size(file.path, stream.size, file.size).gap()
    found.digests[file.path] = digest.text()
    rows = np.zeros(parts[-1][0] + len(parts[-1][1]) if parts else 0, BATCH_DTYPE)
    for first, part in parts:
        rows[first : first + len(part)] = part
    good = valid_entries(rows)
    leading = int(np.argmin(good)) if not good.all() else len(rows)
    valid = np.flatnonzero(good)
    found.ends = SparseEnds(
        leading,
        _entry(rows[0]) if leading else None,
        _entry(rows[leading - 1]) if leading else None,
    )
    unread = valid[valid > leading]
    for first, last in stretches(unread, np.ones(len(unread), np.int64)):
        if not findings.room(Code.COMPACTED_ENTRY_WRONG):
            findings.add_more(Code.COMPACTED_ENTRY_WRONG, "", last - first)
            continue
        one = _entry_finding(found, first, rows[first], "a valid entry after one that is not: no reader gets to it")
        findings.add(replace(one, end=last * BATCH_ENTRY_BYTES, count=last - first))
    return rows[:leading]


def _entry(row: np.void) -> SparseEntry:
    return SparseEntry(int(row["phy_offset"]), int(row["size"]), int(row["base"]))


def _entry_finding(found: CompactedFileSummary, number: int, row: np.void, message: str) -> Finding:
    start = number * BATCH_ENTRY_BYTES
    return Finding(
        Code.COMPACTED_ENTRY_WRONG, found.entries_path, start, start + BATCH_ENTRY_BYTES, topic=found.key[0],
        queue_id=found.key[1], queue_offset=int(row["base"]), actual=f"position {row['phy_offset']}, {row['size']} bytes",
        message=message,
    )  # fmt: skip


class _LogFile:
    """One file of the log against its entries."""

    def __init__(
        self, task: CompactedFileTask, found: CompactedFileSummary, entries: np.ndarray, messages: LogMessages, findings: Findings
    ):
        assert task.log is not None
        self.task, self.found, self.messages, self.file, self.findings = task, found, messages, task.log, findings
        self.entries = entries
        self.order = np.argsort(entries["phy_offset"], kind="stable")
        self.places = entries["phy_offset"][self.order] - task.log.start
        self.matched = np.zeros(len(entries), bool)
        self.check = RecordCheck.audit_of(task.log.start, task.rules, task.log.path)

    def scan(self, source: ByteSource) -> None:
        with source.open(self.file.path) as stream:
            if stream.size != self.file.size:
                self.found.problem = StoreChanged.in_size(self.file.path, stream.size, self.file.size).gap()
                return
            window = SegmentWindow(stream, self.file.size, min(self.task.window_bytes, self.file.size), digest=True)
            end = self._records(window)
            self._unmatched(window)
            self._rest(window, end)
            self.found.digests[self.file.path] = window.digest()
            self.found.bytes_read += window.bytes_read

    def _records(self, window: SegmentWindow) -> int:
        """Walk the records and return the position after the last valid one.

        After a damaged record the walk continues at the next entry.
        """
        columns, topics = Columns(capacity_for(len(window.buffer))), TopicTable()
        decoding = Decoding(decoder_of(self.task.decoder), window, columns, topics)
        at = end = 0
        while True:
            walk = walk_batches(decoding, self.check, at, self.file.size)
            while True:
                try:
                    count = next(walk)
                except StopIteration as stop:
                    stopped, verdict = stop.value
                    break
                end = max(end, self._take(window, columns.rows[:count], topics))
            if verdict.kind == END:
                end = max(end, min(self.file.size, stopped + layout.FRAME_BYTES))
            following = int(np.searchsorted(self.places, max(at, stopped), "right"))
            if following == len(self.places) or self.places[following] >= self.file.size:
                return end
            at = int(self.places[following])

    def _take(self, window: SegmentWindow, rows: np.ndarray, topics: TopicTable) -> int:
        """Return valid records, compared with their entries and the CommitLog; the end of the last."""
        self.found.records += len(rows)
        place = np.searchsorted(self.places, rows["position"])
        known = place < len(self.places)
        known[known] = self.places[place[known]] == rows["position"][known]
        own = np.array([key == self.task.key for key in topics.keys], bool)[rows["topic_ref"]]
        for number in np.flatnonzero(~known):
            self._without_entry(rows[number])
        numbers = self.order[place[known]]
        self.matched[numbers] = True
        entries, with_entry = self.entries[numbers], rows[known]
        right = own[known]
        for mine, theirs in (
            ("size", "total_size"),
            ("base", "queue_offset"),
            ("tags_code", "tags_code"),
            ("store_time", "store_time"),
        ):
            right &= entries[mine] == with_entry[theirs]
        for number in np.flatnonzero(~right):
            row = with_entry[number]
            what = f"the record there has {row['total_size']} bytes and the queue offset {row['queue_offset']}"
            if not own[known][number]:
                what = "the record there is of another queue"
            self.findings.add_beside(_entry_finding(self.found, int(numbers[number]), entries[number], what))
        for row in with_entry[own[known]]:
            self._compare(window, row)
        return int(rows["position"][-1] + rows["total_size"][-1])

    def _compare(self, window: SegmentWindow, row: np.void) -> None:
        """Compare a record with the CommitLog's message of the same queue offset, if that is still there and sound."""
        other = self.messages.record(int(row["queue_offset"]))
        if not other or len(other) < layout.MIN_SIZE_V1_BYTES:
            return
        start, size = int(row["position"]), int(row["total_size"])
        if same_but_place(window.read(start, start + size), other) or not self._is_message(other, int(row["queue_offset"])):
            return
        self.findings.add_beside(self._finding(
            Code.COMPACTED_RECORD_DIFFERS, start, start + size, int(row["queue_offset"]), "",
            "the CommitLog's message of this queue offset has other bytes",
        ))  # fmt: skip

    def _is_message(self, data: bytes, queue_offset: int) -> bool:
        """Say whether bytes of the CommitLog are a valid message of this queue with that offset."""
        verdict = self.check.without_place().verdict(BufferFrames(data), 0, len(data))
        message = verdict.message
        if verdict.kind != VALID or message is None:
            return False
        return (message.topic, message.queue_id) == self.task.key and message.queue_offset == queue_offset

    def _finding(self, code: Code, start: int, end: int, queue_offset: int | None, severity: str, message: str) -> Finding:
        topic, queue_id = self.task.key
        return Finding(
            code, self.file.path, start, end, severity, topic=topic, queue_id=queue_id, queue_offset=queue_offset, message=message
        )

    def _without_entry(self, row: np.void) -> None:
        start = int(row["position"])
        known = self.task.entries is not None  # a record is put only where that file is
        torn = known and self.task.last and self.task.unclean and (not len(self.places) or start > self.places[-1])
        self.findings.add_beside(self._finding(
            Code.COMPACTED_RECORD_UNLISTED, start, start + int(row["total_size"]), int(row["queue_offset"]),
            severity_in(Code.COMPACTED_RECORD_UNLISTED, Case.AFTER_CRASH, torn), "this record has no entry: no consumer gets it",
        ))  # fmt: skip

    def _unmatched(self, window: SegmentWindow) -> None:
        """Report entries to which no valid record belongs: their record is damaged, or they lead elsewhere."""
        matched = self.order[self.matched[self.order]]
        starts = self.entries["phy_offset"][matched] - self.file.start  # of records that have their entry; they never overlap
        ends = starts + self.entries["size"][matched]
        for number in np.flatnonzero(~self.matched):
            row = self.entries[number]
            start, size = int(row["phy_offset"]) - self.file.start, int(row["size"])
            other = int(np.searchsorted(ends, start, "right"))
            overlaps = other < len(starts) and starts[other] < start + size
            if start < 0 or start + size > self.file.size or overlaps:
                self.findings.add_beside(_entry_finding(self.found, int(number), row, "no record begins where it leads"))
                continue
            offset = int(row["base"])
            kept = self._is_message(self.messages.record(offset), offset)
            verdict = self.check.verdict(window, start, self.file.size)
            here = "the CommitLog still holds the message" if kept else "the CommitLog does not hold the message any more"
            finding = self._finding(
                Code.COMPACTED_RECORD_DAMAGED,
                start,
                start + size,
                offset,
                severity_in(Code.COMPACTED_RECORD_DAMAGED, Case.LOG_HOLDS_IT, kept),
                here,
            )
            actual = verdict.reason or "a record that its entry does not fit"
            self.findings.add_beside(replace(finding, expected="a valid record", actual=actual))

    def _rest(self, window: SegmentWindow, end: int) -> None:
        """Report bytes after the last record. Only the filler of a full file may follow."""
        entries_end = int((self.places + self.entries["size"][self.order]).max()) if len(self.places) else 0
        end = max(end, min(entries_end, self.file.size))
        start = window.first_nonzero(end)
        if start >= self.file.size:
            return
        stop = window.last_nonzero_end(start)
        self.findings.add_beside(
            self._finding(
                Code.COMPACTED_RECORD_UNLISTED,
                start,
                stop,
                None,
                severity_in(Code.COMPACTED_RECORD_UNLISTED, Case.AFTER_LAST_RECORD),
                "bytes after the last record",
            ),
        )
