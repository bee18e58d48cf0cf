"""Timer messages that a start delivers at once, later, or never, and those that retention takes first."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.answer import Answer
from schemas.finding_codes import Code
from schemas.first_day import StartMoment, TimersOfDay
from schemas.rows import LOSS
from store_io.answer.answers import answer_of
from store_io.first_day.timers import timers_lost, timers_of_day
from store_io.kinds.timers import timer_kind
from store_io.kinds.timers.due_timers import READ_SLOTS
from store_io.model.evidence import Evidence
from store_io.outcome.plan_writer import audit_plan
from tests.support.answers import product
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.timers import BEGIN, TimerStore, timer_store

FIRST = BEGIN // 1000 * 1000 + 3_600_000  # slots of the four that wait: two, and two a second later
LAST_START = FIRST + 1000 * READ_SLOTS


def evidence_of(made: TimerStore, now: int, release: str = "5.3.3", conf: str = "") -> Evidence:
    return product.audit(made.root, release, f"{made.conf}\n{conf}\n", start=StartMoment(now)).audit.evidence


def day(made: TimerStore, now: int, release: str = "5.3.3", conf: str = "") -> TimersOfDay | None:
    return timers_of_day(evidence_of(made, now, release, conf), StartMoment(now))


@pytest.fixture
def made(tmp_path: Path) -> TimerStore:
    return timer_store(tmp_path / "store")


def test_what_waits_goes_by_the_clock(made: TimerStore) -> None:
    found = TimersOfDay(start_before_ms=LAST_START)
    assert day(made, FIRST - 1) == replace(found, later=4)
    assert day(made, FIRST) == replace(found, at_once=2, later=2)
    assert day(made, LAST_START) == replace(found, at_once=4)
    assert day(made, LAST_START + 1000) == replace(found, at_once=2, never=2)
    assert day(made, LAST_START + 2000) == replace(found, never=4)


def test_a_service_that_is_off_delivers_none_while_slots_grow_too_old(made: TimerStore) -> None:
    off = "timerWheelEnable=false"
    assert day(made, LAST_START, conf=off) == TimersOfDay(later=4, start_before_ms=LAST_START)
    assert day(made, LAST_START + 1000, conf=off) == TimersOfDay(never=2, later=2, start_before_ms=LAST_START)
    assert day(made, LAST_START, conf="timerStopEnqueue=true") == TimersOfDay(at_once=4, start_before_ms=LAST_START)


def test_only_releases_with_timers_and_masters_have_an_answer(made: TimerStore) -> None:
    assert day(made, FIRST, "4.9.8") is None
    assert day(made, FIRST, conf="brokerRole=SLAVE\nbrokerId=1") is None
    assert day(made, FIRST, conf="brokerRole=SYNC_MASTER") is not None


def test_a_store_without_timers(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3")
    builder.put(Message("orders"))
    store = builder.write(tmp_path / "s")
    start = StartMoment(FIRST)
    evidence = product.audit(store.root, "5.3.3", store.broker_conf, start=start).audit.evidence
    assert timers_of_day(evidence, start) == TimersOfDay() and timers_lost(evidence, start, (), (), FIRST) == 0


def test_messages_without_any_file_of_timers_are_not_known(made: TimerStore) -> None:
    for name in ("timerlog", "consumequeue"):
        shutil.rmtree(made.root / name)
    for name in ("timerwheel", "config/timercheck"):
        (made.root / name).unlink()
    assert day(made, FIRST) is None


@pytest.mark.parametrize("together", [1, 1 << 20])
def test_a_real_store_that_was_copied_while_its_broker_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Its broker delivered 60 of the 1,890 that waited; tasks for parts of them say the same."""
    (case,) = (c for c in corpus_tools.cases() if c.name == "g5x-533-broker-live")
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", together)
    monkeypatch.setattr(timer_kind, "TIMERS_TOGETHER", 1000)
    start = StartMoment(1_795_880_188_314)
    root = case.unpack(tmp_path)
    evidence = product.audit(root, "5.3.3", case.broker_conf, start=start).audit.evidence
    assert timers_of_day(evidence, start) == TimersOfDay(1514, 316, 60, 0, 0, 1_795_816_063_000)
    soon = StartMoment(1_795_211_330_000)
    found = product.audit(root, "5.3.3", case.broker_conf, start=soon).audit.evidence
    day = timers_of_day(found, soon)
    assert day is not None and (day.never, day.uncertain, day.twice) == (0, 0, 314) and day.at_once + day.later == 1890


def test_an_hour_after_the_stop_is_the_clock_of_every_part(made: TimerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", 1)
    asked = StartMoment(0, after_stop=True)
    done = product.audit(made.root, "5.3.3", made.conf, start=asked)
    said = audit_plan(done.outcome)["first_day"]
    assert (said["timers"]["never"], said["timers"]["at_once"] + said["timers"]["later"]) == (0, 4)


def test_what_retention_takes_before_it_is_due(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", waiting=40, sizes=Sizes(segment=4096))
    now = FIRST - 600_000
    evidence = evidence_of(made, now)
    start, segments = StartMoment(now), sorted(segment.path for segment in evidence.segments)
    hour = FIRST // 3_600_000 * 3_600_000
    in_first = sum(record.at < 4096 for record in made.waiting)
    assert 0 < in_first < 40 and len(segments) > 2
    assert timers_lost(evidence, start, segments[:1], (), now) == in_first
    assert timers_lost(evidence, start, (), (), now) == 0 and timers_lost(evidence, start, segments, (), now) == 40
    assert timers_lost(evidence, start, segments[:1], segments[1:], hour) == 40
    assert timers_lost(evidence, start, segments[:1], segments[1:], hour + 3_600_000) == in_first  # all others are delivered
    off = evidence_of(made, LAST_START, conf="timerWheelEnable=false")  # due long ago, and nobody delivers them
    assert timers_lost(off, StartMoment(LAST_START), segments, (), None) == 40
    soon = StartMoment(FIRST - 59_000)  # due before the first retention
    assert timers_lost(evidence_of(made, soon.at_ms), soon, segments, (), FIRST) == 40 - 4
    assert timers_lost(evidence_of(made, now, "4.9.8"), start, segments, (), now) == 0
    assert timers_lost(evidence_of(made, now, conf="brokerRole=SLAVE\nbrokerId=1"), start, segments, (), now) is None


def test_a_decided_start_that_comes_too_late_for_timers_loses_them(made: TimerStore) -> None:
    late = StartMoment(LAST_START + 8 * 86_400_000, now_ms=LAST_START + 7 * 86_400_000)
    undecided = product.audit(made.root, "5.3.3", made.conf, start=late)
    assert undecided.outcome.exit_code == 0 and Code.TIMERS_PASSED_OVER not in {f.code for f in undecided.findings}
    decided = product.audit(made.root, "5.3.3", made.conf, start=replace(late, decided=True))
    (found,) = (f for f in decided.findings if f.code == Code.TIMERS_PASSED_OVER)
    assert (found.severity, found.count, decided.outcome.exit_code) == (LOSS, 4, 20)
    assert answer_of(decided.outcome) == Answer.REPAIR
    in_time = product.audit(made.root, "5.3.3", made.conf, start=StartMoment(LAST_START, decided=True))
    assert in_time.outcome.exit_code == 0
