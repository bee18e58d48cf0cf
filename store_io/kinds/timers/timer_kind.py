"""The timer store, as an audit asks for it (timer.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from schemas.first_day import StartMoment
from schemas.outcome import Outcome
from schemas.start_effect import StartEffect
from store_io.base.tasks import Task
from store_io.broker.settings.day_settings import day_settings
from store_io.kinds.timers.due_timers import StartClock
from store_io.kinds.timers.timer_files import TimerParts, timer_parts
from store_io.kinds.timers.timer_part import TimerPart, TimerPartTask, TimerResults, with_timers
from store_io.kinds.timers.timer_records import TimerCollector
from store_io.kinds.timers.timer_recovery import recovery_begin
from store_io.kinds.timers.timer_table import TimerEntries, TimerEntriesTask
from store_io.kinds.timers.timer_task import TimerFiles, TimerTask
from store_io.kinds.timers.timer_view import TIMER_QUEUE, TimerView, timer_view
from store_io.log.scan.segment_scan import SegmentTask, part_scan
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Moment, Opening, Refusals
from store_io.model.opened_copy import OpenedCopy
from store_io.model.start_moment import start_moment

TIMERS_TOGETHER = 500_000  # of them in one task
MAX_TIMER_PARTS = 64  # each reads the log once more
FIRST_CLEANING_MS = 60_000  # from a start to the first retention; a DLedger log is cleaned at once
MAX_TIMERS = 400_000  # timer messages and copies of a store, and units, that the driver holds


@dataclass(frozen=True)
class TimerStore:
    """The files of a copy's timer store.

    parts: None without such files, or if the release knows none, or if the service is off and they cannot be judged.
    idle: settings keep the service off that delivers timers.
    """

    parts: TimerParts | None
    idle: bool

    @property
    def in_use(self) -> TimerParts | None:
        """Return the files of a broker that delivers timers."""
        return self.parts if not self.idle else None


@dataclass(frozen=True)
class TimersSeen:
    """The timer store with the effect of a start: of a broker that delivers timers, or of one whose settings keep that off."""

    in_use: TimerView | None = None
    idle: TimerView | None = None


class Timers(Kind[TimerStore, TimerResults, TimersSeen]):
    """Timer messages: the timer log, its wheel, its checkpoint, and timers in RocksDB."""

    name = "timers"
    task_types = (TimerTask, TimerEntriesTask, TimerPartTask)
    nothing_found = TimerResults

    def open(self, opening: Opening) -> TimerStore:
        parts, idle = timer_parts(opening.source, opening.listing, opening.tree, opening.rules), not opening.rules.timers
        if idle:
            return TimerStore(parts if parts is not None and parts.judged else None, idle)
        if parts is not None and parts.problem:
            opening.gaps.add([parts.problem])
        return TimerStore(parts, idle)

    def refusals(self, facts: TimerStore) -> Refusals:
        parts = facts.in_use
        return {Moment.BEFORE_LOAD: parts.refusal, Moment.AFTER_RECOVERY: parts.late_refusal} if parts is not None else {}

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan collect timer messages, if there is anything to hold them against."""
        parts = copy[self].parts
        if parts is None or not parts.judged:
            return task
        if not (parts.files or parts.table is not None or TIMER_QUEUE in copy.queues_in_files.served.folders):
            return task
        return replace(task, timers=TimerCollector(max(1, MAX_TIMERS // max(1, len(copy.segment_files)))))

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        parts, late = copy[self].parts, request.not_after
        if parts is None or not parts.judged or request.quick:
            return
        begin = recovery_begin(parts.flush_position, parts.files)
        files = parts.files, parts.wheel, parts.wheel_bytes, parts.check, begin
        precision, unclean = copy.rules.timer_precision, copy.unclean
        yield TimerTask(request.store, request.location, *files, precision, unclean, MAX_TIMERS, late)
        if parts.table is not None and not parts.table.database.absent and parts.table.damaged is None:
            yield TimerEntriesTask(request.store, request.location, parts.table.database, MAX_TIMERS, late)

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterable[Task]:
        """Return tasks for parts of the timer messages, if these are too many to be held together."""
        view = self._view(evidence) if evidence.all_read else None
        if view is None or view.held is not None or view.damaged:
            return []
        found, rows = with_timers(evidence.segments)
        count = -(-max(rows, view.files.unit_count, view.entries.count) // TIMERS_TOGETHER)
        if count > MAX_TIMER_PARTS or not found:
            return []
        scans = tuple(part_scan(base, s.path, s.base_offset, s.size) for s in found)
        known = view.parts.files, view.database, view.log, view.precision, view.state
        start = start_moment(evidence, evidence.request.start)
        clock = start_clock(evidence, start) if start is not None else None
        return [TimerPartTask(scans, *known, part, count, evidence.request.not_after, clock) for part in range(count)]

    def take(self, found: TimerResults, result: object) -> None:
        if isinstance(result, TimerFiles):
            found.files = result
        elif isinstance(result, TimerEntries):
            found.entries = result
        elif isinstance(result, TimerPart):
            found.add(result)

    def not_read(self, found: TimerResults, task: Task) -> None:
        if isinstance(task, TimerPartTask):
            found.not_read()

    def view(self, evidence: Evidence) -> TimersSeen:
        view = self._view(evidence)
        return TimersSeen(idle=view) if evidence.copy[self].idle else TimersSeen(in_use=view)

    def _view(self, evidence: Evidence) -> TimerView | None:
        return timer_view(evidence, evidence.copy[self].parts, evidence.results(self))

    def digests(self, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        files = evidence.results(self).files
        for path, (size, digest) in files.digests.items() if files is not None else ():
            yield path, size, digest

    def add_to_effect(self, evidence: Evidence, effect: StartEffect) -> StartEffect:
        view = evidence[self].in_use
        return replace(effect, timers=view.after_start() if view is not None else None)

    def add_to_outcome(self, evidence: Evidence, outcome: Outcome) -> Outcome:
        view = evidence[self].in_use
        return outcome if view is None else replace(outcome, holds=replace(outcome.holds, timers=view.report()))


TIMERS = Timers()


def start_clock(evidence: Evidence, moment: StartMoment) -> StartClock:
    """Return what goes by the clock of a start."""
    rules, parts = evidence.copy.rules, evidence.copy[TIMERS].parts
    table = parts.table if parts is not None else None
    return StartClock(
        moment.at_ms,
        rules.timer_precision,
        rules.timer_roll_slots,
        moment.at_ms + (0 if rules.value("enableDLegerCommitLog") else FIRST_CLEANING_MS),
        keyed=table is not None,
        read_keyed=table is None or table.read_time is not None,
        takes=not day_settings(evidence.request.broker_conf, rules)["timerStopEnqueue"],
        delivers=not evidence.copy[TIMERS].idle,
    )
