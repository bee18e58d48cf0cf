"""The parts that the steps of one repair share: the request, the writer, the runner of tasks, and the first audit's facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from schemas.advice import Gap, Refusal
from schemas.first_day import StartMoment
from schemas.layouts.checkpoint_layout import ABORT_FILE
from schemas.outcome import Outcome
from schemas.repair import ConfigFile, DroppedMessage, RepairReport, RepairStep
from schemas.rows import MappedFile
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.base.errors import StoreError, Unreadable
from store_io.base.tasks import PartlyRead, Task
from store_io.broker.loading import Tree
from store_io.broker.releases import BrokerRules
from store_io.repair.proposals import DONOR, EMPTY_CONFIG, FIX_CONFIG, FIX_OFFSETS, HEAL, HEAL_RISK, LATE_TIMERS, WITH_EARLIER
from store_io.repair.repair_plan import BROKER, RepairPlan
from store_io.repair.repair_steps import COPY, CORRECT_OFFSETS, REMOVE, Steps, bytes_at, is_of_log
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.store_dir import list_store
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_sentence

if TYPE_CHECKING:  # what is needed at the end is loaded while the copy is made
    from store_io.repair.unsaved import Unsaved

ANOTHER_LOG = "the log, or how it ends, is another one"  # why what is made of its messages is made anew
KEPT_ROWS = "rows"  # a folder of the writer `aside`

RunTasks = Callable[[Sequence[Task], str], list[Any]]


@dataclass(frozen=True)
class RepairRequest:
    """The request for a repair.

    target: a new folder.
    uploaded: the URI at which its files are afterwards, "" if they stay.
    settings: a sentence for the report on their origin.
    empty_config: with fix_config, a table of which nothing can be read begins empty.
    heal_risk: damaged records are healed if the risk is below it; None: none is.
    start: of a broker on the new store.
    with_earlier: messages of an earlier life of a queue that are in no queue get entries, too.
    late_timers: the timer's files are made anew, so that a start delivers also what was due long ago.
    """

    name: str
    location: StoreLocation
    target: str
    plan: RepairPlan
    policy: str = BROKER
    donor: StoreLocation | None = None
    fix_offsets: bool = False
    fix_config: bool = False
    empty_config: bool = False
    settings: str = "those of the plan"
    heal_risk: float | None = None
    uploaded: str = ""
    with_earlier: bool = False
    late_timers: bool = False
    start: StartMoment | None = None

    @property
    def place(self) -> str:
        """Return the final place of the new store."""
        return self.uploaded or self.target

    @property
    def options(self) -> tuple[str, ...]:
        """Return the words that ask the command repair for this, besides store, plan, target and policy."""
        heal_risk, donor = self.heal_risk, self.donor.root if self.donor is not None else ""
        wanted: tuple[tuple[str, object], ...] = (
            (HEAL, heal_risk is not None),
            (HEAL_RISK, heal_risk is not None and heal_risk != DEFAULT_RISK),
            (FIX_CONFIG, self.fix_config),
            (EMPTY_CONFIG, self.empty_config),
            (FIX_OFFSETS, self.fix_offsets),
            (WITH_EARLIER, self.with_earlier),
            (LATE_TIMERS, self.late_timers),
            (DONOR, donor),
        )
        values = {HEAL_RISK: (str(heal_risk),), DONOR: (donor,)}
        return tuple(word for option, asked in wanted if asked for word in (option, *values.get(option, ())))

    @property
    def edits_log(self) -> bool:
        """Say whether the plan has a step that changes files of the log. False if it has no steps."""
        planned = self.plan.repair.get(self.policy)
        steps = planned.steps if planned is not None else ()
        return any(step.action not in (COPY, REMOVE) and is_of_log(step.file) for step in steps)

    @property
    def steps(self) -> list[RepairStep] | None:
        """Return the plan's steps for this repair, or None.

        The plan has none for other options than those which it recommends, and none with a donor, whose bytes no plan holds fast.
        """
        planned = self.plan.repair.get(self.policy)
        if planned is None or self.donor is not None:
            return None
        if {*planned.options} - {FIX_OFFSETS} != {*self.options} - {FIX_OFFSETS}:
            return None
        return [step for step in planned.steps if self.fix_offsets or step.action != CORRECT_OFFSETS]


@dataclass
class RepairOutcome:
    """The outcome of a repair.

    exit_code: 0 done and consistent; 10 or 20: the result was not consistent, and nothing was put in place.
    unsaved: the messages that the new store does not hold, by name.
    ends: those of the new store's queues.
    audited: the audit of the new store, whose plan goes beside it.
    """

    exit_code: int
    report: RepairReport
    unsaved: Unsaved | None = None
    ends: QueueEnds | None = None
    audited: Outcome | None = None


@dataclass(frozen=True)
class QueueEnds:
    """The ends of queues that a broker must show after its start on the new store.

    shown: (topic, queue id, minimum, maximum) of those with most messages; count: of all.
    """

    shown: tuple[tuple[str, int, int, int], ...]
    count: int


class Beyond(NamedTuple):
    """The bytes that lay after the configured length of a file of the log, which a repair gives it.

    file: that of the copy.
    start: the position from which on it is not in the new store.
    messages, bytes: valid ones.
    records: how many records they are, an inner batch being one.
    """

    file: MappedFile
    start: int
    messages: int
    bytes: int
    records: int

    def holds(self, phy_offset: int) -> bool:
        """Say whether the message with that physical offset lay there."""
        return self.start <= phy_offset - self.file.start < self.file.size


def unused_name(tree: Tree, stem: str) -> str:
    """Return a name for a file that goes afterwards, with which no other of the new store begins."""
    while any(entry.path.startswith(stem) for entry in tree.all):
        stem += "~"
    return stem


@dataclass
class Work:
    """One repair while it is under way.

    steps: what was done so far.
    refusals: why the release would not have started before.

    half_records: those that the end of a short file cut off.
    beyond: of files that were longer.
    config: what --fix-config wrote, or would write.
    keeps: whether audits that a rebuild may follow keep what their scans meet (`derived.kept_rows`).
    rules, conf: the release's rules and the settings as a properties file, settled by the audit of the copy.
    """

    request: RepairRequest
    writer: StoreWriter
    run_tasks: RunTasks
    progress: Callable[[str], None]
    refusals: list[str] = field(default_factory=list)
    half_records: list[DroppedMessage] = field(default_factory=list)
    beyond: list[Beyond] = field(default_factory=list)
    config: list[ConfigFile] = field(default_factory=list)
    keeps: bool = False
    steps: Steps = field(init=False)
    rules: BrokerRules = field(init=False)
    conf: str = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.request.steps)

    @property
    def location(self) -> StoreLocation:
        """Return the place at which the new store is read while it is made."""
        return self.writer.location

    @property
    def source(self) -> ByteSource:
        """Return the new store as it is now."""
        return open_source(self.location)

    @property
    def tree(self) -> Tree:
        """Return its names as they are now."""
        return Tree(list_store(self.location).files)

    @property
    def log_changed(self) -> bool:
        """Say whether the log is another one than in the copy, or ended otherwise, by what was done so far."""
        return any(step.file == ABORT_FILE or is_of_log(step.file) for step in self.steps.done)

    def forget_rows(self) -> None:
        """Remove what scans have kept: it was taken, or the log is about to be another one."""
        self.writer.aside.remove(KEPT_ROWS)

    def lay_beyond(self, phy_offset: int) -> bool:
        """Say whether the copy has the message with that physical offset after the configured length of a file of its log."""
        return any(each.messages and each.holds(phy_offset) for each in self.beyond)

    def remove(self, path: str, reason: str, tree: Tree) -> None:
        """Remove a file or folder, as a step of its own. tree: the names by the last audit."""
        self.steps.add(REMOVE, path, reason=reason, lost=bytes_at(tree, path))
        self.writer.remove(path)

    def unblock(self, path: str, refusal: Refusal, tree: Tree) -> None:
        """Remove a file or folder over which the release would not start, and note why. tree: the names by the last audit."""
        reason = str(refusal_sentence(refusal))
        self.refusals.append(reason)
        self.remove(path, reason, tree)

    def run(self, tasks: Sequence[Task], describe: str) -> list[Any]:
        """Return the tasks' results. Raises StoreError if one has failed, or a read of it."""
        results = self.run_tasks(tasks, describe)
        for result in results:
            if isinstance(result, PartlyRead):
                raise Unreadable.again(next(iter(result.failed.values())))
            if isinstance(result, Gap):
                raise StoreError(f"a task of the repair failed: {gap_text(result)}")
        return results
