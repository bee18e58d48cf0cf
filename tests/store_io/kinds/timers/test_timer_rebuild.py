"""The timer's files of a repaired store: units for exactly those messages that are not delivered yet."""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store_io.kinds.timers import timer_kind, waiting_timers
from tests.support import damage as damages
from tests.support.answers import product
from tests.support.answers.repaired import content, numbers, plan_of, plan_with_steps, previewed, repaired
from tests.support.stores.keyed_timers import keyed_timers
from tests.support.stores.rocksdb_stores import write_database
from tests.support.stores.timers import SLOTS, TimerStore, timer_store

FILES = ("timerlog", "timerwheel", "config/timercheck")


def no_file(*names: str) -> Callable[[TimerStore], None]:
    def remove(made: TimerStore) -> None:
        for name in names:
            path = made.root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def wheel_of(size: int) -> Callable[[TimerStore], None]:
    def change(made: TimerStore) -> None:
        with open(made.root / "timerwheel", "wb") as file:
            file.truncate(size)

    return change


def short_log(made: TimerStore) -> None:
    path = made.root / "timerlog" / f"{0:020d}"
    path.write_bytes(path.read_bytes()[:-1])


def log_end(made: TimerStore) -> None:
    damages.flip_in(made.store, made.copies[2], "body")


class Made:
    """The timer's files of a repaired store, read byte by byte."""

    def __init__(self, root: Path, file_bytes: int):
        self.log = b"".join(path.read_bytes() for path in sorted((root / "timerlog").glob("*")))
        self.wheel = (root / "timerwheel").read_bytes()
        self.read_time, self.flushed, self.offset, self.master = struct.unpack_from(
            ">4q", (root / "config" / "timercheck").read_bytes()
        )

    def delivered_from(self, root: Path, until: int) -> list[bytes]:
        """Messages (their bytes) that a broker delivers: each slot's chain from the time read up to on."""
        data = b"".join(path.read_bytes() for path in sorted((root / "commitlog").glob("*")))
        found = []
        for second in range(self.read_time // 1000, until // 1000 + 1):
            slot, _, at, _, _ = struct.unpack_from(">qqqii", self.wheel, second % SLOTS * 32)
            while slot == second and at >= 0:
                _, at, magic, _, _, phy, size, _, _ = struct.unpack_from(">iqiqiqiiq", self.log, at)
                assert magic in (1, 9)
                found.append(data[phy : phy + size])
        return found


DAMAGES: dict[str, tuple[Callable[[TimerStore], None], int | None]] = {
    "none": (no_file(*FILES), 4),
    "no log": (no_file("timerlog"), 4),
    "no checkpoint": (no_file("config/timercheck"), 4),
    "zeros": (wheel_of(SLOTS * 32), 4),
    "short wheel": (wheel_of(1000), 4),
    "short log": (short_log, 4),
    "copies cut": (log_end, None),
}
# By default each damage under one of them, in turn; what only one of them cuts under both.
EACH_DAMAGE = [
    pytest.param(release, policy, *damage, id=f"{what}-{release}-{policy}", marks=() if both or turn else pytest.mark.soak)
    for number, (what, damage) in enumerate(DAMAGES.items())
    for at, (release, policy) in enumerate((("5.1.4", "broker"), ("5.5.0", "salvage")))
    for both, turn in ((what == "copies cut", number % 2 == at),)
]


@pytest.mark.parametrize(("release", "policy", "damage", "waiting"), EACH_DAMAGE)
def test_each_message_that_is_not_delivered_gets_a_unit(
    release: str, policy: str, damage: Callable[[TimerStore], None], waiting: int | None, tmp_path: Path
) -> None:
    made = timer_store(tmp_path / "store", release)
    damage(made)
    before = content(made.root)
    plan, new = plan_with_steps(made.root, release, made.conf, policy), tmp_path / "new"
    outcome = repaired(made.root, new, plan, policy)
    assert outcome.exit_code == 0 and content(made.root) == before
    cut = policy == "broker" and plan.broker["truncate_at"] == made.copies[2].at  # else the release does not look so far back
    lost = waiting or (8 if cut else 5)  # a cut takes four copies, a bridge one
    assert outcome.report.timers.waiting == lost and outcome.report.timers.overdue == lost - 4
    steps = [(step.action, step.kept) for step in outcome.report.steps if step.action == "rebuild_timers"]
    assert steps == [("rebuild_timers", {"messages": lost}), ("rebuild_timers", {}), ("rebuild_timers", {})]
    audit = product.audit(new, release, made.conf)
    assert not audit.above_note and audit.broker is not None
    assert audit.broker["timer"]["queue_offset"] == 10 and audit.broker["timer"]["lost"]["messages"] == 0
    files = Made(new, made.timers.file_bytes)
    assert (files.offset, files.master) == (10, 10) and files.flushed == 52 * lost
    bodies = files.delivered_from(new, int(time.time() * 1000))
    assert len(bodies) == len(set(bodies)) == lost and all(b"timer " in body for body in bodies)


def test_a_dry_run_says_the_same(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    no_file("timerwheel")(made)
    no_file("config/timercheck")(made)
    plan = plan_of(made.root, "5.3.3", made.conf)
    dry = previewed(made.root, tmp_path / "new", plan)
    done = repaired(made.root, tmp_path / "new", plan)
    assert done.exit_code == 0 and done.report.timers.rebuilt
    told = numbers(dry)
    assert told == done.report


@pytest.mark.parametrize("clean", [True, False])
def test_timer_files_that_fit_stay(clean: bool, tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", clean=clean)
    shutil.rmtree(made.root / "consumequeue" / "other")
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.3.3", made.conf))
    assert outcome.exit_code == 0 and outcome.report.timers is None
    after = content(tmp_path / "new")
    assert {path: after[path] for path in after if path.startswith(("timer", "config/timer"))} == {
        path: digest for path, digest in content(made.root).items() if path.startswith(("timer", "config/timer"))
    }


def test_the_last_unit_leads_to_the_last_message_of_the_queue(tmp_path: Path) -> None:
    """A start takes the queue offset from there; nothing reads that unit's slot."""
    made = timer_store(tmp_path / "store", waiting=0)
    no_file(*FILES)(made)
    new = tmp_path / "new"
    outcome = repaired(made.root, new, plan_of(made.root, "5.3.3", made.conf))
    assert outcome.exit_code == 0 and outcome.report.timers.waiting == 0
    files = Made(new, made.timers.file_bytes)
    assert struct.unpack_from(">iqiqiqii", files.log)[2] == 9 and files.delivered_from(new, int(time.time() * 1000)) == []
    audit = product.audit(new, "5.3.3", made.conf)
    assert not audit.above_note and audit.broker is not None and audit.broker["timer"]["queue_offset"] == 6
    assert audit.outcome.holds.timers.fates.again.messages == 0


def test_snapshots_of_the_wheel_go(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", "5.4.0")
    conf = f"{made.conf}timerWheelSnapshotFlush=true\n"
    (made.root / "timerwheel.52").write_bytes(bytes(SLOTS * 32))
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.4.0", conf))
    assert outcome.exit_code == 0 and outcome.report.timers.waiting == 4
    assert not (tmp_path / "new" / "timerwheel.52").exists()
    assert not product.audit(tmp_path / "new", "5.4.0", conf).above_note


def test_too_many_to_be_held_together_are_found_by_tasks(tmp_path: Path, monkeypatch: Any) -> None:
    made = timer_store(tmp_path / "store", due=30, waiting=30)
    no_file("timerwheel")(made)
    no_file("config/timercheck")(made)
    monkeypatch.setattr(timer_kind, "MAX_TIMERS", 10)
    monkeypatch.setattr(waiting_timers, "TOGETHER", 20)
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.3.3", made.conf))
    assert outcome.exit_code == 0 and outcome.report.timers.waiting == 30
    bodies = Made(tmp_path / "new", made.timers.file_bytes).delivered_from(tmp_path / "new", int(time.time() * 1000))
    assert len(set(bodies)) == len(bodies) == 30
    monkeypatch.setattr(waiting_timers, "MOST_WAITING", 29)
    outcome = repaired(made.root, tmp_path / "other", plan_of(made.root, "5.3.3", made.conf))
    assert outcome.exit_code == 0 and not outcome.report.timers.rebuilt
    assert "30 messages of rmq_sys_wheel_timer would have to wait" in outcome.report.timers.sentence


def test_a_log_without_room_for_a_unit_is_said(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store")
    no_file(*FILES)(made)
    conf = f"{made.store.broker_conf}mappedFileSizeTimerLog=60\n"
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.3.3", conf))
    assert outcome.exit_code == 0 and "has no room for a unit" in outcome.report.timers.sentence


@pytest.mark.parametrize("damage", ["entry", "database", "none, killed"])
def test_timers_in_rocksdb_that_do_not_fit_get_units(damage: str, tmp_path: Path) -> None:
    made = keyed_timers(tmp_path / "store", clean=damage != "none, killed")
    if damage == "entry":
        made.entries.pop(max(made.entries))
    elif damage == "database":
        made.entries.clear()
    else:
        made.offset = 0
    made.write()
    new = tmp_path / "new"
    outcome = repaired(made.root, new, plan_with_steps(made.root, "5.4.0", made.conf, "broker"))
    assert outcome.exit_code == 0 and outcome.report.timers.waiting == 4 and not (new / "rocksdbstore").exists()
    audit = product.audit(new, "5.4.0", made.conf)
    assert not audit.above_note and audit.outcome.holds.timers.fates.waiting.messages == 4
    files = Made(new, made.timers.timers.file_bytes)
    assert len(files.delivered_from(new, int(time.time() * 1000))) == 4 and files.offset == 10


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"default": [(b"lastOffsetPy", bytes(8))], "trans": []}, "in the timer log"),
        ({"default": [(b"lastOffsetPy", bytes(8)), (b"k", b"")], "trans": []}, "; its entries of the index are left out with it"),
        ({"default": [(b"k", b"")], "trans": [(b"k", b"")]}, "; its entries of the index and transactions are left out with it"),
    ],
)
def test_what_is_left_out_with_timers_is_said(others: dict[str, list[tuple[bytes, bytes]]], said: str, tmp_path: Path) -> None:
    made = keyed_timers(tmp_path / "store")
    made.entries.pop(max(made.entries))
    write_database(made.root / "rocksdbstore", {"timer": made.pairs(), **others})
    outcome = repaired(made.root, tmp_path / "new", plan_with_steps(made.root, "5.4.0", made.conf, "broker"))
    (reason,) = (step.reason for step in outcome.report.steps if step.file == "rocksdbstore")
    assert reason.endswith(said)


def test_timers_in_rocksdb_that_fit_stay(tmp_path: Path) -> None:
    made = keyed_timers(tmp_path / "store").write()
    shutil.rmtree(made.root / "consumequeue" / "other")
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.4.0", made.conf))
    assert outcome.exit_code == 0 and outcome.report.timers is None
    assert (tmp_path / "new" / "rocksdbstore" / "CURRENT").exists()
    assert product.audit(tmp_path / "new", "5.4.0", made.conf).outcome.holds.timers.fates.waiting.messages == 4
