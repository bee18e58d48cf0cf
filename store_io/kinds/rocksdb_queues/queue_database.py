"""The database of the ConsumeQueues as a whole: bad bytes, an older state, ends that a race decides (rocksdb.md 6)."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.finding_codes import Code
from schemas.rows import NOTE, Finding
from store_io.base.packed import items_of
from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.kinds.rocksdb_queues.queue_table import QueueTable
from store_io.model.evidence import Evidence


def queue_database(evidence: Evidence) -> list[Finding]:
    """Return the findings on the database of queues; none if the queues are in files."""
    table = evidence.copy.database_table
    if table is None:
        return []
    return [*_bytes(evidence, table), *_older(evidence, table), *_undecided(evidence)]


def _bytes(evidence: Evidence, table: QueueTable) -> Iterator[Finding]:
    found = {f.file: f for f in evidence.database_findings if f.code == Code.QUEUE_DATABASE_DAMAGED}
    yield from (f for f in evidence.database_findings if f.code != Code.QUEUE_DATABASE_DAMAGED)
    if table.damaged is not None:
        path, reason = table.damaged
        found[path] = Finding(Code.QUEUE_DATABASE_DAMAGED, path, actual=reason)
    yield from found.values()
    if table.odd_keys:
        folder = table.database.folder
        message = f"{folder}/: keys or values of queues' ends that no broker writes, the first: {table.odd_keys[0]}."
        yield Finding(Code.QUEUE_ENTRY_INVALID, table.database.folder, message=message, count=len(table.odd_keys))


def _older(evidence: Evidence, table: QueueTable) -> Iterator[Finding]:
    """Yield findings on tables that the MANIFEST does not name.

    After an unclean exit a table may be there that was written, or taken out of use, as the broker died.
    """
    for path in table.unnamed:
        yield Finding(
            Code.QUEUE_DATABASE_OLDER, path, severity=NOTE if evidence.copy.unclean else "", actual="not in the MANIFEST"
        )


def _undecided(evidence: Evidence) -> Iterator[Finding]:
    prediction = evidence.prediction
    if prediction is None or not prediction.starts:
        return
    # An election puts what was not confirmed again, and decides it.
    memory = prediction.settled if prediction.controller is not None else prediction.after_load
    for key, queue in items_of(memory.queues if memory is not None else {}):
        other = queue.or_else if isinstance(queue, RocksQueue) else None
        if other is not None:
            yield Finding(
                Code.QUEUE_END_UNDECIDED,
                queue.folder,
                topic=key[0],
                queue_id=key[1],
                queue_offset=queue.max_offset,
                expected=f"maximum {queue.max_offset}",
                actual=f"or {other.max_offset}",
            )
