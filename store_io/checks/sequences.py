"""Queue offsets along the CommitLog: those of one queue follow one another without a gap.

Source of the rules: pitfalls.md, CommitLog audit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from schemas.finding_codes import Code
from schemas.rows import MATCH_EQUAL, RUN_QUEUE, Finding, SegmentSummary
from schemas.severity_cases import Case, severity_in
from store_io.base.ranges import subtract
from store_io.base.wording import count_text
from store_io.model.evidence import Evidence
from store_io.model.log_map import broken_between
from store_io.model.queue_runs import FAR
from store_io.model.queue_views import QueueView


def sequences(evidence: Evidence) -> list[Finding]:
    """Return findings on queue offsets that do not follow one another along the log (C13, P14).

    All of the log that was wanted must have been read. Bytes that a repair has bridged count as damaged. A gap is not serious if
    a repair made its positions lead to the next message.
    """
    if not evidence.log_whole or evidence.queues_not_opened:  # a folder of queues shows which topics have several in one record
        return []
    found: list[Finding] = []
    bridged = sorted(f.phy_offset or 0 for s in evidence.segments for f in s.findings if f.code == Code.COMMITLOG_BRIDGED)
    for view in evidence.views.values():
        if len(view.runs):
            found += _of_queue(evidence, view, bridged)
    return found


@dataclass(frozen=True)
class _Run:
    """One run of a queue's own messages. position: its physical offset by its place; end: that of its last record."""

    segment: int
    position: int
    start: int  # byte in the segment
    size: int  # of the first record
    end: int
    first: int  # queue offset
    steps: int
    records: int
    match: int

    @property
    def single(self) -> bool:
        return self.records == 1


def _of_queue(evidence: Evidence, view: QueueView, bridged: Sequence[int]) -> list[Finding]:
    segments, log = evidence.segments, evidence.log
    rows, positions = view.runs.rows, view.runs.positions
    own = np.flatnonzero(rows["kind"] == RUN_QUEUE)
    own = own[np.argsort(positions[own], kind="stable")]
    rows = rows[own]
    inner = evidence.copy.rules.numbers_inner_messages
    firsts, steps = rows["queue_offset"], rows["messages" if view.batch or inner else "records"]
    if not (np.abs(firsts) > FAR).any() and (firsts[1:] == firsts[:-1] + steps[:-1]).all():
        return []
    left = evidence.leftovers.get(view.key)
    answered = left.answered if left is not None else []
    by_place = ~(rows["regular"] != 0)
    ends = np.where(by_place, positions[own] + rows["first_size"], rows["last_phy_offset"] + rows["last_size"])
    columns = (
        view.runs.segments[own], positions[own], rows["first_position"], rows["first_size"], ends, firsts, steps, rows["records"],
        rows["match"],
    )  # fmt: skip
    runs = [_Run(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
    found = _begins_again(view, segments, runs)
    known = {again.position for again in view.begins_again}
    expected: int | None = None
    before = after_entries = -1  # a start of a broker continues after the last entry, whatever the batch there holds
    for i, run in enumerate(runs):
        first = run.first
        if expected is None or first == expected or inner and first == after_entries:
            expected, before, after_entries = first + run.steps, run.end, first + run.records
            continue
        following = runs[i + 1].first if i + 1 < len(runs) else None
        single = run.single and following != first + run.steps
        if run.single and following is not None and following == expected + run.steps:
            found.append(_sequence(view, segments, run, Code.QUEUE_OFFSET_WRONG, None, expected))
            expected, before = expected + run.steps, run.end
            continue
        if run.single and following is not None and following == expected and first < expected:
            # A record out of line: the sequence continues as if it were not there.
            found.append(_sequence(view, segments, run, Code.QUEUE_OFFSET_WRONG, None, expected))
            before = run.end
            continue
        if first > expected:
            if not broken_between(log, before, run.position) and bisect_left(bridged, before) == bisect_left(
                bridged, run.position
            ):
                old = evidence.copy.rules.refused_appends_use_offsets or not subtract([(expected, first)], answered)
                found.append(
                    _sequence(view, segments, run, Code.QUEUE_OFFSET_GAP, None if old else Case.MESSAGES_MISSING, expected)
                )
        elif run.position in known:
            pass
        elif first == 0 and (not single or run.match == MATCH_EQUAL):
            # The queue began anew: a topic deleted and made again, or a ConsumeQueue that was lost (P1).
            found.append(_sequence(view, segments, run, Code.QUEUE_OFFSET_BACK, Case.BEGINS_AGAIN, expected))
        else:
            found.append(
                _sequence(view, segments, run, Code.QUEUE_OFFSET_BACK, None if single else Case.SEVERAL_OFFSETS, expected)
            )
        expected, before, after_entries = first + run.steps, run.end, first + run.records
    return found


def _begins_again(view: QueueView, segments: Sequence[SegmentSummary], runs: Sequence[_Run]) -> list[Finding]:
    """Return the note on the begin of the queue's present life, and on the messages of earlier lives.

    A queue with one life has none.
    """
    count = view.earlier_messages() if view.begins_again else 0
    if not count:
        return []
    last = view.begins_again[-1]
    note = _sequence(view, segments, next(run for run in runs if run.position == last.position), Code.QUEUE_BEGINS_AGAIN, None, 0)
    are, them = ("is", "it") if count == 1 else ("are", "them")
    message = (
        f"{count_text(count, 'earlier message')} of topic {view.key[0]}, queue {view.key[1]}, {are} in no queue, and a start"
        f" changes nothing for {them}: queue offsets begin again at {last.queue_offset:,} at physical offset {last.position:,},"
        " as after its topic was deleted and made again, or its files removed"
    )
    return [replace(note, count=count, message=message, expected=None)]


def _sequence(
    view: QueueView, segments: Sequence[SegmentSummary], run: _Run, code: Code, case: Case | None, expected: int
) -> Finding:
    segment = segments[run.segment]
    return Finding(
        code,
        segment.path,
        run.start,
        run.start + run.size,
        severity_in(code, case) if case is not None else "",
        segment.base_offset + run.start,
        view.key[0],
        view.key[1],
        run.first,
        f"queue offset {expected}",
        f"queue offset {run.first}",
    )
