"""A queue's entries, and what recover() makes of them: against a plain loop over the same bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import ENTRY_DTYPE
from schemas.rows import MappedFile, QueueSummary
from store_io.broker.releases import broker_rules
from store_io.kinds.queues import consumequeue_reader as reader
from store_io.kinds.queues.consumequeue_reader import QueueTask, scan_queue
from store_io.log.entries.file_entries import FilesAt, entry_address, read_entries, read_file_entries
from store_io.source.byte_source import StoreLocation, open_source
from store_io.wording.gaps import gap_text

ADDRESS = layout.EXT_ADDRESS_BASE


def entry(phy: int, size: int = 100, tags: int = 7) -> bytes:
    return struct.pack(">qiq", phy, size, tags)


def batch_entry(phy: int, base: int, count: int = 1, size: int = 100) -> bytes:
    return struct.pack(">qiqqqhii", phy, size, 7, 1000, base, count, -1, 0)


def unit(bit_map: bytes, tags: int = 7) -> bytes:
    return struct.pack(">hqqh", 20 + len(bit_map), tags, 1000, len(bit_map)) + bit_map


PRE_BLANK = entry(0, layout.PRE_BLANK_SIZE, 0)
HOLE = bytes(20)


def write_queue(
    root: Path, *contents: bytes, size: int = 200, first: int = 0, folder: str = "consumequeue/T/0"
) -> tuple[MappedFile, ...]:
    """Files of `size` bytes each, zero behind what is given."""
    files = []
    (root / folder).mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(contents):
        path = f"{folder}/{first + i * size:020d}"
        assert len(content) <= size
        (root / path).write_bytes(content.ljust(size, b"\0"))
        files.append(MappedFile(path, first + i * size, size))
    return tuple(files)


def scan(root: Path, files: tuple[MappedFile, ...], **more: object) -> QueueSummary:
    first = broker_rules().first_recovered(len(files))
    return scan_queue(QueueTask(0, ("T", 0), StoreLocation(str(root)), files, first_recovered=first, **more))  # type: ignore[arg-type]


def plain_recover(contents: list[bytes], size: int, batch: bool) -> tuple[int, int]:
    """(wrote, max_phy_offset) by a loop over entries (recovery.md 7.1), of files that begin at 0."""
    step, i, phy = (46 if batch else 20), max(0, len(contents) - 3), -1
    while True:
        position = 0
        while position + step <= size:
            fields = struct.unpack_from(">qiqqqhii" if batch else ">qiq", contents[i], position)
            if fields[0] < 0 or fields[1] <= 0 or batch and (fields[4] < 0 or fields[5] <= 0):
                break
            phy = fields[0] if batch else (fields[0] + fields[1] + 2**63) % 2**64 - 2**63
            position += step
        if position != size or i + 1 == len(contents):
            return i * size + position, phy
        i += 1


def test_recover_keeps_all_up_to_the_first_invalid_entry(tmp_path: Path) -> None:
    files = write_queue(tmp_path, b"".join(entry(n * 100) for n in range(10)), entry(1000) + entry(1100, 50))
    found = scan(tmp_path, files)
    assert (found.wrote, found.max_phy_offset, found.deleted, found.used, found.used_end) == (240, 1150, [], [(0, 12)], 12)
    assert (found.last_prefix, found.last_prefix_phy, found.last_prefix_max_phy) == (2, 1100, 1150)
    assert set(found.digests) == {f.path for f in files} and found.bytes_read == 400


def test_recover_deletes_the_files_behind_an_invalid_entry_and_looks_at_three_files_only(tmp_path: Path) -> None:
    full = b"".join(entry(n * 100) for n in range(10))
    files = write_queue(tmp_path, full, b"", full, entry(5, -1) + entry(6), full)
    found = scan(tmp_path, files)
    assert found.wrote == 600 and found.max_phy_offset == 1000
    assert found.deleted == [files[4].path]
    assert found.used == [(0, 10), (20, 32), (40, 50)]
    assert (found.last_prefix, found.last_prefix_phy, found.last_prefix_max_phy) == (
        2,
        6,
        106,
    )  # its first slot is taken untested


def test_an_all_zero_last_file_keeps_one_phantom_entry_for_truncation(tmp_path: Path) -> None:
    found = scan(tmp_path, write_queue(tmp_path, b"".join(entry(n * 100) for n in range(10)), b""))
    assert (found.wrote, found.max_phy_offset) == (200, 1000)
    assert (found.last_prefix, found.last_prefix_phy, found.last_prefix_max_phy) == (1, 0, 0)


def test_pre_blank_and_expired_entries_lead_the_queue(tmp_path: Path) -> None:
    files = write_queue(tmp_path, PRE_BLANK * 3 + entry(40) + entry(60) + entry(200) + entry(50), first=400)
    found = scan(tmp_path, files, log_min=100)
    assert found.expired_end == 20 + 5  # the later entry below the minimum does not lead
    assert found.max_phy_offset == 150 and found.used == [(20, 27)]
    blank = scan(tmp_path, write_queue(tmp_path, PRE_BLANK * 2), log_min=0)
    assert (blank.max_phy_offset, blank.expired_end) == (layout.PRE_BLANK_SIZE, 2)
    assert scan(tmp_path, write_queue(tmp_path, HOLE + entry(40)), log_min=100).expired_end == 0


def test_sparse_files_are_read_like_full_ones(tmp_path: Path) -> None:
    size = 60_000 * 20
    folder = tmp_path / "consumequeue/T/0"
    folder.mkdir(parents=True)
    for name, holes in (("a", True), ("b", False)):
        with open(folder / name, "wb") as file:
            if holes:
                file.truncate(size)
            else:
                file.write(bytes(size))
            for number in (0, 1, 30_000, 59_999):
                file.seek(number * 20)
                file.write(entry(number + 5))
    one, two = (scan(tmp_path, (MappedFile(f"consumequeue/T/0/{name}", 0, size),)) for name in "ab")
    assert one.used == two.used == [(0, 2), (30_000, 30_001), (59_999, 60_000)]
    assert list(one.digests.values()) == list(two.digests.values())
    assert (one.wrote, one.last_prefix, one.max_phy_offset) == (two.wrote, two.last_prefix, two.max_phy_offset) == (40, 2, 106)


def test_a_huge_hole_is_not_read(tmp_path: Path) -> None:
    files = write_queue(tmp_path, entry(1))
    size = (4 << 40) // 20 * 20
    with open(tmp_path / files[0].path, "r+b") as file:
        file.truncate(size)
    summary = scan(tmp_path, (MappedFile(files[0].path, 0, size),))
    assert summary.used == [(0, 1)]
    assert summary.bytes_read < 1 << 24


def test_many_holes_are_told_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_RANGES", 3)
    found = scan(tmp_path, write_queue(tmp_path, b"".join((entry(n) if n % 2 == 0 else HOLE) for n in range(10))))
    assert found.used == [(0, 1), (2, 3), (4, 9)] and found.used_end == 9


def test_a_batch_queue_reaches_to_the_start_of_its_last_record(tmp_path: Path) -> None:
    files = write_queue(tmp_path, batch_entry(0, 0, 5) + batch_entry(100, 5, 2) + batch_entry(200, -1), size=460)
    found = scan(tmp_path, files, batch=True)
    assert (found.wrote, found.max_phy_offset, found.used) == (92, 100, [(0, 3)])
    rows = read_entries(open_source(StoreLocation(str(tmp_path))), files, 0, 3, True)
    assert rows["base"].tolist() == [0, 5, -1] and rows["count"].tolist() == [5, 2, 1]


def test_entries_are_found_by_number_across_files_and_gaps(tmp_path: Path) -> None:
    files = write_queue(tmp_path, b"".join(entry(n) for n in range(10)), b"", b"".join(entry(n) for n in range(20, 30)))
    files = (files[0], files[2])  # the middle one is gone
    source = open_source(StoreLocation(str(tmp_path)))
    rows = read_entries(source, files, 8, 23)
    assert rows["phy_offset"].tolist() == [8, 9, *([0] * 10), 20, 21, 22] and rows.dtype == ENTRY_DTYPE
    assert entry_address(FilesAt(files), 9) == (files[0], 180) and entry_address(FilesAt(files), 20) == (files[1], 0)
    with pytest.raises(LookupError):
        entry_address(FilesAt(files), 15)
    assert len(read_file_entries(source, files[0].path, 7, 100)) == 3


def test_a_file_of_another_length_than_listed_is_a_problem(tmp_path: Path) -> None:
    (file,) = write_queue(tmp_path, entry(1))
    found = scan(tmp_path, (MappedFile(file.path, 0, 400),))
    assert "200 bytes, 400 when the copy was listed" in gap_text(found.problem)
    assert scan(tmp_path, (MappedFile("consumequeue/T/0/none", 0, 20),)).problem


def test_ext_files_are_cut_behind_the_last_address_that_a_queue_holds(tmp_path: Path) -> None:
    ext = write_queue(
        tmp_path, unit(b"12345678") * 2 + b"\xff\xff", unit(b"") * 3, unit(b""), size=64, folder="consumequeue_ext/T/0"
    )
    files = write_queue(tmp_path, entry(0, tags=ADDRESS) + entry(100, tags=ADDRESS + 64) + entry(200))
    found = scan(tmp_path, files, ext_files=ext, ext_enabled=True)
    assert found.ext_address == ADDRESS + 64 and not found.refusal and not found.findings
    assert found.deleted == [ext[2].path] and len(found.digests) == 4
    files = write_queue(tmp_path, entry(0, tags=ADDRESS + 3 * 64 + 54))  # in no file; 54 bytes into the first is no unit
    found = scan(tmp_path, files, ext_files=ext, ext_enabled=True)
    assert found.ext_address == ADDRESS + 3 * 64 + 54 and not found.refusal and not found.deleted


@pytest.mark.parametrize(
    ("content", "refuses", "place"),
    [
        (unit(b"12345678") + struct.pack(">h", 60), True, (28, 30)),  # leads past the file's end
        (unit(b"12") + unit(b""), False, None),
        (unit(b"123456789012") * 2, True, (32, 34)),  # no room for the next size
        (unit(b"12345678") + struct.pack(">h", -5), False, (28, 30)),
        (struct.pack(">hqqh", 28, 1, 1, 4) + bytes(8), False, (0, 20)),
        (struct.pack(">h", 3) + bytes(9), False, (0, 2)),
    ],
)
def test_damaged_ext_units_are_found_and_some_of_them_stop_the_broker(
    tmp_path: Path, content: bytes, refuses: bool, place: tuple[int, int] | None
) -> None:
    ext = write_queue(tmp_path, content, size=64, folder="consumequeue_ext/T/0")
    found = scan(tmp_path, write_queue(tmp_path, entry(0)), ext_files=ext, ext_enabled=True)
    assert bool(found.refusal) is refuses
    assert [(f.code, f.start, f.end) for f in found.findings] == ([("queue_ext_damaged", *place)] if place else [])
    assert not scan(tmp_path, write_queue(tmp_path, entry(0)), ext_files=ext).refusal


def test_units_of_changing_sizes_are_walked_in_one_pass(tmp_path: Path) -> None:
    sizes = [n * 7 % 200 for n in range(3000)]
    content = b"".join(unit(bytes(n)) for n in sizes)
    ext = write_queue(tmp_path, content, size=len(content) + 2, folder="consumequeue_ext/T/0")
    with open_source(StoreLocation(str(tmp_path))).open(ext[0].path) as file:
        walked = [(size, len(units)) for _, size, units in reader.ext_units(file)]
    assert sum(count for _, count in walked) == 3000
    assert [size - 20 for size, count in walked for _ in range(count)] == sizes
    assert not scan(tmp_path, (), ext_files=ext).findings


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_recover_equals_a_plain_loop_over_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    batch = data.draw(st.booleans())
    size = (46 if batch else 20) * 4
    good = batch_entry(5, 1) if batch else entry(5)
    piece = st.one_of(st.just(good), st.just(bytes(len(good))), st.binary(min_size=len(good), max_size=len(good)), st.just(good))
    contents = [b"".join(data.draw(st.lists(piece, min_size=4, max_size=4))) for _ in range(data.draw(st.integers(1, 5)))]
    root = tmp_path_factory.mktemp("queue")
    files = write_queue(root, *contents, size=size)
    found = scan(root, files, batch=batch, log_min=data.draw(st.integers(-1, 10)))
    assert not found.problem
    assert (found.wrote, found.max_phy_offset) == plain_recover(contents, size, batch)
    used = np.zeros(sum(map(len, contents)) // len(good), bool)
    for start, end in found.used:
        used[start:end] = True
    whole = b"".join(contents)
    assert used.tolist() == [any(whole[i : i + len(good)]) for i in range(0, len(whole), len(good))]


@settings(deadline=None, max_examples=80)
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_in_an_ext_file_raise(tmp_path_factory: pytest.TempPathFactory, content: bytes, short_units: bool) -> None:
    root = tmp_path_factory.mktemp("ext")
    body = b"\0\x14" + content if short_units else content
    ext = write_queue(root, body, size=400, folder="consumequeue_ext/T/0")
    files = write_queue(root, entry(0, tags=ADDRESS + len(content)))
    found = scan(root, files, ext_files=ext, ext_enabled=True)
    assert not found.problem
    assert all(0 <= f.start <= f.end <= 400 for f in found.findings if f.start is not None and f.end is not None)
