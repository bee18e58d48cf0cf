"""Where each file of a store ends, on one scale of physical offsets and one of store times.

A mark outside of the log's own range is drawn at the edge and said to be there: one wild value must not squeeze the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.report.pages.page import View
from jobs.report.texts.ranking import lost_of
from jobs.report.texts.text import span_text, time_text
from schemas.rows import AuditOutcome, Row


@dataclass(frozen=True)
class Mark:
    """first == last: a point; else a range. words: what it is. style: "", "cut" or "lost"."""

    words: str
    first: int
    last: int
    style: str = ""


@dataclass(frozen=True)
class Line:
    """A mark as it is drawn. left, width: where on the scale, in per cent; None where nothing is drawn. A point has no width."""

    words: str
    value: str
    style: str
    left: str | None = None
    width: str | None = None


def marks_view(outcome: AuditOutcome, broker: Row | None) -> View:
    """What marks.html shows. Nothing where there is nothing to place."""
    offsets = offset_marks(outcome, broker)
    if not outcome.segments or not offsets:
        return {"scales": []}
    low, high = _log_range(outcome)
    scales = [("Physical offsets", [_offset_line(mark, low, high) for mark in offsets])]
    low, high = outcome.first_store_time, outcome.last_store_time
    if high:
        scales.append(("Store times", [_time_line(mark, low, high) for mark in time_marks(outcome)]))
    return {"scales": scales}


def _log_range(outcome: AuditOutcome) -> tuple[int, int]:
    bases = [(int(s.get("base_offset") or 0), int(s["size_bytes"])) for s in outcome.segments]
    return min(b for b, _ in bases), max(b + n for b, n in bases)


def offset_marks(outcome: AuditOutcome, broker: Row | None) -> list[Mark]:
    """Marks on the scale of physical offsets."""
    if not outcome.segments:
        return []
    low, high = _log_range(outcome)
    marks = [Mark("CommitLog files, from first to last byte", low, high)]
    written = [
        int(s.get("base_offset") or 0) + int(e["end"])
        for s in outcome.segments
        for e in s.get("extents") or ()
        if e["kind"] == "message"
    ]
    if written:
        marks.append(Mark("end of the last message in this copy", max(written), max(written)))
    if broker and broker.get("starts"):
        minimum = int(broker.get("min_phy_offset") or 0)
        marks.append(Mark("first physical offset after a start", minimum, minimum))
        start = str(broker.get("start_segment") or "")
        if start.isascii() and start.isdigit():
            marks.append(Mark("recovery begins to read", int(start), int(start)))
        cut = int(broker.get("truncate_at") or 0)
        marks.append(Mark("end of the CommitLog after a start: the cut", cut, cut, "cut" if lost_of(outcome)[0] else ""))
    reach = [q for q in outcome.queues if (q.get("load_max_phy_offset") or -1) >= 0]
    if reach:
        ends = [int(q["load_max_phy_offset"]) for q in reach]
        marks.append(Mark(f"last message in each of {len(reach):,} ConsumeQueues, once loaded", min(ends), max(ends)))
    index = [f for f in outcome.index_files if (f.get("entries") or 0) > 0]
    if index:
        first, last = (
            min(int(f.get("begin_phy_offset") or 0) for f in index),
            max(int(f.get("end_phy_offset") or 0) for f in index),
        )
        marks.append(Mark("index files, from first to last message", first, last))
    names = {
        "confirm_phy_offset": "checkpoint: confirmPhyOffset",
        "logics_phy_offset": "checkpoint: logicsPhysicalOffset",
        "master_flushed_offset": "checkpoint: masterFlushedOffset",
    }
    for key, words in names.items():
        value = int(outcome.checkpoint.get(key) or 0)
        if value > 0:
            marks.append(Mark(words, value, value))
    return marks


def time_marks(outcome: AuditOutcome) -> list[Mark]:
    """Marks on the scale of store times, ms."""
    marks = [Mark("messages in this copy, first to last", outcome.first_store_time, outcome.last_store_time)]
    names = {
        "physic_time": "checkpoint: CommitLog flushed up to",
        "logics_time": "checkpoint: ConsumeQueues flushed up to",
        "index_time": "checkpoint: index flushed up to",
    }
    for key, words in names.items():
        if key in outcome.checkpoint:
            value = int(outcome.checkpoint[key] or 0)
            marks.append(Mark(words, value, value))
    index = [f for f in outcome.index_files if (f.get("entries") or 0) > 0]
    if index:
        first, last = min(int(f.get("begin_time_ms") or 0) for f in index), max(int(f.get("end_time_ms") or 0) for f in index)
        marks.append(Mark("index files, first to last message", first, last))
    topics = outcome.loss.get("by_topic", ())
    if topics:
        first, last = min(t["first_store_time"] for t in topics), max(t["last_store_time"] for t in topics)
        marks.append(Mark("messages that would be lost, first to last", first, last, "lost"))
    return marks


def _offset_line(mark: Mark, low: int, high: int) -> Line:
    value = f"{mark.first:,}" if mark.first == mark.last else f"{mark.first:,} to {mark.last:,}"
    return _placed(mark, value, low, high)


def _time_line(mark: Mark, low: int, high: int) -> Line:
    first, last = ("not set" if ms <= 0 else time_text(ms) for ms in (mark.first, mark.last))
    if mark.first <= 0 and mark.last <= 0:
        return Line(mark.words, first if mark.first == mark.last else f"{first} to {last}", mark.style)
    if mark.first > 0 and mark.last > 0:
        return _placed(mark, span_text(mark.first, mark.last), low, high)
    return _placed(mark, f"{first} to {last}", low, high)


def _placed(mark: Mark, value: str, low: int, high: int) -> Line:
    def place(value: int) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return 3 + 94 * min(1.0, max(0.0, share))

    left, right = place(mark.first), place(mark.last)
    outside = [word for word, is_so in (("before", mark.first < low), ("beyond", mark.last > high)) if is_so]
    told = f"{value} ({' and '.join(outside)} the log)" if outside else value
    width = None if mark.first == mark.last else f"{max(0.4, right - left):.4g}%"
    return Line(mark.words, told, mark.style, f"{left:.4g}%", width)
