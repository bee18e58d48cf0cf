"""Offsets of consumers, delay levels and the timer that are beyond the ends of a repaired store's queues: found, and set back.

When a broker starts it corrects no consumer's offset; a delay level's since 4.9.2, the timer's always.
Source: ConsumerOffsetManager, LmqConsumerOffsetManager, ScheduleMessageService, TimerLog, TimerCheckpoint (formats.md 11, 14).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schemas.entries import UNIT_DTYPE
from schemas.rows import QueueKey, Row
from schemas.store_names import TIMER_LOG
from schemas.timer_layout import LARGEST_MAGIC, TIMER_CHECK, TIMER_TOPIC, UNIT_BYTES
from store_io.base.errors import StoreError
from store_io.base.wording import seen
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, LMQ_OFFSETS
from store_io.kinds.config.built_in_topics import is_asked_for
from store_io.kinds.config.config_reader import StoreConfig, is_offset, read_object
from store_io.kinds.config.offsets_beyond import delays_beyond, groups_beyond
from store_io.kinds.config.texts.written import config_text
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import CORRECT_OFFSETS
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing, list_store

_QUEUE_OFFSET, _MASTER_OFFSET = slice(16, 24), slice(24, 32)  # in the timer's checkpoint: queue offsets read up to
_WINDOW_UNITS = 1 << 15
_INTEGER = re.compile(r"-?[0-9]{1,19}")


def correct_offsets(work: Work, final: Audited, log_end: int) -> Row:
    """Find the offsets beyond the new ends, and set them back with --fix-offsets or --fix-config: the report's part on them.

    final: the audit of the new store.
    """
    p = final.prediction
    if p is None or p.settled is None:
        return {}
    ends = {key: queue.max_offset for key, queue in p.settled.queues.items()}
    source = work.source
    rows = beyond(final.config, source, list_store(work.location), ends, log_end)
    wanted = work.request.fix_offsets or work.request.fix_config
    changed = set_back(work.writer, source, final.config, rows) if wanted and rows else {}
    for path, count in changed.items():
        reason = "consumers, delay levels or the timer lie beyond the new ends"
        work.steps.add(CORRECT_OFFSETS, path, reason=reason, kept={"positions": count})
    known = final.config.topics
    asked_for = {topic for topic, _ in ends if is_asked_for(topic)} - final.config.built_in_topics
    unknown = sorted(asked_for - set(known)) if known is not None else []
    return {
        "offsets": rows, "offsets_set_back": list(changed), "positions_set_back": sum(changed.values()),
        "topics_unknown": unknown,
    }  # fmt: skip


def beyond(
    config: StoreConfig, source: ByteSource, listing: StoreListing, ends: Mapping[QueueKey, int], log_end: int
) -> list[Row]:
    """Return rows of the report: whose offset it is, its value, and the end of the queue."""
    found: list[Row] = []
    for row in groups_beyond(config, ends):
        place = f"{row['offset']} of {seen(row['topic'])} queue {row['queue_id']}"
        found.append(
            {"kind": "group", **row, "sentence": f"group {seen(row['group'])} is at {place}, which ends at {row['new_max']}"}
        )
    for row in delays_beyond(config, ends):
        sentence = f"delay level {row['level']} is at {row['offset']}, its queue ends at {row['new_max']}"
        found.append({"kind": "delay", **row, "sentence": sentence})
    end = ends.get((TIMER_TOPIC, 0), 0)
    try:
        read = timer_queue_offset(source, listing)
        units = timer_units_beyond(source, listing, log_end)
    except StoreError as problem:
        return [*found, {"kind": "timer", "sentence": f"the timer's state could not be read: {problem}"}]
    if read is not None and read > end:
        sentence = f"the timer has read its queue up to {read}, which ends at {end}"
        found.append({"kind": "timer_queue", "offset": read, "new_max": end, "sentence": sentence})
    if units:
        sentence = f"{units} units of the timer's log lead to messages beyond the log's end {log_end}; the broker skips them"
        found.append({"kind": "timer", "units": units, "sentence": sentence})
    return found


def timer_queue_offset(source: ByteSource, listing: StoreListing) -> int | None:
    """How far the timer has read its queue, by config/timercheck; None without one."""
    if not listing.is_file(TIMER_CHECK):
        return None
    data = source.read_small(TIMER_CHECK)
    return int.from_bytes(data[_QUEUE_OFFSET], "big", signed=True) if len(data) >= _QUEUE_OFFSET.stop else None


def timer_units_beyond(source: ByteSource, listing: StoreListing, log_end: int) -> int:
    """How many units of the timer's log lead to the log's end or beyond."""
    count = 0
    for entry in listing.files:
        if entry.kind != "file" or not entry.path.startswith(f"{TIMER_LOG}/"):
            continue
        with source.open(entry.path) as file:
            at = 0
            while at + UNIT_BYTES <= file.size:
                at = max(at, file.next_data(at) // UNIT_BYTES * UNIT_BYTES)
                data = file.read(at, _WINDOW_UNITS * UNIT_BYTES)
                rows = np.frombuffer(data, UNIT_DTYPE, len(data) // UNIT_BYTES)
                if not len(rows):
                    break
                units = (rows["size"] == UNIT_BYTES) & (rows["magic"] >= 0) & (rows["magic"] <= LARGEST_MAGIC)
                count += int((units & (rows["phy_offset"] >= log_end)).sum())
                at += len(rows) * UNIT_BYTES
    return count


def set_back(writer: StoreWriter, source: ByteSource, config: StoreConfig, rows: Sequence[Row]) -> dict[str, int]:
    """Set the offsets to the ends, in the new store's files: how many of each. Raises StoreError.

    config: what the audit read there, and of which file.
    """
    groups = [row for row in rows if row["kind"] == "group"]
    changed: dict[str, int] = {}
    for path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        table = _table(source, config, path) if groups else None
        tables = [table.get(name) or {} for name in ("offsetTable", "lmqOffsetTable")] if table is not None else []
        done = sum(_set_groups(one, groups) for one in tables)
        if done:
            writer.put(path, config_text(_as_written(table), config.rules))
            changed[path] = done
    delays = [row for row in rows if row["kind"] == "delay"]
    table = _table(source, config, DELAY_OFFSETS) if delays else None
    if table is not None:
        for row in delays:
            table.setdefault("offsetTable", {})[str(row["level"])] = row["new_max"]
        writer.put(DELAY_OFFSETS, config_text(_as_written(table), config.rules))
        changed[DELAY_OFFSETS] = len(delays)
    for row in rows:
        if row["kind"] == "timer_queue":
            stored = source.read_small(TIMER_CHECK)[_MASTER_OFFSET]
            master = min(int.from_bytes(stored, "big", signed=True), row["new_max"])
            data = struct.pack(">qq", row["new_max"], master)
            writer.write(TIMER_CHECK, _QUEUE_OFFSET.start, data[: 8 + len(stored)])
            changed[TIMER_CHECK] = 1
    return changed


def _table(source: ByteSource, config: StoreConfig, path: str) -> Any:
    """The content of the file that the audit took the offsets from, itself or its .bak; None without one. Raises StoreError."""
    name = config.read_from.get(path)
    if name is None:
        return None
    try:
        return read_object(source, name, config.rules)
    except (ValueError, StoreError) as problem:
        raise StoreError(f"the offsets in {path} cannot be set back: {problem}") from problem


def _set_groups(table: dict[str, Any], groups: Sequence[Row]) -> int:
    """How many offsets of the table were set back."""
    changed = 0
    for row in groups:
        key, queue = f"{row['topic']}@{row['group']}", str(row["queue_id"])
        held = table.get(key)
        if isinstance(held, dict):
            if queue in held and is_offset(held[queue], row["offset"]):
                held[queue], changed = row["new_max"], changed + 1
        elif is_offset(held, row["offset"]):  # an LMQ, which has one queue
            table[key], changed = row["new_max"], changed + 1
    return changed


def _as_written(held: Any) -> Any:
    """Return the table with integers for keys that a broker writes without quotes."""
    if isinstance(held, dict):
        return {int(key) if _INTEGER.fullmatch(key) else key: _as_written(value) for key, value in held.items()}
    return held
