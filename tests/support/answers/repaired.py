"""The product's repair as the tests call it, and what a repaired store serves, read without the product."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from schemas.repair import RepairProposal, RepairReport
from store_io.audit.audit_store import run_local
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.base.tasks import Task, run_task
from store_io.model.audit_request import AuditRequest
from store_io.repair.plan_repair_section import StepsTask
from store_io.repair.repair_documents import plan_document, report_document
from store_io.repair.repair_plan import POLICIES, RepairPlan, plan_text, read_plan
from store_io.repair.repair_store import preview, repair
from store_io.repair.repair_work import RepairOutcome, RepairRequest
from store_io.source.byte_source import StoreLocation
from tests.support.handmade.outcome_fields import alter
from tests.support.stores import builders
from tests.support.texts.json_schemas import faults

MADE_AT = "2026-11-20 21:20:30"


def run_tasks(tasks: Sequence[Task], _: str) -> list[Any]:
    return [run_task(task) for task in tasks]


def plan_of(root: Path, release: str, broker_conf: str | None) -> RepairPlan:
    outcome = run_local(AuditRequest(root.name, StoreLocation(str(root)), release, broker_conf))
    return read_plan(plan_text(outcome).encode())


def plan_with_steps(root: Path, release: str, broker_conf: str | None, policy: str) -> RepairPlan:
    """The same plan with the steps of that policy, as an audit works them out."""
    outcome = run_local(AuditRequest(root.name, StoreLocation(str(root)), release, broker_conf))
    worked_out = StepsTask(0, StoreLocation(str(root)), plan_text(outcome), policy, 0).run()
    alter(outcome, repairs=tuple(replace(worked_out, policy=each) for each in POLICIES))
    assert faults("plan", json.dumps(plan_document(outcome))) == []
    parts = (worked_out if each == policy else RepairProposal(each, "not asked for") for each in POLICIES)
    alter(outcome, repairs=tuple(parts))
    return read_plan(plan_text(outcome).encode())


def planned_options(plan: RepairPlan, policy: str) -> dict[str, Any]:
    """What a repair is asked for so that it has the plan's own steps."""
    words = plan.repair[policy].options
    return {"fix_offsets": True, "fix_config": "--fix-config" in words, "heal_risk": DEFAULT_RISK if "--heal" in words else None}


def repaired(root: Path, target: Path, plan: RepairPlan, policy: str = "broker", **more: Any) -> RepairOutcome:
    return repair(RepairRequest("store", StoreLocation(str(root)), str(target), plan, policy, **more), run_tasks)


def previewed(root: Path, target: Path, plan: RepairPlan, policy: str = "broker", **more: Any) -> RepairOutcome:
    """What a dry run says; it may leave nothing anywhere."""
    request = RepairRequest("store", StoreLocation(str(root)), str(target), plan, policy, **more)
    before = sorted(target.parent.iterdir())
    with tempfile.TemporaryDirectory() as scratch:
        outcome = preview(request, run_tasks, scratch)
        assert not list(Path(scratch).iterdir())
    assert sorted(target.parent.iterdir()) == before
    return outcome


def numbers(dry: RepairOutcome) -> RepairReport:
    """A dry run's report without what only a dry run tells."""
    return replace(dry.report, free_bytes=None, other_policy=None)


def written(report: RepairReport) -> dict[str, Any]:
    """The report as the file beside the new store has it."""
    return report_document(replace(report, made_at=MADE_AT))


def content(root: Path) -> dict[str, str]:
    """Digest of each file, "" for folders, by relative path."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return found


def log_bytes(root: Path) -> dict[int, bytes]:
    return {int(p.name): p.read_bytes() for p in sorted((root / "commitlog").glob("*")) if p.name.isdigit()}


class Served:
    """What entries of ordinary queues lead to: (topic, queue, entry) -> (topic of the message, physical offset, body's CRC)."""

    def __init__(self, root: Path, segment_bytes: int):
        self.log, self.size = log_bytes(root), segment_bytes
        self.messages: dict[tuple[str, int, int], tuple[str, int, int]] = {}
        for file in sorted((root / "consumequeue").glob("*/*/*")):
            topic, queue = file.parent.parent.name, int(file.parent.name)
            data = file.read_bytes()
            for at in range(0, len(data), 20):
                phy, size, _ = struct.unpack_from(">qiq", data, at)
                if size > 0 and not (phy == 0 and size == 0x7FFFFFFF):
                    found = self.message(phy, size)
                    if found is not None:
                        self.messages[topic, queue, (int(file.name) + at) // 20] = found

    def records(self) -> Iterator[builders.Record]:
        """All records of the log, which has no place that a walk does not get over."""
        for base, data in self.log.items():
            yield from builders.walk(data, base)

    def message(self, phy: int, size: int) -> tuple[str, int, int] | None:
        """The message there, where the bytes are one of exactly that size."""
        base = phy - phy % self.size
        data = self.log.get(base, b"")[phy - base : phy - base + size]
        if len(data) != size or struct.unpack_from(">i", data)[0] != size or data[4:7] != b"\xda\xa3\x20":
            return None
        record = builders.decode(data, 0)
        return record.topic, phy, record.body_crc
