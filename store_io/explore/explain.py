"""One physical offset of a copy, explained: what lies there, the record field by field, which check fails on it and why, and
which ConsumeQueue and index entries lead to it.

One segment at most is read whole; everything else is looked at in bounded pieces. Source of the fields: MessageExtEncoder,
MessageDecoder (positions: `schemas.commitlog_layout`); of the checks: `rules.message_verdict`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas import commitlog_layout as layout
from schemas import consumequeue_layout
from schemas.entries import STORED_INDEX_DTYPE
from schemas.finding_codes import STOP_REASONS
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, Extent, MappedFile, QueueKey, SegmentSummary
from store_io.audit.audit_request import AuditRequest
from store_io.audit.audit_store import StoreAudit
from store_io.base.errors import StoreError
from store_io.base.java_compat import is_blank
from store_io.explore.explain_record import Field, Part, annotate, boundaries_hold, derived
from store_io.explore.redaction import NONE, Redaction
from store_io.formats.commitlog.message_columns import Columns, RecordCheck
from store_io.formats.consumequeue_reader import entries_of, read_entries, unit_bytes
from store_io.formats.index_reader import entry_position, read_index_entries
from store_io.rules.index_keys import index_keys, key_hash, key_text, tag_key
from store_io.rules.message_verdict import END, VALID, Message, Verdict, tags_code_of
from store_io.rules.multi_dispatch import multi_dispatch
from store_io.rules.releases import BrokerRules
from store_io.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import ByteFile
from store_io.source.segment_window import SegmentWindow

SHOW_ALL = Redaction(NONE, b"")
WINDOW_BYTES = 1 << 16  # of a segment that is looked into once more
AROUND_ROW = 16
AROUND_BYTES = 4 * AROUND_ROW  # shown of a place where no record begins
SEARCH_BYTES = 64 << 20  # of queue files that are looked through for entries
SEARCH_FILES = 4096
CHUNK_BYTES = 1 << 20
MAX_POINTERS = 50
CHAIN_STEPS = 10_000  # of one key's chain in an index file
NEAR_ENTRIES = 256  # of an index file, on both sides of where the order of its entries leads

# What lies at the physical offset.
RECORD, INSIDE, DAMAGE, FILLER, UNWRITTEN = "record", "inside a record", "damage", "filler", "unwritten"
MISSING, BELOW, BEYOND, NO_LOG = "missing segment", "below the minimum", "beyond the end", "no CommitLog"


@dataclass(frozen=True)
class Neighbour:
    """A valid message near the place."""

    phy_offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    store_time: int


@dataclass(frozen=True)
class Check:
    """What one check says of the record. who: "audit", or the release and the moment.  reason: of STOP_REASONS, "" where it
    passes.  expected, actual: the two values, where there are two."""

    who: str
    passes: bool
    reason: str = ""
    sentence: str = ""
    expected: str = ""
    actual: str = ""


@dataclass(frozen=True)
class Pointer:
    """An entry that leads to the record, or the place where one is expected.

    kind: "queue", "batch", "lmq", "other queue", "index".  number: of the entry in its queue or index file.
    state: "equal"; "differs"; "into the middle" (of the record); "absent" (another entry, or none, stands where the record's
    belongs).  values: the entry as it stands there.  differences: sentences.
    """

    kind: str
    name: str
    file: str
    position: int
    number: int
    state: str
    values: dict[str, int]
    differences: list[str] = field(default_factory=list)


@dataclass
class Explanation:
    """All that is said of one physical offset. Positions are bytes in `file`; None where no file holds the offset.

    kind: one of this module's words.  sentence: the answer in one.  record_start, record_size: physical offset and bytes of
    the record that is shown; size 0 where nobody knows.  around: bytes at the offset itself, from `around_start` on, where it
    is not the beginning of the record shown.  extent: (kind, first and end physical offset, reason) of the range of equal
    bytes that holds the offset.  stop: (physical offset, reason) where the release's scan of this segment ends.
    searched: what was looked through for entries, in sentences.
    """

    phy_offset: int
    release: str
    kind: str
    sentence: str
    file: str | None = None
    position: int | None = None
    segment_start: int = 0
    segment_bytes: int = 0
    record_start: int | None = None
    record_size: int = 0
    fields: list[Field] = field(default_factory=list)
    derived: list[Part] = field(default_factory=list)
    around: bytes = b""
    around_start: int = 0
    checks: list[Check] = field(default_factory=list)
    extent: tuple[str, int, int, str] | None = None
    stop: tuple[int, str] | None = None
    before: Neighbour | None = None
    after: Neighbour | None = None
    pointers: list[Pointer] = field(default_factory=list)
    more_pointers: int = 0
    searched: list[str] = field(default_factory=list)


def explain(request: AuditRequest, phy_offset: int, redaction: Redaction = SHOW_ALL) -> Explanation:
    """Explain one physical offset of the copy. Raises StoreError where the copy cannot be read, UsageError over its settings."""
    audit = StoreAudit(request)
    audit.first_tasks()
    if audit.failed:
        raise StoreError(audit.incomplete[0])
    return _Explainer(audit, phy_offset, redaction).run()


class _Watch:
    """What the audit's walk of a segment meets around one position. A sink of `scan_segment`."""

    want_keys = False

    def __init__(self, position: int, base: int):
        self.position, self._base = position, base
        self.holder: Neighbour | None = None
        self.before: Neighbour | None = None
        self.after: Neighbour | None = None

    def add(
        self,
        columns: Columns,
        items: np.ndarray,
        kinds: np.ndarray,
        keys: Sequence[QueueKey],
        window: SegmentWindow,
        plausible: bool,
    ) -> None:
        """See `DatasetSink`."""
        if self.after is not None:
            return
        rows = columns.rows[: columns.count]
        at = int(np.searchsorted(rows["position"], self.position, "right")) - 1
        if at >= 0:
            if self.position < int(rows["position"][at]) + int(rows["total_size"][at]):
                self.holder = self._neighbour(rows[at], keys)
                at -= 1
            if at >= 0:
                self.before = self._neighbour(rows[at], keys)
        behind = int(np.searchsorted(rows["position"], self.position, "right"))
        if behind < len(rows):
            self.after = self._neighbour(rows[behind], keys)

    def _neighbour(self, row: np.void, keys: Sequence[QueueKey]) -> Neighbour:
        topic, queue_id = keys[int(row["topic_ref"])]
        return Neighbour(
            self._base + int(row["position"]),
            int(row["total_size"]),
            topic,
            queue_id,
            int(row["queue_offset"]),
            int(row["store_time"]),
        )


class _Explainer:
    def __init__(self, audit: StoreAudit, phy_offset: int, redaction: Redaction):
        self.audit, self.n, self.redaction = audit, phy_offset, redaction
        self.source, self.rules = audit.source, audit.rules
        self.segments = audit.segment_files
        self.said = Explanation(phy_offset, audit.rules.release, NO_LOG, "")
        self.message: Message | None = None

    def run(self) -> Explanation:
        said, n = self.said, self.n
        holder = next((f for f in reversed(self.segments) if f.start <= n < f.start + f.size), None)
        if holder is None:
            self._outside()
        else:
            said.file, said.position = holder.path, n - holder.start
            said.segment_start, said.segment_bytes = holder.start, holder.size
            summary, watch = self._scan(holder, n)
            said.before, said.after = watch.before, watch.after
            if said.before is None:
                said.before = self._last_before(holder)
            if said.after is None:
                said.after = self._first_behind(holder)
            self._stop(holder, summary)
            self._inside(holder, summary, watch)
        self._pointers()
        return said

    # ---- where it lies -----------------------------------------------------------------------------------------------

    def _scan(self, file: MappedFile, phy_offset: int) -> tuple[SegmentSummary, _Watch]:
        watch = _Watch(phy_offset - file.start, file.start)
        task = SegmentTask(
            store=0,
            path=file.path,
            base_offset=file.start,
            size=file.size,
            location=self.audit.request.location,
            rules=self.rules,
            batch_topics=self.audit.batch_topics,
            probe=False,
            digest=False,
            unclean=self.audit.unclean,
        )
        summary = scan_segment(task, self.source, watch)
        if summary.problem:
            raise StoreError(summary.problem)
        return summary, watch

    def _outside(self) -> None:
        said, n, files = self.said, self.n, self.segments
        if not files:
            said.sentence = "the copy holds no CommitLog segment"
            return
        first, last = files[0], max(files, key=lambda f: f.start + f.size)
        end = last.start + last.size
        if n < first.start:
            said.kind = BELOW
            said.sentence = f"below the CommitLog's minimum, {first.start:,}: retention deleted it, or it was not copied"
        elif n >= end:
            said.kind = BEYOND
            said.sentence = f"beyond the copy's last segment, which ends at {end:,}"
        else:
            said.kind = MISSING
            size = self.rules.segment_bytes
            said.sentence = f"no segment of this copy holds it: commitlog/{n - n % size:020d} is missing"
        below = [f for f in files if f.start + f.size <= n]
        said.before = self._last_of(below[-1]) if below else None
        said.after = next((found for f in files if f.start > n and (found := self._first_of(f))), None)

    def _first_behind(self, file: MappedFile) -> Neighbour | None:
        """The first message of the segment behind, where the log goes on."""
        return next((self._first_of(f) for f in self.segments if f.start == file.start + file.size), None)

    def _last_before(self, file: MappedFile) -> Neighbour | None:
        """The last message of the segment before, where the log comes from."""
        return next((self._last_of(f) for f in self.segments if f.start + f.size == file.start), None)

    def _last_of(self, file: MappedFile) -> Neighbour | None:
        return self._scan(file, file.start + file.size)[1].before

    def _first_of(self, file: MappedFile) -> Neighbour | None:
        with self.source.open(file.path) as opened:
            verdict = RecordCheck.audit_of(file.start, self.rules).verdict(
                SegmentWindow(opened, file.size, WINDOW_BYTES), 0, file.size
            )
        m = verdict.message
        if verdict.kind != VALID or m is None:
            return None
        return Neighbour(file.start, m.total_size, m.topic, m.queue_id, m.queue_offset, m.store_time)

    def _stop(self, file: MappedFile, summary: SegmentSummary) -> None:
        self.said.stop = (file.start + summary.broker.position, summary.broker.reason)

    def _inside(self, file: MappedFile, summary: SegmentSummary, watch: _Watch) -> None:
        said, n, base = self.said, self.n, file.start
        position = n - base
        extent = next(e for e in summary.extents if e.start <= position < e.end)
        said.extent = (extent.kind, base + extent.start, base + extent.end, extent.reason)
        with self.source.open(file.path) as opened:
            window = SegmentWindow(opened, file.size, WINDOW_BYTES)
            if extent.kind == EXTENT_MESSAGE and watch.holder is not None:
                self._in_message(file, window, watch.holder, extent)
            elif extent.kind in (EXTENT_DAMAGED, EXTENT_FILLER):
                self._in_refused(file, window, extent)
            else:
                said.kind = UNWRITTEN
                said.sentence = f"unwritten: zeros from {base + extent.start:,} to the segment's end at {base + extent.end:,}"
            if said.record_start != n:
                said.around_start = n
                said.around = window.read(position, min(position + AROUND_BYTES, file.size))
                if self.redaction.mode != NONE and said.kind in (INSIDE, DAMAGE):
                    said.around = b""  # nobody knows what of it is somebody's text

    def _in_message(self, file: MappedFile, window: SegmentWindow, holder: Neighbour, extent: Extent) -> None:
        said, n = self.said, self.n
        self._record(file, window, holder.phy_offset)
        plausible = " after damage, so its boundaries are plausible, not proven" if extent.plausible else ""
        if holder.phy_offset == n:
            said.kind, said.sentence = RECORD, f"a valid message of {holder.size} bytes{plausible}"
        else:
            said.kind = INSIDE
            what = next((f.name for f in said.fields if f.at <= n - holder.phy_offset < f.at + f.size), "")
            said.sentence = (
                f"{n - holder.phy_offset} bytes inside the valid message at {holder.phy_offset:,}"
                f"{', in ' + what if what else ''}{plausible}; no record begins here"
            )

    def _in_refused(self, file: MappedFile, window: SegmentWindow, extent: Extent) -> None:
        """Damage or a filler. The frame at the offset itself is shown where one stands there, else that at the range's start."""
        said, n, base = self.said, self.n, file.start
        position = n - base
        magic = window.read(position + layout.MAGIC_POSITION, position + layout.FRAME_BYTES)
        frames = (layout.MAGIC_V1_BYTES, layout.MAGIC_V2_BYTES, layout.MAGIC_BLANK_BYTES)
        start = position if magic in frames else extent.start
        self._record(file, window, base + start)
        reason = next((c.reason for c in said.checks if not c.passes), extent.reason)
        why = STOP_REASONS.get(reason, reason).rstrip(".")
        if extent.kind == EXTENT_FILLER:
            said.kind = FILLER
            where = "" if position == extent.start else f", which begins at {base + extent.start:,}"
            said.sentence = f"the segment's filler{where}: {extent.end - extent.start} bytes that hold no message"
            return
        said.kind = DAMAGE
        where = "" if position == start else f", {position - start} bytes after its start"
        passes = all(c.passes for c in said.checks)
        said.sentence = (
            f"damage from {base + extent.start:,} to {base + extent.end:,}{where}"
            + (": " + why[:1].lower() + why[1:] if why else "")
            + (", although a record that passes every check begins here" if passes else "")
        )

    # ---- the record --------------------------------------------------------------------------------------------------

    def _record(self, file: MappedFile, window: SegmentWindow, phy_offset: int) -> None:
        said, base = self.said, file.start
        position = phy_offset - base
        audit = RecordCheck.audit_of(base, self.rules).verdict(window, position, file.size)
        broker = RecordCheck.broker(self.rules).verdict(window, position, file.size)
        reput = RecordCheck.reput(self.rules).verdict(window, position, file.size)
        release = f"RocketMQ {self.rules.release}"
        said.checks = [_check("audit", audit), _check(f"{release}, recovery", broker), _check(f"{release}, dispatch", reput)]
        # A check that fails on the body has not looked at what stands behind it; that of dispatch asks for no checksum.
        whole = (v.message for v in (audit, broker, reput) if v.message is not None and (v.kind == VALID or v.message.topic))
        self.message = next(whole, None) if self.redaction.mode == NONE or boundaries_hold(audit) else None
        said.record_start = phy_offset
        blamed = audit if audit.kind != VALID else broker
        said.fields = annotate(window, position, file.size, phy_offset, blamed, self.redaction)
        said.record_size = (audit.size if audit.kind == VALID else 0) or audit.computed_size
        if self.message is not None:
            said.derived = derived(self.message, phy_offset, self.rules, self.redaction)

    # ---- what leads here ---------------------------------------------------------------------------------------------

    def _pointers(self) -> None:
        said = self.said
        start = said.record_start if said.record_start is not None else self.n
        end = max(start + said.record_size, self.n + 1)
        message = self.message if said.kind in (RECORD, INSIDE, DAMAGE) else None
        found = [*_QueueSearch(self.audit, said, message, start, end).run()]
        found += _IndexSearch(self.audit, said, message, start, end, self.redaction).run()
        said.pointers, said.more_pointers = found[:MAX_POINTERS], max(0, len(found) - MAX_POINTERS)


def _check(who: str, verdict: Verdict) -> Check:
    if verdict.kind == VALID:
        return Check(who, True)
    sentence = STOP_REASONS.get(verdict.reason, verdict.reason)
    return Check(who, verdict.kind == END, verdict.reason, sentence, verdict.expected, verdict.actual)


def queues_of(message: Message, rules: BrokerRules) -> list[tuple[str, QueueKey, int]]:
    """(kind, queue, queue offset) of every ordinary entry that dispatch gives the message: its own queue's, then multi-dispatch
    ones. Source: CommitLogDispatcherBuildConsumeQueue."""
    if not message.in_queue:
        return []
    key = message.topic, message.queue_id
    found = [("queue", key, message.queue_offset)]
    if not is_blank(message.properties.get("INNER_MULTI_DISPATCH", "")):
        pairs = (f"{name}\x01{value}\x02" for name, value in message.properties.items())
        properties = "".join(pairs).encode("utf-8", "surrogatepass")
        found += [("lmq", name, offset) for name, offset in multi_dispatch(rules, key, properties).entries]
    return found


@dataclass(frozen=True)
class _Entry:
    """Where a ConsumeQueue entry stands: byte position in its file, number in its queue."""

    path: str
    position: int
    number: int
    batch: bool


class _QueueSearch:
    """Entries of ConsumeQueues that lead into [start, end), and what stands where the message's own belongs."""

    def __init__(self, audit: StoreAudit, said: Explanation, message: Message | None, start: int, end: int):
        self.audit, self.said, self.message, self.start, self.end = audit, said, message, start, end
        self.left, self.files_left = SEARCH_BYTES, SEARCH_FILES
        self.expected = queues_of(message, audit.rules) if message is not None else []
        self.codes: set[int] = set()
        if message is not None:
            tables = (audit.rules.delays, audit.rules.delays_in_recovery)
            codes = (tags_code_of(message.topic, message.properties, message.store_time, table) for table in tables)
            self.codes = {code for code in codes if code is not None}

    def run(self) -> Iterator[Pointer]:
        """Bounded: queues that the message names come first, then all others by name."""
        audit = self.audit
        named = [key for _, key, _ in self.expected]
        others = [key for key in sorted(audit.queue_files) if key not in named]
        looked = skipped = 0
        for number, key in enumerate([*dict.fromkeys(named), *others]):
            files = audit.queue_files.get(key, ())
            met = set()
            for file in files:
                if self.left <= 0 or self.files_left <= 0:
                    skipped += 1
                    continue
                looked += 1
                for pointer in self._file(key, file, number < len(named)):
                    met.add(pointer.number)
                    yield pointer
            for kind, wanted, offset in self.expected:
                if wanted == key and not self._batch(key) and offset not in met and self.said.record_start is not None:
                    yield self._absent(kind, key, offset)
        said = f"{looked} ConsumeQueue files were searched"
        self.said.searched.append(said + (f", {skipped} were not: the search has a limit" if skipped else ""))

    def _batch(self, key: QueueKey) -> bool:
        return self.audit.queue_folders.get(key, "").startswith("batch")

    def _file(self, key: QueueKey, file: MappedFile, named: bool) -> Iterator[Pointer]:
        batch = self._batch(key)
        unit = unit_bytes(batch)
        step = CHUNK_BYTES // unit * unit
        self.files_left -= 1
        with self.audit.source.open(file.path) as opened:
            at = 0
            while at < opened.size and self.left > 0:
                data_at = opened.next_data(at)
                if data_at - at >= unit:
                    at = data_at // unit * unit
                    continue
                rows = entries_of(opened.read(at, min(step, opened.size - at)), batch)
                self.left -= max(unit, len(rows) * unit)
                hits = np.flatnonzero((rows["phy_offset"] >= self.start) & (rows["phy_offset"] < self.end) & (rows["size"] > 0))
                for hit in hits[:MAX_POINTERS].tolist():
                    if self.start == 0 and not batch and int(rows["size"][hit]) == consumequeue_layout.PRE_BLANK_SIZE:
                        continue
                    place = at + hit * unit
                    yield self._pointer(
                        key, _Entry(file.path, place, file.start // unit + place // unit, batch), rows[hit], named
                    )
                at += step

    def _pointer(self, key: QueueKey, entry: _Entry, row: np.void, named: bool) -> Pointer:
        path, position, number, batch = entry.path, entry.position, entry.number, entry.batch
        values = {name: int(row[name]) for name in row.dtype.names or ()}
        kind = "batch" if batch else "other queue"
        differences: list[str] = []
        m = self.message
        offset = None
        for name, wanted, at in self.expected:
            if wanted == key:
                kind, offset = ("batch" if batch else name), at
        if values["phy_offset"] != self.start:
            return Pointer(kind, _queue_name(key), path, position, number, "into the middle", values)
        if m is None:
            return Pointer(kind, _queue_name(key), path, position, number, "no message to compare with", values)
        if not named:
            differences.append("the message belongs to another queue")
        if values["size"] != m.total_size:
            differences.append(f"its size is {values['size']}, the message's {m.total_size}")
        code = values["tags_code"]
        ext = code <= consumequeue_layout.EXT_ADDRESS_MAX and bool(self.audit.rules.value("enableConsumeQueueExt"))
        if code not in self.codes and not ext:
            differences.append(f"its tags code is {code}, the message's {' or '.join(map(str, sorted(self.codes)))}")
        if batch:
            if (values["base"], values["count"]) != (m.batch_base, m.batch_count):
                held = f"it holds {values['count']} messages from {values['base']} on"
                differences.append(f"{held}, the message {m.batch_count} from {m.batch_base}")
        elif offset is not None and number != offset:
            differences.append(f"it is entry {number}, the message says {offset}")
        return Pointer(kind, _queue_name(key), path, position, number, "differs" if differences else "equal", values, differences)

    def _absent(self, kind: str, key: QueueKey, offset: int) -> Pointer:
        """What stands where the message's entry belongs."""
        files = self.audit.queue_files.get(key, ())
        unit = unit_bytes(False)
        folder = self.audit.queue_folders.get(key, "")
        for file in files:
            place = offset * unit - file.start
            if 0 <= place and place + unit <= file.size:
                row = read_entries(self.audit.source, files, offset, offset + 1)[0]
                values = {name: int(row[name]) for name in row.dtype.names or ()}
                what = f"it leads to {values['phy_offset']}" if values["size"] else "nothing is written there"
                if values["size"] == consumequeue_layout.PRE_BLANK_SIZE:
                    what = "it is an empty entry before the queue's first one"
                return Pointer(kind, _queue_name(key), file.path, place, offset, "absent", values, [what])
        what = "no file of the queue holds this entry" if files else "the copy holds no file of this queue"
        return Pointer(kind, _queue_name(key), folder, 0, offset, "absent", {}, [what])


def _queue_name(key: QueueKey) -> str:
    return f"{key[0]}, queue {key[1]}"


class _IndexSearch:
    """Entries of index files that lead into [start, end), and which of the message's keys none does."""

    def __init__(self, audit: StoreAudit, said: Explanation, message: Message | None, start: int, end: int, redaction: Redaction):
        self.audit, self.said, self.start, self.end, self.redaction = audit, said, start, end, redaction
        self.slots = audit.rules.index_slots
        self.keys: dict[str, int] = {}
        self.optional: set[str] = set()
        if message is not None:
            texts = [key_text(message.topic, key) for key in index_keys(message)]
            tag = tag_key(message)
            if tag is not None:
                texts.append(key_text(message.topic, tag))
                if not audit.rules.tag_index:
                    self.optional.add(texts[-1])
            self.keys = {text: key_hash(text) for text in texts}

    def run(self) -> list[Pointer]:
        found: list[Pointer] = []
        covering = 0
        for file in reversed(self.audit.index_files):
            header = self.audit.headers[file.path]
            low, high = header.begin_phy_offset, header.end_phy_offset
            if low <= self.start <= high or high < low:
                covering += 1
                found += self._file(file, header.index_count)
        hashes = {p.values["key_hash"] for p in found if p.state == "equal"}
        lacking = [text for text, value in self.keys.items() if value not in hashes and text not in self.optional]
        self.said.searched.append(
            f"{covering} of {len(self.audit.index_files)} index files cover this physical offset"
            + (f"; {len(lacking)} of the message's {len(self.keys) - len(self.optional)} keys lead nowhere" if lacking else "")
        )
        return found

    def _file(self, file: MappedFile, count: int) -> Iterator[Pointer]:
        last = max(0, min(count - 1, (file.size - entry_position(self.slots, 0)) // unit_bytes(False) - 1))
        if last < 1:
            return
        numbers = set(self._by_order(file, last))
        with self.audit.source.open(file.path) as opened:
            for value in self.keys.values():
                numbers.update(self._by_chain(opened, value, last))
        for number in sorted(numbers):
            row = read_index_entries(self.audit.source, file.path, self.slots, number, number + 1)[0]
            values = {name: int(row[name]) for name in row.dtype.names or ()}
            position = entry_position(self.slots, number)
            names = [text for text, value in self.keys.items() if value == values["key_hash"]]
            differences: list[str] = []
            if values["phy_offset"] != self.start:
                state = "into the middle"
            elif not self.keys:
                state = "no message to compare with"
            else:
                state = "equal" if names else "differs"
                differences = [] if names else ["no key of the message has this hash"]
            yield Pointer("index", self._name(names), file.path, position, number, state, values, differences)

    def _name(self, texts: list[str]) -> str:
        """The key as a lookup asks for it: topic, #, key."""
        if not texts:
            return ""
        topic, _, key = texts[0].partition("#")
        return f"{topic}#{self.redaction.text(key)}"

    def _by_order(self, file: MappedFile, last: int) -> Iterator[int]:
        """Entries are put in the order of the log, so a bisection leads near them; damage may lie in its way."""
        low, high = 1, last + 1
        while low < high:
            middle = (low + high) // 2
            (entry,) = read_index_entries(self.audit.source, file.path, self.slots, middle, middle + 1)
            if entry["phy_offset"] < self.start:
                low = middle + 1
            else:
                high = middle
        first = max(1, low - NEAR_ENTRIES)
        rows = read_index_entries(self.audit.source, file.path, self.slots, first, min(last + 1, low + NEAR_ENTRIES))
        hits = (rows["phy_offset"] >= self.start) & (rows["phy_offset"] < self.end)
        yield from (first + int(hit) for hit in np.flatnonzero(hits))

    def _by_chain(self, file: ByteFile, value: int, last: int) -> Iterator[int]:
        """Entries of this hash for this physical offset, as a lookup meets them."""
        slot = entry_position(0, 0) + (value % self.slots) * 4
        number = int.from_bytes(file.read(slot, 4), "big", signed=True)
        for _ in range(CHAIN_STEPS):
            if not 0 < number <= last:
                return
            data = file.read(entry_position(self.slots, number), unit_bytes(False))
            row = np.frombuffer(data, STORED_INDEX_DTYPE, count=1)[0]
            if int(row["key_hash"]) == value and int(row["phy_offset"]) == self.start:
                yield number
            previous = int(row["previous"])
            if previous >= number:
                return
            number = previous
