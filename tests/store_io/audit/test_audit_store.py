"""The audit as a machine: what it does where it cannot go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.outcome import Outcome
from store_io.audit.audit_store import StoreAudit, run_audit, run_local
from store_io.base import packed
from store_io.broker.queues import queue_puts
from store_io.kinds.queues import queue_kind
from store_io.log.scan import stored_runs
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.support.handmade.outcome_fields import alter
from tests.support.stores.builders import Message, Sizes, StoreBuilder


def request(root: Path, **asked: bool) -> AuditRequest:
    return AuditRequest("s", StoreLocation(str(root)), "5.3.3", **asked)  # type: ignore[arg-type]


def test_a_fault_of_this_program_ends_one_audit_and_predicts_nothing(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(4096))
    audit = StoreAudit(request(tmp_path))
    tasks = audit.first_tasks()
    assert len(tasks) == 1 and audit.next_tasks([object()]) == []
    outcome = audit.outcome()
    assert "an error in this program ended the audit" in outcome.incomplete[0] and audit_plan(outcome)["broker"] is None


def test_bytes_of_a_comparison_with_other_copies_are_counted(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    audit = run_audit(request(tmp_path))
    before = audit.outcome().cost.bytes_read
    audit.bytes_compared += 77
    assert audit.outcome().cost.bytes_read == before + 77 == run_local(request(tmp_path)).cost.bytes_read + 77


@pytest.mark.parametrize("gone", ["some entries", "all queues", "all queues, after a clean exit"])
def test_very_many_queues_are_judged_as_few_are(gone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=200))
    for message in range(90):
        builder.put(Message(topic=f"T{message % 5}", queue_id=message % 12, body=b"%04d" % message * 10, uniq=f"u{message}"))
    store = builder.write(tmp_path / "store")
    if gone != "all queues, after a clean exit":
        (store.root / "abort").touch()
    if gone != "some entries":
        shutil.rmtree(store.root / "consumequeue")
    for path in sorted((store.root / "consumequeue").rglob("0" * 20))[::7]:  # entries that are missing, and made at a start
        path.write_bytes(bytes(path.stat().st_size))

    def audited() -> Outcome:
        outcome = run_local(AuditRequest("s", StoreLocation(str(store.root)), "5.3.3", store.broker_conf))
        alter(outcome, seconds=0)
        return outcome

    few = audited()
    for module in (packed, queue_kind):
        monkeypatch.setattr(module, "FEW", 5)
    monkeypatch.setattr(queue_puts, "MOST_ROWS", 20)
    monkeypatch.setattr(stored_runs, "MOST_HELD", 30)
    monkeypatch.setattr(packed, "_PART", 3)
    many = audited()
    assert few.found.findings and many.found.findings == few.found.findings
    assert (audit_plan(many), list(many.rows.queues)) == (audit_plan(few), list(few.rows.queues)) and len(few.rows.queues) > 50
