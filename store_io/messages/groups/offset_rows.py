"""Makes rows on the progress of consumer groups and delay levels: a start's offsets, beside the queues' ends.

Offsets are read as the release reads them: from a file of config/, the .bak in its place, or a database (config.md). Groups
without any commit have no offsets anywhere, so they have no row. The ends of queues are those on disk, as recovery finds them or
a database says. Nothing is judged: a start may cut them. The rows are Arrow batches; columns: `schemas.sources.OFFSETS`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from schemas.arrow import arrow_schema
from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from schemas.rows import QueueKey
from schemas.sources import OFFSETS
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import MAX_LONG, whole_text
from store_io.broker.loading import Tree
from store_io.broker.releases import NEWEST_RELEASE, BrokerRules
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, LMQ_OFFSETS
from store_io.kinds.config.config_reader import StoreConfig, read_config
from store_io.kinds.queues.consumequeue_reader import QueueTask, scan_queue
from store_io.log.entries.file_entries import read_entries, unit_bytes
from store_io.log.entries.queue_table import queue_table
from store_io.messages.message_filter import EVERY_MESSAGE, MessageFilter
from store_io.messages.open_store import OpenStore, QueueFiles, open_store
from store_io.source.byte_source import ByteSource, StoreLocation
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_cause

CONSUMER, DELAY = "consumer", "delay"
BATCH_ROWS = 1 << 14
_COLUMNS = {column.name: column for column in OFFSETS}
_OF_ENDS = {"queue_end", "lag", "status"}  # columns for which the queues are looked at


class QueueEnds:
    """The ends of a store's queues, each found when it is asked for. Raises StoreError if queues cannot be read."""

    def __init__(self, store: OpenStore):
        self._source, self._rules = store.source(), store.rules
        self._found: dict[QueueKey, int | None] = {}
        self._files: dict[QueueKey, QueueFiles] = {}
        ends = _stored_ends(self._source, Tree(store.listing.files), store.rules)
        self._found |= ends or {}
        for queue in store.queues() if ends is None else ():
            self._files.setdefault(queue.key, queue)  # ordinary ones come first; a topic is of one kind

    def of(self, key: QueueKey) -> int | None:
        """Return the queue offset after the queue's last entry. 0 without entries, None if the copy has no such queue."""
        if key not in self._found:
            queue = self._files.get(key)
            self._found[key] = None if queue is None else queue_end(self._source, queue, self._rules)
        return self._found[key]


def _stored_ends(source: ByteSource, tree: Tree, rules: BrokerRules) -> dict[QueueKey, int] | None:
    """Return the queue offset after each queue's last entry; None if the queues are in files.

    Raises StoreError if any end cannot be read.
    """
    if not rules.rocksdb_queues:
        return None
    table = queue_table(source, tree, rules)
    if table.unread:
        raise StoreError(gap_text(table.unread))
    if table.damaged:
        path, reason = table.damaged
        raise StoreError(f"{path}: the ends of queues cannot be read: {reason}")
    return {key: min(end.queue_offset, MAX_LONG - 1) + 1 for key, end in table.ends.maxima.items()}


def queue_end(source: ByteSource, queue: QueueFiles, rules: BrokerRules) -> int:
    """Return the end of one queue at which recovery stops.

    It walks forward through the files that recovery reads to the first invalid entry. A broker writes over everything after it.
    """
    files = tuple(sorted(queue.files, key=lambda f: f.start))
    first = rules.first_recovered(len(files))
    task = QueueTask(0, queue.key, source.location, files, batch=queue.batch, first_recovered=first, digest=False, last_only=True)
    summary = scan_queue(task, source)
    if summary.problem:
        raise StoreError(gap_text(summary.problem))
    end = summary.wrote // unit_bytes(queue.batch)
    if queue.batch:
        (last,) = read_entries(source, files, end - 1, end, batch=True)
        end = int(last["base"]) + int(last["count"])
    return min(end, MAX_LONG)  # damaged entries say more than a column can hold


@dataclass(frozen=True)
class OffsetScan:
    """The offsets to read. Picklable.

    kinds, groups: None is any.
    wanted: its topics and queue ids count.
    part: the number of this part, of `parts`.
    """

    location: StoreLocation
    release: str = NEWEST_RELEASE
    broker_conf: str | None = None
    columns: tuple[str, ...] = tuple(_COLUMNS)
    kinds: frozenset[str] | None = None
    groups: frozenset[str] | None = None
    wanted: MessageFilter = EVERY_MESSAGE
    part: int = 0
    parts: int = 1

    def of(self, part: int, parts: int) -> OffsetScan:
        """Return the scan of this part."""
        return replace(self, part=part, parts=parts)

    def takes(self, one: _Offset) -> bool:
        """Say whether this is a row of this part that meets the conditions."""
        return (
            (self.groups is None or one.group in self.groups)
            and self.wanted.holds_queue(one.topic, one.queue_id)
            and (self.parts == 1 or zlib.crc32(one.topic.encode("utf-8")) % self.parts == self.part)
        )


class _Offset(NamedTuple):
    kind: str
    group: str | None
    topic: str
    queue_id: int
    delay_level: int | None
    committed_offset: int
    file: str


def scan_offsets(scan: OffsetScan) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one part, groups as their file has them. The tables of config/ are held at once, each queue's end once.

    Raises StoreError if such a table cannot be read, or the release does not start with it. A table is not read if no row of its
    kind is asked for.
    """
    store = open_store(scan.location, scan.release, scan.broker_conf)
    ends = QueueEnds(store) if _OF_ENDS & set(scan.columns) else None
    rows = []
    for one in filter(scan.takes, _offsets(store, scan)):
        rows.append(_row(one, ends))
        if len(rows) == BATCH_ROWS:
            yield _batch(rows, scan.columns)
            rows = []
    if rows:
        yield _batch(rows, scan.columns)


def offsets_not_there(scan: OffsetScan) -> list[str]:
    """Return clauses on files of config/ from which a start takes no offsets at all, of the kinds asked for.

    Such offsets are not zero, they are not known. There is no clause if `scan_offsets` says it by an error. Raises StoreError.
    """
    store = open_store(scan.location, scan.release, scan.broker_conf)
    config = read_config(store.source(), store.listing, store.rules)
    found = []
    if scan.kinds is None or CONSUMER in scan.kinds:
        found.append(_not_there(config, _consumer_file(config), "groups"))
    if scan.kinds is None or DELAY in scan.kinds:
        found.append(_not_there(config, DELAY_OFFSETS, "delay levels"))
    return list(filter(None, found))


def _not_there(config: StoreConfig, path: str, whose: str) -> str:
    load = config.loads[path]
    if load.name and load.hollow:
        return f"{load.name} has no table of offsets: a start takes no offsets of {whose}"
    if load.name or load.problems or load.refuses or config.database:
        return ""
    if load.bad:
        return f"{load.bad[-1].name} cannot be parsed ({load.bad[-1].reason}): a start takes no offsets of {whose}"
    if load.empty:
        return f"{load.empty[-1]} is empty: a start takes no offsets of {whose}"
    return f"{path} is not in the copy: no offsets of groups are known" if path != DELAY_OFFSETS else ""


def _consumer_file(config: StoreConfig) -> str:
    return LMQ_OFFSETS if LMQ_OFFSETS in config.loads else CONSUMER_OFFSETS


def _offsets(store: OpenStore, scan: OffsetScan) -> Iterator[_Offset]:
    config = read_config(store.source(), store.listing, store.rules)
    if scan.kinds is None or CONSUMER in scan.kinds:
        _check(config, _consumer_file(config), scan.release)
        for (group, topic, queue_id), offset in config.offsets.items():
            yield _Offset(CONSUMER, whole_text(group), whole_text(topic), queue_id, None, offset, config.offsets_file)
    if scan.kinds is None or DELAY in scan.kinds:
        _check(config, DELAY_OFFSETS, scan.release)
        file = config.read_from.get(DELAY_OFFSETS, DELAY_OFFSETS)
        for level, offset in config.delay_offsets.items():
            if level > 0:
                yield _Offset(DELAY, None, SCHEDULE_TOPIC, level - 1, level, offset, file)


def _check(config: StoreConfig, path: str, release: str) -> None:
    """Raise StoreError if it is not known how a start takes this table, or nothing starts with it."""
    load = config.loads[path]
    if load.problems:
        raise StoreError(gap_text(load.problems[0]))
    if load.refuses:
        held = load.database_refusal
        reason = refusal_cause(held) if held is not None else f"{load.bad[-1].name}: {load.bad[-1].reason}"
        raise StoreError(f"RocketMQ {release} does not start with these offsets, so it takes none: {reason}")


def _row(one: _Offset, ends: QueueEnds | None) -> tuple[object, ...]:
    end = None if ends is None else ends.of((one.topic, one.queue_id))
    lag = None if end is None else max(0, end - max(0, one.committed_offset))  # no message is before the first
    status = "no_queue"
    if end is not None:
        status = "lagging" if lag else "at_end" if end == one.committed_offset else "beyond_end"
    found = (one.kind, one.group, one.topic, one.queue_id, one.delay_level, one.committed_offset)
    return (*found, end, lag, status, whole_text(one.file))


def _batch(rows: Sequence[tuple[object, ...]], names: Sequence[str]) -> pa.RecordBatch:
    values = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))
    schema = arrow_schema(_COLUMNS[name] for name in names)
    return pa.RecordBatch.from_arrays([pa.array(values[f.name], f.type) for f in schema], schema=schema)
