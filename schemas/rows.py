"""The rows that travel between the packages. Plain dataclasses, picklable; ranges are half-open.

`position` is a byte inside one file, `phy_offset` a byte address in the whole CommitLog, `queue_offset` an entry number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from schemas.advice import Advice, Gap, Refusal, Step
from schemas.finding_codes import CATALOGUE, Code
from schemas.finding_codes import LOSS as LOSS
from schemas.finding_codes import NOTE as NOTE
from schemas.finding_codes import REBUILDABLE as REBUILDABLE
from schemas.pickled import quickly_pickled

QueueKey = tuple[str, int]  # (topic, queue id)
Row = dict[str, Any]


# ---- the copy ------------------------------------------------------------------------------------------------------


@quickly_pickled
@dataclass(frozen=True, slots=True)
class StoreFile:
    """One name found in the copy. path: relative to the store root, with "/", also of a part that lies elsewhere (`--commitlog`).
    kind: "file", "directory", "link_out" (leads out of the store, or in a circle), "special" (FIFO, device ...), "unreadable".
    """

    path: str
    kind: str
    size: int = 0
    mtime_ns: int = 0


@quickly_pickled
@dataclass(frozen=True, slots=True)
class MappedFile:
    """One file of a file queue as the broker would load it.

    start: the offset in its name.
    size: the length in the listing.
    """

    path: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The fields as the broker reads them; zeros if the file is missing or short. Times in ms."""

    physic_time: int = 0
    logics_time: int = 0
    index_time: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_phy_offset: int = 0

    @property
    def min_time(self) -> int:
        """Return StoreCheckpoint.getMinTimestamp: three seconds below the smaller of the two."""
        return max(0, min(self.physic_time, self.logics_time) - 3000)


# ---- one segment, scanned ------------------------------------------------------------------------------------------

EXTENT_MESSAGE, EXTENT_FILLER, EXTENT_UNWRITTEN, EXTENT_DAMAGED = "message", "filler", "unwritten", "damaged"


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes [start, end) of a segment with one kind; a segment's extents tile it. Neighbouring messages are one extent.

    plausible: messages found by resynchronising after damage. No local check can prove their boundaries.
    message_count: messages in it (0 for the other kinds).
    reason: why a damaged extent is damaged. zeros: the number of zero bytes with which a damaged extent begins, if they cover a
    whole record's first fields.
    """

    kind: str
    start: int
    end: int
    message_count: int = 0
    plausible: bool = False
    reason: str = ""
    zeros: int = 0


# Which walk met a record. The audit's walk reads every byte and accepts what passes every check with a stored physical
# offset equal to the position. The broker's walk begins at the segment's first byte (or `SegmentTask.broker_from`), applies
# the release's own checks, and ends at the first record that the release refuses.
WALK_AUDIT, WALK_BROKER, WALK_BOTH = 1, 2, 3
WALK_PART = 4  # above them: how many walks by other rules had left the audit's by then; 0 where a scan follows no others

# How a record's ConsumeQueue entry was found on disk.
MATCH_NONE = 0  # not looked for (prepared, rollback, or no ConsumeQueue part was asked for)
MATCH_EQUAL = 1  # at its own queue offset, equal
MATCH_SHIFTED = 2  # an equal entry is `delta` entries further on
MATCH_DIFFERS = 3  # the entry for this physical offset is there; its size or tags code differs
MATCH_MISSING = 4  # without an entry in its queue

# What kind of queue a run belongs to.
RUN_QUEUE, RUN_LMQ, RUN_UNQUEUED = 0, 1, 2  # own ConsumeQueue; a multi-dispatch (LMQ) queue; prepared and rollback messages

RUN_DTYPE = np.dtype(
    [
        ("walk", "u1"),  # WALK_*, and WALK_PART times a number
        ("kind", "u1"),  # RUN_*
        ("match", "u1"),  # MATCH_*, only meaningful for walks with WALK_AUDIT
        ("plausible", "u1"),  # 1: after damage (audit walk)
        ("regular", "u1"),  # 1: every stored phy_offset equals the position; else the run is one record
        ("queue", "i4"),  # index into SegmentSummary.queues
        ("queue_offset", "i8"),  # of the first record; a BatchConsumeQueue topic's: its msgBaseOffset
        ("records", "i8"),  # records in it: ConsumeQueue entries
        ("messages", "i8"),  # messages in it; differs from records for BatchConsumeQueue topics only
        # MATCH_SHIFTED: entry number on disk - queue_offset; BatchConsumeQueue topics: entry number of the first
        ("delta", "i8"),
        ("first_position", "i8"),  # position of the first record
        ("first_phy_offset", "i8"),  # as stored
        ("first_size", "i8"),
        ("last_phy_offset", "i8"),
        ("last_size", "i8"),
        ("bytes", "i8"),  # sum of total sizes
        ("first_store_time", "i8"),  # ms, of the first record
        ("last_store_time", "i8"),  # ms, of the last record
        ("tags_code", "i8"),  # of the first record (what a single-record run would write)
    ]
)
"""A run: records of one queue in scan order with consecutive queue offsets, ascending physical offsets, and all other flags
equal. A fold needs no more of them, as long as no threshold of its falls inside; where one does, it asks for `Cuts`."""

INDEX_RUN_DTYPE = np.dtype(
    [
        ("walk", "u1"),
        ("regular", "u1"),  # as above
        ("records", "i8"),  # all records that would be dispatched, also those without keys
        ("keys", "i8"),  # index entries that they would put (rollback: none)
        ("first_phy_offset", "i8"),
        ("last_phy_offset", "i8"),
        ("first_end", "i8"),  # phy_offset + size of the first record
        ("last_end", "i8"),  # phy_offset + size of the last record
        ("first_key_phy_offset", "i8"),  # of the first record that puts a key; -1: none
        ("first_key_store_time", "i8"),
        ("last_key_phy_offset", "i8"),
        ("last_key_store_time", "i8"),
    ]
)
"""All records of a segment in scan order, whatever their queue: what index building is folded over."""


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """The facts that a broker's search for its start segment asks of a segment's first record (recovery.md 5.1, 5.3)."""

    magic: int = 0
    store_time: int = 0  # read at the fixed place, whatever the rest says
    phy_offset: int = 0
    check_ok: bool = False  # the release's full check of the first record said (size > 0 or 0, ok)
    blank: bool = False  # the check said "end of file"
    total_size: int = 0


@dataclass(frozen=True, slots=True)
class BrokerStop:
    """The end of the broker's walk through one segment.

    kind: "end" (a filler, or anything with its magic: the scan goes to the next file) or "bad" / "half" (it stops).
    position: that of the record that ended it = bytes that count as written when the scan stops here.
    reason: a stop reason of `finding_codes.STOP_REASONS`.
    """

    kind: str
    position: int
    reason: str


@dataclass(frozen=True)
class Cuts:
    """Thresholds at which runs must be split, so that a fold's decision falls between runs.

    A cut at phy_offset T breaks before the first record with phy_offset > T, before the first with phy_offset >= T, and
    before the first whose end (phy_offset + size) > T. A queue offset cut Q breaks before the record with queue offset Q.
    """

    phy_offsets: tuple[int, ...] = ()  # for every run and index run
    by_queue: dict[QueueKey, tuple[int, ...]] = field(default_factory=dict)  # for runs of one queue
    queue_offsets: dict[QueueKey, tuple[int, ...]] = field(default_factory=dict)
    of_others: tuple[int, ...] = ()  # as phy_offsets, for every run and no index run: index runs are those of one fold


@dataclass(frozen=True, slots=True)
class OtherWalk:
    """A segment's walk by the rules of another broker, while it follows the audit's.

    first: the segment's first record by these rules.
    stop: the end of the walk.
    part: runs of a lower part (WALK_PART) are in it.
    """

    first: FirstRecord
    stop: BrokerStop
    part: int


@dataclass(frozen=True, slots=True)
class TornProperties:
    """A message with torn properties or flags, and the parts that the copies share which a broker makes of it."""

    phy_offset: int
    same: tuple[int, int, int]  # body CRC and length, born time
    parts: frozenset[str]  # the properties that hold NUL: what is torn otherwise does not survive being parsed; or the flags
    code: str = "properties_malformed"  # of the finding


@dataclass
class SegmentSummary:
    """All that is known of one segment after its scan. Small: its size goes with queues and anomalies, not with messages."""

    path: str
    base_offset: int
    size: int
    bytes_read: int = 0
    digest: str = ""  # CRC-32s of 1 MiB pieces folded into one BLAKE2b: notices accidental change, no signature
    edge_digest: str = ""  # of the length and both ends (`store_io.log.scan.segment_edges`); empty where `digest` is
    first: FirstRecord = FirstRecord()
    broker: BrokerStop = BrokerStop("bad", 0, "empty")
    extents: list[Extent] = field(default_factory=list)
    queues: list[QueueKey] = field(default_factory=list)
    runs: np.ndarray = field(default_factory=lambda: np.zeros(0, RUN_DTYPE))
    index_runs: np.ndarray = field(default_factory=lambda: np.zeros(0, INDEX_RUN_DTYPE))
    first_store_time: int = 0  # ms, smallest of the audit's messages; 0 without one
    last_store_time: int = 0  # ms, largest
    findings: Sequence[Finding] = ()
    torn: list[TornProperties] = field(default_factory=list)  # of messages that such a finding is about
    index_unindexed: tuple[int, int, int, int] = (-1, -1, 0, 0)  # first, last phy_offset, records, keys outside all index files
    index_entries_seen: int = 0  # entries of index files that were compared with records of this segment
    # (index run, k) -> (phy_offset, store time) of its k-th key's message, k from 1, where SegmentTask.index_marks asked for it
    index_marks: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    # (phy_offset, text) of messages of the broker's walk whose LMQ offset is no number: dispatch with multi-dispatch fails there
    lmq_faults: list[tuple[int, str]] = field(default_factory=list)
    timers: np.ndarray | None = None  # timer messages and their copies (`kinds.timers.timer_records`), where they were asked for
    timers_dropped: int = 0  # of them beyond the bound
    delayed: np.ndarray | None = (
        None  # messages of delay levels (`kinds.delays.delay_runs`), unless nobody asked or there are too many
    )
    # by other rules, in the order of `SegmentTask.others`; None where such a walk needs a scan of its own
    others: list[OtherWalk | None] = field(default_factory=list)
    problem: Gap | None = None  # the file could not be read, or changed underneath; everything else is then void


# ---- findings and plan ---------------------------------------------------------------------------------------------


@quickly_pickled
@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement, as contract.md shapes it. `count` > 1: neighbouring ones of one code and cause, folded."""

    code: Code
    file: str
    start: int | None = None
    end: int | None = None
    severity: str = ""  # empty: the catalogue's
    phy_offset: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    expected: str | None = None
    actual: str | None = None
    message: str = ""
    next: Advice | None = None  # None: the catalogue's
    count: int = 1
    only_time: bool = False  # an index entry is wrong in its time difference alone; no file of results has this
    more: int = 0  # disagreements of this code and severity beyond a bound (`store_io.base.findings`): counted only

    @property
    def weight(self) -> str:
        """Return the severity, which is the code's own unless the finding has another one."""
        return self.severity or CATALOGUE[self.code].severity

    def has_step(self, step: Step) -> bool:
        """Say whether this is the finding's next step."""
        return self.next is not None and self.next.step == step


@quickly_pickled
@dataclass(frozen=True, slots=True)
class PlanStep:
    """The action of a start on one file, a row of the plan's `steps`; no step of a repair.

    action: "keep", "truncate", "delete", "rebuild".
    [start, end): the bytes concerned.
    """

    action: str
    file: str
    start: int | None
    end: int | None
    reason: str
    lost_messages: int = 0
    lost_bytes: int = 0

    @classmethod
    def whole(cls, action: str, file: str, reason: str) -> PlanStep:
        """Return the step for a whole file."""
        return cls(action, file, None, None, reason)


# ---- derived data --------------------------------------------------------------------------------------------------


@quickly_pickled
@dataclass(frozen=True, slots=True)
class QueueEdges:
    """The entries of a ConsumeQueue that a fold asks for most often, so that it opens no file for them.

    entries: (path, entry number in the file, phy_offset, size) of a few.
    first_entries: in the first file as loaded, the entries from its first slot to the first invalid one.
    below: the leading ones of these with a phy_offset below log_min.
    parted: all after them have a greater one, but for the next one, which may equal it.
    """

    entries: tuple[tuple[str, int, int, int], ...] = ()
    first_path: str = ""
    first_entries: int = 0
    log_min: int = -1
    below: int = 0
    parted: bool = False


@dataclass(slots=True)
class QueueSummary:
    """One ConsumeQueue's files: what the release's recover() makes of them, and what its entries are.

    wrote: byte offset in the queue (file start + position) to which recover() truncates; files beyond are in `deleted`.
    max_phy_offset: as after recover().
    ext_address: the last ext address met (1: none).
    last_prefix: entries of the last remaining file, from its first slot, which is taken untested, to the first invalid one;
    last_prefix_phy: the largest phy_offset among them; last_prefix_max_phy: max_phy_offset that truncation would leave.
    """

    key: QueueKey
    batch: bool = False
    refusal: Refusal | None = None  # why load() would fail here (ext)
    wrote: int = 0
    max_phy_offset: int = -1
    ext_address: int = 1
    deleted: list[str] = field(default_factory=list)
    files: list[MappedFile] = field(default_factory=list)  # as loaded, in order
    last_prefix: int = -1  # -1: not known (the fold then reads the file itself)
    last_prefix_phy: int = -1
    last_prefix_max_phy: int = -1
    edges: QueueEdges | None = None  # None: not known (the fold then reads the files itself)
    # audit of all files:
    used: list[tuple[int, int]] = field(default_factory=list)  # ranges of entry numbers with a non-zero entry, ascending
    used_end: int = 0  # entry number after the last non-zero entry
    zeros_among_used: int = 0  # entries in `used` that are zero: beyond a bound of ranges their places are not kept
    expired_end: int = 0  # entry number after the leading pre-blank and expired (below the CommitLog minimum) entries
    findings: list[Finding] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)  # path -> digest
    used_digests: dict[str, tuple[int, str]] = field(default_factory=dict)  # path -> (entries up to the last used, their digest)
    changed: bool = False  # what an earlier run has compared is not the same any more
    bytes_read: int = 0
    problem: Gap | None = None

    @property
    def entries(self) -> int:
        """Return how many entries are not zero."""
        return sum(end - start for start, end in self.used) - self.zeros_among_used

    def weight(self) -> int:
        """Return how many things it holds, of those of which there may be many."""
        return len(self.digests) + len(self.findings) + len(self.used)


@dataclass
class IndexFileSummary:
    """One index file: header as stored, chain check, and what entries it holds."""

    path: str
    size: int
    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_phy_offset: int = 0
    end_phy_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 0  # as stored
    entries: int = 0  # entries in it, by the header (index_count - 1, at least 0, at most what fits)
    findings: Sequence[Finding] = ()
    digest: str = ""
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class EarlierSegment:
    """The facts that an earlier run kept about a segment.

    damaged: it found anything above a note in the segment, or could not read it.
    row: its row of the table `segments`, from which the next run's is made if the segment is not read again.
    """

    size: int
    modified_ns: int
    edge_digest: str
    damaged: bool
    verified_run: str = ""  # the run that read all of it; empty: none
    verified_at: datetime | None = None
    row: Row = field(default_factory=dict)


@dataclass(frozen=True)
class EarlierRun:
    """An earlier audit of the same store.

    settings: as texts, by key.
    segments: by path.

    queues: (path, entries, digest) of what it has compared of each queue's files.
    index: path -> digest.
    derived: (file, physical offset, count) of its findings above note on these.
    """

    run_id: str
    release: str
    settings: Row
    segments: dict[str, EarlierSegment]
    queues: dict[QueueKey, tuple[tuple[str, int, str], ...]] = field(default_factory=dict)
    index: dict[str, str] = field(default_factory=dict)
    derived: Sequence[tuple[str, int | None, int]] = ()


@dataclass(frozen=True)
class FurthestRun:
    """The earlier audit of the same store that saw its log reach furthest.

    started_at: UTC, to the minute.
    messages: valid ones that it saw, at least one.
    log_end: the physical offset after the last; None if it is not known.
    location: the place of that copy.
    """

    run_id: str
    started_at: str
    messages: int
    log_end: int | None = None
    location: str = ""


# ---- the audit of one store ----------------------------------------------------------------------------------------

FROM_VERSION, FROM_FILE = "dataVersion", "file"  # where the time of a table of config/ is from
FROM_LOG = "log"  # what a repair made a table of config/ of, beside names of files
NAMED, DEFAULT = "named", "default"  # where a release (see `schemas.outcome.Assumed`), or the settings, are from
ASSUMED, DOUBT, TAKEN, NOTED = "assumed", "doubt", "taken", "noted"


@dataclass(frozen=True, slots=True)
class Premise:
    """A premise on which a verdict rests.

    kind: ASSUMED, it was not named; DOUBT, the named value does not fit the copy; TAKEN, the release takes a line of broker.conf
    otherwise than it reads; NOTED, it is good to know and decides nothing.
    """

    kind: str
    sentence: str  # without a full stop


@dataclass(frozen=True, slots=True)
class ConfigTables:
    """Holds what a broker's managers know once they have loaded config/.

    topics, groups: name -> settings. Topics and groups that every broker has are there if a file or database names them, and
        results leave them out unless lists_built_in.
    offsets: (group, topic, queue id) -> offset.
    delay_offsets: level -> offset.
    absent: what a start needs of config/ and the copy has in no form: "config/", or one file of it; else "".
    """

    topics: Mapping[str, Row]
    groups: Mapping[str, Row]
    offsets: Mapping[tuple[str, str, int], int]
    delay_offsets: Mapping[int, int]
    built_in_topics: frozenset[str] = frozenset()
    built_in_groups: frozenset[str] = frozenset()
    lists_built_in: bool = False
    absent: str = ""

    @property
    def own_topics(self) -> Iterator[tuple[str, Row]]:
        """Yield the topics that not every broker has."""
        return (item for item in self.topics.items() if item[0] not in self.built_in_topics)

    @property
    def own_groups(self) -> Iterator[tuple[str, Row]]:
        """Yield the groups that not every broker has."""
        return (item for item in self.groups.items() if item[0] not in self.built_in_groups)

    @property
    def listed_topics(self) -> Iterable[tuple[str, Row]]:
        """Return the topics that results list."""
        return self.topics.items() if self.lists_built_in else self.own_topics

    @property
    def listed_groups(self) -> Iterable[tuple[str, Row]]:
        """Return the groups that results list."""
        return self.groups.items() if self.lists_built_in else self.own_groups


@dataclass(frozen=True, slots=True)
class Start:
    """The effect of a start under one release, or with one setting changed: a row of the comparison.

    setting, value: the changed setting of the store's own; "" and None in a row of a release.
    known: whether the effect is known; else `why` is a sentence with the reason, and starts, refusal, truncate_at and the numbers
    are None.
    doubt: a sentence on why the answer may not hold although it is that of these rules; else "".
    log_end: the log's end after the start; for a DLedger log not truncate_at, which is the end of what is committed.
    not_judged: files that this start reads and no check judges.
    """

    release: str
    known: bool
    exit_code: int
    complete: bool
    why: str = ""
    doubt: str = ""
    starts: bool | None = None
    refusal: Refusal | None = None
    truncate_at: int | None = None
    lost_messages: int | None = None
    lost_bytes: int | None = None
    deleted_files: int | None = None
    timers_lost: int | None = None
    log_end: int | None = None
    not_judged: tuple[str, ...] = ()
    setting: str = ""
    value: bool | None = None

    @property
    def result(self) -> tuple[Any, ...]:
        """Return the values that a reader compares: two rows with the same values do the same."""
        return (
            self.known, self.starts, self.refusal, self.truncate_at, self.lost_messages, self.lost_bytes, self.deleted_files,
            self.timers_lost, self.exit_code,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every release that was asked for, and the settings that change the outcome of the plan's own release.

    least: the releases that lose least, of those that are known to start and are not in doubt.
    settings: only those which change something, each with the other value; unchanged: the others that were tried.
    """

    releases: tuple[Start, ...]
    settings: tuple[Start, ...] = ()
    unchanged: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
