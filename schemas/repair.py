"""What a repair would do, and what it did: its steps, its answer by each policy, its report.

A field has the name of its key in NEW.repair.json or in the section `repair` of plan.json, which contract.md describes;
`store_io.base.documents` writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

IF_KNOWN = MappingProxyType({"if_known": True})  # of a field that a document leaves out with its default
COPY, CORRECT_OFFSETS = "copy", "correct_offsets"  # actions of steps; `store_io.repair.repair_steps` has all
BY_GROUP, BY_DELAY, BY_TIMER, BY_TIMER_QUEUE = "group", "delay", "timer", "timer_queue"  # what a position beyond an end is of


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One change of the new store.

    file: "" for all of it.
    start, end: bytes of the file, None for the whole.
    reason: a clause.

    kept, lost: what the step puts or leaves there, and what it takes away: counts of "messages", "bytes", "entries" (of queues,
    index and tables of config/), "files", "queues" and "positions" (queue offsets, or offsets of consumers). Only those that
    apply to the action are present.
    sha256: of what a rebuilt database holds, whose files are others in each run (rocksdb.md 9); else empty.
    """

    action: str
    file: str
    start: int | None = None
    end: int | None = None
    reason: str = ""
    kept: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    sha256: str = field(default="", metadata=IF_KNOWN)


# ---- the log -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogRange:
    """Bytes [start, end) of a file of the log."""

    file: str
    start: int
    end: int
    phy_offset: int


@dataclass(frozen=True, slots=True)
class LeftRange(LogRange):
    """A damaged range that stays, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Bridge(LogRange):
    """What fills a range: a "record", a "filler", a "property", or a "segment" that was added."""

    kind: str
    store_time: int | None = field(default=None, metadata=IF_KNOWN)


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """A message that had to go. valid: the copy holds it whole."""

    file: str
    start: int
    end: int
    topic: str
    queue_id: int
    queue_offset: int
    valid: bool
    phy_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class DonorReport:
    """What another copy gave. compared, same: messages. sentence: the result."""

    path: str
    compared: int = 0
    same: int = 0
    taken: tuple[LogRange, ...] = ()
    taken_bytes: int = 0
    not_taken: tuple[LeftRange, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class SearchedRecord:
    """A damaged record that one change makes whole, or for which none was found; then the change is None.

    position, old, new: of the change. topic and what follows: of the message; None if it is none.
    """

    file: str
    start: int
    end: int
    phy_offset: int
    field: str | None
    position: int | None
    old: str | None
    new: str | None
    reason: str
    risk: float | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None


@dataclass(frozen=True, slots=True)
class HealReport:
    """What --heal made whole and what not. more: damaged places that were not searched."""

    risk: float
    total_risk: float
    records: tuple[SearchedRecord, ...]
    not_healed_count: int
    not_healed: tuple[SearchedRecord, ...]
    more: int


# ---- what follows from the log --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueRange:
    """Queue offsets from `first` to before `end`; the physical offset of the message at their end, or of the first of them."""

    topic: str
    queue_id: int
    first: int
    end: int
    phy_offset: int


@dataclass(frozen=True, slots=True)
class MovedRange(QueueRange):
    """Messages whose entries are at these queue offsets. stored: their first own one."""

    stored: int


@dataclass(frozen=True, slots=True)
class UnservedRange(QueueRange):
    """Messages without an entry, by their own queue offsets. had_entry: they had one before."""

    reason: str
    had_entry: bool


@dataclass(frozen=True, slots=True)
class QueueMade:
    """A queue made anew. reasons: codes of findings."""

    topic: str
    queue_id: int
    folder: str
    reasons: tuple[str, ...]
    entries: int


@dataclass(frozen=True, slots=True)
class DatabaseMade:
    """The database of all queues, made anew."""

    folder: str
    queues: int
    entries: int
    sha256: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TablesMade:
    """The database of index, timers and transactions, made anew: entries of each."""

    folder: str
    index: int
    timers: int
    transactions: int
    sha256: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexMade:
    """Index files made anew; without reasons they stay as they are."""

    files: int = 0
    entries: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimersMade:
    """The timer's files, rebuilt or not. waiting, overdue: messages; None if they are not."""

    rebuilt: bool
    waiting: int | None
    overdue: int | None
    sentence: str


@dataclass(frozen=True, slots=True)
class FormLeft:
    """A form of a table with entries that the new store has not.

    file: the form's name. entries: the first of them. count: of all.
    """

    file: str
    time_ms: int | None
    time_from: str | None
    entries: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file of config/ that --fix-config writes, removes, or leaves out as nothing of it can be read.

    emptied: it begins empty; lost: entries that a form shows then.
    taken_from: the forms that give entries; time_ms, time_from: of the one that was taken.
    added: the first new entries. unproven: what could not be found out, a clause.
    """

    file: str
    removed: bool = False
    left_out: bool = False
    emptied: bool = False
    lost: int = 0
    reason: str = ""
    taken_from: tuple[str, ...] = ()
    time_ms: int | None = None
    time_from: str | None = None
    entries: int = 0
    added: tuple[str, ...] = ()
    added_count: int = 0
    not_kept: tuple[FormLeft, ...] = ()
    unproven: str = ""


@dataclass(frozen=True, slots=True)
class PositionBeyond:
    """A position of a consumer group, a delay level or the timer beyond the end of its queue, or of the log.

    new_max: that end. units: of the timer's log, that lead there.
    """

    kind: str
    sentence: str
    group: str | None = field(default=None, metadata=IF_KNOWN)
    topic: str | None = field(default=None, metadata=IF_KNOWN)
    queue_id: int | None = field(default=None, metadata=IF_KNOWN)
    level: int | None = field(default=None, metadata=IF_KNOWN)
    offset: int | None = field(default=None, metadata=IF_KNOWN)
    new_max: int | None = field(default=None, metadata=IF_KNOWN)
    units: int | None = field(default=None, metadata=IF_KNOWN)


# ---- the report ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeftMessages:
    """Valid messages of the copy that the new log leaves out."""

    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Messages that the new store does not hold, although the copy holds them or shows that they were there.

    messages: all of them. missing: those that the copy does not hold. cut: valid ones that it holds.
    earlier: those that the repair which made the copy had given up.
    signs: codes of findings that show missing messages without a number; named only if nothing gives one.
    """

    messages: int = 0
    missing: int = 0
    cut: int = 0
    earlier: int = 0
    signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsavedMessages:
    """Messages that could not be saved, one or neighbours of one queue, as NEW.unsaved.jsonl names them.

    why: "missing" or "cut". key_hashes: of "topic#key"; None if nothing says them.
    """

    why: str
    topic: str
    queue_id: int
    queue_offset: int
    messages: int
    phy_offset: int | None
    size: int | None
    key_hashes: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class FindingKept:
    """A finding above a note that the new store has. more: as `Finding` has it."""

    code: str
    file: str
    start: int | None = None
    end: int | None = None
    phy_offset: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    message: str = ""
    more: int = field(default=0, metadata=IF_KNOWN)


@dataclass(frozen=True, slots=True)
class FindingsStay:
    """Findings of one code that no repair changes. sha256: of their places."""

    count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last bytes of a log, up to the physical offset `end`, by which an audit recognises it."""

    end: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class HealedPlace:
    """The place of a healed record, for a later audit of the new store."""

    phy_offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class EmptiedTable:
    """A table of config/ that begins empty."""

    file: str
    lost: int


@dataclass(frozen=True, slots=True)
class FileDigest:
    """A small file that was written."""

    file: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class OtherPolicy:
    """What a repair by the other policy would keep. more: than this one; a number below zero: fewer.

    refused: why it does not go; else "".
    """

    policy: str
    messages: int = 0
    more: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The report of a repair, NEW.repair.json.

    made_at: UTC; "" before the new store is put in place.
    problems: why it is not consistent. steps_from: where the steps come from, "plan" or "copy".
    other_policy, free_bytes: of a dry run, which writes no document.
    """

    policy: str
    release: str
    settings: str = ""
    plan_sha256: str = ""
    needed_bytes: int = 0
    consistent: bool = True
    problems: tuple[str, ...] = ()
    kept: tuple[FindingKept, ...] = ()
    stays: Mapping[str, FindingsStay] = field(default_factory=dict)
    messages_before: int = 0
    messages_after: int = 0
    lost: LeftMessages = LeftMessages()
    given_up: GivenUp = GivenUp()
    donor: DonorReport | None = None
    healed: HealReport | None = None
    healed_at: tuple[HealedPlace, ...] = ()
    emptied: tuple[EmptiedTable, ...] = ()
    zeroed_bytes: int = 0
    log_end: int = 0
    bridges: tuple[Bridge, ...] = ()
    dropped: tuple[DroppedMessage, ...] = ()
    removed: tuple[str, ...] = ()
    unblocked: tuple[str, ...] = ()
    not_copied: tuple[str, ...] = ()
    queues: tuple[QueueMade, ...] = ()
    database: DatabaseMade | None = None
    tables: TablesMade | None = None
    index: IndexMade = IndexMade()
    timers: TimersMade | None = None
    answered: tuple[QueueRange, ...] = ()
    moved: tuple[MovedRange, ...] = ()
    unserved: tuple[UnservedRange, ...] = ()
    offsets: tuple[PositionBeyond, ...] = ()
    offsets_set_back: tuple[str, ...] = ()
    positions_set_back: int = 0
    topics_unknown: tuple[str, ...] = ()
    config: tuple[ConfigFile, ...] = ()
    config_in_copy: bool = True
    config_written: bool = False
    digests: tuple[FileDigest, ...] = ()
    steps_from: str = "copy"
    steps: tuple[RepairStep, ...] = ()
    log_tail: LogTail = LogTail(0, 0, "")
    made_at: str = field(default="", metadata=IF_KNOWN)
    other_policy: OtherPolicy | None = field(default=None, metadata=IF_KNOWN)
    free_bytes: int | None = field(default=None, metadata=IF_KNOWN)

    @property
    def healed_records(self) -> tuple[SearchedRecord, ...]:
        """Return the damaged records that were made whole."""
        return self.healed.records if self.healed is not None else ()


# ---- before it is carried out ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepairProposal:
    """What a repair by one policy would do, as plan.json has it in its section `repair`.

    refused: why it does not go, None if it does; all that follows `options` is then not known.
    worked_out: whether that was tried.
    options: words of the command besides --policy.
    risk: of all healed records together; risk_left: of those that are left because it is too high, else 0.
    config_left: why files of config/ are not mended.
    given_up_more: it may give up more messages than that.
    unserved: messages of an earlier life of their queue, which get no entry.
    """

    policy: str
    refused: str | None = None
    worked_out: bool = True
    options: tuple[str, ...] = ()
    messages_before: int = 0
    messages_after: int = 0
    healed: int = 0
    risk: float = 0.0
    risk_left: float = 0.0
    config_left: str = ""
    lost: LeftMessages = LeftMessages()
    given_up: int = 0
    given_up_more: bool = False
    config: tuple[ConfigFile, ...] = ()
    unserved: int = 0
    steps: tuple[RepairStep, ...] = ()

    @property
    def changes(self) -> bool:
        """Say whether the new store is anything else than a copy."""
        return any(step.action != COPY for step in self.steps)

    @property
    def offsets(self) -> int:
        """Return how many positions of consumers, delay levels and timers it sets back."""
        return sum(step.kept.get("positions", 0) for step in self.steps if step.action == CORRECT_OFFSETS)

    @property
    def not_kept(self) -> int:
        """Return how many entries in forms of config/ it does not take."""
        return sum(form.count for file in self.config for form in file.not_kept)
