"""Entries that the prediction has only as runs come out as the files had them."""

from __future__ import annotations

import shutil
from pathlib import Path

from store_io.audit.audit_store import run_audit
from store_io.messages.served.broker_view import BrokerView
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Store


def test_dispatch_makes_again_what_was_deleted(small: Store, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(small.root, root)
    for part in ("consumequeue", "index"):
        shutil.rmtree(root / part)
    audit = run_audit(AuditRequest("s", StoreLocation(str(root)), small.release, small.broker_conf))
    with BrokerView(audit) as view:
        served = list(view.read([(("TopicA", 1), 0, 100)]))
        keyed = view.by_key("TopicA", "special")
    assert [one.phy_offset for one in served] == [record.at for record in small.records]
    assert [one.phy_offset for one in keyed] == [small.records[7].at]
