"""What the started broker answers, by queue, key and physical offset, against what was put."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from store_io.audit.audit_store import run_audit
from store_io.messages.served.broker_view import SERVED, BrokerView
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Store

KEY = ("TopicA", 1)


@pytest.fixture
def view(small: Store) -> Iterator[BrokerView]:
    audit = run_audit(AuditRequest("s", StoreLocation(str(small.root)), small.release, small.broker_conf))
    with BrokerView(audit, pull=5) as view:
        yield view


def test_a_queue_is_served_in_order_and_within_its_bounds(small: Store, view: BrokerView) -> None:
    assert view.queues() == {KEY: (0, 12)}
    served = list(view.read([(KEY, 3, 100), (("Unknown", 0), 0, 9)]))
    assert [(one.queue_offset, one.phy_offset, one.status) for one in served] == [
        (number, small.records[number].at, SERVED) for number in range(3, 12)
    ]


def test_a_key_leads_to_its_message_alone(small: Store, view: BrokerView) -> None:
    (one,) = view.by_key("TopicA", "special")
    assert (one.phy_offset, one.queue_offset) == (small.records[7].at, 7)
    assert view.by_key("TopicA", "nowhere") == [] and view.by_key("TopicB", "special") == []
    assert view.by_key("TopicA", "special", end=small.records[0].store_time - 1) == []


def test_a_lookup_by_physical_offset_needs_a_record_there(small: Store, view: BrokerView) -> None:
    one = view.at(small.records[2].at)
    assert one is not None and (one.topic, one.queue_id, one.queue_offset) == ("TopicA", 1, 2)
    assert view.at(1 << 40) is None
