"""Compares the tables of config/ with the queues that a start would have (config.md 7, 8).

It finds topics that clients cannot find, queues with messages beyond the numbers of queues in a topic's table, and delayed
messages that are delivered again.
Source: ScheduleMessageService.start, TopicConfigManager.selectTopicConfig.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout
from schemas.rows import Finding, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.findings import Findings
from store_io.base.packed import PackedMap, items_of
from store_io.base.times import time_text
from store_io.base.wording import count_text, names_text, seen
from store_io.broker.settings.config_rules import DELAY_OFFSETS, TOPICS, config_rules
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import StoreConfig
from store_io.kinds.config.lacking_topics import Sign, lacking_topics, lost_topics
from store_io.kinds.config.lost_tables import is_lost
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_runs import messages_in

MAX_TOPICS = 1000  # each as a finding; the others are one together


def narrow_topics(evidence: Evidence, held: Mapping[QueueKey, int]) -> list[Finding]:
    """Return queues that a topic's numbers leave out: nobody reads or writes them."""
    config = evidence.copy[CONFIG].tables
    beyond: dict[str, list[QueueKey]] = defaultdict(list)
    for key in held:
        topic = (config.topics or {}).get(key[0])
        if topic is not None and key[0] not in config.built_in_topics:
            if key[1] >= max(topic.get("readQueueNums", 0), topic.get("writeQueueNums", 0)):
                beyond[key[0]].append(key)
    file = config.read_from.get(TOPICS, TOPICS)
    found = Findings()
    for name, keys in sorted(beyond.items()):
        count = sum(held[key] for key in keys)
        row = (config.topics or {})[name]
        found.add(Finding(
            Code.QUEUE_BEYOND_TOPIC, file, *evidence.copy.entry_range(file), topic=name, queue_id=min(key[1] for key in keys),
            count=count, expected=f"at most {max(row['readQueueNums'], row['writeQueueNums'])} queues",
            actual=f"{max(key[1] for key in keys) + 1} queues",
            message=f"topic {seen(name)}: {count_text(count, 'message')} in queues beyond its numbers of queues",
        ))  # fmt: skip
    return found.found


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
    """Yield topics that clients cannot find: lost ones, or all if the table is wrong. Those that may be deleted are one note."""
    deleted = [key for key, view in evidence.views.items() if view.deleted_topic and len(view.runs)]
    lacking = lacking_topics(config, dict.fromkeys([*held, *deleted]))
    if not lacking:
        return
    signs = lost_topics(evidence.copy, evidence.views, lacking)
    counts = {topic: sum(_messages(evidence, key, held) for key in keys) for topic, keys in lacking.items()}
    if signs:
        yield from _not_found(evidence, counts, lacking, signs)
    there = {topic: count for topic, count in counts.items() if topic not in signs and any(k in held for k in lacking[topic])}
    if there and table_is_wrong(evidence.copy):
        yield from _not_found(evidence, there, lacking, {})
    elif there and config.is_taken(TOPICS):  # else the table was not copied, which is said
        yield _perhaps_deleted(evidence, there)


def _messages(evidence: Evidence, key: QueueKey, held: Mapping[QueueKey, int]) -> int:
    """Return the messages of a queue: those that a start serves, else those in the log."""
    return held[key] if key in held else messages_in(evidence.views[key].runs.rows)


def _not_found(
    evidence: Evidence, counts: Mapping[str, int], lacking: Mapping[str, Sequence[QueueKey]], signs: Mapping[str, Sign]
) -> Iterator[Finding]:
    """Yield a finding for each of the first of these topics, and one for all others.

    signs: what shows that each of them was lost; {} if the whole table is wrong.
    """
    cleans = config_rules(evidence.copy.rules).deletion_cleans_unknown
    step = Advice(Step.CREATE_TOPICS_DELETE_NONE) if cleans else None
    place = evidence.copy.entry_range(TOPICS)
    severity = severity_in(Code.TOPIC_NOT_IN_TABLE, Case.SHOWN, bool(signs))
    names = sorted(topic for topic in counts if topic in signs or not signs)
    for topic in names[:MAX_TOPICS]:
        what = f"{count_text(counts[topic], 'message')} in {count_text(len(lacking[topic]), 'queue')}"
        why = f": {_sign_text(evidence.copy, signs[topic])}" if signs else ""
        message = f"clients cannot find topic {seen(topic)} although {what} are there{why}"
        yield Finding(
            Code.TOPIC_NOT_IN_TABLE, TOPICS, *place, severity, topic=topic, count=counts[topic], message=message, next=step,
        )  # fmt: skip
    others = names[MAX_TOPICS:]
    if others:
        count = sum(counts[topic] for topic in others)
        message = f"clients cannot find {count_text(len(others), 'more topic')}"
        yield Finding(Code.TOPIC_NOT_IN_TABLE, TOPICS, *place, severity, count=count, message=message, next=step)


def _sign_text(copy: OpenedCopy, sign: Sign) -> str:
    tables = copy[CONFIG]
    match sign:
        case Sign.NAMED:
            return f"{tables.other_forms.fuller[TOPICS].form.name}, which is newer, names it"
        case Sign.OFFSETS:
            return "groups have offsets on it, which its deletion would have removed"
        case Sign.LATER:
            return f"it has messages later than the table, which is of {time_text(tables.tables.loads[TOPICS].time_ms)}"


def _perhaps_deleted(evidence: Evidence, counts: Mapping[str, int]) -> Finding:
    """Return the note on topics of which nothing shows that they were lost."""
    topics, messages = count_text(len(counts), "topic"), count_text(sum(counts.values()), "message")
    names = names_text([seen(topic) for topic in sorted(counts)])
    message = f"{topics} with {messages} that the table of topics does not name: {names}"
    return Finding(
        Code.TOPIC_NOT_IN_TABLE, TOPICS, *evidence.copy.entry_range(TOPICS),
        severity_in(Code.TOPIC_NOT_IN_TABLE, Case.MAY_BE_DELETED),
        topic=next(iter(counts)) if len(counts) == 1 else None, count=sum(counts.values()), message=message,
        next=Advice(Step.CREATE_IF_NOT_DELETED),
    )  # fmt: skip


def table_is_wrong(copy: OpenedCopy) -> bool:
    """Say whether the table of topics is lost, damaged or older, so that all topics that it lacks may have been lost with it.

    A slave's comes with its first synchronisation.
    """
    config = copy[CONFIG].tables
    done, slave = config.loads[TOPICS], copy.rules.is_slave
    if done.problems:  # nobody knows which topics it names
        return False
    if done.bad or done.empty or is_lost(config, TOPICS) or TOPICS in copy[CONFIG].other_forms.fuller:
        return not slave or bool(done.bad or done.empty)
    kept = config.held.get(TOPICS)
    if kept is not None and kept.present:
        return False
    version = config.backup_versions.get(TOPICS)
    return bool(done.name) and (done.odd is not None or done.name != TOPICS or version is not None and version > done.counter)


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
        if count and level not in copy.delay_offsets:
            yield Finding(
                Code.DELAYED_MESSAGES_AGAIN, DELAY_OFFSETS, *copy.entry_range(DELAY_OFFSETS), severity,
                topic=commitlog_layout.SCHEDULE_TOPIC, queue_id=level - 1, count=count,
                message=f"delay level {level}: no offset is known, so all {count_text(count, 'message')} in its queue come again",
            )  # fmt: skip
