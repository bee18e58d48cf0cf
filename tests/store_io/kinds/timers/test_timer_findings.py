"""Findings on the timer store: where they lie, and when they are no more than a note."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.answer.headline import verdict_text
from store_io.wording.steps import next_text
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.damage import overwrite
from tests.support.stores.keyed_timers import keyed_timers, timer_key, timer_value
from tests.support.stores.timers import BEGIN, TimerStore, timer_store


def audit(made: TimerStore) -> Audited:
    return product.audit(made.root, "5.3.3", made.conf)


def set_check(made: TimerStore, **fields: int) -> None:
    names = ("read_time", "flushed", "queue_offset", "master")
    path = made.root / "config" / "timercheck"
    data = bytearray(path.read_bytes())
    for name, value in fields.items():
        struct.pack_into(">q", data, 8 * names.index(name), value)
    path.write_bytes(data)


def test_a_due_message_without_a_copy(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    set_check(made, read_time=BEGIN + 3_700_000)  # the four that wait are due, and nothing was delivered
    done = audit(made)
    (lost,) = (f for f in done.findings if f.code == "timer_message_lost")
    assert (lost.severity, lost.count, lost.file, lost.start, lost.end) == (LOSS, 4, "config/timercheck", 0, 8)
    assert done.outcome.exit_code == 20 and "never delivers 4 timer messages" in verdict_text(done.outcome)


def test_in_a_copy_of_a_running_broker_it_is_a_note(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", clean=False)
    set_check(made, read_time=BEGIN + 3_700_000)
    done = audit(made)
    assert done.outcome.exit_code == 0 and done.broker is not None and done.broker["timer"]["lost"]["messages"] == 4
    assert [f.severity for f in done.findings if f.code == "timer_message_lost"] == [NOTE]
    assert " 4 timer messages, due after the copy's last message, would not be delivered." in verdict_text(done.outcome)


def test_of_a_slave_it_is_a_note_too(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    set_check(made, read_time=BEGIN + 3_700_000)
    done = product.audit(made.root, "5.3.3", made.conf + "brokerRole=SLAVE\nbrokerId=1\n")
    assert [f.severity for f in done.findings if f.code == "timer_message_lost"] == [NOTE]


@pytest.mark.parametrize(("clean", "severity"), [(True, REBUILDABLE), (False, NOTE)])
def test_units_beyond_the_log(tmp_path: Path, clean: bool, severity: str) -> None:
    made = timer_store(tmp_path / "store", clean=clean)
    for path in (made.root / "timerlog").iterdir():
        path.unlink()
    (made.root / "timerlog").rmdir()
    beyond = made.store.records[-1]
    beyond = type(beyond)(**{**vars(beyond), "at": beyond.at + 5000})
    made.timers.enqueue(beyond, BEGIN // 1000 * 1000 + 3_600_000, BEGIN)
    made.timers.write(made.root)
    found = [f for f in audit(made).findings if f.code.startswith("timer")]
    assert [(f.code, f.severity, f.start, f.end) for f in found] == [("timer_unit_beyond_end", severity, 520, 572)]


def test_the_checkpoint(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    set_check(made, flushed=900)
    (found,) = audit(made).above_note
    assert (found.code, found.file, found.start, found.end) == ("timer_checkpoint_wrong", "config/timercheck", 8, 16)
    set_check(made, flushed=520, read_time=-1)
    assert "timer_checkpoint_wrong" in {f.code for f in audit(made).above_note}
    (made.root / "config" / "timercheck").write_bytes(b"")
    (found,) = audit(made).above_note
    assert (found.code, found.severity, found.actual) == ("timer_checkpoint_missing", REBUILDABLE, "0 bytes")
    assert "delivers 6 messages again" in found.message


def test_half_a_unit_at_the_end_after_a_kill_is_a_note(tmp_path: Path) -> None:
    for clean, severity in ((True, REBUILDABLE), (False, NOTE)):
        made = timer_store(tmp_path / f"{clean}", clean=clean)
        overwrite(made.root / "timerlog" / f"{0:020d}", 520, b"\0\0\0\x34" + b"\1" * 9)
        found = audit(made).findings
        assert [(f.code, f.severity, f.start) for f in found] == [("timer_unit_damaged", severity, 520)]


def test_a_time_that_no_calendar_holds_is_said_as_a_number(tmp_path: Path) -> None:
    made = keyed_timers(tmp_path / "store")
    made.more = {timer_key((1 << 63) - 1, "A"): timer_value(90, 1 << 40)}
    made.read_time = (1 << 63) - 1
    made.write()
    texts = [f"{f.message} {f.actual}" for f in product.audit(made.root, "5.4.0", made.conf).findings]
    assert any("due at 9223372036854775807 ms" in text for text in texts)
    assert any("read up to 9223372036854775807 ms" in text for text in texts) and not any("None" in text for text in texts)


def test_messages_that_wait_for_a_service_that_is_off_are_named(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    waiting = audit(made).outcome.holds.timers.fates.waiting.messages
    done = product.audit(made.root, "5.3.3", made.conf + "timerWheelEnable=false\n")
    (found,) = (f for f in done.findings if f.code == "timer_messages_wait")
    assert waiting and (found.severity, found.count) == (NOTE, waiting)
    assert done.outcome.exit_code == 0 and done.broker is not None and done.broker["timer"] is None
    assert f"{waiting} timer messages" in verdict_text(done.outcome) and "timerWheelEnable=false" in verdict_text(done.outcome)
    assert not [f for f in audit(made).findings if f.code == "timer_messages_wait"]


def test_timers_that_lie_in_a_database_that_is_not_used_are_lost_whatever_the_exit(tmp_path: Path) -> None:
    for clean in (True, False):
        made = keyed_timers(tmp_path / f"{clean}", clean=clean)
        made.write()
        used = product.audit(made.root, "5.4.0", made.conf)
        assert not [f for f in used.findings if f.code == "timer_message_lost"]
        set_check(made.timers, queue_offset=10, master=10)  # all were taken out of their queue
        done = product.audit(made.root, "5.4.0", made.conf.replace("timerRocksDBEnable=true", "timerRocksDBEnable=false"))
        (lost,) = (f for f in done.findings if f.code == "timer_message_lost")
        assert lost.severity == LOSS and done.outcome.exit_code == 20
        assert "these settings do not read" in lost.message and "timerRocksDBEnable=true" in next_text(lost.next)
