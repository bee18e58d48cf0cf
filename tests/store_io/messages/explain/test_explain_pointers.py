"""Entries that lead to a record, and the place of one that is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from store_io.audit.open_copy import open_copy
from store_io.broker.message_verdict import BufferFrames
from store_io.log.records.message_columns import RecordCheck
from store_io.messages.explain.explain_place import explain
from store_io.messages.explain.explain_pointers import IndexSearch, QueueSearch, Target, queues_of
from store_io.messages.redaction import Redaction
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.source.byte_source import StoreLocation
from tests.support.damage import overwrite
from tests.support.stores.builders import Store
from tests.support.stores.rocksdb_stores import keyed_store


def test_a_record_is_found_by_its_queue_and_its_key(small: Store, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(small.root, root)
    record = small.records[1]
    copy = open_copy(AuditRequest("s", StoreLocation(str(root)), small.release, small.broker_conf), Gaps())
    data = small.segment_of(record).read_bytes()
    message = RecordCheck.audit(0).verdict(BufferFrames(data), record.at, len(data)).message
    assert message is not None and queues_of(message, copy.rules) == [("queue", ("TopicA", 1), 1)]
    target = Target(record.at, record.at + record.size, message, True)
    queues, index = QueueSearch(copy, target), IndexSearch(copy, target, Redaction("none", b""))
    assert [(p.kind, p.number, p.state) for p in queues.run()] == [("queue", 1, "equal")]
    assert [(p.kind, p.name, p.state) for p in index.run()] == [("index", "TopicA#k1", "equal")]
    file = next((root / "consumequeue/TopicA/1").iterdir())
    overwrite(file, 20, bytes(20))
    assert [(p.number, p.state, p.differences) for p in queues.run()] == [(1, "absent", ["nothing is written there"])]


def test_an_entry_in_a_database_has_a_key_and_no_position(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    store = keyed_store(tmp_path / "s").write()
    request = AuditRequest("s", StoreLocation(str(store.root)), "5.3.3", store.broker_conf)
    said = explain(request, store.records[1].at)
    (entry,) = [p for p in said.pointers if p.kind == "queue"]
    assert (entry.state, entry.position) == ("equal", None)
