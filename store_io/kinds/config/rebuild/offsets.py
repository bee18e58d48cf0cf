"""Offsets of consumers and delay levels that are beyond the ends of a repaired store's queues: found, and set back.

When a broker starts it corrects no consumer's offset; a delay level's since 4.9.2.
Source: ConsumerOffsetManager, LmqConsumerOffsetManager, ScheduleMessageService (formats.md 11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.repair import BY_DELAY, BY_GROUP, PositionBeyond
from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.base.wording import seen
from store_io.broker.settings.built_in_topics import is_asked_for
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, LMQ_OFFSETS
from store_io.broker.texts.written import config_text
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import StoreConfig, is_offset, read_object
from store_io.kinds.config.offsets_beyond import delays_beyond, groups_beyond
from store_io.repair.kind_repair import KindRepair
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import ByteSource

_INTEGER = re.compile(r"-?[0-9]{1,19}")


class ConfigRepair(KindRepair):
    """Offsets in config/. Its other files are written by `fix_config`, before a start is looked at."""

    def offsets_beyond(self, work: Work, final: Audited, ends: Mapping[QueueKey, int], log_end: int) -> Iterator[PositionBeyond]:
        config = final.copy[CONFIG].tables
        for row in groups_beyond(config, ends):
            place = f"{row.offset} of {seen(row.topic)} queue {row.queue_id}"
            sentence = f"group {seen(row.group)} is at {place}, which ends at {row.new_max}"
            yield PositionBeyond(BY_GROUP, sentence, row.group, row.topic, row.queue_id, offset=row.offset, new_max=row.new_max)
        for level in delays_beyond(config, ends):
            sentence = f"delay level {level.level} is at {level.offset}, its queue ends at {level.new_max}"
            yield PositionBeyond(BY_DELAY, sentence, level=level.level, offset=level.offset, new_max=level.new_max)

    def set_back(self, work: Work, final: Audited, beyond: Sequence[PositionBeyond]) -> dict[str, int]:
        return set_back(work.writer, work.source, final.copy[CONFIG].tables, beyond)


def unknown_topics(final: Audited, ends: Mapping[QueueKey, int]) -> list[str]:
    """Return the topics of queues that producers would ask for and config/ does not name. [] if it names none at all."""
    config = final.copy[CONFIG].tables
    asked_for = {topic for topic, _ in ends if is_asked_for(topic)} - config.built_in_topics
    return sorted(asked_for - set(config.topics)) if config.topics is not None else []


def set_back(writer: StoreWriter, source: ByteSource, config: StoreConfig, beyond: Sequence[PositionBeyond]) -> dict[str, int]:
    """Set the offsets of groups and delay levels to the ends; return how many in each file. Raises StoreError.

    config: what the audit read there, and of which file.
    """
    groups = [each for each in beyond if each.kind == BY_GROUP]
    changed: dict[str, int] = {}
    for path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        table = _table(source, config, path) if groups else None
        tables = [table.get(name) or {} for name in ("offsetTable", "lmqOffsetTable")] if table is not None else []
        done = sum(_set_groups(one, groups) for one in tables)
        if done:
            writer.put(path, config_text(_as_written(table), config.rules))
            changed[path] = done
    delays = [each for each in beyond if each.kind == BY_DELAY]
    table = _table(source, config, DELAY_OFFSETS) if delays else None
    if table is not None:
        for each in delays:
            table.setdefault("offsetTable", {})[str(each.level)] = each.new_max
        writer.put(DELAY_OFFSETS, config_text(_as_written(table), config.rules))
        changed[DELAY_OFFSETS] = len(delays)
    return changed


def _table(source: ByteSource, config: StoreConfig, path: str) -> Any:
    """Return the content of the file that the audit took the offsets from, itself or its .bak; None without one.

    Raises StoreError.
    """
    name = config.read_from.get(path)
    if name is None:
        return None
    try:
        return read_object(source, name, config.rules)
    except (ValueError, StoreError) as problem:
        raise StoreError(f"the offsets in {path} cannot be set back: {problem}") from problem


def _set_groups(table: dict[str, Any], groups: Sequence[PositionBeyond]) -> int:
    """Return how many offsets of the table were set back."""
    changed = 0
    for each in groups:
        key, queue = f"{each.topic}@{each.group}", str(each.queue_id)
        held = table.get(key)
        if isinstance(held, dict):
            if queue in held and is_offset(held[queue], each.offset or 0):
                held[queue], changed = each.new_max, changed + 1
        elif is_offset(held, each.offset or 0):  # an LMQ, which has one queue
            table[key], changed = each.new_max, changed + 1
    return changed


def _as_written(held: Any) -> Any:
    """Return the table with integers for keys that a broker writes without quotes."""
    if isinstance(held, dict):
        return {int(key) if _INTEGER.fullmatch(key) else key: _as_written(value) for key, value in held.items()}
    return held
