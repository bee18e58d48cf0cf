"""The release that a copy itself leaves no choice about."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.audit.compared import compared_audit
from store_io.audit.compared.compared_audit import detect_release
from store_io.broker.releases import KNOWN_RELEASES
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, Sizes, StoreBuilder


def test_only_a_trace_that_leaves_one_set_of_rules_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096))
    builder.put(Message("TopicA", 0, b"body"))
    store = builder.write(tmp_path / "store")
    location = StoreLocation(str(store.root))
    seen = detect_release(location, store.broker_conf)
    assert seen.release == "" and seen.among == ()
    checkpoint = store.root / "checkpoint"
    data = bytearray(checkpoint.read_bytes().ljust(4096, b"\0"))
    data[40:48] = (1 << 10).to_bytes(8, "big")  # logicsPhysicalOffset, which 5.5.0 and later write
    checkpoint.write_bytes(data)
    assert detect_release(location, store.broker_conf).release == ""  # 5.5.1 has rules of its own
    monkeypatch.setattr(compared_audit, "KNOWN_RELEASES", KNOWN_RELEASES[:-1])
    seen = detect_release(location, store.broker_conf)
    assert seen.release == "5.5.0" == KNOWN_RELEASES[-2] and seen.among == ("5.5.0",)
    assert "5.5.0" in seen.written.sentence()
