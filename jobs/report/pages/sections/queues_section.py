"""The part of a store's page about the ConsumeQueues and index files that differ from the CommitLog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest

from markupsafe import Markup

from jobs.report.pages.page import MAX_ROWS, View, name_of, number_text
from jobs.report.texts.text import printable
from schemas.finding_codes import CATALOGUE, Part
from schemas.rows import NOTE, AuditOutcome, Row

_COUNTS = {"missing": "entry missing", "wrong": "entry wrong", "shifted": "entry shifted", "unexpected": "entry unexpected"}


def queues_view(outcome: AuditOutcome) -> View:
    """Return the data of queues.html. The table of queues has no empty column."""
    blamed: Counter[tuple[str, int]] = Counter()
    for finding in outcome.findings:
        if finding.topic is not None and finding.severity != NOTE and CATALOGUE[finding.code].about is Part.QUEUE:
            blamed[finding.topic, finding.queue_id or 0] += finding.count

    def weight(queue: Row) -> int:
        return sum(int(queue.get(name) or 0) for name in _COUNTS) + blamed[queue["topic"], queue["queue_id"]]

    met: Counter[str] = Counter()  # how many of the queues that differ have each

    def differing() -> Iterator[Row]:
        for queue in outcome.queues:  # of which there may be a million
            if weight(queue) or queue.get("lost_messages") or queue.get("problem"):
                met.update(["queue", *(name for name in (*counts, "problem") if queue.get(name))])
                yield queue

    def worst_first(queue: Row) -> tuple[int, int, str, int]:
        return -int(queue.get("lost_messages") or 0), -weight(queue), queue["topic"], queue["queue_id"]

    counts = {**_COUNTS, "lost_messages": "would be lost"}
    queues = nsmallest(MAX_ROWS, differing(), key=worst_first)
    counts = {name: words for name, words in counts.items() if met[name]}
    unread = met["problem"] > 0

    def cells(queue: Row) -> list[str | Markup]:
        low, high = queue.get("dispatch_min_offset"), queue.get("dispatch_max_offset")
        return [
            name_of(queue["topic"]) + f" / {queue['queue_id']}{' (batch)' if queue.get('batch') else ''}",
            *(number_text(queue.get(name)) for name in ("log_messages", *counts)),
            number_text(blamed[queue["topic"], queue["queue_id"]]),
            "none" if low is None or high is None else f"{low:,} to {high:,}",
            *([printable(queue.get("problem") or "", 200)] if unread else []),
        ]

    return {
        "queues": queues,
        "differ": met["queue"],
        "of_queues": len(outcome.queues),
        "heads": [
            "topic / queue",
            "#messages in the log",
            *(f"#{words}" for words in counts.values()),
            "#findings",
            "#offsets after a start",
            *(["not read"] if unread else []),
        ],
        "cells": cells,
        "files": [f for f in outcome.index_files if f.get("findings") or f.get("problem") or f.get("kept") is False],
        "of_files": len(outcome.index_files),
    }
