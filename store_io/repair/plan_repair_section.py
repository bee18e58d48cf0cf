"""The section `repair` of plan.json: the steps that `repair` would carry out under each policy. The plan's own `steps` are
others: what a start would leave (`audit.outcome.release_leaves`).

    tasks = steps_tasks(outcome, location)
    outcome.plan["repair"] = repair_section(outcome, [task.run() for task in tasks])

A task does the whole repair on a `TrialWriter`, as a dry run does, so the steps are those of the run. What it works out is
kept in the temporary folder of the machine that it runs on, and removed at its end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from schemas.rows import AuditOutcome, Row
from store_io.base.errors import StoreError, Unreadable
from store_io.base.exit_codes import DERIVED, LOST
from store_io.base.tasks import run_task
from store_io.base.wording import count_text
from store_io.formats.config.table_forms import FROM_FILE
from store_io.repair.derived.queue_plan import EARLIER
from store_io.repair.repair_plan import POLICIES, plan_text, read_plan
from store_io.repair.repair_store import work_out
from store_io.repair.repair_work import RepairOutcome, RepairRequest
from store_io.source.byte_source import StoreLocation

MOST_BYTES = 1 << 30  # of messages: the largest store whose steps an audit works out, which reads it four times per policy


@dataclass(frozen=True)
class StepsTask:
    """The steps of one policy. plan: the text of plan.json. Picklable."""

    store: int
    location: StoreLocation
    plan: str
    policy: str
    message_bytes: int
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return 4 * self.message_bytes

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.location.root,)

    def run(self) -> Row:
        """The policy's part of the section."""
        try:
            plan = read_plan(self.plan.encode())
            scratch = tempfile.gettempdir()
            request = RepairRequest(plan.store, self.location, f"{scratch}/store", plan, self.policy, fix_offsets=True)
            try:
                outcome = _worked_out(request, scratch)
            except Unreadable:  # the audit has read all of it: a read that fails now may succeed
                outcome = _worked_out(request, scratch)
        except StoreError as problem:
            return refused_section(str(problem))
        return section_of(outcome)


def _worked_out(request: RepairRequest, scratch: str) -> RepairOutcome:
    return work_out(request, lambda tasks, _: [run_task(task) for task in tasks], scratch)


def section_of(outcome: RepairOutcome) -> Row:
    """A policy's part of the section, of a repair that was worked out with --fix-offsets and nothing else."""
    report = outcome.report
    if outcome.exit_code:
        return refused_section("the new store would not be consistent: " + "; ".join(report["problems"][:3]))
    return {
        "refused": None, "messages_before": report["messages_before"], "messages_after": report["messages_after"],
        "lost": report["lost"], "given_up": report["given_up"]["messages"],
        "config": [_timeless(row) for row in report["config"]], "unserved": _unserved(report), "steps": report["steps"],
    }  # fmt: skip


def _unserved(report: Row) -> int:
    """How many messages of an earlier life of their queue get no entry: those that were in no queue before are no loss."""
    return sum(row["end"] - row["first"] for row in report["unserved"] if row["reason"] == EARLIER)


def _timeless(row: Row) -> Row:
    """A row of the report without modification times: the same bytes have the same plan."""
    found = {**row, "not_kept": [_timeless(form) for form in row["not_kept"]]} if "not_kept" in row else row
    return {**found, "time_ms": None} if row["time_from"] == FROM_FILE else found


def steps_tasks(outcome: AuditOutcome, location: StoreLocation) -> list[StepsTask]:
    """A task for each policy; none where no repair is needed, or none can be planned, or the store is too large."""
    if not _wanted(outcome) or _message_bytes(outcome) > MOST_BYTES:
        return []
    text = plan_text(outcome.plan)
    return [StepsTask(0, location, text, policy, _message_bytes(outcome)) for policy in POLICIES]


def repair_section(outcome: AuditOutcome, answers: Iterable[Any]) -> Row | None:
    """The section of that store's plan. answers: of its tasks, in their order; a text says why there is none."""
    if not _wanted(outcome):
        return None
    given = [refused_section(answer) if isinstance(answer, str) else answer for answer in answers]
    if not given:
        size = _message_bytes(outcome)
        sentence = (
            f"not worked out: {count_text(size, 'byte')} of messages, and an audit works the steps out up to"
            f" {count_text(MOST_BYTES)}; repair --dry-run says them"
        )
        given = [refused_section(sentence) for _ in POLICIES]
    return dict(zip(POLICIES, given, strict=True))


def _wanted(outcome: AuditOutcome) -> bool:
    return outcome.exit_code in (DERIVED, LOST) and outcome.complete and outcome.plan.get("broker") is not None


def _message_bytes(outcome: AuditOutcome) -> int:
    return sum(row["message_bytes"] or 0 for row in outcome.segments)


def refused_section(sentence: str) -> Row:
    """A policy's part of the section where it has no steps."""
    return {
        "refused": sentence, "messages_before": None, "messages_after": None, "lost": None, "given_up": None, "config": [],
        "unserved": None, "steps": [],
    }  # fmt: skip
