"""The answer of after-start, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from jobs.report.files.json_text import document
from jobs.report.texts.text import printable
from schemas.rows import Row
from store_io.base.exit_codes import CONSISTENT
from store_io.base.wording import count_text
from store_io.first_day.after_start import MOST_NAMED, AfterStart, Difference, Differs

_SHOWN = 20  # segments, topics


def after_start_text(found: AfterStart) -> str:
    """Return the answer, then each difference, then what was not read."""
    return "".join(f"{line}\n" for line in _lines(found))


def after_start_json(found: AfterStart) -> str:
    """Return the same as one JSON object."""
    row: Row = {"schema_version": 1, "exit_code": found.exit_code, "answer": headline(found), **asdict(found)}
    log_end = dict(zip(("predicted", "found"), found.log_end, strict=True)) if found.log_end is not None else None
    differences = [{**each._asdict(), "message": difference_text(each)} for each in found.differences]
    grown = [each._asdict() for each in found.grown]
    return document({**row, "log_end": log_end, "differences": differences, "grown": grown, "bytes_between_read": found.full})


def headline(found: AfterStart) -> str:
    """Return the answer in one line."""
    if found.different:
        places = count_text(found.different, "place")
        return f"It differs from the plan in {places}: stop the broker, and keep the store as it is."
    there = f"{found.there:,} of {count_text(found.promised, 'predicted queue entry', 'predicted queue entries')} are there"
    if found.exit_code == CONSISTENT:
        return f"As predicted: {there}, and nothing came or went."
    grown = count_text(found.grown_bytes, "byte")
    new = count_text(found.grown_entries, "queue entry", "queue entries")
    gone = f"; retention has deleted {count_text(len(found.gone), 'segment')}, as predicted" if found.gone else ""
    return f"As predicted, and grown or aged: {there}; the log grew by {grown}, the queues by {new}{gone}."


def difference_text(each: Difference) -> str:
    """Return a difference in one line: the file, and both values."""
    expected, actual = (f"{value:,}" if isinstance(value, int) else value for value in (each.expected, each.actual))
    between = f"bytes {each.start or 0:,} to {each.end or 0:,}"
    return {
        Differs.NO_START: f"the release would not start on it again: {actual}",
        Differs.FILE_MISSING: f"{each.file}: is missing; the plan has it with {expected} bytes",
        Differs.FILE_SIZE: f"{each.file}: {actual} bytes; {expected} by the plan",
        Differs.LOG_END: f"{each.file}: the log ends at {actual}; at {expected} by the plan: it was cut",
        Differs.EDGE: f"{each.file}: other {between} than the plan's",
        Differs.BYTES: f"{each.file}: other bytes than the plan's, somewhere in {between}",
        Differs.QUEUE_MISSING: f"{each.file}: there is no such queue; it ends at {expected} by the plan",
        Differs.QUEUE_MAX: f"{each.file}: ends at {actual}; at {expected} by the plan",
        Differs.QUEUE_MIN: f"{each.file}: begins at {actual}; at {expected} by the plan, and no retention explains it",
    }[each.kind]


def _lines(found: AfterStart) -> Iterator[str]:
    yield headline(found)
    for each in found.differences:
        yield f"  {'Differs':<10} {printable(difference_text(each), 600)}"
    if found.different > len(found.differences):
        yield f"  {'':<10} and {count_text(found.different - MOST_NAMED, 'more place')}"
    if found.log_end is not None:
        yield f"  {'Log':<10} ends at {found.log_end[1]:,}; at {found.log_end[0]:,} by the plan"
    for topic, entries in found.grown[:_SHOWN]:
        yield f"  {'Grew':<10} {printable(topic, 200)}: {count_text(entries, 'new entry', 'new entries')}"
    if found.grown_topics > _SHOWN:
        yield f"  {'':<10} and {count_text(found.grown_topics - _SHOWN, 'more topic')}"
    for path in found.gone[:_SHOWN]:
        yield f"  {'Deleted':<10} {printable(path)}, by retention"
    if len(found.gone) > _SHOWN:
        yield f"  {'':<10} and {count_text(len(found.gone) - _SHOWN, 'more segment')}"
    if found.aged:
        yield f"  {'':<10} and {count_text(found.aged, 'file')} of queues and index with them"
    if not found.going_known:
        yield f"  {'Unknown':<10} the plan does not say what retention deletes: each missing segment counts as a difference"
    yield f"  {'Read':<10} {_read(found)}"


def _read(found: AfterStart) -> str:
    if found.full:
        return (
            f"all bytes before the predicted ends, of {count_text(found.whole, 'file')};"
            f" of {found.not_whole:,} others names and sizes alone"
        )
    edges = count_text(found.edges, "edge") if found.edges else "no edges, as the plan has none"
    return f"sizes, ends of log and queues, {edges}. Bytes between them were not read; --full reads them"
