"""The section `repair` of plan.json, as an audit works it out: what `repair` would do under each policy. The plan's own `steps`
are others: what a start would leave (`outcome.release_leaves`).

    tasks = steps_tasks(outcome, location)
    outcome.repairs = repairs_of(outcome, [task.run() for task in tasks])

A task does the whole repair on a `TrialWriter`, as a dry run does, so the steps are those of the run. What it works out is
kept in the temporary folder of the machine that it runs on, and removed at its end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.advice import Gap
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from store_io.base import locks
from store_io.base.errors import StoreError, Unreadable
from store_io.base.exit_codes import DERIVED, LOST
from store_io.base.tasks import NotRead, Task, run_task
from store_io.base.wording import count_text
from store_io.repair.proposals import config_helps, timers_late
from store_io.repair.repair_plan import POLICIES, plan_text, read_plan
from store_io.repair.repair_work import RepairRequest
from store_io.repair.ways import proposal_of, work_out_way
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text

_TOO_LATE = "not worked out: the time of --max-duration was spent; rescue works the steps out, and repair --dry-run says them"
MOST_BYTES = 1 << 30  # of messages: the largest store whose steps an audit works out; each repair tried reads it four times


@dataclass(frozen=True)
class StepsTask:
    """Work out the steps of one policy.

    plan: the text of plan.json.
    mends_config: as `work_out_way` takes it. Picklable.
    late_timers: as `RepairRequest` takes it.
    """

    store: int
    location: StoreLocation
    plan: str
    policy: str
    message_bytes: int
    mends_config: bool = False
    not_after: float = 0
    late_timers: bool = False

    @property
    def bytes_to_read(self) -> int:
        """Return the bytes of all attempts: four times the messages for each repair that `work_out_way` may try."""
        return 4 * (4 if self.mends_config else 2) * self.message_bytes

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.location.root,)

    def run(self) -> RepairProposal:
        """Return what a repair by the policy would do."""
        try:
            plan = read_plan(self.plan.encode())
            scratch = tempfile.gettempdir()
            request = RepairRequest(
                plan.store, self.location, f"{scratch}/store", plan, self.policy, late_timers=self.late_timers
            )
            try:
                way = work_out_way(request, self.mends_config, _run_tasks)
            except Unreadable:  # the audit has read all of it: a read that fails now may succeed
                locks.pause(1)
                way = work_out_way(request, self.mends_config, _run_tasks)
        except StoreError as problem:
            return RepairProposal(self.policy, str(problem))
        return proposal_of(way)


def _run_tasks(tasks: Sequence[Task], _: str) -> list[Any]:
    return [run_task(task) for task in tasks]


def steps_tasks(outcome: Outcome, location: StoreLocation, not_after: float = 0) -> list[StepsTask]:
    """Return a task for each policy. None if no repair is needed, or none can be planned, or the store is too large."""
    if not _wanted(outcome) or _message_bytes(outcome) > MOST_BYTES:
        return []
    text, size, helps, late = plan_text(outcome), _message_bytes(outcome), config_helps(outcome), timers_late(outcome)
    return [StepsTask(0, location, text, policy, size, helps, not_after, late) for policy in POLICIES]


def repairs_of(outcome: Outcome, answers: Iterable[Any]) -> tuple[RepairProposal, ...]:
    """Return what a repair of that store would do by each policy. answers: of its tasks, in their order; a gap says why there is
    none."""
    if not _wanted(outcome):
        return ()
    if given := list(answers):
        return tuple(_proposal(policy, answer) for policy, answer in zip(POLICIES, given, strict=True))
    sentence = (
        f"not worked out: {count_text(_message_bytes(outcome), 'byte')} of messages, and an audit works the steps out up to"
        f" {count_text(MOST_BYTES)}; rescue works them out, and repair --dry-run says them"
    )
    return tuple(RepairProposal(policy, sentence, worked_out=False) for policy in POLICIES)


def _proposal(policy: str, answer: Any) -> RepairProposal:
    """Return what a task gave, or why it gave nothing."""
    if isinstance(answer, NotRead):
        return RepairProposal(policy, _TOO_LATE, worked_out=False)
    if isinstance(answer, Gap):
        return RepairProposal(policy, gap_text(answer), worked_out=False)
    proposal: RepairProposal = answer
    return proposal


def _wanted(outcome: Outcome) -> bool:
    return outcome.exit_code in (DERIVED, LOST) and outcome.complete and outcome.effect is not None


def _message_bytes(outcome: Outcome) -> int:
    return sum(row["message_bytes"] or 0 for row in outcome.rows.segments)
