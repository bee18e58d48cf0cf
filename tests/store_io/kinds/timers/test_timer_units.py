"""Units of a timer log: whatever lies in it, and in whatever windows it is read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import MappedFile
from store_io.kinds.timers import timer_units
from store_io.kinds.timers.timer_units import UnitWindow, unit_windows
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.piece_digest import PieceDigest

FILLER = struct.pack(">iqI", 100, 0, 0xCBD43194)


def unit(previous: int = -1, magic: int = 1, time: int = 5000, phy: int = 7) -> bytes:
    return struct.pack(">iqiqiqiiq", 52, previous, magic, time - 1000, 1000, phy, 99, 3, 0)


def windows(root: Path, data: bytes, start: int = 0) -> tuple[list[UnitWindow], str]:
    (root / "timerlog").mkdir(exist_ok=True)
    (root / "timerlog" / "0").write_bytes(data)
    digest = PieceDigest()
    found = list(unit_windows(open_source(StoreLocation(str(root))), MappedFile("timerlog/0", start, len(data)), digest))
    return found, digest.text()


@pytest.fixture(params=[1, 2, 40_000])
def window_units(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(timer_units, "WINDOW_BYTES", request.param * 52)
    yield request.param


def first_stop(found: list[UnitWindow]) -> tuple[int, bool]:
    return next(((w.stop, w.blank) for w in found if w.stop >= 0), (-1, False))


def test_units_zeros_filler_and_damage(tmp_path: Path, window_units: int) -> None:
    two = unit() + unit(0, phy=8)
    found, _ = windows(tmp_path, two + bytes(520), 5200)
    units = np.concatenate([w.units for w in found])
    assert units["position"].tolist() == [5200, 5252] and units["phy_offset"].tolist() == [7, 8]
    assert units["time"].tolist() == [5000, 5000] and units["previous"].tolist() == [-1, 0]
    assert first_stop(found) == (104, False) and not any(len(w.broken) for w in found)
    assert first_stop(windows(tmp_path, two + FILLER)[0]) == (104, True)
    assert first_stop(windows(tmp_path, two + FILLER + bytes(99))[0]) == (104, True)
    assert first_stop(windows(tmp_path, two)[0]) == (-1, False)
    found, _ = windows(tmp_path, unit() + b"\7" * 52 + unit(phy=9))
    assert first_stop(found) == (52, False) and [b for w in found for b in w.broken.tolist()] == [52]
    assert np.concatenate([w.units for w in found])["phy_offset"].tolist() == [7, 9]  # found again behind the damage


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=700), st.integers(0, 5))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, units: int) -> None:
    whole = unit() * units + data
    found, digest = windows(tmp_path_factory.mktemp("units"), whole)
    expected = PieceDigest()
    expected.feed(np.frombuffer(whole, np.uint8))
    assert digest == expected.text()
    assert sum(len(w.units) for w in found) >= units and all(-1 <= w.stop <= len(whole) for w in found)
