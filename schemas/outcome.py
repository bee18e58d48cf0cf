"""The outcome of the audit of one store: frozen values, from which results, tables and reports are rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.advice import Advice, Gap, NotWhole, Refusal
from schemas.first_day import FirstDay
from schemas.losses import ALL_READ, NOTHING_LOST, LossOfStart, Missing, NotRead, TimersOfCopy
from schemas.repair import RepairProposal
from schemas.replicas import NO_GROUP, Group
from schemas.rows import NAMED, Checkpoint, Comparison, ConfigTables, Finding, FurthestRun, PlanStep, Premise, Row
from schemas.start_effect import Edge, Setting, Started, StartEffect


@dataclass(frozen=True)
class Assumed:
    """On what the prediction rests that nobody named, and what to know about what was named.

    release_from: NAMED; DEFAULT if none was named, and the newest known was taken; else the named number, which is not known.
    settings_from: NAMED; DEFAULT if no broker.conf was named: sizes are from the files, all else is RocketMQ's default.
    written_by: the releases that wrote the copy, by its files, if none was named and the assumed one is not among them; else "".
    inferred_mode: the mode that was taken from the files, as nobody named it: "controller mode because of ..."; else "".
    unsafe_settings: what to change in broker.conf before new messages come, sentences.
    """

    release_from: str = NAMED
    settings_from: str = NAMED
    written_by: str = ""
    premises: Sequence[Premise] = ()
    inferred_mode: str = ""
    unsafe_settings: Sequence[str] = ()


@dataclass(frozen=True)
class PlanParts:
    """What plan.json alone has.

    steps: what the start leaves of each file. settings: with which that is foreseen.
    inputs: every file that it depends on, very many of them packed.
    edges: of the log's files; None but for the new store of a repair.
    """

    steps: Sequence[PlanStep] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    inputs: Sequence[Row] = ()
    edges: Sequence[Edge] | None = None


@dataclass(frozen=True)
class Differences:
    """What differs from a sound store.

    findings: in their final order, severity and next step filled in. counts: severity -> number of these.
    dropped: code -> disagreements beyond the bound, counted only.
    """

    findings: Sequence[Finding] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Covered:
    """How much of the copy the audit looked at.

    level: "full" or "quick". not_judged: files that a start reads and no check judges: a reason of the answer names them.
    """

    level: str = "full"
    not_read: NotRead = ALL_READ
    not_judged: Sequence[str] = ()


@dataclass(frozen=True)
class Cost:
    """What the audit cost.

    task_seconds: that its tasks took, one after the other, in any process. bytes_fetched: of a copy elsewhere, by all processes.
    """

    bytes_read: int = 0
    bytes_fetched: int = 0
    seconds: float = 0.0
    task_seconds: float = 0.0


@dataclass(frozen=True)
class OutcomeRows:
    """Rows of the tables of these names (`schemas.tables`), without run_id and store; a missing key is null.

    queues: very many of them packed (`store_io.base.packed`).
    """

    segments: Sequence[Row] = ()
    queues: Sequence[Row] = ()
    index_files: Sequence[Row] = ()


@dataclass(frozen=True)
class Contents:
    """What the copy holds.

    messages: valid ones, at any place of the log, with the times (ms) of their first and last; 0 without a message.
    log_end: physical offset after the last message; None without one, or if it was not read.
    timers: None if there is no timer store. config: None if the store could not be audited.
    config_database: the folder of the database that holds the tables of config/, which no repair writes; else "".
    checkpoint: as stored; None if there is none, or if it was not read.
    """

    messages: int = 0
    first_store_time: int = 0
    last_store_time: int = 0
    segment_count: int = 0
    damaged_extents: int = 0
    log_end: int | None = None
    timers: TimersOfCopy | None = None
    config: ConfigTables | None = None
    config_database: str = ""
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class CopyWhole:
    """What shows that this copy is not all that its broker had.

    signs: the gravest first. missing: messages shown and not held; None: none, or not known.
    furthest: the earlier audit that saw this store's log reach furthest. unclean: the abort marker is there.
    """

    signs: Sequence[NotWhole] = ()
    missing: Missing | None = None
    furthest: FurthestRun | None = None
    unclean: bool = False


@dataclass(frozen=True)
class Outcome:
    """Everything that the audit of one store says.

    name: as a folder under --out, unique in its run. location_text: the place of the copy, as the user named it.
    key: what the tables call its store in every run; "": by its name.
    gaps: why the audit is not complete, each cause's in the order in which they turned out. incomplete: sentences about them, but
    for gaps that are only noted.
    effect: what a start of the release does; None if that is not known.
    repairs: by each policy, the plan's section `repair`; (): none is needed, or not enough is known; None: nobody asked.
    no_repair: what to do instead, if no repair is written for its kind of store.
    first_day: what the broker does by itself; None if nobody asked, or the audit was not made.
    replicas: the same for all copies of a group.
    comparison: of releases and settings; None if nobody asked for it.
    in_use: why a repair refuses the store now, a sentence; "": no broker uses it.

    A store that could not be audited at all has exit_code 3, the sentence in `incomplete`, and no effect.
    """

    name: str
    location_text: str
    release: str
    exit_code: int
    incomplete: Sequence[str] = ()
    gaps: Sequence[Gap] = ()
    key: str = ""
    replica_group: str = ""
    effect: StartEffect | None = None
    loss: LossOfStart = NOTHING_LOST
    found: Differences = Differences()
    first_day: FirstDay | None = None
    replicas: Group = NO_GROUP
    repairs: tuple[RepairProposal, ...] | None = None
    no_repair: Advice | None = None
    comparison: Comparison | None = None
    in_use: str = ""
    assumed: Assumed = Assumed()
    whole: CopyWhole = CopyWhole()
    holds: Contents = Contents()
    covered: Covered = Covered()
    plan: PlanParts = PlanParts()
    rows: OutcomeRows = OutcomeRows()
    cost: Cost = Cost()

    @property
    def complete(self) -> bool:
        """Say whether everything was audited that decides."""
        return not self.incomplete

    @property
    def started(self) -> Started | None:
        """Return the acts of the release; None if it does not start, or if that is not known."""
        return self.effect.started if self.effect is not None else None

    @property
    def refusal(self) -> Refusal | None:
        """Return why the release does not start; None if it does, or if that is not known."""
        return self.effect.refusal if self.effect is not None else None
