"""Plans the queues of a repaired store's database: an entry for each message, and each queue's two ends (rocksdb.md 9).

Each entry has its message's own queue offset. Keys need not follow one another, so nothing comes before the first message. Where
messages between others are missing, each of their queue offsets gets an entry as in a file: a consumer that meets a number
without an entry gets nothing there, and 5.5.0 fails. The numbers that an inner batch takes up beside its entry have none, as a
broker leaves them. Of a double write the database gets the same entries at the same numbers as the files, and ends such that
start() finds nothing to change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from schemas.repair import QueueRange
from schemas.rows import QueueKey
from store_io.broker.loading import why_no_folder
from store_io.broker.queues.rocksdb_queue_state import QueueEnd, StoredEnds
from store_io.model.queue_views import QueueView
from store_io.repair.derived.queue_places import QueueRun, place_runs, runs_of
from store_io.repair.derived.queue_plan import Fill, NewLog, QueuePlan, answer, note_places


@dataclass
class KeyedQueuePlan(QueuePlan):
    """The plan of a queue in RocksDB.

    messages: how many get an entry.
    maximum, minimum: the ends that are stored, if any.
    """

    messages: int = 0
    maximum: QueueEnd | None = None
    minimum: QueueEnd | None = None

    @property
    def entries(self) -> int:
        return self.messages + sum(fill.end - fill.start for fill in self.fills)


def plan_keyed_queue(view: QueueView, log: NewLog, known: StoredEnds, begin: int | None = None) -> KeyedQueuePlan | None:
    """Plan one queue of the new database; None: it has nothing of it.

    known: the ends in the copy's database.
    begin: the queue offset from which on there are entries, as in files; None: from the first message's.
    """
    plan = KeyedQueuePlan(view.key, view.folder)
    runs = runs_of(view, log.segments)
    place_runs(runs, log.bridged, log.with_earlier)
    placed = sorted(((run.place, run) for run in runs if run.place is not None), key=lambda pair: pair[0])
    note_places(plan, runs)
    if not placed:
        ends = ends_without_messages(view.key, known, log.start)
        if ends is None:
            return plan if plan.unserved else None
        plan.maximum, plan.minimum = ends
        return plan
    (plan.first, first), (place, last) = placed[0], placed[-1]
    plan.end = place + last.records
    plan.messages = sum(run.records for _, run in placed)
    plan.minimum, plan.maximum = QueueEnd(first.first, plan.first), QueueEnd(last.last, plan.end - 1)
    if begin is not None and begin < plan.first:
        _add_fill(plan, begin, plan.first, first, log)
    _fill(plan, placed, log)
    return plan


def ends_without_messages(key: QueueKey, known: StoredEnds, log_start: int) -> tuple[QueueEnd, QueueEnd] | None:
    """Return the (maximum, minimum) of a queue that had messages and has none in the new log.

    So a new message does not get the queue offset of one that retention has deleted. None: the queue begins at 0.
    """
    maximum, minimum = known.maxima.get(key), known.minima.get(key)
    if maximum is None or log_start <= 0:
        return None
    if maximum.phy_offset < log_start:
        return maximum, QueueEnd(log_start, maximum.queue_offset + 1)
    if minimum is None or minimum.queue_offset <= 0:
        return None
    return QueueEnd(log_start - 1, minimum.queue_offset - 1), QueueEnd(log_start, minimum.queue_offset)


def _fill(plan: KeyedQueuePlan, placed: Sequence[tuple[int, QueueRun]], log: NewLog) -> None:
    """Add an entry for every queue offset between two messages that neither a message nor an inner batch takes up.

    It has the place of a file, and the time of the message after it.
    """
    for (before, earlier), (place, run) in pairwise(placed):
        at = before + earlier.used
        if at < place:
            _add_fill(plan, at, place, run, log)


def _add_fill(plan: KeyedQueuePlan, at: int, place: int, run: QueueRun, log: NewLog) -> None:
    plan.fills.append(Fill(at, place, answer(run, place - at, log) + struct.pack(">q", run.store_time)))
    plan.answered.append(QueueRange(*plan.key, at, place, run.first))


def plan_twins(
    views: Mapping[QueueKey, QueueView], in_files: Mapping[QueueKey, QueuePlan], log: NewLog
) -> Iterator[KeyedQueuePlan]:
    """Yield the plan of each queue in RocksDB beside those in files.

    views: of those in files, before `in_files` were made anew.
    """
    for key, view in sorted(views.items()):
        if not view.of_other_kind and not why_no_folder(key[0]):
            plan = _plan_twin(view, in_files.get(key), log)
            if plan is not None:
                yield plan


def _plan_twin(view: QueueView, in_files: QueuePlan | None, log: NewLog) -> KeyedQueuePlan | None:
    begin = None
    if log.start <= 0:  # further up what is missing before the first message has no entry in files either
        begin = in_files.first if in_files is not None else view.files[0].start // view.unit if view.files else None
    plan = plan_keyed_queue(view, log, StoredEnds(), begin)
    if plan is not None and plan.messages:
        return plan
    number = in_files.keep if in_files is not None else view.summary.used_end if view.summary is not None else 0
    if number > 0 and log.start > 0:  # retention has deleted its messages
        plan = plan or KeyedQueuePlan(view.key, view.folder)
        plan.maximum, plan.minimum = QueueEnd(log.start - 1, number - 1), QueueEnd(log.start, number)
    return plan
