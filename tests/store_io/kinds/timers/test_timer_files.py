"""Which files the timer store has, and when a broker ends over them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from store_io.answer.headline import verdict_text
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores.timers import SLOT_BYTES, SLOTS, TimerStore, timer_store


def audit(made: TimerStore, release: str = "5.3.3", conf: str = "") -> Audited:
    return product.audit(made.root, release, made.conf + conf)


@pytest.mark.parametrize("clean", [True, False])
def test_a_healthy_store_has_no_finding(tmp_path: Path, clean: bool) -> None:
    done = audit(timer_store(tmp_path / "store", clean=clean))
    assert done.outcome.exit_code == 0 and not done.findings and not done.outcome.covered.not_judged and done.broker is not None
    assert done.broker["timer"] == {
        "log_end": 520, "queue_offset": 10,
        "lost": {"messages": 0, "first_delivery_time": None, "last_delivery_time": None},
    }  # fmt: skip
    assert done.outcome.holds.timers.fates.waiting.messages == 4


def test_a_broker_ends_over_a_wheel_or_a_log_of_another_length(tmp_path: Path) -> None:
    wheel = timer_store(tmp_path / "wheel")
    with open(wheel.root / "timerwheel", "r+b") as file:
        file.truncate(1000)
    done = audit(wheel)
    assert done.broker is not None and done.broker["timer"] is None
    assert done.broker["refusal"] == f"timerwheel: 1,000 bytes, where a timer wheel has {SLOTS * SLOT_BYTES:,}"
    assert audit(wheel, conf="timerWheelEnable=false\n").outcome.exit_code == 0
    log = timer_store(tmp_path / "log")
    path = log.root / "timerlog" / f"{0:020d}"
    path.write_bytes(path.read_bytes()[:-1])
    done = audit(log)
    assert done.broker is not None and done.broker["refusal"].startswith(f"timerlog/{0:020d}: length 5,215")
    assert "timers" in done.outcome.covered.not_judged
    (tmp_path / "wheel" / "timerwheel").unlink()
    (tmp_path / "wheel" / "timerwheel").mkdir()
    done = audit(wheel)
    assert done.broker is not None and done.broker["refusal"].startswith("timerwheel: a directory")


def test_an_older_release_has_none_here(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    assert product.audit(made.root, "4.9.8", made.conf).broker["timer"] is None  # type: ignore[index]


def test_the_newest_snapshot_of_the_wheel_is_read_where_the_release_makes_them(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", "5.4.0")
    wheel = made.root / "timerwheel"
    (made.root / "timerwheel.520").write_bytes(wheel.read_bytes())
    (made.root / "timerwheel.104").write_bytes(b"")
    wheel.write_bytes(bytes(SLOTS * SLOT_BYTES))
    assert any(f.code == "timer_slot_wrong" for f in audit(made, "5.4.0").above_note)
    assert not audit(made, "5.4.0", "timerWheelSnapshotFlush=true\n").above_note


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_out(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize("kind", [fifo, link_out])
@pytest.mark.parametrize("name", ["timerwheel", "config/timercheck", "timerwheel.520"])
def test_what_is_no_regular_file_leaves_the_audit_incomplete(tmp_path: Path, name: str, kind: Callable[[Path], None]) -> None:
    made = timer_store(tmp_path / "store")
    path = made.root / name
    path.unlink(missing_ok=True)
    kind(path)
    done = audit(made, "5.4.0", "timerWheelSnapshotFlush=true\n")
    assert done.outcome.exit_code == 3 and any(name in sentence for sentence in done.incomplete)
    assert "consistent" not in verdict_text(done.outcome)
