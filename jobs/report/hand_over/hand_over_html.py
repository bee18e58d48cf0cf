"""The page that is handed over after a repair: one self-contained file, to be gone through box by box, on a phone or on paper."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.report.hand_over.words import MOST_NAMED, HandOver, hashes_text, headline, parts, unsaved_lines
from jobs.report.pages.page import View, page
from jobs.report.texts.repair_text import emptied_text
from jobs.report.texts.text import printable


def hand_over_html(handed: HandOver) -> Iterator[str]:
    """The whole page, in pieces."""
    named = [
        {**row, "hashes": hashes_text(row), "end": row["queue_offset"] + row["messages"] - 1} for row in handed.named[:MOST_NAMED]
    ]
    first, *others = parts(handed)
    view: View = {
        "title": f"{printable(handed.target.rpartition('/')[2], 100)}: hand-over of a repaired RocketMQ store",
        "handed": handed,
        "headline": headline(handed),
        "emptied": [emptied_text(row) for row in handed.emptied],
        "first": first,
        "parts": others,
        "unsaved": unsaved_lines(handed),
        "named": named,
        "named_left": handed.named_count - sum(int(row["messages"]) for row in named),
    }
    return page("hand_over.html", view)
