"""The checkpoint's fields, and that only a damaged one is more than a note."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.rows import NOTE, REBUILDABLE, Checkpoint, Finding
from store_io.base.errors import NotAFile
from store_io.kinds.checkpoint.checkpoint_reader import StoredCheckpoint, checkpoint_findings, read_checkpoint
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store

FIRST, LAST, END = 1_000_000, 2_000_000, 5000


def read(root: Path, data: bytes | None) -> StoredCheckpoint:
    (root / "commitlog").mkdir(exist_ok=True)
    if data is not None:
        (root / "checkpoint").write_bytes(data)
    location = StoreLocation(str(root))
    return read_checkpoint(open_source(location), list_store(location))


def findings(checkpoint: StoredCheckpoint, last: int = LAST, unclean: bool = True) -> list[tuple[str, str, int | None]]:
    first = FIRST if last else 0
    found = checkpoint_findings(checkpoint, first_store_time=first, last_store_time=last, log_end=END, unclean=unclean)
    return [(f.code, f.weight, f.start) for f in found]


def stored(*values: int, size: int = 4096) -> StoredCheckpoint:
    return StoredCheckpoint(True, size, Checkpoint(*values))


def test_reads_six_fields(tmp_path: Path) -> None:
    data = struct.pack(">6q", 1, 2, 3, 4, 5, -1).ljust(4096, b"\0")
    assert read(tmp_path, data) == StoredCheckpoint(True, 4096, Checkpoint(1, 2, 3, 4, 5, -1))


def test_a_missing_file_and_a_short_one_read_as_zeros(tmp_path: Path) -> None:
    assert read(tmp_path, None) == StoredCheckpoint()
    assert read(tmp_path, struct.pack(">q", 7) + b"\x01") == StoredCheckpoint(True, 9, Checkpoint(7, 1 << 56))


def test_a_directory_in_its_place_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(NotAFile, match="checkpoint: a directory"):
        read(tmp_path, None)


def test_bytes_behind_the_fields_are_a_note(tmp_path: Path) -> None:
    checkpoint = read(tmp_path, struct.pack(">6q", LAST, LAST, 0, 0, 0, 0) + bytes(10) + b"ab\0c" + bytes(100))
    assert checkpoint.after_fields == (58, 62)
    assert ("checkpoint_bytes_behind", NOTE, 58) in findings(checkpoint)


@pytest.mark.parametrize(
    ("checkpoint", "unclean"),
    [
        (stored(LAST, LAST, LAST, 0, END, END), False),
        (stored(LAST - 5, LAST, LAST - 900, 0, 0, 0), False),
        (stored(0, LAST - 60_000, 0, END * 9, -1, -1), False),
        (stored(FIRST, FIRST, FIRST, 0, 0, 0), True),
    ],
)
def test_what_a_healthy_broker_writes_gives_nothing(checkpoint: StoredCheckpoint, unclean: bool) -> None:
    assert findings(checkpoint, unclean=unclean) == []


def test_zeros_are_a_note_in_a_store_that_was_killed_young_and_wrong_after_a_clean_exit() -> None:
    assert findings(stored(0, 0, 0)) == [("checkpoint_zero", NOTE, 8)]
    assert findings(stored(0, 0, 0), unclean=False) == [("checkpoint_zero", "rebuildable", 8)]
    assert findings(stored(0, 0, 0), last=0, unclean=False) == []


def test_times_beyond_the_last_message_count_where_the_margin_does_not_cover_them() -> None:
    assert findings(stored(LAST + 3000, LAST + 1, LAST)) == [("checkpoint_ahead", NOTE, 0), ("checkpoint_ahead", NOTE, 8)]
    assert findings(stored(LAST + 3001, LAST, LAST + 86_400_000)) == [
        ("checkpoint_ahead", REBUILDABLE, 0),
        ("checkpoint_ahead", REBUILDABLE, 16),
    ]
    assert findings(stored(5, 5, 0), last=0) == [("checkpoint_ahead", REBUILDABLE, 0), ("checkpoint_ahead", REBUILDABLE, 8)]


def test_other_disagreements_name_their_field() -> None:
    assert findings(stored(FIRST - 1, LAST, FIRST - 1)) == [("checkpoint_behind", NOTE, 0)]
    assert findings(stored(-1, LAST, 0)) == [("checkpoint_damaged", REBUILDABLE, 0)]
    assert findings(stored(LAST, LAST, 0, 0, END + 1, -2)) == [
        ("checkpoint_offset_beyond_end", REBUILDABLE, 32),
        ("checkpoint_damaged", REBUILDABLE, 40),
    ]


def test_the_masters_end_may_be_ahead_of_a_slave_that_lags_but_not_beyond_any_log() -> None:
    for offset in (-1, 0, END, END * 1000, END + (1 << 44)):
        assert findings(stored(LAST, LAST, 0, offset)) == []
    for offset, code in ((END + (1 << 44) + 1, "checkpoint_offset_beyond_end"), (1 << 62, "checkpoint_offset_beyond_end")):
        assert findings(stored(LAST, LAST, 0, offset)) == [(code, REBUILDABLE, 24)]
    for offset in (-2, -(1 << 63)):
        assert findings(stored(LAST, LAST, 0, offset)) == [("checkpoint_damaged", REBUILDABLE, 24)]


def test_length_and_absence_are_of_the_whole_file() -> None:
    assert findings(StoredCheckpoint()) == [("checkpoint_missing", REBUILDABLE, None)]
    assert findings(StoredCheckpoint(), last=0) == [("checkpoint_missing", NOTE, None)]
    assert findings(stored(LAST, LAST, 0, size=100)) == [("checkpoint_short", REBUILDABLE, None)]
    assert findings(stored(LAST, LAST, 0, size=8192)) == [("checkpoint_bytes_behind", NOTE, None)]


@settings(deadline=None)
@given(st.binary(max_size=80), st.booleans(), st.integers(0, 1 << 62))
def test_no_bytes_raise_and_every_range_lies_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, unclean: bool, last: int
) -> None:
    checkpoint = read(tmp_path_factory.mktemp("store"), data)
    found: list[Finding] = checkpoint_findings(checkpoint, first_store_time=0, last_store_time=last, log_end=END, unclean=unclean)
    assert all(f.start is None or f.end is not None and 0 <= f.start < f.end <= max(48, len(data)) for f in found)
