"""Bytes are found wherever they lie: at edges of windows, of threads' parts and of holes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store_io.messages import message_search
from store_io.messages.message_search import last_place
from store_io.source.byte_source import StoreLocation, open_source

NEEDLE = b"\0order-77\0x"


def found(path: Path) -> int:
    with open_source(StoreLocation(str(path.parent))).open(path.name) as file:
        return last_place(file, NEEDLE)


@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize("part", [50, 1 << 20])
def test_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, system: bool) -> None:
    monkeypatch.setattr(message_search, "WINDOW_BYTES", 16)
    monkeypatch.setattr(message_search, "PART_BYTES", part)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    if not system:
        monkeypatch.setattr(message_search, "_SEARCH", None)
    path, size = tmp_path / "file", 120
    for place in range(size - len(NEEDLE) + 1):
        data = bytearray(b"order-7" * 18)[:size]
        data[place : place + len(NEEDLE)] = NEEDLE
        path.write_bytes(data)
        assert found(path) == place
        if place >= len(NEEDLE):
            data[: len(NEEDLE)] = NEEDLE
            path.write_bytes(data)
            assert found(path) == place
    path.write_bytes(b"order-7" * 18)
    assert found(path) == -1


@pytest.mark.parametrize("place", [0, 8190, 65535, 65536, 70_000, 200_000 - len(NEEDLE)])
def test_holes_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    monkeypatch.setattr(message_search, "WINDOW_BYTES", 1000)
    path = tmp_path / "file"
    with open(path, "wb") as file:
        file.truncate(200_000)
        file.seek(place)
        file.write(NEEDLE)
    assert found(path) == place
    path.write_bytes(b"")
    os.truncate(path, 200_000)
    assert found(path) == -1
