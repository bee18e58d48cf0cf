"""The steps of a repair in each store's plan, worked out in one Spark job for a batch of stores."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.audit.runner import Runner
from jobs.command_line.stores import StoreArgument
from schemas.rows import AuditOutcome
from store_io.repair.plan_repair_section import repair_section, steps_tasks
from store_io.source.byte_source import StoreLocation


def add_repair_sections(
    runner: Runner, stores: Sequence[StoreArgument], outcomes: Sequence[AuditOutcome], max_rate: int = 0
) -> None:
    """Give each outcome's plan its section `repair`. stores, outcomes: side by side.  max_rate: as `StoreLocation` has it."""
    tasks = [steps_tasks(o, StoreLocation(s.path, s.parts, max_rate=max_rate)) for s, o in zip(stores, outcomes, strict=True)]
    answers = iter(runner.answers([task for own in tasks for task in own], "steps of a repair"))
    for outcome, own in zip(outcomes, tasks, strict=True):
        outcome.plan["repair"] = repair_section(outcome, [next(answers) for _ in own])
