"""Repairs of random damaged stores: a message that the copy holds is in the new store, or in the list with its place."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from jobs.report.files.json_text import document
from schemas.layouts.store_names import BRIDGE_TOPIC, RESEND_SUFFIX, UNSAVED_SUFFIX
from store_io.audit.audit_store import run_local
from store_io.broker.loading import Tree, segments_of
from store_io.messages.message_rows import scan_messages
from store_io.messages.scans import MessageScan
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.repair.repair_plan import POLICIES
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests.support.answers.segment_tasks import rules_of
from tests.support.stores import random_stores

SEEDS = [7000, 7001, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(7002, 7040))]

Place = tuple[int, str, int, int]  # physical offset, topic, queue id, queue offset


def accepted(root: Path, release: str, conf: str) -> set[Place]:
    """The messages that a scan of the log accepts, but for bridges."""
    location, rules = StoreLocation(str(root)), rules_of(conf, release)
    columns = ("phy_offset", "topic", "queue_id", "queue_offset")
    found = set[Place]()
    for file in segments_of(Tree(list_store(location).files), rules):
        for batch in scan_messages(MessageScan(location, "", 0, 0, columns, rules=rules).of(file), open_source(location)):
            found |= {tuple(row[name] for name in columns) for row in batch.to_pylist()}  # type: ignore[misc]
    return {place for place in found if not BRIDGE_TOPIC.startswith(place[1])}


def lines(path: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_message_is_kept_or_listed_with_its_place(seed: int, policy: str, tmp_path: Path) -> None:
    made = random_stores.random_store(tmp_path / "store", random.Random(seed))
    root, new = made.store.root, tmp_path / "new"
    outcome = run_local(AuditRequest("store", StoreLocation(str(root)), made.release, made.broker_conf))
    (tmp_path / "plan.json").write_text(document(audit_plan(outcome)))
    code = entry.main(["repair", str(root), "--plan", str(tmp_path / "plan.json"), "--to", str(new), "--policy", policy])
    if code == 3:  # refused: nothing to repair from, or a store that no repair is written for
        assert not new.exists(), made.describe()
        return
    assert code == 0, made.describe()
    before, after = (accepted(each, made.release, made.broker_conf) for each in (root, new))
    cut = {
        (row["phy_offset"], row["stored_topic"], row["stored_queue_id"], row["queue_offset"])
        for row in lines(tmp_path / f"new{RESEND_SUFFIX}")
    }
    cut = {place for place in cut if not BRIDGE_TOPIC.startswith(place[1])}
    assert before - after == cut, made.describe()
    assert after <= before, made.describe()
    named = [row for row in lines(tmp_path / f"new{UNSAVED_SUFFIX}") if row["why"] == "cut"]
    assert {(row["phy_offset"], row["topic"], row["queue_id"], row["queue_offset"]) for row in named} >= cut, made.describe()
