"""Timer messages in parts say what all of them together say."""

from __future__ import annotations

import pickle
import struct
from dataclasses import fields
from operator import attrgetter
from pathlib import Path

import pytest

from schemas.advice import Cause, Gap
from schemas.losses import TimerCount, TimerFates
from schemas.outcome import Outcome
from store_io.kinds.timers import timer_kind
from store_io.kinds.timers.timer_part import TimerPart, TimerResults
from store_io.kinds.timers.timer_units_check import UnitFaults, UnitsBeyond, WrongUnit
from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.builders import Sizes
from tests.support.stores.keyed_timers import keyed_timers
from tests.support.stores.timers import TimerStore, timer_store


def results(made: TimerStore) -> dict[str, object]:
    outcome = product.audit(made.root, made.store.release, made.conf).outcome
    kept = {f.name: getattr(outcome, f.name) for f in fields(Outcome)}
    return {name: value for name, value in kept.items() if name != "cost"}


@pytest.mark.parametrize("together", [1, 7])
@pytest.mark.parametrize("case", ["whole", "cut", "wrong", "beyond"])
def test_parts_give_what_all_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int, case: str) -> None:
    sizes = Sizes(segment=1 << 16) if case == "cut" else None
    made = timer_store(tmp_path / "store", due=20, waiting=9, clean=case != "cut", sizes=sizes)
    if case == "cut":
        overwrite(sorted((made.root / "commitlog").iterdir())[0], made.copies[4].at + 4, b"\xff\xff\xff\xff")
    elif case != "whole":
        with open(made.root / "timerlog" / f"{0:020d}", "r+b") as file:
            for number in (3, 8, 21):
                file.seek(52 * number + 28)
                file.write(struct.pack(">q", 3 if case == "wrong" else 1 << 40))
    expected = results(made)
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", 5)
    monkeypatch.setattr(timer_kind, "TIMERS_TOGETHER", together)
    assert results(made) == expected


@pytest.mark.parametrize("case", ["whole", "wrong", "beyond"])
def test_parts_of_timers_in_rocksdb_give_what_all_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    made = keyed_timers(tmp_path / "store", clean=False)
    for number, key in enumerate(sorted(made.entries)[2:]):
        size, phy_offset = made.entries[key]
        made.entries[key] = {"whole": (size, phy_offset), "wrong": (size, 0), "beyond": (size, (1 << 40) + number)}[case]
    made.write()

    def audited() -> dict[str, object]:
        outcome = product.audit(made.root, "5.4.0", made.conf).outcome
        names = ("found", "effect", "plan.steps", "holds.timers", "exit_code", "covered.not_judged")
        return {name: attrgetter(name)(outcome) for name in names}

    expected = audited()
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", 3)
    monkeypatch.setattr(timer_kind, "TIMERS_TOGETHER", 2)
    assert audited() == expected


def test_parts_add_up_and_one_that_is_missing_spoils_all() -> None:
    one = TimerPart(
        UnitFaults(UnitsBeyond(1, 9, 90), UnitsBeyond(), 1, [WrongUnit(9, 90, "a", "b")]), TimerFates(cut=TimerCount(1, 5, 5)), 10
    )
    two = TimerPart(
        UnitFaults(UnitsBeyond(2, 4, 40), UnitsBeyond(), 1, [WrongUnit(4, 40, "a", "b")]), TimerFates(cut=TimerCount(2, 3, 4)), 5
    )
    both = one + two
    assert both.faults.beyond == UnitsBeyond(3, 4, 40) and [w.place for w in both.faults.wrong] == [4, 9]
    assert both.fates == TimerFates(cut=TimerCount(3, 3, 5)) and both.bytes_read == 15
    assert pickle.loads(pickle.dumps(both)) == both and (one + TimerPart(problem=Gap(Cause.UNREADABLE))).fates is None
    found = TimerResults()
    found.add(one)
    found.add(two)
    assert found.together == both
    found.not_read()
    found.add(one)
    assert found.together is None
