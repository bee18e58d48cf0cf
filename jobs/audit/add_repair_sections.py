"""The steps of a repair in each store's plan, worked out in one Spark job for a batch of stores."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.audit.earlier_runs import Reading
from jobs.cli.stores import StoreArgument
from jobs.tasks.runner import Runner
from schemas.rows import AuditOutcome
from store_io.repair.plan_repair_section import repair_section, steps_tasks


def add_repair_sections(
    runner: Runner, stores: Sequence[StoreArgument], outcomes: Sequence[AuditOutcome], reading: Reading
) -> None:
    """Give each outcome's plan its section `repair`. stores, outcomes: side by side."""
    tasks = [
        steps_tasks(outcome, reading.location(store), reading.not_after) for store, outcome in zip(stores, outcomes, strict=True)
    ]
    answers = iter(runner.answers([task for own in tasks for task in own], "steps of a repair"))
    for outcome, own in zip(outcomes, tasks, strict=True):
        outcome.plan["repair"] = repair_section(outcome, [next(answers) for _ in own])
