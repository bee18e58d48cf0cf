"""Random stores and starts: product and second witness say the same of what the broker does by itself."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest

from schemas.first_day import StartMoment
from store_io.first_day import transactions as module
from tests.support.answers import product
from tests.support.second_witness.day import Day
from tests.support.stores.random_days import RandomDay, random_day


def both(root: Path, seed: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the product and the witness say of transactions."""
    day: RandomDay = random_day(root, random.Random(seed))
    found = product.audit(root, day.release, day.conf, start=StartMoment(day.at, day.zone, day.used, day.size))
    ours = found.outcome.first_day
    assert ours is not None and ours.transactions is not None
    return asdict(ours.transactions), Day(root, day.release, day.conf, day.at, day.zone, day.used, day.size).transactions()


@pytest.mark.parametrize("seed", range(12))
def test_half_messages(tmp_path: Path, seed: int) -> None:
    ours, witness = both(tmp_path / "store", seed)
    assert ours == witness


@pytest.mark.soak
def test_half_messages_of_many_stores(tmp_path: Path) -> None:
    found = [both(tmp_path / str(seed), seed) for seed in range(100, 400)]
    assert [pair for pair in found if pair[0] != pair[1]] == []
    assert sum(ours["moved_at_first_check"] > 0 and ours["open"] > 0 for ours, _ in found) > 30


def test_a_wrong_number_of_operation_messages_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULLED", 8)
    assert any(ours != witness for ours, witness in (both(tmp_path / str(seed), seed) for seed in range(12)))
