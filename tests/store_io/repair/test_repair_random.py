"""Repaired random stores, whatever was damaged: consistent by the audit, untouched source, and nothing left to repair."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from store_io.base.errors import StoreError
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.stores import random_stores
from tests.support.stores.random_stores import RandomStore

SEEDS = [*range(5000, 5004), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(5004, 5030))]


@pytest.mark.parametrize("policy", ["broker", "salvage"])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_damage(seed: int, policy: str, tmp_path: Path) -> None:
    made: RandomStore = random_stores.random_store(tmp_path / "store", random.Random(seed))
    root, conf = made.store.root, made.broker_conf
    before = content(root)
    if not has_segment(root):
        assert_nothing_to_repair_from(root, tmp_path / "new", made, policy)
        return
    outcome = repaired(root, tmp_path / "new", plan_of(root, made.release, conf), policy)
    assert content(root) == before
    assert outcome.exit_code == 0, (made.describe(), outcome.report.problems)
    if not has_segment(tmp_path / "new"):  # no valid message, or the release cuts them all
        assert_nothing_to_repair_from(tmp_path / "new", tmp_path / "again", made, policy)
        return
    again = repaired(tmp_path / "new", tmp_path / "again", plan_of(tmp_path / "new", made.release, conf), policy)
    assert again.exit_code == 0, made.describe()
    assert content(tmp_path / "again") == content(tmp_path / "new"), made.describe()


def has_segment(root: Path) -> bool:
    return any(path.name.isdigit() and path.stat().st_size for path in (root / "commitlog").glob("*"))


def assert_nothing_to_repair_from(root: Path, target: Path, made: RandomStore, policy: str) -> None:
    with pytest.raises(StoreError, match="nothing to repair from"):
        repaired(root, target, plan_of(root, made.release, made.broker_conf), policy)
    assert not target.exists(), made.describe()
