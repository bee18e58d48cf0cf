"""Random stores and starts: product and second witness say the same of what the broker does by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from schemas.first_day import StartMoment
from store_io.first_day import transactions as module
from tests.support.answers import product
from tests.support.second_witness.day import Day
from tests.support.stores.random_days import random_day

PARTS = ("retention", "timers", "delays", "transactions")
Said = dict[str, Any]


def both(root: Path, seed: int) -> Iterator[tuple[str, Said, Said]]:
    """Yield what product and witness say of each part, the same keys of both."""
    day = random_day(root, random.Random(seed))
    moment = day.at, day.zone, day.used, day.size
    found = product.audit(root, day.release, day.conf, start=StartMoment(*moment)).outcome.first_day
    assert found is not None
    witness = Day(root, day.release, day.conf, *moment)
    for part in PARTS:
        own = getattr(found, part)
        if part == "timers" and not day.has_timers:
            continue
        assert own is not None, f"{part} of seed {seed}"
        theirs = getattr(witness, part)()
        ours = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(own).items() if key in theirs}
        if part == "retention" and _writes(witness, day.has_timers):  # the last segment goes if another is made before
            ours, theirs = (_without(said, witness.files[-1].path) for said in (ours, theirs))
        yield part, ours, theirs


def _writes(witness: Day, timers: bool) -> bool:
    """Say whether the broker writes into its log by itself."""
    found = [witness.delays()["at_once"], *witness.transactions().values()]
    return any([*found, *(witness.timers().values() if timers else ())])


def _without(said: Said, path: str) -> Said:
    return {key: [own for own in paths if own != path] for key, paths in said.items()}


@pytest.mark.parametrize("seed", range(16))
def test_a_store_and_a_start(tmp_path: Path, seed: int) -> None:
    for part, ours, witness in both(tmp_path / "store", seed):
        assert ours == witness, part


@pytest.mark.soak
def test_many_stores_and_starts(tmp_path: Path) -> None:
    found = [(seed, *said) for seed in range(100, 400) for said in both(tmp_path / str(seed), seed)]
    assert [one for one in found if one[2] != one[3]] == []
    for part in PARTS:  # it would prove nothing if a number were always 0
        said = [ours for _, name, ours, _ in found if name == part]
        for key in said[0]:
            assert sum(bool(one[key]) for one in said) > 5, f"{part}.{key}"


def test_a_wrong_number_of_operation_messages_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULLED", 8)
    found = [said for seed in range(16) for said in both(tmp_path / str(seed), seed)]
    assert {part for part, ours, witness in found if ours != witness} == {"transactions"}
