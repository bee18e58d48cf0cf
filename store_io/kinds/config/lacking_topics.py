"""Topics with messages that the table of topics lacks, and the signs that they were lost with it, not deleted (config.md 8).

A deleted topic leaves messages in the log, and after an unclean exit, on a slave and in 4.x also queues. So a queue with entries
is no sign, and neither is an older form of the table. A lost topic looks like one that was deleted while a
delayed message or a transaction of it waited, which the broker put into it later: both count as lost.
Source: TopicConfigManager (each change puts the time into the dataVersion), AdminBrokerProcessor.deleteTopicInBroker,
ConsumerOffsetManager.cleanOffsetByTopic, SlaveSynchronize.syncTopicConfig and syncConsumerOffset, BrokerController.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

from schemas.layouts.store_names import BRIDGE_TOPIC
from schemas.rows import RUN_QUEUE, QueueKey
from store_io.broker.settings.built_in_topics import group_of, is_asked_for
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, LMQ_OFFSETS, TOPICS, config_rules
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import Load, StoreConfig
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_views import QueueView


class Sign(Enum):
    """What shows that a topic was lost: nobody deleted it."""

    NAMED = auto()  # a newer form of the table names it
    LATER = auto()  # the broker put a message into it after the table was written
    OFFSETS = auto()  # groups have offsets on it, which its deletion would have removed


def lacking_topics(config: StoreConfig, keys: Iterable[QueueKey]) -> dict[str, list[QueueKey]]:
    """Return topics of these queues that a start does not know, with their queues. Topics that a broker makes itself are left
    out, as are those for retries and dead messages of groups that it knows."""
    known = config.built_in_topics.union(config.topics or {}, (BRIDGE_TOPIC,))
    found: dict[str, list[QueueKey]] = {}
    for key in keys:
        topic = key[0]
        if topic in found or topic not in known and is_asked_for(topic) and not _is_of_known_group(topic, config):
            found.setdefault(topic, []).append(key)
    return found


def _is_of_known_group(topic: str, config: StoreConfig) -> bool:
    return any(name in config.groups or name in config.built_in_groups for name in group_of(topic))


def lost_topics(
    copy: OpenedCopy, views: Mapping[QueueKey, QueueView], lacking: Mapping[str, Sequence[QueueKey]]
) -> dict[str, Sign]:
    """Return the topics of `lacking` that were lost, each with the first sign of it. None if a start takes no table at all.

    Those that a newer form names are left out but on a slave, whose table its master sends again as long as there is one.
    """
    config = copy[CONFIG].tables
    done = config.loads[TOPICS]
    if not lacking or not config.is_taken(TOPICS):
        return {}
    fuller = copy[CONFIG].other_forms.fuller.get(TOPICS)
    named = fuller.form.own.keys() & lacking.keys() if fuller is not None else set()
    found: dict[str, Sign] = {}
    if not copy.rules.is_slave:  # `lost_tables` counts them
        lacking = {topic: keys for topic, keys in lacking.items() if topic not in named}
    elif fuller is not None and fuller.held_some:
        found = dict.fromkeys(named, Sign.NAMED)
    if _deletion_shows(copy, done):
        with_offsets = {topic for _, topic, _ in config.offsets}
        found |= {topic: Sign.OFFSETS for topic in lacking if topic not in found and topic in with_offsets}
    if done.time_ms:
        later = (topic for topic in lacking if topic not in found and _newest(views, lacking[topic]) > done.time_ms)
        found |= dict.fromkeys(later, Sign.LATER)
    return found


def _newest(views: Mapping[QueueKey, QueueView], keys: Iterable[QueueKey]) -> int:
    """Return the store time (ms) of the newest message of these queues; 0 without one."""
    runs = (views[key].runs.rows for key in keys if key in views)
    own = (rows[rows["kind"] == RUN_QUEUE] for rows in runs)
    return max(
        (int(rows[name].max()) for rows in own if len(rows) for name in ("first_store_time", "last_store_time")), default=0
    )


def _deletion_shows(copy: OpenedCopy, done: Load) -> bool:
    """Say whether the deletion of a topic would show in the offsets: the release removes those on it.

    A slave keeps them, and may become a master under a controller: there they are a sign only beside a table that was emptied, as
    a slave does it entry by entry before it takes its master's. A sound table names topics that each broker has.
    An older .bak may hold what was removed since, and a table without dataVersion was written by 4.x, which removes nothing.
    """
    config = copy[CONFIG].tables
    path = LMQ_OFFSETS if LMQ_OFFSETS in config.loads else CONSUMER_OFFSETS
    offsets, held = config.loads[path], config.held.get(path)
    written = offsets.name == path and offsets.time_ms or held is not None and held.present
    if not config_rules(copy.rules).deletion_cleans_offsets or not written:
        return False
    return not (copy.rules.is_slave or copy.rules.controlled) or not done.entries.keys() & config.built_in_topics
