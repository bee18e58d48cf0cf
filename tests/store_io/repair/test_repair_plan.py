"""plan.json as a repair takes it: checked before it is believed, and held against the copy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from store_io.base.errors import StoreError, UsageError
from store_io.first_day.cleaning_rules import HOUR_MS
from store_io.outcome.plan_writer import audit_plan
from store_io.repair.repair_plan import RepairPlan, read_plan
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import repaired
from tests.support.stores import corpus_tools

CASES = corpus_tools.cases()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store of the corpus and its plan as text."""
    case = next(c for c in CASES if c.name == "g11-533-zero-tail")
    folder = tmp_path_factory.mktemp("plain")
    root = case.unpack(folder)
    from store_io.audit.audit_store import run_local
    from store_io.model.audit_request import AuditRequest

    outcome = run_local(AuditRequest("store", StoreLocation(str(root)), case.release, case.broker_conf))
    return root, json.dumps(audit_plan(outcome))


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "commitlog/../../x", "", "a//b", "a\x00b", "./x"])
@pytest.mark.parametrize("place", ["inputs", "steps", "deleted_files"])
def test_a_path_outside_of_the_store(plain: tuple[Path, str], path: str, place: str) -> None:
    plan = json.loads(plain[1])
    if place == "deleted_files":
        plan["broker"][place].append(path)
    else:
        plan[place].append({"file": path, "size": 0, "digest": "x", "action": "delete", "start": None, "end": None})
    read_plan(plain[1].encode())
    with pytest.raises(UsageError, match="no path inside a store"):
        read_plan(json.dumps(plan).encode())


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"complete": False}, StoreError),
        ({"broker": None}, StoreError),
        ({"release": "9.9.9"}, UsageError),
        ({"schema_version": 2}, UsageError),
        ({"inputs": {}}, UsageError),
        ({"settings": {"mappedFileSizeCommitLog": {"value": "x", "from": "default"}}}, UsageError),
        ({"broker": {"starts": True, "truncate_at": -1, "deleted_files": []}}, UsageError),
    ],
)
def test_a_plan_that_is_none(plain: tuple[Path, str], values: dict[str, object], kind: type[StoreError]) -> None:
    with pytest.raises(kind) as raised:
        read_plan(json.dumps({**json.loads(plain[1]), **values}).encode())
    assert type(raised.value) is kind


@pytest.mark.parametrize("name", ["commitlog/00000000000000000000", "checkpoint", "lock"])
def test_another_byte_than_the_plan_saw(plain: tuple[Path, str], name: str, tmp_path: Path) -> None:
    import shutil

    root = tmp_path / "store"
    shutil.copytree(plain[0], root)
    data = bytearray((root / name).read_bytes())
    data[-1] ^= 1
    (root / name).write_bytes(data)
    plan = read_plan(plain[1].encode())
    if name == "lock":  # which no plan depends on
        assert repaired(root, tmp_path / "new", plan).exit_code == 0
        return
    with pytest.raises(StoreError, match=name):
        repaired(root, tmp_path / "new", plan)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store"]


def test_a_promise_that_the_audit_does_not_find(plain: tuple[Path, str], tmp_path: Path) -> None:
    plan = json.loads(plain[1])
    plan["broker"]["truncate_at"] -= 100
    with pytest.raises(StoreError, match="truncate_at"):
        repaired(plain[0], tmp_path / "new", read_plan(json.dumps(plan).encode()))
    assert not list(tmp_path.iterdir())


def test_a_log_of_dledger_alone_is_cleaned_by_its_own_service() -> None:
    plan = RepairPlan("s", "5.3.3", {}, {}, {"dledger-n0/data/0": (1, "x")}, {}, "", day={"fileReservedTime": 48})
    mixed = replace(plan, inputs={**plan.inputs, "commitlog/0": (1, "x")})
    assert [each.cleaning.reserved_ms // HOUR_MS for each in (plan, mixed)] == [49, 48]
