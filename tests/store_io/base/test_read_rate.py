"""Tasks of one machine read together at no more than a rate: sleeps are counted, on a clock that only sleeping moves."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

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


def test_a_file_that_is_not_this_users_alone_is_refused(rate: ReadRate, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"12345678")
    os.symlink(tmp_path / "other", rate.place)
    with pytest.raises(OSError):
        rate.wait(1)
    os.unlink(rate.place)
    os.link(tmp_path / "other", rate.place)
    with pytest.raises(OSError, match="--max-rate"):
        rate.wait(1)
    assert (tmp_path / "other").read_bytes() == b"12345678"


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
    os.unlink(rate.place)
    os.mkdir(rate.place)
    with pytest.raises(Unreadable, match="checkpoint: cannot be read at 0"):
        open_source(location).read_small("checkpoint")
    assert open_source(StoreLocation(str(tmp_path / "store"))).read_small("checkpoint") == content
    assert len(clock.slept) == 4
