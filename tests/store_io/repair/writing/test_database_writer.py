"""A database that RocksDB writes in a process of its own."""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from store_io.base.errors import StoreError
from store_io.repair.writing import database_writer
from store_io.repair.writing.database_writer import FILES, DatabaseWriter
from store_io.repair.writing.store_writer import WriteFailed
from tests.support.stores.rocksdb_stores import entry_key, entry_value, offset_key, offset_value, read_database

pytest.importorskip("rocksdict")
ENDS = [(offset_key("t", 1, b"max"), offset_value(900, 29)), (offset_key("CHECKPOINT_TOPIC", 0, b"max"), struct.pack(">q", 7))]


def write(folder: Path, keys: list[bytes], values: list[bytes]) -> database_writer.WrittenDatabase:
    parts = [np.frombuffer(key, np.uint8).reshape(1, -1) for key in keys]
    with DatabaseWriter(str(folder)) as database:
        database.add_entries(parts[:3], np.frombuffer(b"".join(values[:3]), np.uint8))
        database.add_entries(parts[3:], np.frombuffer(b"".join(values[3:]), np.uint8))
        database.add_pairs(database_writer.ENDS.kind, ENDS)
        return database.finish(len(keys))


def test_what_was_added_in_any_order_is_there_by_key_and_the_digest_is_over_that(tmp_path: Path) -> None:
    numbers = [5, 2, 9, 1, 7]
    keys = [entry_key("topic" * (n % 3 + 1), 1, n) for n in numbers]
    values = [entry_value(100 * n, n, -n, 1) for n in numbers]
    digests = []
    for order in (range(5), (4, 3, 2, 1, 0)):
        folder = tmp_path / f"{order[0]}"
        folder.mkdir()
        written = write(folder, [keys[n] for n in order], [values[n] for n in order])
        digests.append(written.sha256)
        assert all(FILES.fullmatch(name.removeprefix("database/")) for name in written.files) and written.files
        for name in set(os.listdir(folder / "database")) - {name.removeprefix("database/") for name in written.files}:
            (folder / "database" / name).unlink()  # a new store does not get these
        found = read_database(folder / "database")
        assert found == {"default": dict(zip(keys, values, strict=True)), "offset": dict(ENDS)}
        assert written.counts == {"default": 5, "offset": 2}
    pairs = [*sorted(zip(keys, values, strict=True)), *sorted(ENDS)]
    told = b"".join(struct.pack(">i", len(part)) + part for pair in pairs for part in pair)
    assert digests == [hashlib.sha256(told).hexdigest()] * 2


def test_without_the_package_it_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rocksdict.py").write_text("raise ImportError('none here')", "utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with (
        pytest.raises(StoreError, match="rocksdict, which writes it, is not installed"),
        DatabaseWriter(str(tmp_path)) as database,
    ):
        database.finish(0)


def test_a_process_that_is_lost_or_silent_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WriteFailed, match=r"lost \(signal 9\)"), DatabaseWriter(str(tmp_path)) as database:
        assert database._process is not None
        database._process.kill()
        database.finish(0)
    monkeypatch.setattr(database_writer, "LEAST_SECONDS", 0)
    with pytest.raises(WriteFailed, match="no answer in 0 seconds"), DatabaseWriter(str(tmp_path)) as database:
        database.finish(0)


def test_what_rocksdb_cannot_do_is_its_own_sentence(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("a file", "utf-8")
    with pytest.raises(StoreError, match=r"a database cannot be written: \w"), DatabaseWriter(str(tmp_path)) as database:
        database.finish(0)
