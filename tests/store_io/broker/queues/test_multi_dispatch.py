"""Which further queues a message enters, release by release (recovery.md 7.3)."""

from __future__ import annotations

import pytest

from store_io.broker.queues.multi_dispatch import MultiDispatch, multi_dispatch
from store_io.broker.releases import broker_rules

TWO = b"INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02INNER_MULTI_QUEUE_OFFSET\x017,9\x02"


def entered(release: str, topic: str, properties: bytes = TWO) -> MultiDispatch:
    return multi_dispatch(broker_rules(release), (topic, 3), properties)


@pytest.mark.parametrize(
    ("topic", "last_that_enters", "first_that_does_not"),
    [
        ("%RETRY%group", "5.1.0", "5.1.1"),
        ("SCHEDULE_TOPIC_XXXX", "5.1.1", "5.1.2"),
        ("rmq_sys_wheel_timer", "5.1.1", "5.1.2"),
        ("rmq_sys_REVIVE_LOG_x", "5.1.4", "5.2.0"),
    ],
)
def test_a_system_topic_enters_no_further_queue_from_its_release_on(topic, last_that_enters, first_that_does_not):
    assert entered(last_that_enters, topic).entries == [(("%LMQ%a", 0), 7), (("%LMQ%b", 0), 9)]
    assert entered(first_that_does_not, topic).entries == []


@pytest.mark.parametrize("release", ["4.9.3", "5.1.1", "5.5.0"])
def test_an_ordinary_topic_enters_them_in_every_release(release):
    assert entered(release, "orders").entries == [(("%LMQ%a", 0), 7), (("%LMQ%b", 0), 9)]


@pytest.mark.parametrize("blank", [b" ", b"\t\n", " \u3000".encode()])
def test_blank_names_or_offsets_are_none(blank):
    assert (
        entered("5.3.3", "orders", b"INNER_MULTI_DISPATCH\x01" + blank + b"\x02INNER_MULTI_QUEUE_OFFSET\x010\x02")
        == MultiDispatch()
    )
    assert (
        entered("5.3.3", "orders", b"INNER_MULTI_DISPATCH\x01q\x02INNER_MULTI_QUEUE_OFFSET\x01" + blank + b"\x02")
        == MultiDispatch()
    )


def test_a_no_break_space_is_a_name():
    one = b"INNER_MULTI_DISPATCH\x01" + "\xa0".encode() + b"\x02INNER_MULTI_QUEUE_OFFSET\x015\x02"
    assert entered("5.3.3", "orders", one).entries == [(("\xa0", 3), 5)]
