"""A store whose messages are in a tiered store, too, through a whole audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.rows import NOTE
from store_io.broker.releases import TIERED_PLUG_IN
from store_io.kinds.tiered.tiered_store import MAX_QUEUES_TOLD
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores import compacted
from tests.support.stores.builders import Store


def metadata(queues: int) -> str:
    return json.dumps({"queueMetadataTable": {"Topic": {str(n): {"minOffset": 5, "maxOffset": 9} for n in range(queues)}}})


def audited(store: Store, text: str, conf: str | None) -> Audited:
    (store.root / "config" / "tieredStoreMetadata.json").write_text(text)
    return product.audit(store.root, store.release, conf)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    return store


def test_a_broker_without_the_plug_in_is_predicted_and_the_messages_elsewhere_are_told(store: Store) -> None:
    audit = audited(store, metadata(2), store.broker_conf)
    assert audit.incomplete == [] and audit.broker is not None and audit.broker["starts"]
    assert [(f.code, f.severity, f.topic, f.queue_id, f.queue_offset) for f in audit.findings] == [
        ("tiered_messages", NOTE, "Topic", 0, 5), ("tiered_messages", NOTE, "Topic", 1, 5),
    ]  # fmt: skip
    assert "5 to 8" in audit.findings[0].message


@pytest.mark.parametrize("named", [True, False])
def test_with_the_plug_in_the_audit_is_incomplete(named: bool, store: Store) -> None:
    """Without a broker.conf the metadata says that the broker had it."""
    audit = audited(store, metadata(1), store.broker_conf + f"messageStorePlugIn={TIERED_PLUG_IN}\n" if named else None)
    assert len(audit.incomplete) == 1 and "tiered store" in audit.incomplete[0] and audit.broker is None
    assert [f.code for f in audit.findings] == ["tiered_messages"]


def test_many_queues_are_counted(store: Store) -> None:
    audit = audited(store, metadata(MAX_QUEUES_TOLD + 7), store.broker_conf)
    assert len(audit.findings) == MAX_QUEUES_TOLD + 1 and sum(f.count for f in audit.findings) == MAX_QUEUES_TOLD + 7


def test_torn_metadata_are_damaged(store: Store) -> None:
    audit = audited(store, metadata(1)[:-3], store.broker_conf)
    assert [(f.code, f.severity) for f in audit.findings] == [("config_damaged", NOTE)]
