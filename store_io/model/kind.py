"""The protocol of a kind of files: what an audit asks of each, in the order of its rounds.

A room of `store_io.kinds` has one object of this type, and `kinds.all_kinds` lists these objects. The rounds of an audit go over
that list.

Three things belong to a kind, each with a type of its own, and are found by the kind's object:
* facts: what listing and small files say, `copy[TIMERS]`;
* results: what the kind's tasks have found so far, `evidence.results(TIMERS)`;
* view: what the two say together, `evidence[TIMERS]`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import IntEnum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from schemas.advice import Advice, Gap, LeftOut, Refusal
from schemas.outcome import Outcome
from schemas.rows import Checkpoint, EarlierRun, Finding, PlanStep
from schemas.start_effect import StartEffect
from store_io.base.tasks import Task
from store_io.broker.epochs import Epoch
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import LoadedStore, Tree, load_store
from store_io.broker.recovery import AskedRecovery
from store_io.broker.releases import BrokerRules
from store_io.broker.texts.tables import Offset
from store_io.log.entries.queues_in_files import QueuesInFiles
from store_io.model.found_gaps import Gaps
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

if TYPE_CHECKING:
    from store_io.log.scan.segment_scan import SegmentTask
    from store_io.model.audit_request import AuditRequest
    from store_io.model.evidence import Evidence
    from store_io.model.opened_copy import OpenedCopy

Facts = TypeVar("Facts")
Results = TypeVar("Results")
View = TypeVar("View")


@dataclass
class Opening:
    """A copy while it is opened.

    unmodelled: parts of the copy for which there are no rules; a kind adds its own.
    topics: every topic that a table of config/ names. batch_topics: topics of type BatchCQ.
    compacted_topics: topics whose consumers read a compacted log.
    known_topics: every topic that the broker knows; None if nothing says that a topic was deleted.
    write_queues: how many queues each topic has for writing.
    offsets, delay_offsets: those that the tables of config/ hold, as stored.
    queues_in_files: where these lie, and which of them serve consumers.
    checkpoint, headers, epochs, marks: what a broker's recovery asks small files for.
    facts: those of the kinds that were opened so far.
    A kind sets what others ask for when it is opened; config/ is opened before all others.
    """

    source: ByteSource
    listing: StoreListing
    tree: Tree
    rules: BrokerRules
    gaps: Gaps
    unmodelled: list[Gap] = field(default_factory=list)
    topics: Collection[str] = ()
    batch_topics: frozenset[str] = frozenset()
    compacted_topics: frozenset[str] = frozenset()
    known_topics: frozenset[str] | None = None
    write_queues: dict[str, int] | None = None
    offsets: Mapping[Offset, int] = field(default_factory=dict)
    delay_offsets: Mapping[int, int] = field(default_factory=dict)
    queues_in_files: QueuesInFiles = field(default_factory=QueuesInFiles)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    headers: dict[str, IndexHeader] = field(default_factory=dict)
    epochs: tuple[Epoch, ...] = ()
    marks: tuple[int | None, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def loaded(self) -> LoadedStore:
        """Return what load() makes of the listing, by the topics that config/ names."""
        return load_store(self.tree, self.rules, self.batch_topics, self.topics)

    def __getitem__(self, kind: Kind[Facts, Any, Any]) -> Facts:
        """Return the facts of a kind that was opened before."""
        found: Facts = self.facts[kind.name]
        return found


class Moment(IntEnum):
    """The moments of a start at which a broker may refuse a store, in their order."""

    BY_SETTINGS = auto()  # before it reads a file
    BEFORE_LOAD = auto()  # of the store itself
    IN_LOAD = auto()  # before names and lengths of the files of log and queues are looked at
    BY_NAMES = auto()  # over these names and lengths
    AFTER_FILES = auto()  # in load(), although they are right
    IN_RECOVERY = auto()
    AFTER_RECOVERY = auto()  # before start()
    IN_START = auto()
    AT_LAST = auto()  # when all else is done


Refusals = Mapping[Moment, Refusal | None]


@dataclass(frozen=True)
class Cure:
    """The next step against a refusal, and the value in the files that is at fault, if one is."""

    step: Advice
    actual: str | None = None


def rebuilt(serious: Sequence[Finding], place: Callable[[str], str]) -> dict[str, PlanStep]:
    """Return a step for each place that is blamed, in order. place: a finding's file -> what is rebuilt for it, or ""."""
    blamed: dict[str, set[str]] = {}
    for finding in serious:
        if at := place(finding.file):
            blamed.setdefault(at, set()).add(finding.code)
    return {at: PlanStep.whole("rebuild", at, "from the CommitLog: " + ", ".join(sorted(blamed[at]))) for at in sorted(blamed)}


class Kind(Generic[Facts, Results, View]):
    """One kind of files in a store. A room overrides what it needs. The methods follow the order in which an audit asks them.

    Checks are no methods: they import the kind's object, and `kinds.all_kinds` lists them beside it. What one kind alone, or the
    two kinds of queues, can say is no method here either: whoever needs it asks these kinds by their names.
    name: what facts and results are kept under.
    task_types: the tasks whose results `take` gets; a task of no kind ends the audit with an error.
    left_out: by type of task, what is not judged if the time was spent before such a task began.
    looks_again: types of tasks whose files another task has read; files of all others then count as not read.
    nothing_found: makes the results before any task has run. A kind without tasks has None.
    """

    name: str
    task_types: tuple[type, ...] = ()
    left_out: tuple[tuple[type, LeftOut], ...] = ()
    looks_again: tuple[type, ...] = ()
    nothing_found: Callable[[], Any] = staticmethod(lambda: None)

    def open(self, opening: Opening) -> Facts:
        """Return what listing and small files say. A reading problem goes to `opening.gaps`; nothing is raised over bytes.

        A kind without such facts has None.
        """
        return cast(Facts, None)

    def refusals(self, facts: Facts) -> Refusals:
        """Return why a broker does not start over these files, by the moment at which it meets that."""
        return {}

    def cure(self, copy: OpenedCopy, refusal: Refusal) -> Cure | None:
        """Return the step against a refusal over these files; None if it is over others, or the refusal itself names the step."""
        return None

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        """Return what to do if no repair can be made of a store with these files; None if one can."""
        return None

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Return a segment's task with what the kind needs of the log's scans."""
        return task

    def tasks_before_log(self, request: AuditRequest, copy: OpenedCopy) -> Iterable[Task]:
        """Return the tasks whose results the scans of the log need."""
        return ()

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterable[Task]:
        """Return the tasks that read all files of the kind once."""
        return ()

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterable[Task]:
        """Return the tasks that need the log's scans and the prediction. base: a segment's task without a segment."""
        return ()

    def take(self, found: Results, result: Any) -> None:
        """Take in the result of one task."""
        raise NotImplementedError

    def not_read(self, found: Results, task: Task) -> None:
        """Note that the time was spent before this task began."""

    def start_is_unknown(self, copy: OpenedCopy, found: Results, late: Set[str]) -> bool:
        """Say whether the tasks did not find what a start depends on. late: files that the time did not suffice for."""
        return False

    def add_to_recovery(self, copy: OpenedCopy, found: Results, asked: AskedRecovery) -> None:
        """Add what a broker's recovery reads of these files, or choose the recovery of a store that has them."""

    def unchanged(self, copy: OpenedCopy, found: Results, before: EarlierRun, gone: bool) -> bool:
        """Say whether the entries that an earlier run has compared are still there. Added ones do not count.

        gone: a segment is gone, so retention may have taken files of its entries as well.
        """
        return True

    def view(self, evidence: Evidence) -> View:
        """Return what facts and results say together; it is made once for each evidence. The default: the results alone."""
        return cast(View, evidence.results(self))

    def left_by_start(self, evidence: Evidence, serious: Sequence[Finding]) -> Iterable[PlanStep]:
        """Return rows of the plan's `steps`: what a start does to these files, and which have to be rebuilt from the log.

        serious: all findings above a note. The evidence has no prediction if the log could not be opened.
        """
        return ()

    def plan_inputs(self, copy: OpenedCopy) -> Iterable[str]:
        """Return the paths of small files that the plan depends on, whether they are there or not."""
        return ()

    def digests(self, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        """Yield (path, size, digest) of each file that a task has read."""
        return iter(())

    def add_to_effect(self, evidence: Evidence, effect: StartEffect) -> StartEffect:
        """Return the effect of a start with what this kind of files says of it."""
        return effect

    def add_to_outcome(self, evidence: Evidence, outcome: Outcome) -> Outcome:
        """Return the outcome with what the copy holds of this kind, and what a start loses of that."""
        return outcome
