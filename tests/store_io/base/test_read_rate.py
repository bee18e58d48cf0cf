"""Tasks of one machine read together at no more than a rate: sleeps are counted, on a clock that only sleeping moves."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from store_io.base import read_rate
from store_io.base.errors import Unreadable
from store_io.base.read_rate import PIECE_BYTES, ReadRate
from store_io.source import byte_source
from store_io.source.byte_source import StoreLocation, open_source


class Clock:
    """Time that passes where somebody sleeps."""

    def __init__(self) -> None:
        self.time, self.slept = 1000.0, list[float]()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rate(clock: Clock, tmp_path: Path) -> ReadRate:
    return ReadRate(1_000_000, str(tmp_path / "rate"), clock.now, clock.sleep)


def test_reads_one_after_the_other_take_their_time(rate: ReadRate, clock: Clock) -> None:
    for _ in range(5):
        rate.wait(500_000)
    assert clock.slept == [0.5] * 4  # the first may begin at once


def test_who_reads_less_than_the_rate_never_waits(rate: ReadRate, clock: Clock) -> None:
    for _ in range(5):
        rate.wait(500_000)
        clock.time += 0.75
    assert clock.slept == []


def test_all_tasks_share_one_rate(clock: Clock, tmp_path: Path) -> None:
    # Each sleeps on its own: while they do so the clock stands, as for processes side by side.
    slept: list[float] = []
    tasks = [ReadRate(1_000_000, str(tmp_path / "rate"), clock.now, slept.append) for _ in range(4)]
    for task in tasks * 2:
        task.wait(1_000_000)
    assert slept == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize("left", [struct.pack("<d", 1e9), struct.pack("<d", float("nan")), struct.pack("<d", 5.0), b"x"])
def test_what_an_earlier_run_left_keeps_nobody_waiting(rate: ReadRate, clock: Clock, left: bytes) -> None:
    Path(rate.place).write_bytes(left)  # from before the machine's last start, or damaged
    rate.wait(1_000_000)
    assert clock.slept == []
    rate.wait(1)
    assert clock.slept == [1.0]


def _link(place: str, other: Path) -> None:
    os.symlink(other, place)


def _second_name(place: str, other: Path) -> None:
    os.link(other, place)


def _folder(place: str, _: Path) -> None:
    os.mkdir(place)


def _fifo(place: str, _: Path) -> None:
    os.mkfifo(place)


def _of_another_user(place: str, _: Path) -> None:
    Path(place).write_bytes(b"")
    os.chown(place, 65534, 65534)


@pytest.mark.parametrize("plant", [_link, _second_name, _folder, _fifo, _of_another_user])
def test_what_another_user_puts_in_its_place_is_left_alone(
    rate: ReadRate, clock: Clock, tmp_path: Path, plant: Callable[[str, Path], None]
) -> None:
    """All tasks still share one rate, in a file whose name could not be known."""
    if plant is _of_another_user and os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    other = tmp_path / "other"
    other.write_bytes(b"12345678")
    plant(rate.place, other)
    plant(f"{rate.place}-0", other)
    for _ in range(3):
        replace(rate).wait(1_000_000)
    assert clock.slept == [1.0, 1.0] and other.read_bytes() == b"12345678"
    names = sorted(path.name for path in tmp_path.iterdir() if path != other)
    assert names[:2] == ["rate", "rate-0"] and len(names) == 3
    assert (tmp_path / names[2]).stat().st_mode & 0o777 == 0o600


def test_two_that_make_a_file_at_the_same_time_share_the_first(rate: ReadRate, clock: Clock, tmp_path: Path) -> None:
    os.mkdir(rate.place)
    for name in ("rate-b", "rate-a"):
        (tmp_path / name).touch()
    rate.wait(1_000_000)
    rate.wait(1_000_000)
    assert clock.slept == [1.0] and [(tmp_path / name).stat().st_size for name in ("rate-a", "rate-b")] == [8, 0]


def test_the_folder_is_looked_through_only_if_the_usual_file_cannot_be_used(
    rate: ReadRate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(read_rate.glob, "iglob", lambda pattern: looked.append(pattern) or [])
    rate.wait(1)
    assert looked == []
    monkeypatch.setattr(read_rate, "_own", lambda path, make: None)
    with pytest.raises(OSError, match="--max-rate, cannot be opened"):
        rate.wait(1)
    assert len(looked) == 2 and len(list(tmp_path.iterdir())) == 2


def test_a_file_that_is_cleared_away_is_made_anew(rate: ReadRate, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the moment when it is opened and the moment when it is locked."""
    real, asked = fcntl.flock, list[int]()

    def flock(handle: int, operation: int) -> None:
        asked.append(handle)
        if len(asked) == 1:
            os.unlink(rate.place)
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    rate.wait(1_000_000)
    rate.wait(1_000_000)
    assert clock.slept == [1.0] and len(asked) == 3


def test_a_store_is_read_in_pieces_and_whole(
    rate: ReadRate, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(3 * PIECE_BYTES + 5)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "checkpoint").write_bytes(content)
    monkeypatch.setattr(byte_source, "ReadRate", lambda most: replace(rate, bytes_per_second=most))
    location = StoreLocation(str(tmp_path / "store"), max_rate=PIECE_BYTES)
    assert open_source(location).read_small("checkpoint") == content
    assert clock.slept == [1.0] * 3
    with open_source(location).open("checkpoint") as file:
        assert file.read(2 * PIECE_BYTES, 10) == content[2 * PIECE_BYTES : 2 * PIECE_BYTES + 10]
    assert len(clock.slept) == 4
    gone = replace(rate, place=str(tmp_path / "gone" / "rate"))
    monkeypatch.setattr(byte_source, "ReadRate", lambda most: gone)
    with pytest.raises(Unreadable, match="checkpoint: cannot be read at 0"):
        open_source(location).read_small("checkpoint")
    assert open_source(StoreLocation(str(tmp_path / "store"))).read_small("checkpoint") == content
    assert len(clock.slept) == 4
