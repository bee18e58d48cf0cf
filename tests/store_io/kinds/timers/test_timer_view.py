"""What a start makes of the timer store: the plan's section, whatever is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.answer.headline import verdict_text
from store_io.kinds.timers import timer_kind
from tests.support import damage
from tests.support.answers import product
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Sizes
from tests.support.stores.timers import timer_store


def cut_log(root: Path, position: int) -> None:
    """Damage in a message, so that recovery ends there."""
    damage.overwrite(sorted((root / "commitlog").iterdir())[0], position + 4, b"\xff\xff\xff\xff")


@pytest.mark.parametrize(("release", "offset"), [("5.1.4", 10), ("5.3.1", 10), ("5.3.2", 10), ("5.5.0", 10)])
def test_copies_that_are_cut_away_are_never_delivered_again(tmp_path: Path, release: str, offset: int) -> None:
    made = timer_store(tmp_path / "store", release, clean=False, sizes=Sizes(segment=1 << 16))
    cut_log(made.root, made.copies[2].at)
    done = product.audit(made.root, release, made.conf)
    assert done.broker is not None and done.broker["truncate_at"] == made.copies[2].at
    timer = done.broker["timer"]
    assert timer["queue_offset"] == offset and timer["log_end"] == 520
    assert {f.message.rpartition(": ")[2] for f in done.findings if f.code == "timer_message_lost"} == {
        "their delivered copies are cut away", "no copy of them was ever delivered",  # this one's is damaged
    }  # fmt: skip
    assert timer["lost"]["messages"] == 4 and timer["lost"]["first_delivery_time"] == "2023-11-14T22:13:22.000Z"
    assert "4 timer messages that stay in the CommitLog will never" in verdict_text(done.outcome)
    assert {q["topic"] for q in done.broker["lost"]["by_queue"]} == {"orders", "other"}


@pytest.mark.parametrize(("release", "offset", "severity"), [("5.1.4", 10, "rebuildable"), ("5.3.3", 7, "note")])
def test_the_queue_offset_beyond_the_queue(tmp_path: Path, release: str, offset: int, severity: str) -> None:
    made = timer_store(tmp_path / "store", release, clean=False, sizes=Sizes(segment=1 << 16))
    cut_log(made.root, made.waiting[1].at)
    done = product.audit(made.root, release, made.conf)
    assert done.broker is not None and done.broker["timer"]["queue_offset"] == offset
    (beyond,) = (f for f in done.findings if f.code == "timer_offset_beyond_end")
    assert (beyond.file, beyond.start, beyond.end, beyond.severity) == ("config/timercheck", 16, 24, severity)
    assert ("3 timer messages sent would never" in beyond.message) == (release == "5.1.4")
    assert done.broker["timer"]["lost"]["messages"] == 6  # due ones; the three that wait are lost with the log
    assert done.outcome.holds.timers.stale == 3


def test_too_many_to_hold_are_said_to_be_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = timer_store(tmp_path / "store")
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", 5)
    monkeypatch.setattr(timer_kind, "MAX_TIMER_PARTS", 0)
    done = product.audit(made.root, "5.3.3", made.conf)
    assert done.broker is not None and done.broker["timer"] == {"log_end": 520, "queue_offset": 10, "lost": None}
    assert "timers" in done.outcome.covered.not_judged and "a start reads it: timers." in verdict_text(done.outcome)


def test_a_message_whose_head_is_gone_leaves_the_checkpoints_offset(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    damage.remove(made.root / "config" / "timercheck")
    done = product.audit(made.root, "5.3.3", made.conf)
    assert done.broker is not None and done.broker["timer"]["queue_offset"] == 0
    assert done.outcome.holds.timers.fates.again.messages == 6 and done.outcome.holds.timers.fates.waiting.messages == 4


@pytest.mark.parametrize("together", [1, 1 << 20])
def test_a_real_store_that_was_copied_while_its_broker_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    (case,) = (c for c in corpus_tools.cases() if c.name == "g5x-533-broker-live")
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", together)
    done = product.audit(case.unpack(tmp_path), "5.3.3", case.broker_conf)
    assert done.broker is not None and not any(f.code.startswith("timer") for f in done.findings)
    assert done.broker["timer"] == {
        "log_end": 125_476, "queue_offset": 2327,
        "lost": {"messages": 0, "first_delivery_time": None, "last_delivery_time": None},
    }  # fmt: skip
    assert (done.outcome.holds.timers.units, done.outcome.holds.timers.fates.waiting.messages) == (2413, 1890)
    assert done.outcome.holds.timers.fates.again.messages == 314  # the checkpoint was flushed before they were delivered


def test_messages_that_no_slot_leads_to_are_lost(tmp_path: Path) -> None:
    """Four files of the timer log: a start makes slots from the last two alone."""
    made = timer_store(tmp_path / "store", waiting=300)
    wheel = made.root / "timerwheel"
    size, whole = wheel.stat().st_size, wheel.read_bytes()
    assert product.audit(made.root, "5.3.3", made.conf).outcome.exit_code == 0

    def lost() -> tuple[int, set[tuple[str, str]]]:
        done = product.audit(made.root, "5.3.3", made.conf)
        assert done.outcome.exit_code == 20 and done.broker is not None and "A start never delivers" in verdict_text(done.outcome)
        assert done.outcome.holds.timers.fates.unreached.messages == done.broker["timer"]["lost"]["messages"]
        assert done.outcome.holds.timers.fates.waiting.messages + done.broker["timer"]["lost"]["messages"] == 300
        return done.broker["timer"]["lost"]["messages"], {(f.code, f.severity) for f in done.findings}

    missing = (194, {("timer_message_lost", "loss"), ("timer_wheel_missing", "rebuildable")})
    wheel.unlink()
    assert lost() == missing
    wheel.write_bytes(b"")
    assert lost() == missing
    with open(wheel, "wb") as file:
        file.truncate(size)
    assert lost() == (194, {("timer_message_lost", "loss"), ("timer_slot_wrong", "rebuildable")})
    wheel.write_bytes(whole)


def test_what_hangs_on_a_unit_that_is_gone_is_lost(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", waiting=300)
    path = made.root / "timerlog" / f"{0:020d}"
    damage.overwrite(path, 52 * 21, bytes(52))  # the newer of two in its slot
    done = product.audit(made.root, "5.3.3", made.conf)
    assert done.broker is not None and done.broker["timer"]["lost"]["messages"] == 2
    assert [getattr(done.outcome.holds.timers.fates, name).messages for name in ("unreached", "no_unit", "waiting")] == [
        1,
        1,
        298,
    ]


@pytest.mark.parametrize(("number", "lost"), [(0, 94), (1, 100)])
def test_a_file_of_the_timer_log_that_is_gone_is_named(tmp_path: Path, number: int, lost: int) -> None:
    made = timer_store(tmp_path / "store", waiting=300, clean=False)
    gone = made.root / "timerlog" / f"{number * made.timers.file_bytes:020d}"
    gone.unlink()
    done = product.audit(made.root, "5.3.3", made.conf)
    assert [f.file for f in done.findings if f.code == "timer_log_missing"] == [f"timerlog/{gone.name}"]
    assert {(f.severity, f.count, f.message.rpartition(": ")[2]) for f in done.findings if f.code == "timer_message_lost"} == {
        ("loss", lost, "they were taken out of their queue, and the timer log has no unit of them")
    }
    assert done.outcome.holds.timers.fates.no_unit.messages == lost and not done.outcome.holds.timers.fates.after_end.messages
