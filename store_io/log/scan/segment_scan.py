"""One segment -> everything that the audit and the broker's decisions need of it, in one pass of bounded memory.

The audit's walk tiles the file with extents and accepts what passes every check; the broker's walk applies the release's own
checks. While both accept the same records they are one walk. Source of the walks: CommitLog.recoverNormally and
recoverAbnormally (which records, where it stops), DefaultMessageStore.ReputMessageService.doReput.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.layouts.commitlog_layout import FRAME_BYTES
from schemas.rows import (
    EXTENT_MESSAGE,
    EXTENT_UNWRITTEN,
    WALK_AUDIT,
    WALK_BOTH,
    WALK_BROKER,
    BrokerStop,
    Cuts,
    Extent,
    Finding,
    MappedFile,
    QueueKey,
    SegmentSummary,
)
from store_io.base.errors import StoreChanged, StoreError
from store_io.base.findings import Findings
from store_io.broker.fenced_broker import THROWS, judged
from store_io.broker.message_verdict import END, HALF, VALID, Verdict, properties_fault
from store_io.broker.releases import BrokerRules
from store_io.log.entries.queue_probe import QueueProbe
from store_io.log.entries.queue_store import QueuePaths, open_queue_store
from store_io.log.records import bridges
from store_io.log.records.message_columns import (
    INNER_ALONE,
    MALFORMED_PROPERTIES,
    ODD_HEADER,
    Columns,
    RecordCheck,
    Stretch,
    TopicTable,
)
from store_io.log.records.segment_items import BATCH_ROWS, BRIDGE_FLAGS, HOST_CHANGES
from store_io.log.records.segment_walk import FAST, Decoding, StrayChain, capacity_for, decoder_of, stray_chain, walk_batches
from store_io.log.scan.batch_items import BatchItems, part_of
from store_io.log.scan.dataset_rows import DatasetSink, ScannedRows
from store_io.log.scan.followers import FollowedScan, Follower, Following, SegmentPlace
from store_io.log.scan.odd_headers import StoreHosts, odd_header, torn_properties
from store_io.log.scan.other_walks import STOP_KINDS, OtherWalks
from store_io.log.scan.resync import Resync
from store_io.log.scan.segment_edges import edge_digest, first_record
from store_io.log.scan.segment_findings import Span, message_finding
from store_io.log.scan.segment_runs import ItemRange, RunBuilder, inner_messages
from store_io.log.scan.segment_times import StoreTimes
from store_io.rocksdb.database import StoredDatabase
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 4 << 20
# A batch of fewer rows waits for those of the next windows: to handle a batch takes as long as reading 50 KB.
GATHERED_ROWS = 4096
MAX_LMQ_FAULTS = 1000
# To check a message, and its queue and index entries, takes as long as reading so many bytes: in 200 ns to 1 us, 4 to 10 GB/s.
BYTES_PER_MESSAGE = 4096
USUAL_BYTES = 1024  # of a message


@dataclass(frozen=True)
class PartialWalk:
    """A walk of the broker's that a scan follows in place of all others, from position `start` to `limit`. Picklable.

    kind: as in `ScanId`.
      "reput": what start() dispatches. limit: the log's end as a position, beyond the segment perhaps.
               Source: DefaultMessageStore.ReputMessageService.doReput.
      "elect": the check before an election's dispatch. Source: AutoSwitchHAService.truncateInvalidMsg.
      "ha":    what load() reads after confirmOffset. Source: ConsumeQueueStore.compensateForHA.
    """

    kind: str
    start: int
    limit: int


@dataclass(frozen=True)
class SegmentTask:
    """One segment to scan. Picklable."""

    store: int
    path: str
    base_offset: int
    size: int
    location: StoreLocation
    rules: BrokerRules
    batch_topics: frozenset[str] = frozenset()  # topics of type BatchCQ
    queue_files: Mapping[QueueKey, tuple[MappedFile, ...]] = field(default_factory=dict)  # for the probe
    batch_queue_files: Mapping[QueueKey, tuple[MappedFile, ...]] = field(default_factory=dict)
    ext_files: Mapping[QueueKey, tuple[MappedFile, ...]] = field(default_factory=dict)
    database: StoredDatabase | None = None  # of queues in RocksDB
    stored_queues: frozenset[QueueKey] = frozenset()  # in it
    index: Follower | None = None  # holds messages against the index; they need hashes of their keys
    lmq: bool = False  # whether entries in multi-dispatch queues are expected; else absent ones are not looked for
    log_end: int = 0  # end of the copy's last segment by the listing
    cuts: Cuts = field(default_factory=Cuts)
    broker_from: int = 0  # where the broker's walk begins
    probe: bool = True
    expect_queues: bool = False  # entries are looked for although there is no queue file at all
    digest: bool = True
    walk_audit: bool = True
    sums: bool = True  # whether the audit's walk takes checksums of bodies: not where they were just found to be right
    only: PartialWalk | None = None  # this walk alone
    others: tuple[BrokerRules, ...] = ()  # by these rules, too, while such a walk follows the audit's: from the first byte on
    timers: Follower | None = None  # collects timer messages; None: the store has none
    delays: Follower | None = None  # collects messages of delay levels; None: nobody asks for them
    index_marks: tuple[tuple[int, int], ...] = ()  # (index run, k): whose message puts the k-th key
    unclean: bool = False  # the abort file is present
    window_bytes: int = WINDOW_BYTES
    decoder: str = FAST
    live_end: int = 0  # from this position on lie old messages that a cut left; they are not part of the log. 0: none
    not_after: float = 0
    messages: int = -1  # about how many it holds; -1: not known

    @property
    def bytes_to_read(self) -> int:
        return self.size

    @property
    def cost(self) -> int:
        """Return how long it takes, as bytes that are read in that time: the dearest tasks begin first."""
        messages = self.messages if self.messages >= 0 else self.size // USUAL_BYTES
        return self.size + BYTES_PER_MESSAGE * messages

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def run(self) -> SegmentSummary:
        return scan_segment(self)


def asks_of_properties(rules: BrokerRules) -> bool:
    """Say whether a broker with these settings refuses messages that lack a property."""
    return rules.dup_info or rules.verify_property_crc and rules.check_crc


_OnRows = Callable[[int], int | None]  # given how many rows are in the columns; a position: the walk stops there


def scan_segment(task: SegmentTask, source: ByteSource | None = None, sink: DatasetSink | None = None) -> SegmentSummary:
    """Return the segment's summary. Never raises over bytes; a file that cannot be read, or changed, gives `problem` alone.

    sink: gets what the audit's walk accepts.
    """
    try:
        source = source or open_source(task.location)
        with source.open(task.path) as file:
            if file.size != task.size:
                raise StoreChanged.in_size(task.path, file.size, task.size)
            scan = _Scan(task, source, file, sink)
            try:
                return scan.run()
            finally:
                scan.close()
    except StoreError as why:
        return SegmentSummary(task.path, task.base_offset, task.size, problem=why.gap(task.path))


class _Scan:
    """The state of one scan."""

    def __init__(self, task: SegmentTask, source: ByteSource, file: ByteFile, sink: DatasetSink | None):
        self.sink = sink
        self.task, self.rules, self.base, self.size = task, task.rules, task.base_offset, task.size
        self.decode = decoder_of(task.decoder)
        self.window = SegmentWindow(file, task.size, task.window_bytes, task.digest)
        self.topics = TopicTable()
        self.others = OtherWalks(self.rules, task.others, self.window, task.path)
        audit = RecordCheck.audit_of(self.base, self.rules, task.path)
        self.audit = replace(audit, watches_old_parser=self.others.watches_old_parser, sums=task.sums)
        self.broker = RecordCheck.broker(self.rules, task.path)
        self.header = self.audit.framing.header_bytes  # from a frame's beginning to its record
        self.findings = Findings()
        self.times = StoreTimes(task.path, self.base, self.findings)
        self.hosts = StoreHosts(task.path, self.findings)
        self.summary = SegmentSummary(task.path, task.base_offset, task.size)
        self.messages = 0
        self.plausible = False
        self.probe = None
        if task.probe and (task.expect_queues or task.queue_files or task.batch_queue_files):
            paths = QueuePaths(task.queue_files, task.batch_queue_files, task.ext_files, task.database, task.stored_queues)
            store = open_queue_store(self.rules, source, paths)
            self.probe = QueueProbe(store, task.base_offset, task.size, self.findings, partial(part_of, self.window))
        self.runs = RunBuilder(self.base, self.rules.tag_index, task.lmq, self.probe, task.cuts, task.index_marks)
        self.followers: list[Following] = []
        audits = task.walk_audit and task.only is None
        if audits:
            place = SegmentPlace(task.path, task.base_offset, task.size, task.log_end)
            followed = FollowedScan(source, place, self.findings, self._verdict_at, self._messages_from)
            self.followers = [each.follow(followed) for each in (task.index, task.timers, task.delays) if each is not None]
        self.has_index = audits and task.index is not None
        want_keys = self.has_index or sink is not None and sink.want_keys
        self.columns = Columns(capacity_for(len(self.window.buffer)), want_keys)
        self._decoding = Decoding(self.decode, self.window, self.columns, self.topics)
        self.batch = BatchItems(self.rules, self._decoding, task.batch_topics)
        self._gathered = 0 if self._reads_messages() or not source.local else GATHERED_ROWS
        # The broker's walk: "before" its first record, "together" with the audit's, "apart" from `broker_at` on, or "done".
        self.state = "before"
        self.broker_at = task.broker_from

    def run(self) -> SegmentSummary:
        if self.task.only is not None:
            self._partial_walk(self.task.only)
        else:
            self.summary.first = first_record(self.window, self.broker)
            if self.task.walk_audit:
                self._audit_walk()
            if self.state != "done":
                self._broker_walk()
        return self._finished()

    def _reads_messages(self) -> bool:
        """Say whether bytes of every message are read, not its row alone.

        A sink, timers, and rules about a property need these bytes.
        """
        all_rules = (self.rules, *self.task.others)
        return self.sink is not None or self.task.timers is not None or any(asks_of_properties(rules) for rules in all_rules)

    def close(self) -> None:
        """Close the queue and index files."""
        if self.probe:
            self.probe.close()
        for follower in self.followers:
            follower.close()

    def _finished(self) -> SegmentSummary:
        s = self.summary
        s.digest = self.window.digest()
        if s.digest:
            s.edge_digest = edge_digest(self.window.file)
        s.bytes_read = self.window.bytes_read
        s.runs, s.index_runs, s.index_marks = self.runs.runs, self.runs.index_runs, self.runs.answers
        # Queues in the order in which runs name them: the decoder also met topics of frames that were rejected later.
        met, first = np.unique(s.runs["queue"], return_index=True)
        order = met[np.argsort(first)]
        s.queues = [self.topics.keys[number] for number in order.tolist()]
        places = np.zeros(len(self.topics.keys), np.int32)
        places[order] = np.arange(len(order))
        s.runs["queue"] = places[s.runs["queue"]]
        s.first_store_time, s.last_store_time = self.runs.store_times
        s.findings = self.findings.ordered()
        s.others = self.others.answers()
        return s

    # ---- walking -----------------------------------------------------------------------------------------------------

    def _walk(
        self, check: RecordCheck, start: int, limit: int, on_rows: _OnRows, gathered: int = 0
    ) -> tuple[int, Verdict | None]:
        """Decode from `start` until a frame is refused: (its position, the verdict); None: `on_rows` stopped the walk there.

        gathered: as in `walk_batches`; not for a walk that `on_rows` may stop, which would have read on.
        """
        batches = walk_batches(self._decoding, check, start, limit, gathered)
        while True:
            try:
                count = next(batches)
            except StopIteration as end:
                position, verdict = end.value
                return position, verdict
            stopped = on_rows(count)
            if stopped is not None:
                return stopped, None

    def _fold_rows(self, items: np.ndarray, kinds: np.ndarray, low: int, high: int, walk: int, audit: bool) -> np.ndarray:
        """Give messages [low, high) of the columns, with their items, to the runs; returns those whose store time fell."""
        rows, keys = self.columns.rows[: self.columns.count], self.topics.keys
        item_low, item_high = low, high
        if len(items) != len(rows):
            item_low = int(np.searchsorted(items["position"], rows["position"][low], "left"))
            item_high = int(np.searchsorted(items["position"], rows["position"][high - 1], "right"))
        falls = self.runs.add(ItemRange(items, kinds, keys, item_low, item_high), walk, audit, self.plausible)
        if len(items) != len(rows):
            falls = np.searchsorted(rows["position"], items["position"][falls])
        if self.batch.faults and walk & WALK_BROKER:
            last = rows["position"][high - 1]
            faults = [(int(r["phy_offset"]), t) for r, t in self.batch.faults if rows["position"][low] <= r["position"] <= last]
            self.summary.lmq_faults += faults[: MAX_LMQ_FAULTS - len(self.summary.lmq_faults)]
        return falls

    # ---- the audit's walk ----------------------------------------------------------------------------------------------

    def _audit_walk(self) -> None:
        resync = Resync(self.window, self.task.path, self.base, self.audit, self.task.unclean)
        extents, at = self.summary.extents, 0
        while True:
            start, self.messages = at, 0
            at, verdict = self._walk(self.audit, start, self.size, self._audit_rows, self._gathered)
            assert verdict is not None
            if at > start:
                extents.append(Extent(EXTENT_MESSAGE, start, at, self.messages, self.plausible))
            self._audit_refused(at)
            self.others.refused(at)
            if 0 < self.task.live_end <= at < self.size:
                extents.append(Extent(EXTENT_UNWRITTEN, at, self.size))
                break
            damage = resync.judge(at, verdict, self._stray_chain)
            extents.extend(damage.extents)
            for finding in damage.findings:
                self.findings.add(finding)
            self.others.judged(bool(damage.findings) or damage.resume is not None)
            if damage.resume is None:
                break
            if damage.resume <= at:
                raise RuntimeError(f"nothing was judged at position {at}: messages would continue at {damage.resume}")
            at, self.plausible = damage.resume, True
        self.times.finish()
        self.hosts.finish(self.window, self.topics.keys)
        for follower in self.followers:
            follower.finish(extents, self.summary)

    def _audit_rows(self, count: int) -> None:
        rows = self.columns.rows[:count]
        items, kinds = self.batch.read(count)
        self.messages += count
        if self.batch.met & (BATCH_ROWS | INNER_ALONE):
            self.messages += inner_messages(items, kinds)
        if self.probe:
            self.probe.match_batch(items, kinds if self.batch.met & BATCH_ROWS else kinds[:0], self.topics.keys)
        self.others.met(self.batch.met, rows, self.has_index, self.batch.entered)
        for low, high, walk in self.others.parts(self._parts(rows), rows, self._accepted):
            self.times.feed(rows[low:high], self._fold_rows(items, kinds, low, high, walk, True) - low)
        for follower in self.followers:
            follower.add(self.columns, self.topics.keys, self.window)
        if self.sink:
            self.sink.add(ScannedRows(self.columns, items, kinds, self.topics.keys, self.window, self.plausible))
        for i in np.flatnonzero(rows["flag"] == bridges.FLAG) if self.batch.met & BRIDGE_FLAGS else ():
            self._bridge(rows[i])
        for i in np.flatnonzero(rows["flags"] & MALFORMED_PROPERTIES) if self.batch.met & MALFORMED_PROPERTIES else ():
            if known := self.findings.room(Code.PROPERTIES_MALFORMED):
                data = part_of(self.window, rows[i], "props")
                self.summary.torn.append(torn_properties(rows[i], data))
            self._malformed(rows[i], properties_fault(data) if known else "")
        self.hosts.feed(rows, bool(self.batch.met & HOST_CHANGES))
        for i in np.flatnonzero(rows["flags"] & ODD_HEADER) if self.batch.met & ODD_HEADER else ():
            found, torn = odd_header(self.task.path, rows[i], self.topics.keys[rows[i]["topic_ref"]], self.window)
            self.summary.torn += torn if any(self.findings.room(f.code, f.severity) for f in found) else []
            for finding in found:
                self.findings.add(finding)
        for row, text in self.batch.faults:
            self._malformed(row, f"an offset {text!r} in INNER_MULTI_QUEUE_OFFSET: a broker with multi-dispatch fails on it")
        for row, text in self.batch.uneven:  # a broker writes one offset for each queue, so these properties are damaged (P19)
            self._malformed(row, text)

    def _bridge(self, row: np.void) -> None:
        """Take a bridge, a record that a repair put there, out of the messages and note it."""
        topic, _ = self.topics.keys[row["topic_ref"]]
        if bridges.is_bridge(topic, row):
            self.messages -= 1
            start = int(row["position"])
            end = start + int(row["total_size"])
            self.findings.add_beside(Finding(Code.COMMITLOG_BRIDGED, self.task.path, start, end, phy_offset=self.base + start), 0)

    def _malformed(self, row: np.void, text: str) -> None:
        key, start = self.topics.keys[row["topic_ref"]], int(row["position"]) + int(row["props_at"])
        end, text = start + int(row["props_len"]), f"the properties of a message hold {text}"
        self.findings.add(message_finding(Code.PROPERTIES_MALFORMED, Span(self.task.path, start, end), row, key, message=text))

    def _parts(self, rows: np.ndarray) -> list[tuple[int, int, int]]:
        """Return the batch as ranges of messages that the same walks met."""
        count, low = len(rows), 0
        if self.state == "before":
            at = self.broker_at + self.header
            low = count if rows["position"][-1] < at else int(np.searchsorted(rows["position"], at, "left"))
            if low < count:
                self.state = "together" if rows["position"][low] == at else "apart"
        parts = [(0, low, WALK_AUDIT)]
        if self.state == "together" and low < count:
            refused = low + self._accepted(rows[low:], self.broker)
            parts.append((low, refused, WALK_BOTH))
            low = refused
            if refused < count:
                self.state, self.broker_at = "apart", int(rows["position"][refused]) - self.header
        parts.append((low, count, WALK_AUDIT))
        return [part for part in parts if part[0] < part[1]]

    def _accepted(self, rows: np.ndarray, check: RecordCheck) -> int:
        """Return how many of these messages, which the audit accepts, a release's check does before it refuses one.

        The audit's check is the strictest of all defaults, so only three rules of a release can refuse more: V2 before 5.1.0,
        and the two settings that ask for a property of their own.
        """
        rules, count = check.rules, len(rows)
        if not rules.knows_v2:
            # V2 differs from V1 in the width of the topic's length, which is between body and topic.
            found = np.flatnonzero(rows["topic_at"] - rows["body_at"] - rows["body_len"] == 2)
            count = int(found[0]) if len(found) else count
        if asks_of_properties(rules):
            count = int(np.searchsorted(rows["position"][:count], self._refused_from(rows[:count], check)))
        return count

    def _refused_from(self, rows: np.ndarray, check: RecordCheck) -> int:
        """Return position of the first of these messages that the release refuses, or of what follows them."""
        if not len(rows):
            return 0
        at, window, columns = int(rows["position"][0]) - self.header, self.window, Columns(len(rows) + 1)
        end = int(rows["position"][-1]) + int(rows["total_size"][-1])
        while at < end:
            if window.start <= at and end <= window.end:
                columns.clear()
                stretch = Stretch(window.buffer, window.start, at, end, True)
                at = self.decode(stretch, check, columns, TopicTable()).position
                if at == end:
                    break
            verdict = check.verdict(window, at, self.size)
            if verdict.kind != VALID:
                break
            at += verdict.size
        return at

    def _audit_refused(self, position: int) -> None:
        """Note what the broker's walk makes of something that is no message, which the audit's walk met at `position`."""
        if self.state == "before" and position >= self.broker_at:
            self.state = "together" if position == self.broker_at else "apart"
        if self.state == "together":
            verdict = self.broker.verdict(self.window, position, self.size)
            if verdict.kind == VALID:
                self.state, self.broker_at = "apart", position
            else:
                self._broker_stops(position, verdict)

    def _verdict_at(self, position: int) -> Verdict:
        """Return the audit's verdict on the record at a position."""
        return self.audit.verdict(self.window, position - self.header, self.size)

    def _messages_from(self, position: int, size: int) -> Columns:
        """Return messages that follow one another from there on, in `size` bytes or less, with hashes of their keys."""
        window, columns = SegmentWindow(self.window.file, self.size, size), Columns(capacity_for(size), True)
        at = position - self.header
        window.hold(at)
        stretch = Stretch(window.buffer, window.start, at, window.end, window.end == self.size)
        self.decode(stretch, self.audit, columns, TopicTable())
        return columns

    def _stray_chain(self, start: int) -> StrayChain:
        return stray_chain(self._decoding, self.audit, start)

    # ---- the broker's walks --------------------------------------------------------------------------------------------

    def _broker_stops(self, position: int, verdict: Verdict) -> None:
        self.state = "done"
        self.summary.broker = BrokerStop(STOP_KINDS[verdict.kind], position, verdict.reason)

    def _broker_walk(self) -> None:
        self.plausible = False
        end, verdict = self._walk(self.broker, self.broker_at, self.size, self._broker_rows)
        if verdict is None:
            self.summary.broker = BrokerStop("bad", end, "outside_file")
        else:
            self._broker_stops(end, verdict)

    def _broker_rows(self, count: int) -> int | None:
        rows, rules, stop = self.columns.rows[:count], self.rules, None
        if self.task.unclean and rules.checks_phy_offset:
            phy = rows["phy_offset"]
            outside = np.flatnonzero((phy < self.base) | (phy > self.base + self.size))
            if len(outside):
                count = int(outside[0])
                stop = int(rows["position"][count]) - self.header
        self._dispatched_rows(count)
        return stop

    def _dispatched_rows(self, count: int) -> None:
        if count:
            items, kinds = self.batch.read(self.columns.count)
            self._fold_rows(items, kinds, 0, count, WALK_BROKER, False)

    def _partial_walk(self, walk: PartialWalk) -> None:
        if walk.kind == "reput":
            self._reput(walk.start, walk.limit)
        elif walk.kind == "elect":
            check = RecordCheck.reput(self.rules, self.task.path)
            end, verdict = self._walk(check, walk.start, walk.limit, self._dispatched_rows)
            assert verdict is not None
            self._broker_stops(end, verdict)
        else:
            self._unconfirmed(walk.start, walk.limit)

    def _reput(self, position: int, log_end: int) -> None:
        """Follow the walk of start() through this segment.

        After HALF the offset moves by the size, but the buffer continues after the record's fields. After BAD the rest of the
        buffer is skipped. Only bytes of dispatched messages count as read.
        log_end: a position as well.
        """
        check, limit = RecordCheck.reput(self.rules, self.task.path), min(log_end, self.size)
        last = log_end if self.rules.dispatches_to_log_end else 1 << 63  # the offset goes no further than this
        at, read, whole = position, 0, limit - position
        reason = ""
        while read < whole and at < last:
            end, verdict = self._walk(check, position, limit, partial(self._rows_before, last - at + position))
            at, read, position = at + end - position, read + end - position, end
            if verdict is None or read >= whole:
                break
            reason = verdict.reason
            if verdict.kind == END:
                at += self.size - at % self.size  # of the offset, not of the buffer
                break
            if verdict.kind != HALF:
                # A master gives up the rest of the buffer; any other broker reads this record again without end.
                gives_up = self.rules.value("brokerId") == 0 or self.rules.value("enableDLegerCommitLog")
                at += whole - read if gives_up else 0
                break
            if at + verdict.size > last:
                break
            at, position = at + verdict.size, verdict.parsed_to
        self.summary.broker = BrokerStop("next", self.base + at, reason)

    def _rows_before(self, limit: int, count: int) -> int | None:
        """Dispatch the messages that end at or before this position; return the position at which the walk stops, or None."""
        rows = self.columns.rows[:count]
        beyond = np.flatnonzero(rows["position"] + rows["total_size"] > limit)
        kept = int(beyond[0]) if len(beyond) else count
        self._dispatched_rows(kept)
        return int(rows["position"][kept]) - self.header if kept < count else None

    def _unconfirmed(self, position: int, limit: int) -> None:
        """Follow the walk of compensateForHA.

        Checksums count, whatever the settings say; a filler leads to the place that its size gives.
        """
        check = RecordCheck.broker(replace(self.rules, check_crc=True, knows_v2=False), self.task.path)
        kind, reason = "bad", ""
        while position < limit:
            position, verdict = self._walk(check, position, limit, lambda count: None)
            assert verdict is not None
            reason = verdict.reason
            head = self.window.read(position, min(limit, position + FRAME_BYTES))
            thrown = judged(head, limit - position)
            if thrown:
                kind, reason = THROWS, thrown
            if thrown or verdict.kind != END:
                break
            position += int.from_bytes(head[:4], "big", signed=True)
            kind = "end" if position == self.size else "bad"
        self.summary.broker = BrokerStop(kind, position, reason)


def part_scan(base: SegmentTask, path: str, start: int, size: int) -> SegmentTask:
    """Return a segment's task that decodes its messages and does nothing else."""
    return replace(
        base, path=path, base_offset=start, size=size, probe=False, index=None, digest=False, expect_queues=False,
        timers=None, delays=None, not_after=0,
    )  # fmt: skip


def scan_all(scans: Sequence[SegmentTask], source: ByteSource, sink: DatasetSink) -> tuple[int, Gap | None]:
    """Return (bytes read, why a segment could not be read) of a scan of these segments into the sink. Raises StoreError."""
    read = 0
    for scan in scans:
        summary = scan_segment(scan, source, sink)
        read += summary.bytes_read
        if summary.problem:
            return read, summary.problem
    return read, None
