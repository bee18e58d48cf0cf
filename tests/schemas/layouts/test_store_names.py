"""The folders of a store by their names, against what the listing and load() make of a store with all of them."""

from __future__ import annotations

from pathlib import Path

from schemas.layouts import store_names
from schemas.rows import StoreFile
from store_io.broker.loading import Tree, load_store, queue_folder
from store_io.broker.releases import broker_rules
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_store


def test_every_folder_is_listed_with_what_is_in_it(tmp_path: Path) -> None:
    names = (
        store_names.COMMITLOG, store_names.QUEUES, store_names.BATCH_QUEUES, store_names.EXT, store_names.INDEX,
        store_names.CONFIG, store_names.TIMER_LOG, store_names.COMPACTION,
    )  # fmt: skip
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"x")
    listing = list_store(StoreLocation(str(tmp_path)))
    assert {entry.path for entry in listing.files if entry.kind == "file"} == {f"{name}/x" for name in names}
    assert len(set(names)) == len(names)


def test_load_looks_for_queues_where_they_are_put() -> None:
    key = ("T", 3)
    files = [StoreFile(store_names.QUEUES, "directory"), StoreFile(f"{store_names.QUEUES}/T", "directory")]
    files += [StoreFile(queue_folder(False, key), "directory")]
    assert list(load_store(Tree(files), broker_rules(), frozenset()).queues) == [key]
    assert queue_folder(True, key).startswith(store_names.BATCH_QUEUES)
