"""Writes what the files of config/ lack, with --fix-config; without it says what that would write.

The progress of each delay level follows from the copies of delayed messages that the log holds in their real topics. A broker
delivers the messages of a level in the order of its queue, and writes how far it came only every 10 s. So a copy that is in the
log shows that its message and all before it were delivered. Message and copy have the same unique key, real topic and queue, born
time, body and number of vain consumptions; the copy lies in its real topic. What was sent twice has two copies. With
enableScheduleAsyncDeliver a few messages before the last copy may lack theirs, where a crash came between.
Source: ScheduleMessageService.DeliverDelayedMessageTimerTask.executeOnTimeUp, messageTimeup (config.md 9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from store_io.base.errors import StoreError
from store_io.base.tasks import OfScan
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.rebuild.config_changes import ConfigChange, config_changes, levels_without_offset
from store_io.messages.message_filter import EVERY_MESSAGE, MessageFilter
from store_io.messages.message_rows import scan_messages
from store_io.messages.scans import MessageScan
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_steps import WRITE_CONFIG
from store_io.repair.repair_work import Work

MOST = 100_000  # copies: the newest ones. What only older ones show comes again
Identity = tuple[str | None, str, int, int, int, int]
IN_DATABASE = "--fix-config: the tables are in {}/, a database, and no repair writes that"


class DelayedMessage(NamedTuple):
    """The facts that a delayed message and its copy share, and the place of the one that is looked at."""

    queue_id: int
    queue_offset: int
    unique_key: str | None
    real_topic: str
    real_queue_id: int
    born_time_ms: int
    body_crc: int
    reconsume_times: int

    @property
    def identity(self) -> Identity:
        return self[2:]


_COLUMNS = ("topic", *DelayedMessage._fields)


@dataclass(frozen=True)
class DelayedMessagesTask(OfScan):
    """Messages of one segment in the log's order, the last `MOST` of them. Picklable.

    born: delayed messages with one of these born times; None: copies of delayed ones.
    """

    scan: MessageScan
    born: frozenset[int] | None = None
    store: int = 0
    not_after: float = 0

    def run(self) -> list[DelayedMessage]:
        found: list[DelayedMessage] = []
        for batch in scan_messages(self.scan):
            chosen = batch.filter(self._chosen(batch))
            columns = [chosen.column(name).to_pylist() for name in DelayedMessage._fields]
            found += (DelayedMessage(*row) for row in zip(*columns, strict=True))
            if len(found) > 2 * MOST:
                del found[:-MOST]
        return found[-MOST:]

    def _chosen(self, batch: pa.RecordBatch) -> pa.Array:
        if self.born is not None:
            return pc.is_in(batch.column("born_time_ms"), value_set=pa.array(sorted(self.born), pa.int64()))
        own = pc.equal(batch.column("topic"), batch.column("real_topic"))
        return pc.fill_null(pc.and_(own, pc.equal(batch.column("queue_id"), batch.column("real_queue_id"))), False)


def delivered_levels(work: Work, audit: Audited, levels: Collection[int]) -> dict[int, int]:
    """Return level -> the position after the last message of its queue that has a copy. Levels without a copy are left out."""
    if not levels:
        return {}
    segments = [segment for segment in audit.segments if segment.path in audit.holding]
    scans = [
        MessageScan(work.location, s.path, s.base_offset, s.size, _COLUMNS, EVERY_MESSAGE, rules=audit.rules) for s in segments
    ]
    answers = work.run([DelayedMessagesTask(scan) for scan in scans], "copies of delayed messages")
    copies = [copy for answer in answers for copy in answer][-MOST:]
    wanted = MessageFilter(topics=frozenset({SCHEDULE_TOPIC}), queue_ids=frozenset(level - 1 for level in levels))
    born = frozenset(copy.born_time_ms for copy in copies)
    delayed = [DelayedMessagesTask(replace(scan, wanted=wanted), born) for scan in scans]
    answers = work.run(delayed, "delayed messages")
    return positions((message for answer in answers for message in answer), copies)


def positions(messages: Iterable[DelayedMessage], copies: Iterable[DelayedMessage]) -> dict[int, int]:
    """Return for each delay level the queue offset after its last delivered message.

    messages: delayed ones, in the log's order. If several have one identity, as many were delivered as there are copies.
    """
    left = Counter(copy.identity for copy in copies)
    found: dict[int, int] = {}
    for message in messages:
        if left[message.identity] > 0:
            left[message.identity] -= 1
            level = message.queue_id + 1
            found[level] = max(found.get(level, 0), message.queue_offset + 1)
    return found


def fix_config(work: Work, audit: Audited) -> Audited:
    """Return the audit of the copy with these files. Raises StoreError. Notes in `work` what was written, or would be."""
    if not work.request.fix_config:
        # Where the release does not start a repair by policy broker ends, and says that the option helps.
        if audit.starts:
            work.config = [change.reported for change in _changes(work, audit)]
        return audit
    changes = _changes(work, audit)
    database = audit.copy[CONFIG].tables.database
    if database and not changes:
        raise StoreError(IN_DATABASE.format(database))
    for change in changes:
        work.config.append(change.reported)
        if not change.left_out:
            _write(work, audit, change)
    return audit_changed(work, "the copy") if any(not change.left_out for change in changes) else audit


def _changes(work: Work, audit: Audited) -> list[ConfigChange]:
    delivered = delivered_levels(work, audit, levels_without_offset(audit))
    request = work.request
    return list(config_changes(audit, delivered, request.empty_config, told_only=not request.fix_config))


def _write(work: Work, audit: Audited, change: ConfigChange) -> None:
    entry = audit.copy.listing.get(change.path)
    lost = {"bytes": entry.size} if entry is not None and entry.kind == "file" else {}
    lost |= {"entries": change.lost}
    reason = f"{change.reason}; not proven: {change.unproven}" if change.unproven else change.reason
    kept = {"entries": change.entries, "bytes": len(change.data or b"")}
    work.steps.add(WRITE_CONFIG, change.path, reason=reason, kept=kept, lost=lost)
    if change.data is None:
        work.writer.remove(change.path)
    else:
        work.writer.put(change.path, change.data)
