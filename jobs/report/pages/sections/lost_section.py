"""The parts of a store's page about what consumers do not get after a start: of this release, and of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest

from jobs.report.pages.page import MAX_ROWS, View
from jobs.report.texts.commands import queue_query
from jobs.report.texts.words.comparison_words import least_text, lost_text, release_lines, setting_lines
from schemas.rows import AuditOutcome, Comparison, Row

MAX_COMMANDS = 5


def lost_view(outcome: AuditOutcome, broker: Row | None, words: Sequence[str]) -> View:
    """Return the data of lost.html: topics, queues, groups and delay levels, those that lose most first."""
    loss = outcome.loss
    lost = (broker or {}).get("lost") or {}
    by_queue = lost.get("by_queue", ())
    queues = nsmallest(MAX_ROWS, by_queue, key=lambda q: (-q["messages"], q["topic"], q["queue_id"]))
    listing = list(_commands(outcome, queues[:MAX_COMMANDS], words))
    return {
        "topics": sorted(loss.get("by_topic", ()), key=lambda t: (-t["messages"], t["topic"])),
        "queues": queues,
        "queue_count": len(by_queue),
        "commands": [command for command, _ in listing if command],
        "withheld": list(dict.fromkeys(why for _, why in listing if why)),
        "groups": sorted(loss.get("groups", ()), key=lambda g: (-(g["offset"] - g["new_max"]), g["group"], g["topic"])),
        "levels": loss.get("delay_levels", ()),
    }


def _commands(outcome: AuditOutcome, queues: Sequence[Row], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the commands that show lost messages, as `queue_query` gives them."""
    wanted = {(queue["topic"], queue["queue_id"]) for queue in queues}  # of all rows, which may be a million
    known = {key: row for row in outcome.queues if (key := (row["topic"], row["queue_id"])) in wanted} if wanted else {}
    for queue in queues:
        row = known.get((queue["topic"], queue["queue_id"]), {})
        end, first = row.get("log_end_offset"), row.get("dispatch_max_offset")
        if end is not None and first is not None and first < end:
            yield queue_query(words, queue["topic"], queue["queue_id"], first, end)


def compared_view(outcome: AuditOutcome, compared: Comparison) -> View:
    """Return the data of compared.html: a line for neighbouring releases that do the same, and one for each effective setting."""
    return {
        "release": outcome.release,
        "releases": release_lines(compared),
        "settings": setting_lines(compared),
        "unchanged": compared.unchanged,
        "least": least_text(outcome, compared),
        "lost": lost_text,
    }
