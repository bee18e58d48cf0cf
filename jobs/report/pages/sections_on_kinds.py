"""The sections of a store's page about kinds of files: queues and index, timers, config/, and controller mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from markupsafe import Markup

from jobs.report.pages.page import MAX_ROWS, MOST_SHOWN, View, name_of, number_text
from jobs.report.texts.safety_text import timer_words
from jobs.report.texts.text import printable
from schemas.finding_codes import CATALOGUE, Part
from schemas.losses import TimersOfCopy
from schemas.outcome import Outcome
from schemas.rows import NOTE, ConfigTables, Row
from schemas.start_effect import BrokerState, ConfigLoad, ControlledStart, QueueEnds, Started

_COUNTS = {"missing": "entry missing", "wrong": "entry wrong", "shifted": "entry shifted", "unexpected": "entry unexpected"}


def queues_view(outcome: Outcome) -> View:
    """Return the data of queues.html. The table of queues has no empty column."""
    blamed: Counter[tuple[str, int]] = Counter()
    for finding in outcome.found.findings:
        if finding.topic is not None and finding.severity != NOTE and CATALOGUE[finding.code].about is Part.QUEUE:
            blamed[finding.topic, finding.queue_id or 0] += finding.count

    def weight(queue: Row) -> int:
        return sum(int(queue.get(name) or 0) for name in _COUNTS) + blamed[queue["topic"], queue["queue_id"]]

    met: Counter[str] = Counter()  # how many of the queues that differ have each

    def differing() -> Iterator[Row]:
        for queue in outcome.rows.queues:  # of which there may be a million
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
        "of_queues": len(outcome.rows.queues),
        "heads": [
            "topic / queue",
            "#messages in the log",
            *(f"#{words}" for words in counts.values()),
            "#findings",
            "#offsets after a start",
            *(["not read"] if unread else []),
        ],
        "cells": cells,
        "files": [f for f in outcome.rows.index_files if f.get("findings") or f.get("problem") or f.get("kept") is False],
        "of_files": len(outcome.rows.index_files),
    }


def timers_view(outcome: Outcome, timers: TimersOfCopy) -> View:
    """Return the data of timers.html: how many wait and when they are due, and a start's effect on them."""
    return {
        "timers": timers,
        "words": list(timer_words(outcome)),
        "after": outcome.effect.timers if outcome.effect is not None else None,
    }


@dataclass(frozen=True)
class TakenFile:
    name: str
    taken: str


def config_view(load: ConfigLoad, tables: ConfigTables) -> View:
    """Return the data of config.html: the first entries of each table; config.json has all."""
    own = {"topic": sum(1 for _ in tables.own_topics), "group": sum(1 for _ in tables.own_groups)}
    built_in = {"topic": len(tables.topics) - own["topic"], "group": len(tables.groups) - own["group"]}
    return {
        "config": load,
        "files": [TakenFile(name, taken or "none") for name, taken in sorted(load.read.items())],
        "own": own,
        "built_in": built_in if tables.lists_built_in else {},
        "topics": list(islice(tables.own_topics, MOST_SHOWN)),
        "groups": [name for name, _ in islice(tables.own_groups, MOST_SHOWN)],
        "offsets": [(*place, offset) for place, offset in islice(tables.offsets.items(), MOST_SHOWN)],
        "levels": sorted(tables.delay_offsets.items())[:MOST_SHOWN],
    }


@dataclass(frozen=True)
class ElectedQueue:
    """A queue's ends while the broker is fenced and after its election; None if it has no such queue then."""

    topic: str
    queue_id: int
    fenced: int | None
    elected: int


@dataclass(frozen=True)
class Moment:
    """The figures of the broker at one moment."""

    name: str
    log_end: int
    queues: int
    entries: int
    keys: int


def controller_view(started: Started, controller: ControlledStart) -> View:
    """Return the data of controller.html. controller: the additions to that start."""
    fenced, elected, election = started.after_dispatch, started.after_election, controller.election
    moments = [_moment("fenced, before the controller has answered", fenced, started.truncate_at)]
    cut_at = election.cut_at if election is not None else None
    if elected is not None:
        moments.append(_moment("elected as master", elected, started.truncate_at if cut_at is None else cut_at))
    return {
        "identity": controller.identity,
        "confirmed": controller.confirm_offset,
        "epochs": controller.epochs[-MOST_SHOWN:],
        "of_epochs": len(controller.epochs),
        "election": election,
        "moments": moments,
        "queues": _ends(fenced.queues, elected.queues) if elected is not None else [],
        "left": started.lost.messages if started.lost is not None and elected is not None and cut_at is None else 0,
    }


def _moment(name: str, state: BrokerState, log_end: int) -> Moment:
    entries = sum(max(0, queue.max_offset - queue.min_offset) for queue in state.queues)
    keys = sum(max(0, file.index_count - 1) for file in state.index)
    return Moment(name, log_end, len(state.queues), entries, keys)


def _ends(fenced: Iterable[QueueEnds], elected: Iterable[QueueEnds]) -> list[ElectedQueue]:
    before = {queue[:2]: queue.max_offset for queue in fenced}
    rows = [ElectedQueue(queue.topic, queue.queue_id, before.get(queue[:2]), queue.max_offset) for queue in elected]
    return [row for row in rows if row.fenced != row.elected]
