"""What a copy needs before it serves as master: topics to create, groups whose offsets to set, and from which copy or table.

Of each only the first are steps of their own, the largest, and one step counts the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.outcome import Outcome
from schemas.replicas import TableAhead, TableEntry
from schemas.rows import NOTE
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS

MOST_NAMED = 5  # topics, groups
MOST_QUEUES = 1_024  # of a topic that a command makes
BATCH = "+queue.type=BatchCQ"
FILES = frozenset((TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS))
OWN_BOUND = (Step.CREATE_TOPIC, Step.CREATE_MORE, Step.SET_GROUP, Step.SET_MORE)


def is_file_to_copy(outcome: Outcome, table: Advice) -> bool:
    """Say whether a table is taken by copying one file over the one that this copy's start reads. table: a TAKE_TABLE."""
    path, holder = str(table.values[0]), table.values[1]
    return path in FILES and not outcome.holds.config_database and any(
        ahead.holder_file == path and (ahead.file or path).removesuffix(".bak") == path
        for ahead in outcome.replicas.ahead_of(outcome.name)
        if outcome.replicas.place(ahead.holder) == holder
    )  # fmt: skip


def topics_of_tables(outcome: Outcome, taken: list[Advice]) -> Iterator[Advice]:
    """Yield the topics to create that only other copies' tables name. taken: the steps on tables of other copies."""
    if any(table.step == Step.TAKE_TABLE and table.values[0] == TOPICS and is_file_to_copy(outcome, table) for table in taken):
        return
    tables = [ahead for ahead in outcome.replicas.ahead_of(outcome.name) if ahead.table == "topics"]
    found: dict[str, tuple[TableEntry, TableAhead]] = {}
    for ahead in tables:
        for entry in ahead.entries:
            found.setdefault(str(entry.topic), (entry, ahead))
    unnamed = max((ahead.lacks - len(ahead.entries) for ahead in tables), default=0)
    sized = sorted(found.items(), key=lambda each: (-(each[1][0].write_queues or 0), each[0]))
    for topic, (entry, ahead) in sized[:MOST_NAMED]:
        read, write = entry.read_queues or 1, entry.write_queues or 1
        if max(read, write) > MOST_QUEUES:
            continue
        source = f"{ahead.holder_file} of {outcome.replicas.place(ahead.holder)}"
        yield Advice(Step.CREATE_TOPIC, (topic, read, write, source, BATCH if entry.batch else ""))
    more = len(sized) - MOST_NAMED + unnamed
    if more > 0:
        yield Advice(Step.CREATE_MORE, (more, "replicas.json"))


def topics_of_log(outcome: Outcome) -> Iterator[Advice]:
    """Yield the topics to create that the log has messages of, and no table names: those with most messages first."""
    lost = [f for f in outcome.found.findings if f.code == Code.TOPIC_NOT_IN_TABLE and f.topic is not None and f.severity != NOTE]
    tables = (ahead for ahead in outcome.replicas.ahead_of(outcome.name) if ahead.table == "topics")
    elsewhere = {entry.topic for ahead in tables for entry in ahead.entries}
    lost = sorted((f for f in lost if f.topic not in elsewhere), key=lambda f: (-f.count, str(f.topic)))
    queues = _queues(outcome, frozenset(str(f.topic) for f in lost[:MOST_NAMED]))
    for finding in lost[:MOST_NAMED]:
        number, batch = queues.get(str(finding.topic), (1, False))
        if number > MOST_QUEUES:  # a damaged record may name any queue
            continue
        yield Advice(Step.CREATE_TOPIC, (str(finding.topic), number, number, "the log of this copy", BATCH if batch else ""))
    more = len(lost) - MOST_NAMED + outcome.found.dropped.get(Code.TOPIC_NOT_IN_TABLE, 0)
    if more > 0:
        yield Advice(Step.CREATE_MORE, (more, "findings.jsonl"))


def groups_without_offsets(outcome: Outcome) -> Iterator[Advice]:
    """Yield the groups whose offsets to set: all that the table names, if no group has an offset although groups consumed."""
    empty = any(f.code == Code.CONSUMER_OFFSETS_EMPTY and f.severity != NOTE for f in outcome.found.findings)
    if not empty or outcome.holds.config is None:
        return
    names = sorted(name for name, _ in outcome.holds.config.own_groups)
    yield from (Advice(Step.SET_GROUP, (name,)) for name in names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        yield Advice(Step.SET_MORE, (len(names) - MOST_NAMED,))


def _queues(outcome: Outcome, topics: frozenset[str]) -> Mapping[str, tuple[int, bool]]:
    """Return by topic how many queues it has at least, and whether its queues are BatchConsumeQueues."""
    found: dict[str, tuple[int, bool]] = {}
    for row in outcome.rows.queues if topics else ():
        if row["topic"] in topics:
            number, batch = found.get(row["topic"], (1, False))
            found[row["topic"]] = max(number, row["queue_id"] + 1), batch or bool(row.get("batch"))
    return found
