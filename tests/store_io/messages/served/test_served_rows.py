"""Rows of what is served, and the note where a message says otherwise."""

from __future__ import annotations

from dataclasses import replace

from schemas.sources import LOST
from store_io.audit.audit_store import run_audit
from store_io.messages.scans import COLUMNS
from store_io.messages.served.broker_view import REMOVED, BrokerView
from store_io.messages.served.served_rows import NOTE, served_row
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Store


def test_a_served_message_has_every_column_and_its_note_names_what_differs(small: Store) -> None:
    audit = run_audit(AuditRequest("s", StoreLocation(str(small.root)), small.release, small.broker_conf))
    with BrokerView(audit) as view:
        (one,) = view.read([(("TopicA", 1), 7, 8)])
        columns = [name for name in COLUMNS if name != LOST]  # what is served is not lost: a query for both is refused
        row = served_row(view, one, columns)
        assert set(row) == {*columns, NOTE} and row[NOTE] is None
        assert (row["keys"], row["body"], row["queue_offset"], row["compression"]) == ("special", b"body 7", 7, "none")
        assert row["store_time_ms"] == small.records[7].store_time
        moved = served_row(view, replace(one, queue_offset=8), ("topic",))
        assert moved[NOTE] == "the message says TopicA, queue 1, offset 7"
        assert served_row(view, one, ("topic",), "other")[NOTE] == "another key with the same hash"
        gone = served_row(view, replace(one, status=REMOVED, message=None), ("tags", "phy_offset"))
        assert (gone["tags"], gone["phy_offset"]) == (None, small.records[7].at) and "does not hold" in gone[NOTE]
