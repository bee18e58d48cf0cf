"""Audits the copies of a truth as a run does: together if they are a group, a donor as `rescue` takes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from schemas.outcome import Outcome
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.base.tasks import run_task
from store_io.model.audit_request import AuditRequest
from store_io.outcome.copy_whole import held_by
from store_io.repair.plan_repair_section import repairs_of, steps_tasks
from store_io.replicas.replica_groups import ReplicaGroup
from store_io.source.byte_source import StoreLocation
from tests.answers.recipes import make_answer_store
from tests.answers.truth import Truth, truth_of
from tests.support.handmade.outcome_fields import alter


@cache
def outcomes_of(name: str) -> tuple[str, dict[str, Outcome]]:
    """Return (the folder in which the copies were, the outcome of each copy that has an answer), with worked-out repairs."""
    with TemporaryDirectory() as folder:
        make_answer_store(name, Path(folder) / "copies")
        return folder, _outcomes(truth_of(name), Path(folder) / "copies")


def _outcomes(truth: Truth, folder: Path) -> dict[str, Outcome]:
    audits = []
    for number, copy in enumerate(truth.copies):
        conf = copy.broker_conf.replace("STORE", str(folder / copy.name))
        group = "" if truth.asked == "audit" else "g"
        location = StoreLocation(str(folder / copy.name))
        audits.append(StoreAudit(AuditRequest(copy.name, location, truth.release, conf, group, number)))
    run_rounds([(audit, audit.first_tasks()) for audit in audits], lambda tasks: [run_task(task) for task in tasks])
    if truth.asked != "audit":
        group_of_all = ReplicaGroup("g", audits)
        group_of_all.finish([run_task(task) for task in group_of_all.tasks()])
        if truth.asked == "group":
            group_of_all.blame()
    found = {}
    for copy, audit in zip(truth.copies, audits, strict=True):
        if copy.answer is None:
            continue
        outcome = found[copy.name] = audit.outcome()
        repairs = repairs_of(outcome, [task.run() for task in steps_tasks(outcome, audit.request.location)])
        alter(outcome, repairs=repairs or None)
        if truth.asked == "donor" and (more := held_by(outcome, str(folder / truth.copies[1].name))) is not None:
            alter(outcome, signs=[more, *outcome.whole.signs])
    return found
