"""Where each file of a store ends, on one scale of physical offsets and one of store times.

A mark outside of the log's own range is drawn at the edge and said to be there: one wild value must not squeeze the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.report.pages.page import hint
from jobs.report.texts.ranking import lost_of
from jobs.report.texts.text import markup, span_text, time_text
from schemas.rows import AuditOutcome, Row

_PHYSICAL, _TIMES = "physical offset", "time"


@dataclass(frozen=True)
class Mark:
    """first == last: a point; else a range. words: what it is. style: "", "cut" or "lost"."""

    words: str
    first: int
    last: int
    style: str = ""


def watermarks(outcome: AuditOutcome, broker: Row | None) -> Iterator[str]:
    """The section's content; markup. Nothing where there is nothing to place."""
    offsets, times = offset_marks(outcome, broker), time_marks(outcome)
    if not outcome.segments or not offsets:
        yield "<p>There is no CommitLog to compare with.</p>\n"
        return
    yield hint(
        "In a healthy store the ConsumeQueues and the index reach the end of the CommitLog, and the checkpoint's times are "
        "shortly before the last message's."
    )
    low, high = _log_range(outcome)
    yield from _scale("Physical offsets", offsets, low, high, _PHYSICAL)
    if outcome.last_store_time:
        yield from _scale("Store times", times, outcome.first_store_time, outcome.last_store_time, _TIMES)


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


def _scale(title: str, marks: Sequence[Mark], low: int, high: int, unit: str) -> Iterator[str]:
    yield f'<h3>{title}</h3>\n<ul class="marks">\n'
    for mark in marks:
        yield _line(mark, low, high, unit)
    yield "</ul>\n"


def _line(mark: Mark, low: int, high: int, unit: str) -> str:
    def shown(value: int) -> str:
        return f"{value:,}" if unit == _PHYSICAL else ("not set" if value <= 0 else time_text(value))

    def place(value: int) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return 3 + 94 * min(1.0, max(0.0, share))

    if unit == _TIMES and mark.first > 0 and mark.last > 0:
        value = span_text(mark.first, mark.last)
    else:
        value = shown(mark.first) if mark.first == mark.last else f"{shown(mark.first)} to {shown(mark.last)}"
    style = f" m-{mark.style}" if mark.style else ""
    empty = unit == _TIMES and mark.first <= 0 and mark.last <= 0
    shapes = ""
    if not empty:
        left, right = place(mark.first), place(mark.last)
        if mark.first != mark.last:
            shapes = f'<rect class="range{style}" x="{left:.4g}%" y="5" width="{max(0.4, right - left):.4g}%" height="6" rx="3"/>'
        else:
            shapes = f'<circle class="point{style}" cx="{left:.4g}%" cy="8" r="5"/>'
        outside = [word for word, is_so in (("before", mark.first < low), ("beyond", mark.last > high)) if is_so]
        if outside:
            value += f" ({' and '.join(outside)} the log)"
    track = f'<svg class="track" aria-hidden="true"><line class="axis" x1="3%" x2="97%" y1="8" y2="8"/>{shapes}</svg>'
    return f'<li><span class="label">{markup(mark.words)}</span><span class="value">{value}</span>{track}</li>\n'
