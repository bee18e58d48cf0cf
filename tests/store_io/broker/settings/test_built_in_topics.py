"""Which topics nobody has to create, whatever release, settings and names a broker has."""

from __future__ import annotations

import pytest

from store_io.broker.settings.built_in_topics import is_asked_for
from store_io.messages.lost.sendable import StoredMessage, sendable
from store_io.messages.redaction import read_redaction

OWN = (
    "SCHEDULE_TOPIC_XXXX TBW102 SELF_TEST_TOPIC BenchmarkTest OFFSET_MOVED_EVENT TRANS_CHECK_MAX_TIME_TOPIC RMQ_SYS_TRACE_TOPIC"
    " RMQ_SYS_TRANS_HALF_TOPIC rmq_sys_wheel_timer rmq_sys_REVIVE_LOG_C rmq_sys_SYNC_BROKER_MEMBER_b CHECKPOINT_TOPIC"
    " C_REPLY_TOPIC"
).split()


@pytest.mark.parametrize("topic", OWN)
def test_topics_that_every_broker_makes_are_not_asked_for(topic: str) -> None:
    assert not is_asked_for(topic)
    message = StoredMessage(
        topic=topic, queue_id=0, queue_offset=0, phy_offset=0, store_time_ms=1, born_time_ms=1, flag=0, properties={},
        tags_code=0, transaction="none", inner_batch=False, inner_index=None, status="valid", lost="cut", body=b"x",
        body_status="stored",
    )  # fmt: skip
    assert sendable(message, read_redaction(None)).why_not


@pytest.mark.parametrize("topic", ["T", "%RETRY%G", "my_REPLY_TOPIC_2", "RMQ", "TBW1020"])
def test_others_are(topic: str) -> None:
    assert is_asked_for(topic)
