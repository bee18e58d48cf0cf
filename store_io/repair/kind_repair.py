"""The protocol of a kind's part in a repair, and what the parts of one repair share.

A room with files that are cleared away or made anew has one object of this type, and `kinds.all_repairs` lists these objects.
They are apart from `model.kind`, because an audit does not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from schemas.advice import Refusal
from schemas.repair import DatabaseMade, IndexMade, PositionBeyond, TablesMade, TimersMade, UnservedRange
from schemas.rows import QueueKey
from store_io.model.queue_views import QueueView
from store_io.repair.derived.queue_places import BridgedRanges
from store_io.repair.derived.queue_plan import NewLog, QueuePlan
from store_io.repair.derived.rebuild_tasks import RawFile
from store_io.repair.log.edits import LogPlan
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_work import Work


@dataclass
class Rebuilt:
    """The results of all rounds so far: each queue as it was made last, and what the report says.

    in_place: queues that have no entry elsewhere than a repair would put it.
    timers: None if the timer's files fit the log.
    database: of the queues; None if it stays, or there is none.
    tables: of index and transactions in rocksdbstore/; None as above.
    unfindable: messages that stay in the log alone, by queue.
    """

    queues: list[QueuePlan] = field(default_factory=list)
    in_place: list[QueuePlan] = field(default_factory=list)
    index: IndexMade = field(default_factory=IndexMade)
    timers: TimersMade | None = None
    database: DatabaseMade | None = None
    tables: TablesMade | None = None
    unfindable: dict[QueueKey, list[UnservedRange]] = field(default_factory=dict)

    def add(self, queues: Sequence[QueuePlan]) -> None:
        """Put these queues in the place of what an earlier round made of them."""
        again = {plan.key for plan in queues}
        self.queues = [plan for plan in self.queues if plan.key not in again] + list(queues)


@dataclass
class Targets:
    """The places of the entries that one pass over the log writes.

    queues: those in files, by key, as this round makes them.
    database: the file in which entries of RocksDB wait.
    """

    queues: dict[QueueKey, QueuePlan] = field(default_factory=dict)
    index_paths: tuple[str, ...] = ()
    database: RawFile | None = None


@dataclass
class Round:
    """One round of making anew what an audit blames.

    log: that of the new store.
    before: the audit of the copy. audit: the one that blames.
    made: the results so far, to which each kind adds its own.
    targets: what the pass over the log writes. written: (first, count) of each segment's entries in `targets.database`.
    in_files: the views of queues in files before they are made anew.
    """

    work: Work
    log: LogPlan
    before: Audited
    audit: Audited
    made: Rebuilt
    targets: Targets = field(default_factory=Targets)
    written: list[tuple[int, int]] = field(default_factory=list)
    in_files: Mapping[QueueKey, QueueView] = field(default_factory=dict)

    @cached_property
    def new_log(self) -> NewLog:
        """Return the log of the new store as plans of queues take it."""
        work, bridged = self.work, ((b.phy_offset, b.phy_offset + b.end - b.start) for b in self.log.bridges)
        ranges, salvage = BridgedRanges(sorted(bridged)), work.request.policy == SALVAGE
        segments, tree, start = self.audit.segments, self.audit.tree, self.log.start
        return NewLog(segments, tree, work.rules, start, ranges, salvage, work.request.with_earlier)

    @cached_property
    def _served(self) -> frozenset[QueueKey]:
        """Return the queues that the release itself would have in memory."""
        prediction = self.before.prediction
        settled = prediction.settled if prediction is not None else None
        return frozenset(settled.queues) if settled is not None else frozenset()

    def gives_up(self, view: QueueView) -> bool:
        """Say whether policy broker leaves out a queue: its topic was deleted, and the release would not load it."""
        return view.deleted_topic and self.work.request.policy == BROKER and view.key not in self._served


@dataclass(frozen=True)
class Added:
    """The record that begins the last segment which a repair added after the log."""

    phy_offset: int
    size: int


class KindRepair:
    """A kind's part in a repair. A room overrides what it needs. The methods follow the order in which a repair asks them.

    Each notes its steps in `work.steps`, and raises StoreError if it cannot do what it has to.
    """

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        """Change the kind's files so that this refusal is gone. Return False if it is about none of them.

        reason: the refusal in words. No file that holds a message of the log comes here. Other files that stop the start in the
        same way go with it (`Work.unblock`), as each round costs an audit.
        """
        return False

    def clear(self, work: Work, audit: Audited) -> None:
        """Remove files over which a start fails. Policy salvage asks for that before the edited log is audited."""

    def rebuild(self, now: Round) -> Callable[[], None] | None:
        """Prepare to make files anew of the log's messages, if `now.audit` blames them. Return the rest of the work.

        The preparation decides, removes, and adds to `now.targets`. A pass over the log then writes the entries of all targets,
        and after that the rest is done.
        """
        return None

    def write_marks(self, now: Round) -> None:
        """Write the files that say how far log, queues and index reach, which are made by then."""

    def lead_to(self, work: Work, audit: Audited, added: Added) -> bool:
        """Lead a start to a record that was added after the log; return whether that takes another `rebuild`."""
        return False

    def finish(self, work: Work, final: Audited, made: Rebuilt) -> bool:
        """Make files anew that follow from a consistent new store; return whether any were. final: that store's audit."""
        return False

    def offsets_beyond(self, work: Work, final: Audited, ends: Mapping[QueueKey, int], log_end: int) -> Iterator[PositionBeyond]:
        """Yield each position beyond the end of its queue, or of the log."""
        return iter(())

    def set_back(self, work: Work, final: Audited, beyond: Sequence[PositionBeyond]) -> dict[str, int]:
        """Set positions back to these ends; return how many in each file. beyond: those of all kinds."""
        return {}
