"""Compares the tables of config/ with the queues that a start would have (config.md 7, 8).

It finds topics that clients cannot find, queues with messages beyond the numbers of queues in a topic's table, and delayed
messages that are delivered again.
Source: ScheduleMessageService.start, TopicConfigManager.selectTopicConfig.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from schemas import commitlog_layout
from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rows import Finding, QueueKey
from schemas.severity_cases import Case, severity_in
from schemas.store_names import BRIDGE_TOPIC
from store_io.base.packed import PackedMap, items_of
from store_io.base.wording import count_text, seen
from store_io.broker.settings.built_in_topics import built_in_topics, is_asked_for, is_brokers_own
from store_io.broker.settings.config_rules import DELAY_OFFSETS, TOPICS, config_rules
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import StoreConfig
from store_io.kinds.config.lost_tables import is_lost
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import OpenedCopy

MAX_NARROW_TOPICS = 1000
MAX_TOPICS = 1000  # each as a finding; the others are one together


def narrow_topics(evidence: Evidence, held: Mapping[QueueKey, int]) -> Iterator[Finding]:
    """Yield queues that a topic's numbers leave out: nobody reads or writes them."""
    config = evidence.copy[CONFIG].tables
    beyond: dict[str, list[QueueKey]] = defaultdict(list)
    for key in held:
        topic = (config.topics or {}).get(key[0])
        if topic is not None and key[0] not in config.built_in_topics:
            if key[1] >= max(topic.get("readQueueNums", 0), topic.get("writeQueueNums", 0)):
                beyond[key[0]].append(key)
    file = config.read_from.get(TOPICS, TOPICS)
    for name, keys in sorted(beyond.items())[:MAX_NARROW_TOPICS]:
        count = sum(held[key] for key in keys)
        row = (config.topics or {})[name]
        yield Finding(
            Code.QUEUE_BEYOND_TOPIC, file, *evidence.copy.entry_range(file), topic=name, queue_id=min(key[1] for key in keys),
            count=count, expected=f"at most {max(row['readQueueNums'], row['writeQueueNums'])} queues",
            actual=f"{max(key[1] for key in keys) + 1} queues",
            message=f"topic {seen(name)}: {count_text(count, 'message')} in queues beyond its numbers of queues",
        )  # fmt: skip


def against_queues(evidence: Evidence) -> list[Finding]:
    """Return findings on tables that do not name the content of the queues.

    None if it is not known how a start reads the tables.
    """
    prediction = evidence.prediction
    config = evidence.copy[CONFIG].tables
    if prediction is None or prediction.after_dispatch is None or not _were_there(config):
        return []
    ends = ((key, queue.max_offset - max(queue.min_offset, 0)) for key, queue in items_of(prediction.after_dispatch.queues))
    held = PackedMap.of((key, messages) for key, messages in ends if messages > 0)
    return [*_unknown_topics(evidence, config, held), *narrow_topics(evidence, held), *_delays_again(evidence, held)]


def _were_there(config: StoreConfig) -> bool:
    return any(done.files for done in config.loads.values()) or any(held.present for held in config.held.values())


# ---- topics --------------------------------------------------------------------------------------------------------


def _unknown_topics(evidence: Evidence, config: StoreConfig, held: Mapping[QueueKey, int]) -> Iterator[Finding]:
    known = config.built_in_topics.union(config.topics or {}, (BRIDGE_TOPIC,))
    messages: dict[str, int] = defaultdict(int)
    queues: dict[str, int] = defaultdict(int)
    for (topic, _), count in held.items():
        if topic not in known and is_asked_for(topic):
            messages[topic] += count
            queues[topic] += 1
    if not messages or not table_is_wrong(evidence.copy, held):
        return
    cleans = config_rules(evidence.copy.rules).deletion_cleans_unknown
    step = Advice(Step.CREATE_TOPICS_DELETE_NONE) if cleans else None
    names = sorted(messages)
    place = evidence.copy.entry_range(TOPICS)
    for topic in names[:MAX_TOPICS]:
        what = f"{count_text(messages[topic], 'message')} in {count_text(queues[topic], 'queue')}"
        message = f"clients cannot find topic {seen(topic)} although {what} are there"
        yield Finding(
            Code.TOPIC_NOT_IN_TABLE, TOPICS, *place, topic=topic, count=messages[topic], message=message,
            next=step,
        )  # fmt: skip
    others = names[MAX_TOPICS:]
    if others:
        count = sum(messages[topic] for topic in others)
        message = f"clients cannot find {count_text(len(others), 'more topic')}"
        yield Finding(Code.TOPIC_NOT_IN_TABLE, TOPICS, *place, count=count, message=message, next=step)


def table_is_wrong(copy: OpenedCopy, held: Iterable[QueueKey]) -> bool:
    """Say whether topics that the table lacks were lost with it. A sound table lacks those that were deleted, whose queues come
    back when a recovery after a crash dispatches their messages again; a slave's comes with its first synchronisation.

    held: the queues with messages.
    """
    config = copy[CONFIG].tables
    done, slave = config.loads[TOPICS], copy.rules.is_slave
    if done.problems:  # nobody knows which topics it names
        return False
    if done.bad or done.empty or is_lost(config, TOPICS) or TOPICS in copy[CONFIG].other_forms.fuller:
        return not slave or bool(done.bad or done.empty)
    version = config.backup_versions.get(TOPICS)
    kept = config.held.get(TOPICS)
    if kept is not None and kept.present:
        own = {topic for topic, _ in held if is_asked_for(topic)} - built_in_topics(copy.rules).keys()
        return not slave and bool(own) and not own & (config.topics or {}).keys()
    if done.odd is not None or done.name != TOPICS or version is not None and version > done.counter:
        return bool(done.name)
    own = {topic for topic, _ in held if not is_brokers_own(topic)} - config.built_in_topics - {BRIDGE_TOPIC}
    named = done.entries.keys()
    return not slave and bool(named & config.built_in_topics) and not own & named


# ---- delay levels --------------------------------------------------------------------------------------------------


def delay_levels_lost(copy: OpenedCopy) -> bool:
    """Say whether a level with entries and without an offset had one that is lost."""
    rules, done = config_rules(copy.rules), copy[CONFIG].tables.loads[DELAY_OFFSETS]
    written_late = rules.clamps_delay_offsets and not rules.topics_of_transactions  # at a level's first delivery
    return bool(done.bad or done.empty or done.odd is not None) or not (written_late or copy.rules.is_slave)


def _delays_again(evidence: Evidence, held: Mapping[QueueKey, int]) -> Iterator[Finding]:
    """Yield levels that begin at their queue's first entry, so that what was delivered is delivered again."""
    copy = evidence.copy
    severity = severity_in(Code.DELAYED_MESSAGES_AGAIN, Case.NOT_WRITTEN_YET, not delay_levels_lost(copy))
    for level in copy.rules.delays:
        count = held.get((commitlog_layout.SCHEDULE_TOPIC, level - 1), 0)
        if count and level not in copy[CONFIG].tables.delay_offsets:
            yield Finding(
                Code.DELAYED_MESSAGES_AGAIN, DELAY_OFFSETS, *copy.entry_range(DELAY_OFFSETS), severity,
                topic=commitlog_layout.SCHEDULE_TOPIC, queue_id=level - 1, count=count,
                message=f"delay level {level}: no offset is known, so all {count_text(count, 'message')} in its queue come again",
            )  # fmt: skip
