"""Compares the tables of config/ of copies of one log: whose offsets are greater, and which topics and groups a copy lacks.

A slave copies its master's tables every few seconds (SlaveSynchronize.syncAll), offsets that are smaller than its own too. So the
greater ones are lost, unless they are taken from the copy that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from schemas.finding_codes import LOSS, Code
from schemas.replicas import TableAhead, TableEntry
from schemas.rows import Finding
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


def tables_ahead(copies: Sequence[Copy]) -> tuple[list[TableAhead], list[str]]:
    """Return the tables of which another copy has more, and sentences about tables that could not be compared."""
    found: list[TableAhead] = []
    problems: list[str] = []
    for table, paths in _PATHS.items():
        shown: list[NewestTable | None] = []
        for copy in copies:
            newest = None
            with copy.audit.no_fault_beyond():
                config = copy.audit.copy[CONFIG]
                newest = newest_table(config, next((path for path in paths if path in config.tables.loads), paths[0]))
            shown.append(newest)
            problems += [f"{copy.name}: {why}" for why in (newest.unread if newest is not None else (f"{paths[0]}: not read",))]
        for store, own in zip(copies, shown, strict=True):
            for holder, other in zip(copies, shown, strict=True):
                if own is not None and other is not None and own.entries != other.entries:
                    found += _ahead(table, store.name, holder.name, own, other)
    return found, problems


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


def _ahead(table: str, store: str, holder: str, own: NewestTable, other: NewestTable) -> Iterator[TableAhead]:
    """Yield the table with the entries that the holder has more, if there are any."""
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
    yield TableAhead(
        store, holder, table, other.form, own.form or None, len(lacks), len(behind), -sum(less for less, _ in behind),
        tuple(
            replace(_named(table, key, other.entries[key]), own=_offset(own, key), other=_offset(other, key)) for key in named
        ),
    )  # fmt: skip


def _named(table: str, key: Any, settings: Any) -> TableEntry:
    """Return an entry by its own names; of a topic with what its settings say of queues."""
    if table == "offsets":
        group, topic, queue_id = key
        return TableEntry(topic, group, queue_id)
    if table == "delay_offsets":
        return TableEntry(delay_level=key)
    if table == "groups":
        return TableEntry(group=key)
    if not isinstance(settings, dict):
        return TableEntry(key)
    read, write = (number if type(number) is int else None for number in map(settings.get, ("readQueueNums", "writeQueueNums")))
    kinds = settings.get("attributes")
    batch = isinstance(kinds, dict) and kinds.get("queue.type") == "BatchCQ"
    return TableEntry(key, read_queues=read, write_queues=write, batch=batch)


def _offset(table: NewestTable, key: Any) -> int | None:
    value = table.entries.get(key)
    return value if type(value) is int else None
