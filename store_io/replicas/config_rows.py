"""Compares the tables of config/ of copies of one log: whose offsets are greater, and which topics and groups a copy lacks.

A slave copies its master's tables every few seconds (SlaveSynchronize.syncAll), offsets that are smaller than its own too. So the
greater ones are lost, unless they are taken from the copy that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from schemas.finding_codes import LOSS, Code
from schemas.rows import Finding, Row
from schemas.severity_cases import Case, severity_in
from store_io.base.wording import count_text, seen
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.lacking_topics import lacking_topics
from store_io.kinds.config.other_forms import NewestTable, newest_table
from store_io.model.queue_runs import messages_in
from store_io.replicas.compared_copies import Copy

MOST_NAMED = 100  # entries of a row
_PATHS = {
    "topics": (TOPICS,),
    "groups": (GROUPS,),
    "offsets": (LMQ_OFFSETS, CONSUMER_OFFSETS),  # settings decide which of them a broker reads
    "delay_offsets": (DELAY_OFFSETS,),
}


def config_rows(copies: Sequence[Copy]) -> tuple[list[Row], list[str]]:
    """Return a row for each table of which another copy has more.

    The second list has sentences about tables that could not be compared.
    """
    rows: list[Row] = []
    problems: list[str] = []
    for table, paths in _PATHS.items():
        shown: list[NewestTable | None] = []
        for copy in copies:
            found = None
            with copy.audit.no_fault_beyond():
                config = copy.audit.copy[CONFIG]
                found = newest_table(config, next((path for path in paths if path in config.tables.loads), paths[0]))
            shown.append(found)
            problems += [f"{copy.name}: {why}" for why in (found.unread if found is not None else (f"{paths[0]}: not read",))]
        for store, own in zip(copies, shown, strict=True):
            for holder, other in zip(copies, shown, strict=True):
                if own is not None and other is not None and own.entries != other.entries:
                    rows += _row(table, store.name, holder.name, own, other)
    return rows, problems


def topics_named_elsewhere(copies: Sequence[Copy]) -> Iterator[tuple[Copy, Finding]]:
    """Yield copies with the loss of a topic with messages that a copy's table lacks and the newer table of another copy names.

    What the copy's own audit found lost already is left out.
    """
    for store in copies:
        with store.audit.no_fault_beyond():
            yield from ((store, finding) for finding in _topics_of(store, copies))


def _topics_of(store: Copy, copies: Sequence[Copy]) -> Iterator[Finding]:
    audit, tables = store.audit, store.audit.copy[CONFIG].tables
    own = tables.loads.get(TOPICS)
    if own is None or not tables.is_taken(TOPICS) or not own.time_ms:
        return
    views = audit.evidence.views
    lacking = lacking_topics(tables, (key for key, view in views.items() if len(view.runs)))
    found = {f.topic for f in audit.findings if f.code == Code.TOPIC_NOT_IN_TABLE and f.weight == LOSS}
    for holder in copies:
        theirs = holder.audit.copy[CONFIG].tables
        done = theirs.loads.get(TOPICS)
        if done is None or not theirs.is_taken(TOPICS) or done.time_ms <= own.time_ms:
            continue
        for topic in sorted((lacking.keys() & done.entries.keys()) - found):
            found.add(topic)
            count = sum(messages_in(views[key].runs.rows) for key in lacking[topic])
            message = f"clients cannot find topic {seen(topic)} although {count_text(count, 'message')} are there"
            yield Finding(
                Code.TOPIC_NOT_IN_TABLE, TOPICS, *audit.copy.entry_range(TOPICS),
                severity_in(Code.TOPIC_NOT_IN_TABLE, Case.SHOWN), topic=topic, count=count,
                message=f"{message}: {holder.name}, whose table is newer, names it",
            )  # fmt: skip


def _row(table: str, store: str, holder: str, own: NewestTable, other: NewestTable) -> Iterator[Row]:
    """Yield the row of the entries that the holder has more; no row without any."""
    lacks = sorted((key for key in other.entries if key not in own.entries), key=str)
    behind: list[tuple[int, Any]] = []
    if table in ("offsets", "delay_offsets"):
        for key, theirs in other.entries.items():
            ours = own.entries.get(key)
            if type(ours) is int and type(theirs) is int and ours < theirs:
                behind.append((ours - theirs, key))
    if not lacks and not behind:
        return
    named = [*(key for _, key in sorted(behind, key=lambda each: (each[0], str(each[1])))), *lacks][:MOST_NAMED]
    yield {
        "store": store,
        "holder": holder,
        "table": table,
        "file": own.form or None,
        "holder_file": other.form,
        "lacks": len(lacks),
        "behind": len(behind),
        "messages": -sum(difference for difference, _ in behind),
        "entries": [
            {**_place(table, key), "own": _offset(own, key), "other": _offset(other, key), **_queues(table, other.entries[key])}
            for key in named
        ],
    }


def _place(table: str, key: Any) -> Row:
    """Return the entry's own names; null for what a table of this kind does not have."""
    group, topic, queue_id = key if table == "offsets" else (None, None, None)
    level = key if table == "delay_offsets" else None
    topic = key if table == "topics" else topic
    group = key if table == "groups" else group
    return {"topic": topic, "group": group, "queue_id": queue_id, "delay_level": level}


def _queues(table: str, settings: Any) -> Row:
    """Return a topic's numbers of queues and its attributes; nothing of another table's entry."""
    if table != "topics" or not isinstance(settings, dict):
        return {}
    numbers = {name: settings.get(key) for name, key in (("read_queues", "readQueueNums"), ("write_queues", "writeQueueNums"))}
    kinds = settings.get("attributes")
    batch = isinstance(kinds, dict) and kinds.get("queue.type") == "BatchCQ"
    return {**{name: number if type(number) is int else None for name, number in numbers.items()}, "batch": batch}


def _offset(table: NewestTable, key: Any) -> int | None:
    value = table.entries.get(key)
    return value if type(value) is int else None
