"""The timer log and the wheel read together: where recovery ends, and what does not fit."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import NOTE, MappedFile
from store_io.base.findings import Findings
from store_io.kinds.timers import timer_task
from store_io.kinds.timers.timer_files import TimerCheck
from store_io.kinds.timers.timer_task import TimerFiles, TimerTask, read_timer_files
from store_io.source.byte_source import StoreLocation
from tests.support.damage import overwrite
from tests.support.stores import builders
from tests.support.stores.timers import LOG_BYTES, SLOT_BYTES, SLOTS, UNIT_BYTES, Timers

RECORD = builders.StoreBuilder().put(builders.Message(body=b"x"))


def many(count: int, per_slot: int = 3) -> Timers:
    timers = Timers()
    for number in range(count):
        timers.enqueue(RECORD, 1_700_000_100_000 + number // per_slot * 1000, 1_700_000_000_000)
    return timers


def task_of(root: Path, timers: Timers, begin: int = 0, unclean: bool = False, max_units: int = 10_000) -> TimerTask:
    names = sorted((root / "timerlog").iterdir())
    files = tuple(MappedFile(f"timerlog/{p.name}", int(p.name), p.stat().st_size) for p in names)
    flushed = len(timers.log) if timers.flushed is None else timers.flushed
    check = TimerCheck(4096, timers.read_time, flushed, timers.queue_offset, timers.queue_offset)
    size = (root / "timerwheel").stat().st_size
    location = StoreLocation(str(root))
    return TimerTask(0, location, files, "timerwheel", size, check, begin, 1000, unclean, max_units)


def read(root: Path, timers: Timers, **more: int) -> TimerFiles:
    if not (root / "timerlog").exists():
        timers.write(root)
    return read_timer_files(task_of(root, timers, **more))  # type: ignore[arg-type]


def test_several_files(tmp_path: Path) -> None:
    timers = many(250)  # a hundred in a file
    found = read(tmp_path, timers)
    assert found.unit_count == 250 and found.units is not None and len(found.units) == 250 and not found.findings
    assert found.log_end == found.units_end == len(timers.log) and found.last_entry == (RECORD.at, RECORD.size)
    assert found.slots == 84 and set(found.digests) == {
        *(f"timerlog/{i * LOG_BYTES:020d}" for i in range(3)), "timerwheel",
    }  # fmt: skip
    task = task_of(tmp_path, timers)
    assert pickle.loads(pickle.dumps(task)).run().digests == found.digests
    assert task.bytes_to_read > 3 * LOG_BYTES and len(task.paths) == 4


def test_more_units_than_the_task_may_give(tmp_path: Path) -> None:
    found = read(tmp_path, many(250), max_units=249)
    assert found.units is None and found.unit_count == 250 and not found.findings


@pytest.mark.parametrize(("begin", "end"), [(0, 52 * 40), (LOG_BYTES - 1, 52 * 40), (LOG_BYTES, 2 * LOG_BYTES + 52 * 50)])
def test_recovery_ends_at_the_first_unit_that_is_none_in_the_files_it_looks_at(tmp_path: Path, begin: int, end: int) -> None:
    timers = many(250, per_slot=1)
    timers.write(tmp_path)
    path = tmp_path / "timerlog" / f"{0:020d}"
    overwrite(path, 52 * 40, b"\7" * 52)
    found = read(tmp_path, timers, begin=begin)
    assert found.log_end == end
    damaged = [f for f in found.findings if f.code == "timer_unit_damaged"]
    assert [(f.file, f.start, f.end) for f in damaged] == [(f"timerlog/{0:020d}", 52 * 40, 52 * 41)]


def test_a_full_last_file_ends_at_its_filler(tmp_path: Path) -> None:
    timers = many(100)
    timers.log += b"\0\0\0\x10" + bytes(8) + b"\xcb\xd4\x31\x94"
    timers.flushed = 5200
    assert read(tmp_path, timers).log_end == 5200


def test_a_wheel_that_lags_after_a_kill_is_healthy(tmp_path: Path) -> None:
    timers = many(9)
    timers.flushed = 5 * UNIT_BYTES
    time = min(timers.slots) + 2
    del timers.slots[time]  # its units are beyond the flush position
    timers.slots[time - 1] = [3 * UNIT_BYTES, 4 * UNIT_BYTES, 2]
    assert not read(tmp_path, timers).findings


def test_a_link_that_leads_nowhere_hides_the_units_before_it(tmp_path: Path) -> None:
    timers = many(9)
    wrong = 4 * UNIT_BYTES  # of the second slot's three units the one between
    timers.log[wrong + 4 : wrong + 12] = (wrong + UNIT_BYTES).to_bytes(8, "big")
    found = read(tmp_path, timers)
    assert [(f.code, f.start, f.end, f.expected) for f in found.findings] == [
        ("timer_unit_wrong", wrong, wrong + UNIT_BYTES, f"previous unit of the slot at {3 * UNIT_BYTES}")
    ]
    assert (found.reach.low.tolist(), found.reach.high.tolist()) == ([wrong], [5 * UNIT_BYTES])


SECOND = 1_700_000_101  # the time of units 3, 4 and 5, and the slot's at place PLACE of the wheel
PLACE = SECOND % SLOTS * SLOT_BYTES
UNIT, SLOT = "timer_unit_wrong", "timer_slot_wrong"


@pytest.mark.parametrize(
    ("units", "slot", "more", "found"),
    [
        ({4: 4}, (), {}, (UNIT, 208, "", "previous unit of the slot at 156", "a link to 208")),
        ({4: 0}, (), {}, (UNIT, 208, "", "previous unit of the slot at 156", "a link to 0")),
        ({4: -2}, (), {}, (UNIT, 208, "", "previous unit of the slot at 156", "a link to -104")),
        ({0: 1}, (), {}, (UNIT, 0, "", "no previous unit", "a link to 52")),
        ({3: 0}, (), {}, (UNIT, 156, "", "no previous unit", "a link to 0")),
        ({5: 3}, (), {}, None),  # an older unit of the slot's time, as a restart leaves it
        ({}, (3, 9), {}, (SLOT, PLACE, "", "last unit 260", "last unit 468")),
        ({}, (3, 9), {"unclean": True}, (SLOT, PLACE, NOTE, "last unit 260", "last unit 468")),
        ({}, (3, 8), {"unclean": True}, (SLOT, PLACE, "", "last unit 260", "last unit 416")),
        ({}, (1, 5), {}, (SLOT, PLACE, "", "first unit 156", "first unit 52")),
        ({}, (3, -1), {}, None),  # it names a file that retention deleted
        ({}, (3, 3), {"read": SECOND}, (SLOT, PLACE, "", "last unit 260", "last unit 156")),
        ({}, (3, 3), {"read": SECOND + 1}, (SLOT, PLACE, NOTE, "last unit 260", "last unit 156")),
        ({}, (3, 4), {"flushed": 5}, None),  # its last unit came after the last flush
        ({}, (3, 4), {"flushed": 6}, (SLOT, PLACE, "", "last unit 260", "last unit 208")),
        ({}, None, {"read": SECOND}, (SLOT, PLACE, "", "last unit 260", "no slot of that time")),
        ({}, None, {"read": SECOND + 1}, None),
        ({}, None, {"flushed": 5}, None),
        ({}, None, {"flushed": 6}, (SLOT, PLACE, "", "last unit 260", "no slot of that time")),
    ],
)
def test_one_link_or_slot_that_is_not_what_the_others_say(
    units: dict[int, int],
    slot: tuple[int, int] | tuple[()] | None,
    more: dict[str, int],
    found: tuple[object, ...] | None,
    tmp_path: Path,
) -> None:
    """units: number -> number of the unit that it leads to. slot: its first and last unit; None: it is blank."""
    timers = many(9)
    for number, previous in units.items():
        at = UNIT_BYTES * number + 4
        timers.log[at : at + 8] = (UNIT_BYTES * previous).to_bytes(8, "big", signed=True)
    if slot is None:
        del timers.slots[SECOND]
    elif slot:
        timers.slots[SECOND][:2] = [UNIT_BYTES * number for number in slot]
    timers.read_time = more.get("read", 0) * 1000 or timers.read_time
    timers.flushed = UNIT_BYTES * more.get("flushed", 9)
    findings = read(tmp_path, timers, unclean=more.get("unclean", False)).findings
    assert [(f.code, f.start, f.severity, f.expected, f.actual) for f in findings] == ([found] if found else [])
    assert all((f.end or 0) - (f.start or 0) == (UNIT_BYTES if f.code == UNIT else SLOT_BYTES) for f in findings)


def test_a_slot_in_another_one_s_place(tmp_path: Path) -> None:
    timers = many(9)
    timers.write(tmp_path)
    with open(tmp_path / "timerwheel", "r+b") as wheel:
        wheel.seek(PLACE)
        slot = wheel.read(SLOT_BYTES)
        wheel.seek(PLACE + 10 * SLOT_BYTES)
        wheel.write(slot)
    (found,) = read(tmp_path, timers).findings
    place = PLACE // SLOT_BYTES
    assert (found.start, found.expected, found.actual) == (PLACE + 10 * SLOT_BYTES, f"slot {place}", f"slot {place + 10}")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5300), st.binary(min_size=1, max_size=120))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, at: int, data: bytes) -> None:
    root, timers = tmp_path_factory.mktemp("timers"), many(110)
    timers.write(root)
    path = root / "timerlog" / f"{at // LOG_BYTES * LOG_BYTES:020d}"
    content = bytearray(path.read_bytes())
    content[at % LOG_BYTES : at % LOG_BYTES + len(data)] = data
    path.write_bytes(content[:LOG_BYTES])
    found = read(root, timers)
    assert not found.problem and 0 <= found.log_end <= 2 * LOG_BYTES
    assert all(f.start is None or 0 <= f.start < (f.end or 0) for f in found.findings)


def test_links_beyond_the_limit_are_counted_and_blamed_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = many(90, per_slot=9)
    for slot in range(10):  # as a restart leaves it: the newest unit leads to an older one than the one before it
        at = 52 * (slot * 9 + 8) + 4
        timers.log[at : at + 8] = (52 * (slot * 9 + 2)).to_bytes(8, "big")
    found = read(tmp_path, timers)
    assert not found.findings and not found.links_unread
    monkeypatch.setattr("store_io.kinds.timers.timer_task.MAX_LOOKED_UP", 4)
    found = read(tmp_path, timers)
    assert not found.findings and found.links_unread == 6


@pytest.mark.parametrize("most", [1000, 251, 250, 249, 25])
def test_findings_beyond_the_limit_are_counted(tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer_task, "Findings", lambda: Findings(most))
    timers = many(250, per_slot=1)
    timers.write(tmp_path)
    size = (tmp_path / "timerwheel").stat().st_size
    with open(tmp_path / "timerwheel", "wb") as wheel:
        wheel.truncate(size)
    found = read(tmp_path, timers)
    assert len(found.findings) == min(most, 250) and sum(f.count + f.more for f in found.findings) == 250
    assert not len(found.reach.slot)  # a start that begins at the first file makes all slots anew
    assert len(read(tmp_path, timers, begin=2 * LOG_BYTES).reach.slot) == 200
