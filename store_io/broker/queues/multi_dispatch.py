"""The further queues that a message enters by multi-dispatch (LMQ), and at which offsets (recovery.md 7.3).

Source: MultiDispatch and ConsumeQueue.multiDispatchLmqQueue, read at 4.9.3, 4.9.8, 5.1.1, 5.1.2, 5.1.4, 5.2.0, 5.3.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from schemas.layouts import commitlog_layout as layout
from schemas.layouts.timer_layout import TIMER_TOPIC
from schemas.rows import QueueKey
from store_io.base.java.java_compat import decode_utf8, is_blank, parse_number, split_dropping_tail
from store_io.broker.releases import BrokerRules

_PROPERTIES = re.compile(rb"(?<![^\x02])(INNER_MULTI_DISPATCH|INNER_MULTI_QUEUE_OFFSET)\x01([^\x02]+)")
LMQ_PREFIX = "%LMQ%"  # of the names of light queues, which no table of topics names


@dataclass
class MultiDispatch:
    """The further queues of one message.

    entries: (queue, queue offset) in order.
    fault: the text that should be an offset and is no number, if a release with multi-dispatch throws after these entries; None:
    there is none.
    uneven: (names, offsets) if they differ in number, so that a broker skips them all.
    """

    entries: list[tuple[QueueKey, int]] = field(default_factory=list)
    fault: str | None = None
    uneven: tuple[int, int] | None = None


def multi_dispatch(rules: BrokerRules, key: QueueKey, properties: bytes) -> MultiDispatch:
    """Return the further queues that a message in queue `key` with these properties enters.

    Without enableMultiDispatch they are those that it would enter.
    """
    topic, queue_id = key
    if _is_excluded(rules, topic):
        return MultiDispatch()
    found = dict(_PROPERTIES.findall(properties))  # the last of equal names wins
    texts = [decode_utf8(found.get(name, b"")) for name in (b"INNER_MULTI_DISPATCH", b"INNER_MULTI_QUEUE_OFFSET")]
    if any(text and is_blank(text) for text in texts):  # as if it were not there
        return MultiDispatch()
    names, offsets = (split_dropping_tail(text, ",") for text in texts)
    if len(names) != len(offsets):
        return MultiDispatch(uneven=(len(names), len(offsets)))
    # Without enableMultiDispatch the settings say nothing of how the store was written; then the usual form is taken.
    light = bool(rules.value("enableLmq")) or not rules.multi_dispatch
    result = MultiDispatch()
    for name, text in zip(names, offsets, strict=True):
        if "/" in name and rules.lmq_leaves_out_slashes:
            continue
        queue_offset = parse_number(text, 64)
        if queue_offset is None:
            result.fault = text
            break
        result.entries.append(((name, 0 if light and name.startswith(LMQ_PREFIX) else queue_id), queue_offset))
    return result


def _is_excluded(rules: BrokerRules, topic: str) -> bool:
    """Say whether messages of this topic enter no further queue (ConsumeQueue.checkMultiDispatchQueue)."""
    if topic.startswith("%RETRY%"):
        return rules.lmq_leaves_out_retries
    if topic in (layout.SCHEDULE_TOPIC, TIMER_TOPIC):
        return rules.lmq_leaves_out_schedule
    return topic.startswith("rmq_sys_") and rules.lmq_leaves_out_system
