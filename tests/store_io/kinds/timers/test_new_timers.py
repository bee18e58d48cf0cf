"""The bytes of a new timer log and wheel, read back as a broker's."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from store_io.kinds.timers.new_timers import NewUnit, check_bytes, log_pieces, new_log, units_of_file, wheel_pieces

FILE = 52 * 3 + 16


def made(times: list[int], slotted: int | None = None, magic: int = 1) -> NewUnit:
    count = len(times)
    return NewUnit(
        np.array(times), np.full(count, magic, np.int32), np.arange(count) * 1000, np.full(count, 214), np.full(count, -7),
        5000, 1000,
    )  # fmt: skip


def unit(data: bytes, at: int) -> tuple[int, ...]:
    return struct.unpack_from(">iqiqiqiiq", data, at)


def test_units_link_to_the_one_before_them_in_their_slot() -> None:
    log = new_log(made([7000, 8000, 7000, 7500, 4000]), 4, FILE)
    (first, data), (second, rest) = log_pieces(log)
    assert (first, second) == (0, FILE)
    assert [unit(data, at)[1] for at in (0, 52, 104)] == [-1, -1, 0]
    assert unit(data, 104) == (52, 0, 1, 5000, 2000, 2000, 214, -7, 0)
    assert struct.unpack_from(">iqI", data, 156) == (16, 0, 0xCBD43194) and len(data) == FILE
    assert unit(rest, 0)[1] == 104 and unit(rest, 52)[1] == -1 and unit(rest, 52)[4] == -1000
    assert log.end == FILE + 104
    wheel = {position + at: data[at : at + 32] for position, data in wheel_pieces(log) for at in range(0, len(data), 32)}
    used = {at: struct.unpack(">qqqii", slot) for at, slot in wheel.items() if any(slot)}
    assert used == {7 * 32: (7, 0, FILE, 3, 0), 8 * 32: (8, 52, 52, 1, 0)}


def test_what_deletes_counts_down() -> None:
    (slot,) = new_log(made([7000], magic=5), 1, FILE).slots
    assert slot["number"] == -1


def test_nothing_waits() -> None:
    log = new_log(made([]), 0, FILE)
    assert log.end == 0 and list(log_pieces(log)) == [] and list(wheel_pieces(log)) == []


@pytest.mark.parametrize(("size", "count"), [(67, 0), (68, 1), (119, 1), (120, 2), (104_857_600, 2_016_492)])
def test_how_many_units_a_file_takes(size: int, count: int) -> None:
    assert units_of_file(size) == count


def test_the_checkpoint_says_a_master_s_offsets() -> None:
    data = check_bytes(1, 2, 3)
    assert len(data) == 4096 and struct.unpack_from(">5q", data) == (1, 2, 3, 3, 0)
