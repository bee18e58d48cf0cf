"""Slots of a timer wheel."""

from __future__ import annotations

import struct
from pathlib import Path

from store_io.kinds.timers.timer_units import read_slots
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.piece_digest import PieceDigest
from tests.support.stores.timers import SLOT_BYTES, SLOTS


def test_slots_that_hold_anything_come_with_their_place(tmp_path: Path) -> None:
    places = (0, 3, 65_535, 65_536, SLOTS - 1)
    with open(tmp_path / "timerwheel", "wb") as wheel:
        wheel.truncate(SLOTS * SLOT_BYTES)
        for place in places:
            wheel.seek(place * SLOT_BYTES)
            wheel.write(struct.pack(">qqqii", 1_700_000_000 + place, 52, 104, 2, 0))
    digest, other = PieceDigest(), PieceDigest()
    slots = read_slots(open_source(StoreLocation(str(tmp_path))), "timerwheel", digest)
    assert slots["index"].tolist() == list(places) and slots["time"].tolist() == [1_700_000_000 + p for p in places]
    assert set(slots["first"].tolist()) == {52} and set(slots["last"].tolist()) == {104} and set(slots["number"].tolist()) == {2}
    data = (tmp_path / "timerwheel").read_bytes()
    (tmp_path / "dense").write_bytes(data)  # no holes: the same digest
    assert len(read_slots(open_source(StoreLocation(str(tmp_path))), "dense", other)) == len(places)
    assert digest.text() == other.text()


def test_any_length_is_read(tmp_path: Path) -> None:
    for size in (0, 1, 31, 32, 33, 100):
        (tmp_path / "wheel").write_bytes(b"\1" * size)
        assert len(read_slots(open_source(StoreLocation(str(tmp_path))), "wheel", PieceDigest())) == size // 32
