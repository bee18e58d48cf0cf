"""Offsets in config/ beyond the end that their queue has after a start: of consumer groups, and of delay levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout
from schemas.losses import GroupBeyond, LevelBeyond
from schemas.rows import Finding, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.wording import seen
from store_io.broker.settings.config_rules import DELAY_OFFSETS, config_rules
from store_io.kinds.config.config_reader import StoreConfig
from store_io.model.evidence import Evidence


@dataclass(frozen=True)
class OffsetsBeyond:
    """Offsets in config/ beyond the end of their queue after a start."""

    groups: tuple[GroupBeyond, ...] = ()
    delays: tuple[LevelBeyond, ...] = ()


def offsets_beyond(evidence: Evidence, tables: StoreConfig) -> OffsetsBeyond:
    """Return the offsets beyond the ends; none if nothing is predicted."""
    prediction = evidence.prediction
    if prediction is None or not prediction.starts:
        return OffsetsBeyond()
    assert prediction.settled is not None
    asked = {(topic, queue_id) for _, topic, queue_id in tables.offsets}
    asked |= {(commitlog_layout.SCHEDULE_TOPIC, level - 1) for level in tables.delay_offsets}
    ends = {key: queue.max_offset for key, queue in prediction.settled.queues.items() if key in asked}
    return OffsetsBeyond(tuple(groups_beyond(tables, ends)), tuple(delays_beyond(tables, ends)))


def beyond_findings(evidence: Evidence, tables: StoreConfig) -> Iterator[Finding]:
    """Yield the findings on offsets beyond the ends. It matters to a group if messages of the queue are lost."""
    beyond, loss = offsets_beyond(evidence, tables), evidence.loss
    losing = {key for key, queue in loss.by_queue.items() if queue.messages} if loss is not None else set()
    file = tables.offsets_file
    for row in beyond.groups:
        yield Finding(
            Code.CONSUMER_OFFSET_BEYOND_END,
            file,
            *evidence.copy.entry_range(file),
            severity=severity_in(Code.CONSUMER_OFFSET_BEYOND_END, Case.NO_MESSAGE_LOST, (row.topic, row.queue_id) not in losing),
            topic=row.topic,
            queue_id=row.queue_id,
            queue_offset=row.offset,
            expected=f"at most {row.new_max}",
            actual=str(row.offset),
            message=f"group {seen(row.group)}",
        )
    file, clamps = tables.read_from.get(DELAY_OFFSETS, DELAY_OFFSETS), config_rules(evidence.copy.rules).clamps_delay_offsets
    for level in beyond.delays:
        yield Finding(
            Code.DELAY_OFFSET_BEYOND_END,
            file,
            *evidence.copy.entry_range(file),
            severity=severity_in(Code.DELAY_OFFSET_BEYOND_END, Case.START_MENDS, clamps),
            queue_offset=level.offset,
            expected=f"at most {level.new_max}",
            actual=str(level.offset),
            message=f"delay level {level.level}",
        )


def groups_beyond(config: StoreConfig, ends: Mapping[QueueKey, int]) -> list[GroupBeyond]:
    """Return the consumer groups whose offset lies beyond the end that their queue would have. Sorted.

    ends: queue -> maximum offset. A queue that is not there counts as empty if its topic is still configured; offsets of deleted
    topics lie around in healthy stores.
    """
    found = []
    for (group, topic, queue_id), offset in config.offsets.items():
        end = ends.get((topic, queue_id), 0 if topic in (config.topics or {}) else None)
        if end is not None and offset > end:
            found.append(GroupBeyond(group, topic, queue_id, offset, end))
    return sorted(found, key=lambda row: (row.group, row.topic, row.queue_id))


def delays_beyond(config: StoreConfig, ends: Mapping[QueueKey, int]) -> list[LevelBeyond]:
    """Return delay levels whose offset lies beyond the end of their queue (level 1 is queue 0). Sorted."""
    found = []
    for level, offset in sorted(config.delay_offsets.items()):
        end = ends.get((commitlog_layout.SCHEDULE_TOPIC, level - 1), 0)
        if offset > end:
            found.append(LevelBeyond(level, offset, end))
    return found
