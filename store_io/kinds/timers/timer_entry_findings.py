"""Timers in RocksDB against the CommitLog: entries, checkpoints, what a start delivers again, and for what it may come too late.

`file` is the database's folder; the message names an entry by its key's delivery time and by where it leads (timer.md 9).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rocksdb_layout import TABLES_FOLDER
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.times import time_text
from store_io.base.wording import count_text
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.timers.timer_findings import between, too_far
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.kinds.timers.timer_view import TIMER_QUEUE, TimerView
from store_io.model.evidence import Evidence


def timer_entry_findings(evidence: Evidence) -> list[Finding]:
    """None of a copy whose timers are in files."""
    parts, view = evidence.copy[TIMERS].in_use, evidence[TIMERS].in_use
    if parts is None or parts.table is None:
        return []
    found = []
    damaged = parts.table.damaged or (view.entries.damaged if view is not None else None)
    if damaged is not None:
        step = None if evidence.copy[TABLES].used is not None else Advice(Step.REBUILD_TIMERS)
        found.append(
            Finding(
                Code.ROCKSDBSTORE_DAMAGED,
                damaged[0],
                severity=severity_in(Code.ROCKSDBSTORE_DAMAGED, Case.OF_TIMERS),
                actual=damaged[1],
                message="timers",
                next=step,
            )
        )
    if view is None:
        return found
    found += [*_odd(view), *_entries(view, evidence.copy.unclean)]
    if not evidence.broken:
        found += _offset(view)
        found += _again(view)
        found += _late(view)
    return found


def _odd(view: TimerView) -> Iterator[Finding]:
    entries = view.entries
    if entries.odd:
        yield Finding(
            Code.TIMER_UNIT_WRONG,
            TABLES_FOLDER,
            expected="keys and values that a broker writes",
            actual=entries.first_odd,
            message="a timer's entry in RocksDB has a key or a value that no broker writes",
            count=entries.odd,
        )


def _entries(view: TimerView, unclean: bool) -> Iterator[Finding]:
    faults = view.entry_faults
    for number, fault in enumerate(faults.wrong):
        more = faults.wrong_count - len(faults.wrong) if number == len(faults.wrong) - 1 else 0
        yield Finding(
            Code.TIMER_UNIT_WRONG,
            TABLES_FOLDER,
            phy_offset=fault.phy_offset,
            topic=TIMER_QUEUE[0],
            queue_id=TIMER_QUEUE[1],
            expected=fault.expected,
            actual=fault.actual,
            message=f"the timer's entry in RocksDB that is due at {time_text(fault.time)} does not fit its message",
            count=1 + more,
        )
    for far, end, where, severity in too_far(view, faults, unclean):
        leads = "a timer's entry in RocksDB leads" if far.count == 1 else f"{far.count:,} entries of timers in RocksDB lead"
        yield Finding(
            Code.TIMER_UNIT_BEYOND_END,
            TABLES_FOLDER,
            severity=severity,
            phy_offset=far.phy_offset,
            expected=f"a message before {end}",
            actual="none there",
            message=f"{leads} beyond {where}; the first is due at {time_text(far.place)}",
            count=far.count,
        )


def _offset(view: TimerView) -> Iterator[Finding]:
    table = view.parts.table
    if table is not None and view.queue_max is not None and table.queue_offset > view.queue_max:
        yield Finding(
            Code.TIMER_OFFSET_BEYOND_END,
            TABLES_FOLDER,
            topic=TIMER_QUEUE[0],
            queue_id=TIMER_QUEUE[1],
            queue_offset=table.queue_offset,
            expected=f"at most {view.queue_max}",
            actual=str(table.queue_offset),
            message=f"timers were taken into RocksDB up to queue offset {table.queue_offset}, and a start leaves the queue"
            f" {count_text(view.queue_max, 'entry', 'entries')}",
        )


def _again(view: TimerView) -> Iterator[Finding]:
    fates = view.fates
    if fates is not None and fates.again.messages:
        yield Finding(
            Code.TIMER_MESSAGES_AGAIN,
            TABLES_FOLDER,
            topic=TIMER_QUEUE[0],
            queue_id=TIMER_QUEUE[1],
            queue_offset=view.queue_offset,
            message=f"a start delivers {count_text(fates.again.messages, 'timer message')} again, due {between(fates.again)}",
            count=fates.again.messages,
        )


def _late(view: TimerView) -> Iterator[Finding]:
    """Yield the finding on a store without a stored delivery time. Entries that are due before the start are passed over."""
    table, fates = view.parts.table, view.fates
    if table is None or table.read_time is not None or fates is None or not fates.waiting.messages:
        return
    rows = view.entries.rows
    left = rows[rows["time"] >= view.keyed_read_time] if rows is not None else None
    if left is not None and not len(left):
        return
    first = fates.waiting.first_time if left is None else int(left["time"].min())
    yield Finding(
        Code.TIMER_START_LATE,
        TABLES_FOLDER,
        topic=TIMER_QUEUE[0],
        queue_id=TIMER_QUEUE[1],
        expected="up to when timers were delivered",
        actual="nothing stored",
        message=f"a start later than {time_text(first)} never delivers the timers that are due until ten seconds before it",
        count=len(left) if left is not None else 1,
    )
