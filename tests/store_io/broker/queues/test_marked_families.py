"""Where a start begins that asks how far index and transactions in RocksDB reach. Real releases: tests/broker_truth."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from store_io.broker.queues.start_databases import marked_families
from store_io.broker.releases import Setting, broker_rules
from tests.support.answers import product
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.rocksdb_stores import SIZES, write_database


@pytest.mark.parametrize(
    ("release", "settings", "families"),
    [
        ("5.3.3", {"indexRocksDBEnable": True}, ()),
        ("5.4.0", {"indexRocksDBEnable": True, "transRocksDBEnable": True}, ("default",)),
        ("5.4.0", {"transRocksDBEnable": True, "transWriteOriginTransHalfEnable": False}, ("trans",)),
        ("5.5.0", {"indexRocksDBEnable": True, "transRocksDBEnable": True}, ("default", "trans")),
        ("5.5.0", {}, ()),
    ],
)
def test_which_are_asked(release: str, settings: dict[str, bool], families: tuple[str, ...]) -> None:
    given = {key: Setting(value, "broker.conf") for key, value in settings.items()}
    assert marked_families(broker_rules(release, given)) == families


@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
@pytest.mark.parametrize("value", [None, 1, b"short"])
def test_the_start_segment(release: str, value: int | bytes | None, tmp_path: Path) -> None:
    """One without a mark is looked for as far back as the release looks."""
    pytest.importorskip("rocksdict")
    builder = StoreBuilder(release, SIZES)
    for n in range(150):
        builder.put(Message("T", n % 2, b"x" * 60))
    store = builder.write(tmp_path / "s")
    segments = sorted(path.name for path in (store.root / "commitlog").iterdir())
    packed = struct.pack(">q", int(segments[-2]) + value) if isinstance(value, int) else value
    write_database(
        store.root / "rocksdbstore", {"default": [(b"lastOffsetPy", packed)] if packed else [], "timer": [], "trans": []}
    )
    plain = product.audit(store.root, release, store.broker_conf).broker
    marked = product.audit(store.root, release, store.broker_conf + "indexRocksDBEnable=true\ncommitLogRecoverMaxNum=3\n")
    assert plain is not None and marked.broker is not None and not marked.above_note
    assert plain["start_segment"] == segments[-1] and len(segments) > 3
    assert marked.broker["start_segment"] == segments[-2 if value == 1 else -3]
    assert marked.broker["after_dispatch"] == plain["after_dispatch"]
