"""The timer store against the CommitLog: units, wheel, checkpoint, and the messages that a start would never deliver.

Log and wheel can be made again from the messages of the timer topic; a message whose time is past by the
checkpoint, and of which no copy is left, is delivered by nothing (timer.md 6).

Timers in RocksDB likewise: entries, checkpoints, what a start delivers again, and for what it may come too late. There `file` is
the database's folder; the message names an entry by its key's delivery time and by where it leads (timer.md 9).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.layouts import timer_layout as layout
from schemas.layouts.rocksdb_layout import TABLES_FOLDER
from schemas.layouts.store_names import CONFIG, TIMER_LOG
from schemas.losses import TimerCount
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.times import time_text
from store_io.base.wording import count_text
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.timers.timer_files import unused_entries
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.kinds.timers.timer_units_check import UnitFaults, UnitsBeyond
from store_io.kinds.timers.timer_view import TIMER_QUEUE, TimerView
from store_io.model.evidence import Evidence

_of_queue = partial(Finding, topic=TIMER_QUEUE[0], queue_id=TIMER_QUEUE[1])
_READ_TIME, _QUEUE_OFFSET, _FLUSHED = (0, 8), (16, 24), (8, 16)


def timer_findings(evidence: Evidence) -> list[Finding]:
    """Return findings on the timer store; none of a copy without one."""
    view = evidence[TIMERS].in_use
    if view is None:
        return [*_waiting(evidence)]
    unclean = evidence.copy.unclean
    found = [*view.files.findings]
    missing = [*_missing(view, evidence)]
    found += missing
    found += _wheel(view)
    found += _units(view, unclean)
    found += _check(view, evidence)
    if not evidence.broken:
        found += _lost(view, evidence, bool(missing))
    return found


def timers_not_judged(evidence: Evidence, names: list[str]) -> list[str]:
    """Return the names and "timers", if the timer store was not read or is too large."""
    view = evidence[TIMERS].in_use
    judged = view is not None and view.judged
    return [*names, "timers"] if evidence.copy[TIMERS].in_use is not None and not judged else names


def _waiting(evidence: Evidence) -> Iterator[Finding]:
    """Yield messages that wait for the service that delivers timers, which the settings keep off."""
    view = evidence[TIMERS].idle
    fates = view.fates if view is not None else None
    if fates is None or not fates.waiting.messages or evidence.broken:
        return
    waiting = fates.waiting
    wait = (
        f"{count_text(waiting.messages, 'timer message')}, due {between(waiting)}, {'waits' if waiting.messages == 1 else 'wait'}"
    )
    message = f"{wait}: a broker with timerWheelEnable=false delivers none"
    yield _of_queue(
        Code.TIMER_MESSAGES_WAIT,
        TIMER_LOG,
        message=message,
        count=waiting.messages,
    )


def _missing(view: TimerView, evidence: Evidence) -> Iterator[Finding]:
    """Yield files of the timer log between two others, or all of them: retention takes only the first ones."""
    parts = view.parts
    if evidence.not_opened_below(TIMER_LOG):
        return
    wanted = [before.start + before.size for before, after in pairwise(parts.files) if after.start > before.start + before.size]
    fates = view.fates
    if parts.files and parts.files[0].start > 0 and fates is not None and fates.no_unit.messages and not wanted:
        wanted = [parts.files[0].start - view.file_bytes]  # retention leaves units of messages that are still there
    if not parts.files and parts.check.flush_position > 0 and not parts.check.odd:
        wanted = [(parts.check.flush_position - 1) // view.file_bytes * view.file_bytes]
    for start in wanted:
        name = f"{TIMER_LOG}/{start:020d}"
        yield Finding(Code.TIMER_LOG_MISSING, name, expected="a file of the timer log", actual="no file", message=name)


def _wheel(view: TimerView) -> Iterator[Finding]:
    """Yield the findings on a missing wheel beside units, and on links that nobody looked at."""
    if not view.parts.wheel and view.files.unit_count:
        yield Finding(
            Code.TIMER_WHEEL_MISSING,
            layout.TIMER_WHEEL,
            expected=f"slots of {count_text(view.files.unit_count, 'unit')}",
            actual="no file, or an empty one",
            message="the timer wheel is missing or empty",
        )
    if view.files.links_unread:
        yield Finding(
            Code.TIMER_UNIT_WRONG,
            TIMER_LOG,
            severity=severity_in(Code.TIMER_UNIT_WRONG, Case.NOT_LOOKED_AT),
            expected="links to earlier units of the same time",
            actual=f"{count_text(view.files.links_unread, 'link')} not looked at",
            message="the timer log has more links to older units than are looked at",
        )


def _place(view: TimerView, position: int) -> tuple[str, int, int]:
    for file in view.parts.files:
        if file.start <= position < file.start + file.size:
            return file.path, position - file.start, position - file.start + layout.UNIT_BYTES
    return TIMER_LOG, 0, 0


def _units(view: TimerView, unclean: bool) -> Iterator[Finding]:
    faults = view.faults
    yield from faults.findings(
        lambda wrong: Finding(
            Code.TIMER_UNIT_WRONG,
            *_place(view, wrong.place),
            expected=wrong.expected,
            actual=wrong.actual,
            message="a unit of the timer log does not fit its message",
        )
    )
    for units, end, where, severity in too_far(view, faults, unclean):
        yield Finding(
            Code.TIMER_UNIT_BEYOND_END,
            *_place(view, units.place),
            severity=severity,
            phy_offset=units.phy_offset,
            expected=f"a message before {end}",
            actual="none there",
            message=f"{count_text(units.count, 'unit')} of the timer log lead beyond {where}",
            count=units.count,
        )


def too_far(view: TimerView, faults: UnitFaults, unclean: bool) -> Iterator[tuple[UnitsBeyond, int, str, str]]:
    """Yield units that lead beyond an end of the log, with that end, its words, and the severity."""
    if faults.beyond.count:
        severity = severity_in(Code.TIMER_UNIT_BEYOND_END, Case.AFTER_CRASH, unclean)
        yield faults.beyond, view.log.data_end, "the CommitLog's last message", severity
    if faults.stale.count > faults.beyond.count:
        assert view.truncate_at is not None
        severity = severity_in(Code.TIMER_UNIT_BEYOND_END, Case.START_CUTS)
        yield faults.stale, view.truncate_at, "where a start ends the CommitLog", severity


def _check(view: TimerView, evidence: Evidence) -> Iterator[Finding]:
    """Yield the checkpoint: absent, odd, or of another moment than the rest."""
    check, unclean, path = view.parts.check, evidence.copy.unclean, layout.TIMER_CHECK
    waiting = view.files.unit_count
    if check.size < 0 and evidence.was_not_opened(CONFIG):
        return  # nobody knows whether it is there
    if check.empty:
        fates = view.fates
        again = fates.again.messages if fates is not None and view.parts.table is None else 0
        if waiting or again:
            actual = "no file" if check.size < 0 else f"{check.size} bytes" if check.size < layout.CHECK_BYTES else "zeros"
            yield Finding(
                Code.TIMER_CHECKPOINT_MISSING,
                path,
                None if check.size < 0 else 0,
                None if check.size < 0 else check.size,
                expected=f"how far {count_text(waiting, 'unit')} of the timer log were delivered"
                if waiting
                else "how far the timer's queue was delivered",
                actual=actual,
                message="a start reads the timer log's slots of the last seven days again"
                if view.parts.table is not None and view.parts.table.queue_offset
                else "a start takes all timer messages from the beginning"
                + (f" and delivers {count_text(again, 'message')} again" if again else ""),
            )
        return
    if check.odd:
        yield Finding(
            Code.TIMER_CHECKPOINT_WRONG, path, 0, layout.CHECK_FIELDS_BYTES, expected="times and offsets that a broker writes",
            actual=f"{check.read_time}, {check.flush_position}, {check.queue_offset}, {check.master_offset}",
            message="the timer's checkpoint",
        )  # fmt: skip
        return
    if check.flush_position > view.files.units_end + layout.UNIT_BYTES and view.parts.files:
        end = view.parts.files[-1].start + view.parts.files[-1].size
        if check.flush_position != end:
            yield Finding(
                Code.TIMER_CHECKPOINT_WRONG, path, *_FLUSHED,
                severity=severity_in(Code.TIMER_CHECKPOINT_WRONG, Case.AFTER_CRASH, unclean),
                expected=f"at most {view.files.units_end}", actual=str(check.flush_position),
                message="the timer log was flushed beyond its last unit",
            )  # fmt: skip
    if view.queue_max is not None and view.queue_offset is not None and check.queue_offset > view.queue_max:
        stands_still = view.queue_offset - view.queue_max
        message = f"the timer has read its queue up to {check.queue_offset}, and a start leaves it {view.queue_max} entries"
        if stands_still > 0:
            message += f"; the next {count_text(stands_still, 'timer message')} sent would never be delivered"
        yield _of_queue(
            Code.TIMER_OFFSET_BEYOND_END,
            path,
            *_QUEUE_OFFSET,
            severity=severity_in(Code.TIMER_OFFSET_BEYOND_END, Case.STANDS_STILL, stands_still > 0),
            queue_offset=check.queue_offset,
            expected=f"at most {view.queue_max}",
            actual=str(check.queue_offset),
            message=message,
        )


def _lost(view: TimerView, evidence: Evidence, gone: bool) -> Iterator[Finding]:
    """Yield timer messages that a start never delivers. gone: a file of the timer log is missing."""
    fates = view.fates
    if fates is None:
        return
    # A slave's log may end before the read time that it has from its master.
    may_lie_beyond = evidence.copy.unclean or evidence.copy.rules.is_slave
    softer = severity_in(Code.TIMER_MESSAGE_LOST, Case.COPY_ENDS_BEFORE, may_lie_beyond)
    keyed = view.parts.table is not None
    # A message that was taken out of its queue and is due after the copy's last message was copied by nobody: no later part of
    # the log can hold what a broker delivered.
    due_later = not evidence.copy.rules.is_slave and fates.no_unit.last_time > view.last_store_time
    unused = unused_entries(evidence.copy.source, evidence.copy.listing, evidence.copy.rules) if fates.no_unit.messages else 0
    for count, why, severity in (
        (fates.cut, "their delivered copies are cut away", ""),
        (fates.never, "no copy of them was ever delivered", ""),
        (
            fates.after_end,
            "their time came after the copy's last message, so that their copies may lie in what was not copied",
            softer,
        ),
        (fates.unreached, "no slot of the timer wheel leads to their units after a start", ""),
        (
            fates.no_unit,
            f"they were taken out of their queue, and {'RocksDB has no entry' if keyed else 'the timer log has no unit'} of them"
            + (f"; rocksdbstore/ has {count_text(unused, 'timer')}, which these settings do not read" if unused else ""),
            "" if gone or due_later else softer,
        ),
    ):
        if count.messages:
            yield _of_queue(
                Code.TIMER_MESSAGE_LOST,
                TABLES_FOLDER if keyed else layout.TIMER_CHECK,
                None if keyed else _READ_TIME[0],
                None if keyed else _READ_TIME[1],
                severity=severity,
                expected="a delivered copy, or a time that is still to come",
                actual=f"read up to {time_text(view.keyed_read_time if keyed else view.parts.check.read_time)}",
                message=f"a start never delivers {count_text(count.messages, 'timer message')}, due {between(count)}: {why}",
                next=Advice(Step.ROCKSDB_TIMERS) if unused and count is fates.no_unit else None,
                count=count.messages,
            )


def between(count: TimerCount) -> str:
    """Return in words when the counted timers are due."""
    first, last = time_text(count.first_time), time_text(count.last_time)
    return f"at {first}" if first == last else f"from {first} to {last}"


def timer_entry_findings(evidence: Evidence) -> list[Finding]:
    """Return findings on entries of timers in RocksDB. [] for a copy whose timers are in files."""
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
    yield from faults.findings(
        lambda wrong: _of_queue(
            Code.TIMER_UNIT_WRONG,
            TABLES_FOLDER,
            phy_offset=wrong.phy_offset,
            expected=wrong.expected,
            actual=wrong.actual,
            message=f"the timer's entry in RocksDB that is due at {time_text(wrong.place)} does not fit its message",
        )
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
        yield _of_queue(
            Code.TIMER_OFFSET_BEYOND_END,
            TABLES_FOLDER,
            queue_offset=table.queue_offset,
            expected=f"at most {view.queue_max}",
            actual=str(table.queue_offset),
            message=f"timers were taken into RocksDB up to queue offset {table.queue_offset}, and a start leaves the queue"
            f" {count_text(view.queue_max, 'entry', 'entries')}",
        )


def _again(view: TimerView) -> Iterator[Finding]:
    fates = view.fates
    if fates is not None and fates.again.messages:
        yield _of_queue(
            Code.TIMER_MESSAGES_AGAIN,
            TABLES_FOLDER,
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
    yield _of_queue(
        Code.TIMER_START_LATE,
        TABLES_FOLDER,
        expected="up to when timers were delivered",
        actual="nothing stored",
        message=f"a start later than {time_text(first)} never delivers the timers that are due until ten seconds before it",
        count=len(left) if left is not None else 1,
    )
