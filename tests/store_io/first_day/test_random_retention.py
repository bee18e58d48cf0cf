"""Random stores, ages, disks and settings: product and second witness say the same of what retention takes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from schemas.first_day import StartMoment
from store_io.first_day.retention import retention
from tests.support.answers import product
from tests.support.second_witness.day import Day
from tests.support.stores.random_days import random_day


def both(root: Path, seed: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    day = random_day(root, random.Random(seed))
    found = product.audit(root, day.release, day.conf)
    ours = retention(found.audit.evidence, StartMoment(day.at, day.zone, day.used, day.size))
    assert ours is not None
    said = {"at_once": ours.at_once, "in_delete_when": ours.in_delete_when, "if_disk_full": ours.if_disk_full}
    witness = Day(root, day.release, day.conf, day.at, day.zone, day.used, day.size).retention()
    return {name: list(paths) for name, paths in said.items()}, witness


@pytest.mark.parametrize("seed", range(16))
def test_retention(tmp_path: Path, seed: int) -> None:
    ours, witness = both(tmp_path / "store", seed)
    assert ours == witness


@pytest.mark.soak
def test_retention_of_many_stores(tmp_path: Path) -> None:
    found = [both(tmp_path / str(seed), seed) for seed in range(100, 400)]
    assert [pair for pair in found if pair[0] != pair[1]] == []
    assert all(sum(bool(ours[name]) for ours, _ in found) > 30 for name in found[0][0])
