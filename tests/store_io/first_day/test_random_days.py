"""Random stores and starts: product and second witness say the same of what the broker does by itself."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from schemas.first_day import FirstDay, StartMoment
from store_io.first_day import transactions as module
from tests.support.answers import product
from tests.support.second_witness.day import BACK_SLOTS, Day
from tests.support.stores.random_days import RandomDay, random_day

Numbers = dict[str, Any]


def both(root: Path, seed: int) -> tuple[Numbers, Numbers]:
    """Return what the product and the witness say, part by part."""
    day: RandomDay = random_day(root, random.Random(seed))
    found = product.audit(root, day.release, day.conf, start=StartMoment(day.at, day.zone, day.used, day.size))
    assert not found.incomplete
    ours = found.outcome.first_day
    assert ours is not None and ours.transactions is not None and ours.delays is not None
    witness = Day(root, day.release, day.conf, day.at, day.zone, day.used, day.size)
    return _numbers(ours, day.has_timers), _witnessed(witness, day.has_timers)


def _numbers(ours: FirstDay, timers: bool) -> Numbers:
    found = {"transactions": asdict(ours.transactions), "delays": asdict(ours.delays)}
    found["delays"]["stuck_levels"] = list(found["delays"]["stuck_levels"])
    return found | ({"timers": asdict(ours.timers)} if timers else {})


def _witnessed(witness: Day, timers: bool) -> Numbers:
    found = {"transactions": witness.transactions(), "delays": witness.delays()}
    if timers:
        counts, first = witness.timers()
        before = None if first is None else first + BACK_SLOTS * 1000
        found["timers"] = {**counts, "twice": 0, "start_before_ms": before}
    return found


@pytest.mark.parametrize("seed", range(12))
def test_what_a_broker_does_by_itself(tmp_path: Path, seed: int) -> None:
    ours, witness = both(tmp_path / "store", seed)
    assert ours == witness


@pytest.mark.soak
def test_many_stores(tmp_path: Path) -> None:
    found = [both(tmp_path / str(seed), seed) for seed in range(100, 400)]
    assert [pair for pair in found if pair[0] != pair[1]] == []
    assert sum(min(ours["transactions"].values()) > 0 for ours, _ in found) > 30
    assert sum(ours["delays"]["at_once"] > 0 and ours["delays"]["later"] > 0 for ours, _ in found) > 30
    assert sum(bool(ours.get("timers", {}).get("never")) for ours, _ in found) > 5


def test_a_wrong_number_of_operation_messages_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULLED", 8)
    assert any(ours != witness for ours, witness in (both(tmp_path / str(seed), seed) for seed in range(12)))
