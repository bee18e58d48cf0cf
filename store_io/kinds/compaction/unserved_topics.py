"""Compacted topics of which consumers get nothing, or less than a log made anew would hold.

Consumers of such a topic read its compacted log alone. A start puts into that what its recovery dispatches: nothing after a clean
exit, after an unclean one the messages with a key from the start segment on (compaction.md 1, 4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.finding_codes import Code
from schemas.layouts.store_names import COMPACTED_LOG
from schemas.rows import Finding
from store_io.base.wording import count_text, seen
from store_io.kinds.compaction.compaction_kind import COMPACTION
from store_io.model.evidence import Evidence


@dataclass
class _Topic:
    """The queues of one topic without a record in their compacted log. messages: of their ConsumeQueues. put: by a start."""

    queues: int = 0
    messages: int = 0
    keyed: int = 0
    put: int = 0


def unserved_topics(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each compacted topic with messages in queues whose compacted log holds no record."""
    prediction = evidence.prediction
    if not evidence.copy.rules.compacts or evidence.request.quick or prediction is None or prediction.settled is None:
        return
    begins = int(prediction.start_segment) if evidence.copy.unclean and prediction.start_segment else None
    topics: dict[str, _Topic] = defaultdict(_Topic)
    records: dict[tuple[str, int], int] = defaultdict(int)
    keyed: dict[tuple[str, int], dict[int, int]] = {}
    for summary in evidence[COMPACTION].files:
        records[summary.key] += summary.records
        if summary.keyed_by_segment:
            keyed[summary.key] = summary.keyed_by_segment
    for key, queue in prediction.settled.queues.items():
        messages = queue.max_offset - queue.min_offset
        if key[0] not in evidence.copy.compacted_topics or key[0] in evidence.copy.batch_topics or messages <= 0 or records[key]:
            continue
        topic, own = topics[key[0]], keyed.get(key, {})
        topic.queues += 1
        topic.messages += messages
        topic.keyed += sum(own.values())
        topic.put += sum(number for start, number in own.items() if begins is not None and start >= begins)
    for name, topic in sorted(topics.items()):
        if not topic.put or topic.put < topic.keyed:
            yield _finding(name, topic)


def _finding(name: str, topic: _Topic) -> Finding:
    got = f"{topic.put:,}" if topic.put else "none"
    message = f"consumers of {seen(name)} get {got} of {count_text(topic.messages, 'message')}"
    return Finding(
        Code.COMPACTED_TOPIC_UNSERVED,
        f"{COMPACTED_LOG}/{name}",
        topic=name,
        expected=f"a record of each key in the compacted logs of {count_text(topic.queues, 'queue')}",
        actual=f"cleanup.policy=COMPACTION of {seen(name)}",
        message=f"{message}: its compacted log is not in this copy, or empty",
        count=topic.messages - topic.put,
    )
