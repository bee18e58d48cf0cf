"""The tasks on index and transactions in RocksDB (rocksdb.md 10): all of both sides, then what differs, entry by entry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schemas.rocksdb_layout import DONE_TOPIC, HALF_TOPIC
from schemas.rows import WALK_AUDIT, SegmentSummary
from store_io.base.tasks import Task
from store_io.kinds.rocksdb_tables.index_table import IndexTableTask
from store_io.kinds.rocksdb_tables.table_tasks import IndexLookTask, LogTableTask
from store_io.kinds.rocksdb_tables.table_view import (
    MOST_RANGES,
    RANGE_BYTES,
    TableResults,
    hour_keys,
    index_difference,
    stretches_of,
)
from store_io.kinds.rocksdb_tables.transaction_table import TransactionTableTask
from store_io.kinds.timers.timer_part import part_scan
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.log_map import LogMap
from store_io.model.opened_copy import OpenedCopy

MOST_HALVES = 400_000  # in one store: half messages and marks of done ones, and entries of transactions


class TableMaker:
    """Makes them of one store. base: a segment's task, without a segment."""

    def __init__(self, request: AuditRequest, copy: OpenedCopy, base: SegmentTask):
        self._request, self._copy, self._base = request, copy, base

    def all(self, segments: Sequence[SegmentSummary]) -> list[Task]:
        """Return tasks that read index and transactions in RocksDB, and the messages for both. None if neither is in use."""
        request, used = self._request, self._copy.tables
        if used is None or request.quick or not segments:
            return []
        stretches = stretches_of(segments)
        each = None
        if used.transactions:  # known before they are collected, so that no more reach the driver than it holds
            each = MOST_HALVES if half_messages(segments) <= MOST_HALVES else 0
        late, place = request.not_after, (request.store, request.location, used.database)
        tasks: list[Task] = [
            LogTableTask(part_scan(self._base, s.path, s.base_offset, s.size), stretches, used.index, each, late)
            for s in segments
        ]
        if used.index:
            keys = hour_keys(segments, min(MOST_RANGES, 1 + used.database.size_bytes // RANGE_BYTES))
            part = 1 / (len(keys) + 1)
            tasks += [
                IndexTableTask(*place, stretches, first, end, part, late)
                for first, end in zip([b"", *keys], [*keys, None], strict=True)
            ]
        if used.transactions:
            tasks.append(TransactionTableTask(*place, MOST_HALVES, late))
        return tasks

    def look(self, results: TableResults, segments: Sequence[SegmentSummary], log: LogMap) -> list[Task]:
        """Return a task that looks entry by entry at differing stretches of the index in RocksDB, if there are any."""
        used = self._copy.tables
        if used is None or results.index is None or results.log is None or not results.read or results.index.damaged is not None:
            return []
        stretches = stretches_of(segments)
        wanted = index_difference(results.log, results.index, stretches, log).wanted
        if not wanted:
            return []
        places = np.array(wanted) * stretches.size + stretches.start
        own = [s for s in segments if ((places < s.base_offset + s.size) & (places + stretches.size > s.base_offset)).any()]
        scans = tuple(part_scan(self._base, s.path, s.base_offset, s.size) for s in own)
        index, late = results.index, self._request.not_after
        place = tuple(wanted), log, index.first, index.mark, index.hours
        return [IndexLookTask(scans, used.database, stretches, *place, late)] if scans else []


def half_messages(segments: Sequence[SegmentSummary]) -> int:
    """How many half messages, and marks of done ones, these segments have."""
    count = 0
    for segment in segments:
        wanted = [number for number, (topic, _) in enumerate(segment.queues) if topic in (HALF_TOPIC, DONE_TOPIC)]
        if wanted:
            runs = segment.runs[(segment.runs["walk"] & WALK_AUDIT) != 0]
            count += int(runs["records"][np.isin(runs["queue"], wanted)].sum())
    return count
