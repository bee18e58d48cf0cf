from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers.healing import Damaged, healed, varied_store
from tests.support.stores import builders


@pytest.mark.parametrize(("place", "field"), [(3, "filler TOTALSIZE"), (5, "filler MAGICCODE")])
def test_one_wrong_field_of_a_filler(place: int, field: str, tmp_path: Path) -> None:
    damaged = Damaged(varied_store(tmp_path, 5, count=60))
    last = damaged.records(0)[-1]
    data = bytearray(damaged.bytes[0])
    at = last.at + last.size
    assert data[at + 4 : at + 8] == builders.BLANK.to_bytes(4, "big")
    data[at + place] ^= 0x15
    healings = damaged.search(0, bytes(data))
    assert [h.change.field for h in healings if h.change is not None] == [field]
    assert healed(bytes(data), healings) == damaged.bytes[0]
    data[at + (place + 4) % 8] ^= 1  # and the other field too
    assert not any(h.heals for h in damaged.search(0, bytes(data)))


def test_a_filler_before_nothing_is_left(tmp_path: Path) -> None:
    damaged = Damaged(varied_store(tmp_path, 5, count=60))
    last = damaged.records(0)[-1]
    data = bytearray(damaged.bytes[0])
    data[last.at + last.size + 5] ^= 1
    damaged.summaries[1].extents.clear()
    assert not any(h.heals for h in damaged.search(0, bytes(data)))
