"""The part of a store's page that compares it with the other copies of its log."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.report.pages.page import hint, more, name_of, table
from jobs.report.texts.replicas_words import choice_words, lack_words, pair_words
from jobs.report.texts.text import bytes_text, markup, span_text
from schemas.rows import AuditOutcome, Row

MAX_ROWS = 100
_FILE = "replicas.json beside this folder has all of them"


def replicas_section(outcome: AuditOutcome) -> Iterator[str]:
    """The section's content; markup. outcome: one with `replicas`."""
    group = outcome.replicas
    yield hint(
        "Copies of one broker's log hold the same bytes at the same physical offsets. One may end earlier or begin"
        " later than another. Any other difference is damage, or messages that were written to one copy alone."
    )
    words = choice_words(group)
    yield f"<p><b>{markup(words[:1].upper() + words[1:])}</b></p>\n"
    rows = (_copy(copy, outcome.name) for copy in group["copies"])
    heads = ("copy", "#begins at", "#ends at", "#messages", "#lacks", "#a start cuts", "#loses as master")
    yield from table("Copies of this log", heads, rows, len(group["copies"]), MAX_ROWS, _FILE, stack=True)
    pairs = [pair for pair in group["pairs"] if outcome.name in (pair["left"], pair["right"])]
    yield "<ul>"
    yield from (f"<li>{markup(pair_words(pair))}.</li>" for pair in pairs[:MAX_ROWS])
    yield from (f"<li>{markup(words)}.</li>" for words in list(lack_words(group, outcome.name))[:MAX_ROWS])
    yield from (f"<li>{markup(problem)}</li>" for problem in group["problems"][:MAX_ROWS])
    yield "</ul>\n"
    if len(pairs) > MAX_ROWS:
        yield more(len(pairs) - MAX_ROWS, "pair", _FILE)
    parts = [(lack["holder"], part) for lack in group["lacks"] if lack["store"] == outcome.name for part in lack["ranges"]]
    if parts:
        heads = ("copy that holds it", "#from physical offset", "#to", "this copy has", "#messages", "#bytes", "stored")
        yield from table("What this copy lacks", heads, (_part(*part) for part in parts), len(parts), MAX_ROWS, _FILE, stack=True)


def _copy(copy: Row, own: str) -> tuple[str, ...]:
    name = name_of(copy["store"]) + (" (this one)" if copy["store"] == own else "")
    numbers = (copy[key] for key in ("start", "end", "messages", "lacks", "cut", "loses"))
    return name, *("not known" if number is None else f"{number:,}" for number in numbers)


def _part(holder: str, part: Row) -> tuple[str, ...]:
    times = span_text(part["first_store_time"], part["last_store_time"])
    where = f"{part['start']:,}", f"{part['end']:,}", part["other_has"]
    return name_of(holder), *where, f"{part['messages']:,}", bytes_text(part["bytes"]), times
