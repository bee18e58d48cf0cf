"""The store of a dry run, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.base.errors import StoreChanged
from store_io.repair.writing.trial_writer import TrialWriter
from store_io.source.byte_source import StoreLocation, open_source


def test_bytes_that_were_written_lie_over_those_of_the_origin(tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "commitlog" / "0").write_bytes(b"0123456789")
    origin = StoreLocation(str(tmp_path / "store"))
    (tmp_path / "scratch").mkdir()
    with TrialWriter.below(str(tmp_path / "scratch"), str(tmp_path / "new"), origin) as writer:
        writer.copy(open_source(origin), "commitlog/0", "commitlog/0", 5)
        writer.write("commitlog/0", 3, b"ab")
        writer.resize("commitlog/0", 12)
        source = open_source(writer.location)
        with source.open("commitlog/0") as file:
            assert (file.path, file.size, file.read(0, 20)) == ("commitlog/0", 12, b"012ab56789\0\0")
            assert file.read(4, 2) == b"b5" and file.next_data(4) == 4 and file.next_hole(12) == 12
        (entry,) = source.list_tree("commitlog")
        assert (entry.kind, entry.size, entry.mtime_ns) == ("file", 12, 5) and [e.path for e in source.names()] == ["commitlog"]
        with pytest.raises(StoreChanged, match="commitlog/1: is not there any more"):
            source.open("commitlog/1")
    assert (tmp_path / "store" / "commitlog" / "0").read_bytes() == b"0123456789"
