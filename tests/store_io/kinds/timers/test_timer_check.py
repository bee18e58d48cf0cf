"""config/timercheck as a broker reads it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from store_io.kinds.timers.timer_files import TimerCheck, read_timer_check
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_folder


def read(root: Path, content: bytes | None) -> TimerCheck:
    (root / "config").mkdir(parents=True)
    if content is not None:
        (root / "config" / "timercheck").write_bytes(content)
    location = StoreLocation(str(root))
    return read_timer_check(open_source(location), list_folder(location))


def test_the_fields_and_their_absence(tmp_path: Path) -> None:
    whole = read(tmp_path / "a", struct.pack(">4q", 1000, 104, 2, 3).ljust(4096, b"\0"))
    assert whole == TimerCheck(4096, 1000, 104, 2, 3) and not whole.empty and not whole.odd
    assert read(tmp_path / "b", None) == TimerCheck() and TimerCheck().empty
    assert read(tmp_path / "c", b"").empty
    assert read(tmp_path / "d", struct.pack(">2q", 1000, 104)) == TimerCheck(16, 1000, 104, 0, 0)  # the rest reads as zeros


@pytest.mark.parametrize("fields", [(-1, 0, 0, 0), (1 << 60, 0, 0, 0), (1, -2, 0, 0), (1, 0, 1 << 62, 0), (1, 0, 0, -5)])
def test_what_no_broker_writes(tmp_path: Path, fields: tuple[int, int, int, int]) -> None:
    assert read(tmp_path, struct.pack(">4q", *fields)).odd
