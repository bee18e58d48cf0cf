"""Pieces of segments: together they have the rows of the whole, and no core waits long for another."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import MappedFile
from store_io.messages.choice import by_pieces
from store_io.messages.choice.by_pieces import LEAST_BYTES, ScanPart, parts_of, written_bytes
from store_io.messages.message_filter import Contents, MessageFilter
from store_io.messages.message_search import search
from store_io.messages.scans import DEFAULT_COLUMNS, MessageScan
from store_io.source.byte_source import StoreLocation
from tests.support.stores.segments_with_records import write_segment_with_records

GIB = 1 << 30
LOG = [MappedFile("a", 0, GIB), MappedFile("b", GIB, GIB)]


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1 << 32),
    damages=st.integers(0, 6),
    edges=st.lists(st.integers(0, 1 << 14), max_size=20),
    unpack=st.booleans(),
    contents=st.sampled_from([Contents(), Contents(in_keys=("1",))]),
)
def test_pieces_have_the_rows_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, damages: int, edges: list[int], unpack: bool, contents: Contents
) -> None:
    path = write_segment_with_records(tmp_path_factory.mktemp("store"), random.Random(seed), damages)
    file = MappedFile(f"commitlog/{path.name}", int(path.name), path.stat().st_size)
    scan = MessageScan(StoreLocation(str(path.parent.parent)), "", 0, 0, (*DEFAULT_COLUMNS, "body"), unpack=unpack).of(file)

    def rows(low: int | None, high: int | None) -> list[dict[str, Any]]:
        own = replace(scan, wanted=MessageFilter(phy_offsets=(low, high)))
        return [row for batch in search(own, contents) for row in batch.to_pylist()]

    cuts: list[int | None] = [None, *sorted(set(edges)), None]
    assert [row for low, high in pairwise(cuts) for row in rows(low, high)] == rows(None, None)


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("columns", [1, 2, 40])
def test_parts_tile_the_log(cores: int, columns: int) -> None:
    parts = parts_of(LOG, [GIB, GIB // 2], cores, columns)
    assert len(parts) >= min(cores, 4) and (cores > 1 or len(parts) == 2)
    for file in LOG:
        own = sorted((part for part in parts if part.file is file), key=lambda part: part.bytes)
        assert [own[0].phy_offsets[0], own[-1].phy_offsets[1]] == [None, None]
        assert all(one.phy_offsets[1] == after.phy_offsets[0] for one, after in pairwise(own))
        assert all(part.bytes[1] >= LEAST_BYTES for part in own) and sum(part.bytes[1] for part in own) == GIB


def test_many_segments_are_read_whole() -> None:
    log = [MappedFile(str(number), number * GIB, GIB) for number in range(40)]
    assert parts_of(log, [GIB] * 40, 10, 40) == [ScanPart(file) for file in sorted(log, key=lambda file: file.start)]
    assert parts_of([], [], 10, 40) == []
    assert parts_of(LOG, None, 10, 40) == [ScanPart(LOG[0]), ScanPart(LOG[1])]


def test_small_segments_are_read_whole() -> None:
    small = MappedFile("a", 0, 2 * LEAST_BYTES - 1)
    assert parts_of([small], [small.size], 100, 40) == [ScanPart(small)]


def test_a_segment_is_as_long_as_what_is_written(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "commitlog").mkdir()
    files = []
    for number in range(2):
        with open(tmp_path / "commitlog" / f"{number << 20:020d}", "wb") as file:
            file.truncate(1 << 20)
            file.write(b"\1" * 4096)
        files.append(MappedFile(f"commitlog/{number << 20:020d}", number << 20, 1 << 20))
    location = StoreLocation(str(tmp_path))
    assert written_bytes(location, files, 2) == [1 << 20, 4096]
    assert written_bytes(location, files, 1) == [1 << 20, 1 << 20]
    assert written_bytes(StoreLocation(str(tmp_path / "none")), files, 2) == [1 << 20, 1 << 20]
    monkeypatch.setattr(by_pieces, "open_source", lambda _: _FromAfar())
    assert written_bytes(location, files, 2) is None


class _FromAfar:
    """Gives a file without a descriptor, as an object store does."""

    def open(self, _: str) -> _FromAfar:
        return self

    def __enter__(self) -> _FromAfar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def descriptor(self) -> None:
        return None
