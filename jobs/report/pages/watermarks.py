"""The ends of each file of a store, on one scale of physical offsets and one of store times.

A mark outside of the log's own range is drawn at the edge and said to be there: one wild value must not squeeze the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report.pages.page import View
from schemas.outcome import Outcome
from schemas.rows import Checkpoint
from store_io.base.times import second_text, span_text
from store_io.outcome.segments_read import segments_read


@dataclass(frozen=True)
class Mark:
    """first == last: a point; else a range. words: what it is. style: "", "cut" or "lost"."""

    words: str
    first: int
    last: int
    style: str = ""


@dataclass(frozen=True)
class Line:
    """A mark as it is drawn.

    left, width: its place on the scale, in per cent; None if nothing is drawn. A point has no width.
    """

    words: str
    value: str
    style: str
    left: str | None = None
    width: str | None = None


def marks_view(outcome: Outcome) -> View:
    """Return the data of marks.html, empty if there is nothing to place."""
    if not outcome.rows.segments:
        return {"scales": []}
    offsets = offset_marks(outcome)
    scales = [("Physical offsets", [_offset_line(mark, offsets[0]) for mark in offsets])]
    if outcome.holds.last_store_time:
        times = time_marks(outcome)
        scales.append(("Store times", [_time_line(mark, times[0]) for mark in times]))
    return {"scales": scales}


def offset_marks(outcome: Outcome) -> list[Mark]:
    """Return marks on the scale of physical offsets; the first is the whole CommitLog. outcome: one with segments."""
    segments = segments_read(outcome.rows.segments)
    bases, ends = [segment.base_offset for segment in segments], [segment.end for segment in segments]
    marks = [_range("CommitLog files, from first to last byte", bases, ends)]
    written = [segment.message_end for segment in segments if segment.message_end is not None]
    if written:
        marks.append(_point("end of the last message in this copy", max(written)))
    started = outcome.started
    if started is not None:
        marks.append(_point("first physical offset after a start", started.min_phy_offset))
        start = started.start_segment or ""
        if start.isascii() and start.isdigit():
            marks.append(_point("recovery begins to read", int(start)))
        style = "cut" if outcome.loss.messages else ""
        marks.append(_point("end of the CommitLog after a start: the cut", started.log_end, style))
    ends = [q["load_max_phy_offset"] for q in outcome.rows.queues if (q.get("load_max_phy_offset") or -1) >= 0]
    if ends:
        marks.append(_range(f"last message in each of {len(ends):,} ConsumeQueues, once loaded", ends, ends))
    marks += _index_range(outcome, "index files, from first to last message", "begin_phy_offset", "end_phy_offset")
    stored = outcome.holds.checkpoint or Checkpoint()
    for value, name in (
        (stored.confirm_phy_offset, "confirmPhyOffset"),
        (stored.logics_phy_offset, "logicsPhysicalOffset"),
        (stored.master_flushed_offset, "masterFlushedOffset"),
    ):
        marks += [_point(f"checkpoint: {name}", value)] if value > 0 else []
    return marks


def time_marks(outcome: Outcome) -> list[Mark]:
    """Return marks on the scale of store times, ms; the first is that of all messages."""
    marks = [Mark("messages in this copy, first to last", outcome.holds.first_store_time, outcome.holds.last_store_time)]
    stored = outcome.holds.checkpoint
    if stored is not None:
        times = (stored.physic_time, "CommitLog"), (stored.logics_time, "ConsumeQueues"), (stored.index_time, "index")
        marks += [_point(f"checkpoint: {part} flushed up to", time) for time, part in times]
    marks += _index_range(outcome, "index files, first to last message", "begin_time_ms", "end_time_ms")
    if topics := outcome.loss.by_topic:
        first, last = [topic.first_store_time for topic in topics], [topic.last_store_time for topic in topics]
        marks.append(_range("messages that would be lost, first to last", first, last, "lost"))
    return marks


def _point(words: str, at: int, style: str = "") -> Mark:
    return Mark(words, at, at, style)


def _range(words: str, firsts: Sequence[int], lasts: Sequence[int], style: str = "") -> Mark:
    return Mark(words, min(firsts), max(lasts), style)


def _index_range(outcome: Outcome, words: str, first: str, last: str) -> list[Mark]:
    """Draw from one column to another of the index files with an entry; none without one."""
    files = [file for file in outcome.rows.index_files if file.get("entries")]
    return [_range(words, [file.get(first) or 0 for file in files], [file.get(last) or 0 for file in files])] if files else []


def _offset_line(mark: Mark, log: Mark) -> Line:
    return _placed(mark, f"{mark.first:,}" if mark.first == mark.last else f"{mark.first:,} to {mark.last:,}", log)


def _time_line(mark: Mark, log: Mark) -> Line:
    if mark.first > 0 and mark.last > 0:
        return _placed(mark, span_text(mark.first, mark.last), log)
    first, last = ("not set" if ms <= 0 else second_text(ms) for ms in (mark.first, mark.last))
    if mark.first <= 0 and mark.last <= 0:
        return Line(mark.words, first if mark.first == mark.last else f"{first} to {last}", mark.style)
    return _placed(mark, f"{first} to {last}", log)


def _placed(mark: Mark, value: str, log: Mark) -> Line:
    low, high = log.first, log.last

    def place(value: int) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return 3 + 94 * min(1.0, max(0.0, share))

    left, right = place(mark.first), place(mark.last)
    outside = [word for word, is_so in (("before", mark.first < low), ("beyond", mark.last > high)) if is_so]
    shown = f"{value} ({' and '.join(outside)} the log)" if outside else value
    width = None if mark.first == mark.last else f"{max(0.4, right - left):.4g}%"
    return Line(mark.words, shown, mark.style, f"{left:.4g}%", width)
