"""Queues with messages beyond the numbers of queues that a topic has in its table (config.md 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from schemas.finding_codes import Code
from schemas.rows import Finding, QueueKey
from store_io.base.wording import count_text, seen
from store_io.broker.settings.config_files import TOPICS
from store_io.model.evidence import Evidence

MAX_TOPICS = 1000


def narrow_topics(evidence: Evidence, held: Mapping[QueueKey, int]) -> Iterator[Finding]:
    """Queues that a topic's numbers leave out: nobody reads or writes them."""
    config = evidence.copy.config
    beyond: dict[str, list[QueueKey]] = defaultdict(list)
    for key in held:
        topic = (config.topics or {}).get(key[0])
        if topic is not None and key[0] not in config.built_in_topics:
            if key[1] >= max(topic.get("readQueueNums", 0), topic.get("writeQueueNums", 0)):
                beyond[key[0]].append(key)
    file = config.read_from.get(TOPICS, TOPICS)
    for name, keys in sorted(beyond.items())[:MAX_TOPICS]:
        count = sum(held[key] for key in keys)
        row = (config.topics or {})[name]
        yield Finding(
            Code.QUEUE_BEYOND_TOPIC, file, *evidence.copy.entry_range(file), topic=name, queue_id=min(key[1] for key in keys),
            count=count, expected=f"at most {max(row['readQueueNums'], row['writeQueueNums'])} queues",
            actual=f"{max(key[1] for key in keys) + 1} queues",
            message=f"topic {seen(name)}: {count_text(count, 'message')} in queues beyond its numbers of queues",
        )  # fmt: skip
