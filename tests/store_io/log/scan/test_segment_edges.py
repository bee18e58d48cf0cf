"""The ends of a segment: its first record, a digest that a change there changes, findings about its head."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.layouts import commitlog_layout as layout
from schemas.rows import MappedFile
from store_io.broker.releases import broker_rules
from store_io.log.scan.segment_edges import EDGE_BYTES, EdgeTask, SegmentEdges, edge_tasks, scan_edges
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text
from tests.support.stores.builders import Message, Sizes, StoreBuilder

BASE, SIZE = 1 << 16, 1 << 16


def edges(root: Path, data: bytes | None, size: int = SIZE, base: int = BASE) -> SegmentEdges:
    path = f"commitlog/{base:020d}"
    (root / "commitlog").mkdir(exist_ok=True)
    if data is not None:
        (root / path).write_bytes(data)
    task = EdgeTask(0, StoreLocation(str(root)), broker_rules("5.3.3"), (MappedFile(path, base, size),))
    (found,) = scan_edges(task)
    return found


@pytest.fixture
def segment() -> bytearray:
    builder = StoreBuilder("5.3.3", Sizes(segment=SIZE), first_offset=BASE)
    builder.put(Message(body=b"x" * 100, store_time=1_700_000_000_000))
    return bytearray(builder.segments[BASE]).ljust(SIZE, b"\0")


def test_a_healthy_segment(tmp_path: Path, segment: bytearray) -> None:
    found = edges(tmp_path, segment)
    assert (found.findings, found.problem) == ([], None)
    first = found.first
    assert (first.magic, first.phy_offset, first.store_time) == (layout.MAGIC_V1, BASE, 1_700_000_000_000)
    assert first.check_ok and not first.blank
    assert found.bytes_read < SIZE + 2 * EDGE_BYTES + 1


def test_the_digest_covers_both_ends_and_nothing_between(tmp_path: Path, segment: bytearray) -> None:
    known = edges(tmp_path, segment).digest
    for at, differs in ((EDGE_BYTES - 1, True), (SIZE - EDGE_BYTES, True), (SIZE - 1, True), (SIZE // 2, False)):
        changed = bytearray(segment)
        changed[at] ^= 1
        assert (edges(tmp_path, changed).digest != known) is differs, at


def test_a_damaged_head_a_wrong_name_and_an_unwritten_segment(tmp_path: Path, segment: bytearray) -> None:
    torn = bytearray(segment)
    torn[layout.BODY_POSITION] ^= 1
    assert [f.code for f in edges(tmp_path, torn).findings] == ["commitlog_damaged"]
    assert [f.code for f in edges(tmp_path, segment, base=BASE + SIZE).findings] == ["commitlog_foreign"]
    empty = edges(tmp_path, bytes(SIZE))
    assert empty.findings == [] and not empty.first.check_ok


def test_a_file_that_is_not_as_listed_is_a_problem_alone(tmp_path: Path, segment: bytearray) -> None:
    assert gap_text(edges(tmp_path, segment[:-1]).problem).endswith(f"{SIZE - 1:,} bytes, {SIZE:,} when the copy was listed")
    assert edges(tmp_path, None, base=BASE + 2 * SIZE).problem


def test_tasks_share_the_segments_between_them() -> None:
    files = [MappedFile(str(i), i, 1) for i in range(5)]
    tasks = edge_tasks(3, StoreLocation("x"), broker_rules(), files, 2)
    assert [[file.path for file in task.files] for task in tasks] == [["0", "1"], ["2", "3"], ["4"]]
    assert {task.store for task in tasks} == {3} and tasks[0].paths == ("0", "1")
