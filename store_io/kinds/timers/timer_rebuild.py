"""The timer's files of a repaired store, made anew if they do not fit the log (timer.md 8). A start then delivers every
message that is not delivered yet, once.

A message is delivered where the new log holds its copy. Units in the new timer log lead to all others; the checkpoint says that
the whole queue of the timer topic was taken.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from schemas.advice import Refusal
from schemas.finding_codes import CATALOGUE, Part
from schemas.layouts import timer_layout as layout
from schemas.layouts.entries import UNIT_DTYPE
from schemas.layouts.rocksdb_layout import INDEX_FAMILY, TABLES_FOLDER, TRANSACTION_FAMILY
from schemas.layouts.store_names import TIMER_LOG
from schemas.repair import BY_TIMER, BY_TIMER_QUEUE, PositionBeyond, TimersMade
from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.base.wording import count_text
from store_io.kinds.rocksdb_tables.stored_marks import filled_families
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.rocksdb_tables.table_rebuild import leave_timers_out
from store_io.kinds.timers.new_timers import (
    Clock,
    NewTimerLog,
    NewUnit,
    check_bytes,
    log_pieces,
    new_log,
    unit_times,
    units_of_file,
    wheel_pieces,
)
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.kinds.timers.timer_view import TIMER_QUEUE, TimerView
from store_io.kinds.timers.waiting_timers import WaitingTimers, find_waiting
from store_io.repair.kind_repair import KindRepair, Rebuilt
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_TIMERS
from store_io.repair.repair_work import Work
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing, list_store
from store_io.wording.refusals import refusal_sentence

_QUEUE_OFFSET, _MASTER_OFFSET = slice(16, 24), slice(24, 32)  # in the checkpoint: queue offsets read up to
_WINDOW_UNITS = 1 << 15
_DAY_MS = 86_400_000
OTHER_TABLES = {INDEX_FAMILY: "the index", TRANSACTION_FAMILY: "transactions"}
"""In the same database as timers."""


class TimerRepair(KindRepair):
    """The timer log, its wheel and its checkpoint, made anew at last.

    Which messages wait follows from the new store's audit. A start corrects the timer's position itself (TimerLog,
    TimerCheckpoint; formats.md 14).
    """

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        return _is_timer_file(refusal.path) and _cleared(work, audit)

    def clear(self, work: Work, audit: Audited) -> None:
        _cleared(work, audit)

    def finish(self, work: Work, final: Audited, made: Rebuilt) -> bool:
        return _mended(work, final, made)

    def offsets_beyond(self, work: Work, final: Audited, ends: Mapping[QueueKey, int], log_end: int) -> Iterator[PositionBeyond]:
        source, end = work.source, ends.get((layout.TIMER_TOPIC, 0), 0)
        try:
            listing = list_store(work.location)
            read, units = _queue_offset(source, listing), _units_beyond(source, listing, log_end)
        except StoreError as problem:
            yield PositionBeyond(BY_TIMER, f"the timer's state could not be read: {problem}")
            return
        if read is not None and read > end:
            sentence = f"the timer has read its queue up to {read}, which ends at {end}"
            yield PositionBeyond(BY_TIMER_QUEUE, sentence, offset=read, new_max=end)
        if units:
            beyond = f"lead to messages beyond the log's end {log_end}; the broker skips them"
            yield PositionBeyond(BY_TIMER, f"{units} units of the timer's log {beyond}", units=units)

    def set_back(self, work: Work, final: Audited, beyond: Sequence[PositionBeyond]) -> dict[str, int]:
        end = next((each.new_max for each in beyond if each.kind == BY_TIMER_QUEUE), None)
        if end is None:
            return {}
        stored = work.source.read_small(layout.TIMER_CHECK)[_MASTER_OFFSET]
        data = struct.pack(">qq", end, min(int.from_bytes(stored, "big", signed=True), end))
        work.writer.write(layout.TIMER_CHECK, _QUEUE_OFFSET.start, data[: 8 + len(stored)])
        return {layout.TIMER_CHECK: 1}


def _cleared(work: Work, audit: Audited) -> bool:
    """Remove timer files over which a start fails; they are made anew later. Whether there were any."""
    parts = audit.copy[TIMERS].in_use
    if parts is None:
        return False
    if parts.refusal:
        _remove_wheels(work, str(refusal_sentence(parts.refusal)))
    elif parts.late_refusal:
        work.remove(TIMER_LOG, str(refusal_sentence(parts.late_refusal)), work.tree)
    return bool(parts.refusal or parts.late_refusal)


def _is_timer_file(path: str) -> bool:
    """Say whether it is one of those that are made anew."""
    return path.partition("/")[0].partition(".")[0] in (TIMER_LOG, layout.TIMER_WHEEL) or path == layout.TIMER_CHECK


def _queue_offset(source: ByteSource, listing: StoreListing) -> int | None:
    """Return how far the timer has read its queue, by config/timercheck; None without one."""
    if not listing.is_file(layout.TIMER_CHECK):
        return None
    data = source.read_small(layout.TIMER_CHECK)
    return int.from_bytes(data[_QUEUE_OFFSET], "big", signed=True) if len(data) >= _QUEUE_OFFSET.stop else None


def _units_beyond(source: ByteSource, listing: StoreListing, log_end: int) -> int:
    """Count the units of the timer's log that lead to the log's end or beyond."""
    count = 0
    for entry in listing.files:
        if entry.kind != "file" or not entry.path.startswith(f"{TIMER_LOG}/"):
            continue
        with source.open(entry.path) as file:
            at = 0
            while at + layout.UNIT_BYTES <= file.size:
                at = max(at, file.next_data(at) // layout.UNIT_BYTES * layout.UNIT_BYTES)
                data = file.read(at, _WINDOW_UNITS * layout.UNIT_BYTES)
                rows = np.frombuffer(data, UNIT_DTYPE, len(data) // layout.UNIT_BYTES)
                if not len(rows):
                    break
                units = (rows["size"] == layout.UNIT_BYTES) & (rows["magic"] >= 0) & (rows["magic"] <= layout.LARGEST_MAGIC)
                count += int((units & (rows["phy_offset"] >= log_end)).sum())
                at += len(rows) * layout.UNIT_BYTES
    return count


def _mended(work: Work, audit: Audited, made: Rebuilt) -> bool:
    """Make the timer's files anew if that audit, of the new store, asks for it; say whether they were.

    `made` gets what the report says.
    """
    view, blamed = audit.evidence[TIMERS].in_use, _is_blamed(work, audit)
    if not blamed and (view is None or not work.steps.changed):
        return False
    why = _impossible(view)
    if why:
        made.timers = _not_made(why) if blamed else None
        return False
    assert view is not None and view.queue_max is not None
    work.progress("looking for timer messages that wait")
    rules = work.rules
    clock = Clock(_now(work), rules.timer_precision, rules.timer_roll_slots)
    found = find_waiting(work, audit, view, clock)
    if not blamed and _fits(view, found, rules.is_slave):
        return False
    moved = any(plan.key == TIMER_QUEUE and plan.moved for plan in made.queues)
    if isinstance(found, str) or moved or not rules.clamps_timer_offset and found.queue_end > view.queue_max:
        why = found if isinstance(found, str) else "the timer topic's queue has messages at other offsets than their own"
        made.timers = _not_made(why)
        return False
    _leave_out_keyed(work, view, audit, made)
    _write(work, view, found, clock)
    made.timers = TimersMade(True, found.waiting, found.overdue, f"timers: {_counts(found)}")
    return True


def _now(work: Work) -> int:
    """Return the moment before which due messages get their slots: when the repair began, or a start that was named before."""
    start = work.request.start
    if start is None:  # of a trial, whose slots nobody reads
        return int(time.time() * 1000)
    return start.at_ms if start.now_ms - _DAY_MS < start.at_ms < start.now_ms else start.now_ms


def _is_blamed(work: Work, audit: Audited) -> bool:
    """Say whether a finding is about timers, or one of their files was taken away, or new ones are asked for."""
    findings = any(Part.TIMER in CATALOGUE[f.code].about for f in audit.serious)
    return findings or work.request.late_timers or any(_is_timer_file(step.file) for step in work.steps.done)


def _fits(view: TimerView, found: WaitingTimers | str, slave: bool) -> bool:
    """Say whether a start with the files as they are delivers what waits, and nothing else. A slave's copies may follow later."""
    fates, stale = view.fates, view.faults.stale.count + view.entry_faults.stale.count
    if stale or fates is None or view.queue_max is None or isinstance(found, str):
        return not stale and not view.damaged
    waits = fates.waiting.messages + (fates.after_end.messages + fates.no_unit.messages if slave else 0)
    return waits == found.waiting and not fates.again.messages and view.parts.check.queue_offset <= view.queue_max


def _impossible(view: TimerView | None) -> str:
    """Say why no timer's files can be made; empty if they can."""
    if view is None:
        return "this release, or this copy, has no timer store in files"
    if view.queue_max is None:
        return "what a start makes of them is not known"
    if units_of_file(view.file_bytes) < 1:
        return f"mappedFileSizeTimerLog={view.file_bytes} has no room for a unit"
    return ""


def _not_made(why: str) -> TimersMade:
    return TimersMade(False, None, None, f"timers: the files are not made anew: {why}")


def _counts(found: WaitingTimers) -> str:
    waits = f"{count_text(found.waiting, 'message')} {'waits' if found.waiting == 1 else 'wait'}"
    if not found.overdue:
        return waits
    if found.waiting == 1:
        return f"{waits}, was due when the log ends, and is delivered at once"
    return f"{waits}; {found.overdue} of them {'was' if found.overdue == 1 else 'were'} due when the log ends: delivered at once"


def _write(work: Work, view: TimerView, found: WaitingTimers, clock: Clock) -> None:
    """Write the files, each as a step of its own."""
    log, read_time = _new_log(view, found, clock)
    reason = (
        "a start is to read the slots of all that waits" if work.request.late_timers else "the timer's files do not fit the log"
    )
    if work.tree.exists(TIMER_LOG):
        work.remove(TIMER_LOG, reason, work.tree)
    _remove_wheels(work, reason)
    work.steps.add(REBUILD_TIMERS, TIMER_LOG, reason=_counts(found), kept={"messages": found.waiting})
    for start, data in log_pieces(log):
        path = f"{TIMER_LOG}/{start:020d}"
        work.writer.create(path, view.file_bytes)
        work.writer.write(path, 0, data)
    work.steps.add(REBUILD_TIMERS, layout.TIMER_WHEEL, start=0, end=layout.WHEEL_BYTES, reason="its slots lead to these messages")
    work.writer.create(layout.TIMER_WHEEL, layout.WHEEL_BYTES)
    for position, data in wheel_pieces(log):
        work.writer.write(layout.TIMER_WHEEL, position, data)
    reason = "all messages of the timer's queue are taken"
    work.steps.add(REBUILD_TIMERS, layout.TIMER_CHECK, start=0, end=layout.CHECK_BYTES, reason=reason)
    assert view.queue_max is not None
    work.writer.put(layout.TIMER_CHECK, check_bytes(read_time, log.end, view.queue_max))


def _leave_out_keyed(work: Work, view: TimerView, audit: Audited, made: Rebuilt) -> None:
    """Remove the timers in RocksDB: as a family, or with the whole database.

    The database goes if it has no other table that is in use.
    """
    if not view.database.absent:  # a start reads units of the timer log beside what lies there
        why = "its timers do not fit the log, and those that wait get units in the timer log"
        if audit.copy[TABLES].used is None:
            work.remove(TABLES_FOLDER, why + _left_with_them(work, view), work.tree)
        else:
            made.tables = leave_timers_out(work, audit, why)


def _left_with_them(work: Work, view: TimerView) -> str:
    """Return a clause on the other entries of the database, of a broker whose settings were changed since."""
    filled = filled_families(work.source, view.database, tuple(OTHER_TABLES))
    if filled is None:
        return "; the index and transactions, where it holds any, are left out with it"
    return f"; its entries of {' and '.join(OTHER_TABLES[name] for name in filled)} are left out with it" if filled else ""


def _new_log(view: TimerView, found: WaitingTimers, clock: Clock) -> tuple[NewTimerLog, int]:
    """Return (log and slots, the time at which a start reads on).

    The log's last unit leads to the queue's last message, as a start takes the queue offset from there. If that message does not
    wait, its unit lies in no slot, at a time that is over.
    """
    rows = found.rows
    times = unit_times(rows["out_time"], found.deletes, clock)
    read_time = times.read_slot * clock.precision
    all_rows, slot_times, magic = rows, times.time, times.magic
    last = found.last
    if len(last) and not (len(rows) and rows["phy_offset"][-1] == last["phy_offset"][0]):
        all_rows = np.concatenate([rows, last])
        mark = layout.MAGIC_UNIT | layout.MAGIC_OVERDUE | (layout.MAGIC_DELETE if found.last_deletes else 0)
        slot_times, magic = np.append(slot_times, read_time - clock.precision), np.append(magic, np.int32(mark))
    new = NewUnit(
        slot_times, magic, all_rows["phy_offset"], all_rows["size"], all_rows["topic_hash"], clock.first * clock.precision,
        clock.precision,
    )  # fmt: skip
    return new_log(new, len(rows), view.file_bytes), read_time


def _remove_wheels(work: Work, reason: str) -> None:
    """Write the wheel, and all snapshots of it, of which a start may read the greatest."""
    for entry in work.tree.children(""):
        if entry.path.partition(".")[0] == layout.TIMER_WHEEL:
            work.remove(entry.path, reason, work.tree)
