"""The ends of queues, and what is said where they cannot be read."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from schemas.advice import RefusalKind
from store_io.log.entries.queue_table import QueueTable, read_queue_table
from store_io.rocksdb.database import find_database
from store_io.source.byte_source import StoreLocation, open_source
from store_io.wording.gaps import gap_text
from tests.support.stores.rocksdb_stores import keyed_store, offset_key, offset_value, write_database


def table(root: Path) -> QueueTable:
    source = open_source(StoreLocation(str(root)))
    return read_queue_table(source, find_database(source.list_tree("consumequeue"), "consumequeue"))


def test_ends_and_mark(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s")
    store.minima["Topic0", 0] = 0, 0
    found = table(store.write().root)
    assert (found.ends.mark, found.ends.maxima, found.ends.minima) == (store.mark, store.maxima, store.minima)
    assert found.opened and not found.damaged and not found.unread and not found.odd_count and not found.unnamed


@pytest.mark.parametrize("name", ["CURRENT", "*.sst"])
def test_a_file_that_is_none_makes_the_table_unread_not_damaged(name: str, tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s").write()
    target = next((store.root / "consumequeue").glob(name))
    target.unlink()
    os.mkfifo(target)
    found = table(store.root)
    assert not found.opened and found.damaged is None
    assert found.unread is not None and "no regular file" in gap_text(found.unread)


@pytest.mark.parametrize("names", [[], ["000009.sst", "MANIFEST-000005"], ["000009.sst", "OPTIONS-000007"]])
def test_without_current_and_log_a_broker_makes_a_new_one(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "consumequeue").mkdir()
    for name in names:
        (tmp_path / "consumequeue" / name).write_bytes(b"x")
    found = table(tmp_path)
    assert found.database.absent and found.ends.mark == 0 and not found.ends.refusal


def test_without_current_but_with_a_log_it_does_not_open(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s").write()
    (store.root / "consumequeue" / "CURRENT").unlink()
    refusal = table(store.root).ends.refusal
    assert refusal is not None and (refusal.kind, refusal.path) == (RefusalKind.QUEUE_DATABASE, "consumequeue/CURRENT")


def test_odd_keys_are_told_and_left_out(tmp_path: Path) -> None:
    good = offset_key("T", 0, b"max"), offset_value(8, 1)
    odd = [(b"x", b"y"), (offset_key("T", 1, b"mid"), offset_value(8, 1)), (offset_key("T", 2, b"max"), struct.pack(">q", 1))]
    write_database(tmp_path / "consumequeue", {"offset": [good, *odd]})
    found = table(tmp_path)
    assert list(found.ends.maxima) == [("T", 0)] and found.odd_count == 3


def test_a_table_that_the_manifest_does_not_name(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s").write()
    (store.root / "consumequeue" / "000099.sst").write_bytes(b"later")
    assert table(store.root).unnamed == ("consumequeue/000099.sst",)
