"""Compacted topics through a whole audit: start, plan, findings, and a repair that refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.advice import Advice, Step
from store_io.base.errors import StoreError
from store_io.outcome.plan_writer import audit_plan
from tests.support.answers import product
from tests.support.answers.repaired import plan_of, repaired
from tests.support.stores import compacted
from tests.support.stores.compacted import LOG_FILE

NEWEST = f"{2 * LOG_FILE:020d}"


@pytest.mark.parametrize("release", ["5.1.4", "5.5.0"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_sound_store_is_complete_and_without_a_finding(release: str, clean: bool, tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store", release, clean)
    compacted.write_logs(store)
    for conf in (store.broker_conf, None):
        audit = product.audit(store.root, release, conf)
        assert audit.incomplete == [] and audit.findings == []
        assert audit.broker is not None and audit.broker["starts"] and audit_plan(audit.outcome)["complete"]
    read = {path for path in (row["file"] for row in audit_plan(audit.outcome)["inputs"]) if path.startswith("compaction/")}
    assert read == {str(p.relative_to(store.root)) for p in (store.root / "compaction").rglob("0*") if p.is_file()}


def test_the_newest_entries_gone_cost_the_newest_file_of_the_log(tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    log, entries = compacted.folders(store.root)
    (entries / NEWEST).unlink()
    audit = product.audit(store.root, store.release, store.broker_conf)
    path = str((log / NEWEST).relative_to(store.root))
    assert audit.broker is not None and audit.broker["deleted_files"] == [path]
    assert [s["action"] for s in audit_plan(audit.outcome)["steps"] if s["file"] == path] == ["delete"]
    assert {f.code for f in audit.above_note} == {"compacted_record_unlisted"}


def test_a_start_that_refuses_names_the_file(tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    log, entries = compacted.folders(store.root)
    (log / NEWEST).unlink()
    audit = product.audit(store.root, store.release, store.broker_conf)
    path = str((entries / NEWEST).relative_to(store.root))
    assert audit.broker is not None and audit.broker["refusal"].startswith(f"{path}: ")
    assert {(f.code, f.file) for f in audit.above_note} == {("broker_refuses", path), ("compacted_files_differ", path)}
    off = product.audit(store.root, store.release, store.broker_conf + "enableCompaction=false\n")
    assert off.broker is not None and off.broker["starts"] and off.findings == []


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_a_compaction_left_over_is_told_from_one_that_is_needed(replaced: bool, tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    log = compacted.folders(store.root)[0]
    if replaced:
        shutil.copy(log / NEWEST, log / f"{5 * LOG_FILE:020d}.delete")
    else:
        (log / NEWEST).rename(log / f"{NEWEST}.delete")
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.broker is not None and not audit.broker["starts"]
    steps = {f.next for f in audit.above_note if f.code == "compacted_files_differ"}
    assert (Advice(Step.SET_REPLACED_ASIDE) in steps) == replaced


def test_a_repair_refuses_such_a_store(tmp_path: Path) -> None:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    shutil.rmtree(store.root / "index")
    plan = plan_of(store.root, store.release, store.broker_conf)
    with pytest.raises(StoreError, match="No repair is written for a store with the log of a compacted topic"):
        repaired(store.root, tmp_path / "new", plan)
