"""Checks the database of the ConsumeQueues as a whole, and what a double write lacks (rocksdb.md 6, 8).

The database may have bad bytes, be in an older state, or have ends that a race decides. A double write may lack entries in the
kind of queues from which consumers are not served; `queue_entries` says what is wrong with the other kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.finding_codes import STARTS_DISPATCH, Code
from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from schemas.layouts.timer_layout import TIMER_TOPIC
from schemas.rows import Finding, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.packed import items_of, keys_of
from store_io.base.ranges import intersect
from store_io.base.wording import count_text
from store_io.broker.loading import queue_folder
from store_io.broker.queues.combination import combination
from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.kinds.rocksdb_queues.double_write_compare import DIFFERS, NOT_IN_FILES, NOT_IN_ROCKSDB, TwinGap
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.log.entries.queue_table import QueueTable
from store_io.model.evidence import Evidence


def queue_database(evidence: Evidence) -> list[Finding]:
    """Return the findings on the database of queues; none if the queues are in files."""
    table = evidence.copy[ROCKS_QUEUES].table
    if table is None:
        return []
    return [*_bytes(evidence, table), *_older(evidence, table), *_undecided(evidence)]


def _bytes(evidence: Evidence, table: QueueTable) -> Iterator[Finding]:
    found = {f.file: f for f in evidence[ROCKS_QUEUES].findings if f.code == Code.QUEUE_DATABASE_DAMAGED}
    yield from (f for f in evidence[ROCKS_QUEUES].findings if f.code != Code.QUEUE_DATABASE_DAMAGED)
    if table.damaged is not None:
        path, reason = table.damaged
        found[path] = Finding(Code.QUEUE_DATABASE_DAMAGED, path, actual=reason)
    yield from found.values()
    if table.odd_count:
        folder = table.database.folder
        message = f"{folder}/: keys or values of queues' ends that no broker writes, the first: {table.first_odd}."
        yield Finding(Code.QUEUE_ENTRY_INVALID, table.database.folder, message=message, count=table.odd_count)


def _older(evidence: Evidence, table: QueueTable) -> Iterator[Finding]:
    """Yield findings on tables that the MANIFEST does not name.

    After an unclean exit a table may be there that was written, or taken out of use, as the broker died.
    """
    for path in table.unnamed:
        yield Finding(
            Code.QUEUE_DATABASE_OLDER,
            path,
            severity=severity_in(Code.QUEUE_DATABASE_OLDER, Case.AFTER_CRASH, evidence.copy.unclean),
            actual="not in the MANIFEST",
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


def queue_twins(evidence: Evidence) -> list[Finding]:
    """Return the findings on entries that differ between both kinds of queues; none if queues are written once."""
    files, keyed = evidence.copy.queues_in_files, evidence.copy[ROCKS_QUEUES]
    if not files.double_write or keyed.table is None:
        return []
    lacking = NOT_IN_ROCKSDB if keyed.served_table is None else NOT_IN_FILES
    ends = keyed.table.ends
    unwritten = not files.written.files if lacking == NOT_IN_FILES else not ends.mark and not ends.maxima
    gaps = [] if _unknown(evidence) else [gap for gap in evidence[ROCKS_QUEUES].twin_gaps if gap.kind == lacking]
    found = [_unwritten(evidence, gaps)] if unwritten and gaps else [_missing(evidence, gap) for gap in gaps]
    return [*found, *_differing(evidence, lacking), *_made_anew(evidence)]


def _unknown(evidence: Evidence) -> bool:
    """Say whether some queue was not read, so that nobody knows which entries the queues lack."""
    return evidence.broken or evidence.queues_not_opened or any(queue.problem for queue in evidence.every_queue)


def _unwritten(evidence: Evidence, gaps: list[TwinGap]) -> Finding:
    """Double write may have been switched on since the broker stopped."""
    folder, count = _folder(evidence, gaps[0].key), sum(gap.count for gap in gaps)
    if gaps[0].kind == NOT_IN_FILES:
        folder = folder.partition("/")[0]
    message = (
        f"{folder}/ has none of the {count_text(count, 'entry', 'entries')}: this kind of queues was never written, or is gone"
    )
    severity = severity_in(Code.QUEUE_TWIN_MISSING, Case.NOT_WRITTEN_YET)
    return Finding(Code.QUEUE_TWIN_MISSING, folder, severity=severity, actual="no entry", message=message, count=count)


def _missing(evidence: Evidence, gap: TwinGap) -> Finding:
    """Return the finding on a gap, also on a hole that a kill left, if no start fills it.

    Consumers that are served from there later get none of these messages.
    """
    healed = evidence.puts_at_start(gap.phy_first, gap.phy_last)
    begin = evidence[ROCKS_QUEUES].twin_from
    later = gap.kind == NOT_IN_ROCKSDB and gap.phy_last < begin
    where, message = "RocksDB" if gap.kind == NOT_IN_ROCKSDB else "files", ""
    if later:
        message = (
            f"RocksDB has entries from physical offset {begin:,} on, as where double write was switched on later:"
            " those before are in files alone"
        )
    elif not healed and evidence.prediction is not None and evidence.prediction.starts:
        message = f"entries that a start does not put, at least not all: whoever is served from {where} lacks these messages"
    case = Case.NOT_WRITTEN_YET if later else Case.AFTER_CRASH
    return Finding(
        Code.QUEUE_TWIN_MISSING,
        _folder(evidence, gap.key),
        severity=severity_in(Code.QUEUE_TWIN_MISSING, case, later or healed and evidence.copy.unclean),
        next=STARTS_DISPATCH if healed else None,
        message=message,
        phy_offset=gap.phy_first,
        topic=gap.key[0],
        queue_id=gap.key[1],
        queue_offset=gap.first,
        expected=gap.shown[0] if gap.kind == NOT_IN_ROCKSDB else gap.shown[1],
        actual="no entry",
        count=gap.count,
    )


def _differing(evidence: Evidence, lacking: int) -> Iterator[Finding]:
    """Yield findings on entries that differ, and on entries of the other kind alone.

    Such an entry is no finding if the queue that is read lacks an entry for its message.
    """
    for gap in evidence[ROCKS_QUEUES].twin_gaps:
        if gap.kind == lacking:
            continue
        view = evidence.views.get(gap.key)
        if gap.kind != DIFFERS and view is not None and intersect([(gap.first, gap.end)], view.missing):
            continue
        yield Finding(
            Code.QUEUE_TWIN_DIFFERS,
            _folder(evidence, gap.key),
            severity=severity_in(Code.QUEUE_TWIN_DIFFERS, Case.OTHER_KIND_ALONE, gap.kind != DIFFERS),
            phy_offset=gap.phy_first,
            topic=gap.key[0],
            queue_id=gap.key[1],
            queue_offset=gap.first,
            expected=f"in files {gap.shown[0]}",
            actual=f"in RocksDB {gap.shown[1]}",
            count=gap.count,
        )


def _made_anew(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings on queues of the broker's own services, if RocksDB gives the numbers.

    A start may give these queues in files RocksDB's end. The store lists no queue in RocksDB that nobody asked for. A whole
    broker's services ask for theirs before start() (ScheduleMessageService.correctDelayOffset, TimerMessageStore.recover).
    """
    prediction = evidence.prediction
    if prediction is None or not prediction.starts or prediction.after_dispatch is None:
        return
    memory, combined = prediction.after_dispatch, combination(evidence.copy.rules)
    if memory.twins is None or not (combined.assigns_rocksdb and combined.reads_rocksdb):
        return
    for key in keys_of(memory.queues, memory.twins):
        in_rocksdb, in_files = (kind[key].max_offset if key in kind else 0 for kind in (memory.queues, memory.twins))
        if key[0] in (SCHEDULE_TOPIC, TIMER_TOPIC) and in_rocksdb != in_files:
            yield Finding(
                Code.QUEUE_TWIN_DIFFERS,
                _folder(evidence, key),
                severity=severity_in(Code.QUEUE_TWIN_DIFFERS, Case.OTHER_KIND_ALONE),
                topic=key[0],
                queue_id=key[1],
                expected=f"in files maximum {in_files:,}",
                actual=f"in RocksDB maximum {in_rocksdb:,}",
                message="a broker whose services ask for this queue before start() makes it again in files, with RocksDB's"
                " maximum and without entries; broker.after_dispatch leaves that out",
            )


def _folder(evidence: Evidence, key: QueueKey) -> str:
    """Return the folder of the kind of queues that is not read."""
    keyed = evidence.copy[ROCKS_QUEUES]
    if keyed.served_table is None and keyed.table is not None:
        return keyed.table.database.folder
    return evidence.copy.queues_in_files.written.folders.get(key, queue_folder(False, key))
