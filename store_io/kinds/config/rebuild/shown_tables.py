"""Topics and groups that a copy shows apart from their tables: by its queues, its messages and its consumers' offsets.

Source: TopicConfigManager.createTopicInSendMessageMethod, createTopicInSendMessageBackMethod; MixAll.getRetryTopic;
KeyBuilder.buildPopRetryTopic; AttributeParser, TopicAttributes (config.md 7, 9).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.layouts.store_names import BATCH_QUEUES
from schemas.rows import QueueKey
from store_io.broker.settings.built_in_topics import DEAD, RETRY, SYSTEM_GROUPS, is_asked_for
from store_io.kinds.config.config_reader import StoreConfig
from store_io.model.queue_views import QueueView

MOST_QUEUES = 1 << 16  # of a topic that is made again: a queue id beyond is taken for damage
MAX_NAME = 255  # of a topic or group, as clients may give it: Validators, TopicValidator


@dataclass
class ShownTopic:
    """The facts about a topic that a log shows.

    queues: the highest queue id and one.
    """

    queues: int = 0
    attributes: dict[str, str] = field(default_factory=dict)


def held_queues(views: Mapping[QueueKey, QueueView]) -> list[QueueKey]:
    """Return queues for which the log or an entry shows a message. One of the other kind than the table wants was not compared:
    its files show it."""
    return [
        key
        for key, view in views.items()
        if view.covered or view.missing or view.leftover or len(view.runs.rows) or view.of_other_kind and view.files
    ]


def shown_topics(config: StoreConfig, views: Mapping[QueueKey, QueueView]) -> dict[str, ShownTopic]:
    """Return topics for which clients ask, with messages, and the retry topics of groups that have offsets there.

    Sorted by name.
    """
    found: dict[str, ShownTopic] = defaultdict(ShownTopic)
    held = set(held_queues(views))
    topics = {topic for topic, _ in held}
    offsets = {(topic, queue_id) for _, topic, queue_id in config.offsets if topic.startswith(RETRY)}
    for topic, queue_id in [*(key for key in views if key[0] in topics), *offsets]:
        if _is_name(topic) and is_asked_for(topic) and topic not in config.built_in_topics and 0 <= queue_id < MOST_QUEUES:
            found[topic].queues = max(found[topic].queues, queue_id + 1)
    for (topic, _), view in views.items():
        if topic in found and view.folder.startswith(f"{BATCH_QUEUES}/"):
            found[topic].attributes = {"queue.type": "BatchCQ"}
    return dict(sorted(found.items()))


def shown_groups(config: StoreConfig, topics: Iterable[str]) -> list[str]:
    """Return groups with offsets, or with a retry topic or one of dead messages. Sorted.

    The retry topics of pop are named after group and topic: what begins with a group that has offsets is none of its own.
    """
    by_offsets = {group for group, _, _ in config.offsets}
    by_topic = {topic.removeprefix(prefix) for topic in topics for prefix in (RETRY, DEAD) if topic.startswith(prefix)}
    known = by_offsets | config.groups.keys()
    by_topic = {name for name in by_topic if not any(_is_of_pop(name, group) for group in known)}
    return sorted(
        name
        for name in by_offsets | by_topic
        if _is_name(name) and name not in config.built_in_groups and not name.startswith(SYSTEM_GROUPS)
    )


def _is_of_pop(name: str, group: str) -> bool:
    return len(name) > len(group) and name.startswith(group) and name[len(group)] in "_+"


def _is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME and not any(character < " " or "\ud800" <= character <= "\udfff" for character in text)
