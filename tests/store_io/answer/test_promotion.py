"""What a copy needs before it serves as master: the largest of each, an exact count of the rest, and who shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from schemas.advice import Advice, Step
from schemas.answer import StepName
from schemas.outcome import Outcome
from schemas.replicas import Group, GroupCopy, TableAhead, TableEntry
from schemas.rows import LOSS, NOTE, REBUILDABLE, ConfigTables, Finding
from store_io.answer import steps as steps_module
from store_io.answer.promotion import BATCH, groups_without_offsets, is_file_to_copy, topics_of_log, topics_of_tables
from store_io.answer.steps import steps_of
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter

LINES = "brokerRole=SLAVE and brokerId=1"
TOPICS = "config/topics.json"


def slave(topics: int = 0, dropped: int = 0) -> Outcome:
    """A sound slave's copy, whose table lacks topics: the later ones have more messages."""
    outcome = samples.clean()
    alter(outcome, findings=[Finding("copy_of_slave", "config", severity=NOTE, next=Advice(Step.MAKE_MASTER, (LINES,)))])
    for n in range(topics):
        alter(
            outcome,
            findings=[*outcome.found.findings, Finding("topic_not_in_table", TOPICS, topic=f"t{n}", count=10 + n, severity=LOSS)],
        )
    alter(outcome, dropped={"topic_not_in_table": dropped} if dropped else {})
    alter(outcome, queues=[{"topic": f"t{n}", "queue_id": q, "batch": n == 6} for n in range(topics) for q in range(n + 1)])
    return outcome


def row(topics: list[TableEntry], lacks: int, file: str | None = TOPICS, holder: str = "b", shown: str = TOPICS) -> TableAhead:
    return TableAhead("clean", holder, "topics", shown, file, lacks, entries=tuple(topics))


def grouped(outcome: Outcome, *rows: TableAhead) -> Outcome:
    copies = tuple(GroupCopy(name, f"/copies/{name}") for name in (outcome.name, "b", "c"))
    tables = tuple(replace(each, store=outcome.name) for each in rows)
    alter(outcome, replicas=Group("g", outcome.name, copies=copies, config=tables))
    return outcome


def conditions(outcome: Outcome) -> list[Any]:
    return [step.what for step in steps_of(outcome) if step.name == StepName.CONDITION and isinstance(step.what, Advice)]


def test_the_topics_with_most_messages_are_named_and_the_others_counted() -> None:
    found = list(topics_of_log(slave(7, dropped=4)))
    assert found[:2] == [
        Advice(Step.CREATE_TOPIC, ("t6", 7, 7, "the log of this copy", BATCH)),
        Advice(Step.CREATE_TOPIC, ("t5", 6, 6, "the log of this copy", "")),
    ]
    assert [each.values[0] for each in found[:5]] == ["t6", "t5", "t4", "t3", "t2"]
    assert found[5:] == [Advice(Step.CREATE_MORE, (6, "findings.jsonl"))]
    assert [each.step for each in topics_of_log(slave(5))] == [Step.CREATE_TOPIC] * 5


def test_a_topic_that_was_perhaps_deleted_is_not_created() -> None:
    outcome = slave(2)
    outcome.found.findings[1] = replace(outcome.found.findings[1], severity=NOTE)
    assert [each.values[0] for each in topics_of_log(outcome)] == ["t1"]


def test_only_a_slave_s_copy_whose_topics_no_repair_writes_gets_them(monkeypatch: Any) -> None:
    wanted = [Step.CREATE_TOPIC, Step.CREATE_TOPIC]
    assert [each.step for each in conditions(slave(2)) if each.step in wanted] == wanted
    master = slave(2)
    del master.found.findings[0]
    assert not [each for each in conditions(master) if each.step in wanted]
    monkeypatch.setattr(steps_module._Steps, "_writes_tables", True)
    assert not [each for each in conditions(slave(2)) if each.step in wanted]


def test_topics_of_another_copy_s_table_are_made_only_if_no_file_can_be_copied() -> None:
    entries = [TableEntry(f"n{n}", read_queues=4, write_queues=4 + n, batch=n == 0) for n in range(6)]
    database = grouped(slave(), row(entries, 120, file="config/rdb/", shown="config/rdb/"))
    (taken,) = steps_module._tables(database.replicas, database.name)
    assert taken.step == Step.TAKE_TABLE and not is_file_to_copy(database, taken)
    found = list(topics_of_tables(database, [taken]))
    assert found[0] == Advice(Step.CREATE_TOPIC, ("n5", 4, 9, "config/rdb/ of /copies/b", ""))
    assert [each.values[0] for each in found[:5]] == ["n5", "n4", "n3", "n2", "n1"]
    assert found[5:] == [Advice(Step.CREATE_MORE, (115, "replicas.json"))] and conditions(database)[-6:] == found

    file = grouped(slave(), row(entries, 6))
    (taken,) = steps_module._tables(file.replicas, file.name)
    assert is_file_to_copy(file, taken) and not list(topics_of_tables(file, [taken]))
    alter(file, config_database="config/rdb")
    assert not is_file_to_copy(file, taken)


def test_topics_that_no_copy_has_all_of_come_from_the_copy_that_names_them() -> None:
    one, other = (TableEntry(name, read_queues=n, write_queues=n, batch=False) for name, n in (("x", 2), ("y", 3)))
    outcome = grouped(slave(), row([one], 1), row([other], 1, holder="c"))
    more = tuple(replace(row([], 1), store=name) for name in ("b", "c"))
    alter(outcome, replicas=replace(outcome.replicas, config=outcome.replicas.config + more))
    alter(outcome, findings=[*outcome.found.findings, Finding("topic_not_in_table", TOPICS, topic="x", count=5, severity=LOSS)])
    found = [each for each in conditions(outcome) if each.step == Step.CREATE_TOPIC]
    assert [each.values[:4] for each in found] == [("y", 3, 3, f"{TOPICS} of /copies/c"), ("x", 2, 2, f"{TOPICS} of /copies/b")]


def test_groups_without_offsets_are_named_and_the_others_counted() -> None:
    outcome = slave()
    alter(outcome, config=ConfigTables({}, {f"g{n}": {} for n in range(9)}, {}, {}))
    assert not list(groups_without_offsets(outcome))
    alter(
        outcome,
        findings=[*outcome.found.findings, Finding("consumer_offsets_empty", "config/consumerOffset.json", severity=REBUILDABLE)],
    )
    found = list(groups_without_offsets(outcome))
    assert found == [*(Advice(Step.SET_GROUP, (f"g{n}",)) for n in range(5)), Advice(Step.SET_MORE, (4,))]
    assert conditions(outcome)[-6:] == found


def test_the_bound_of_other_steps_hides_none_of_these() -> None:
    outcome = slave(7)
    alter(outcome, unsafe_settings=[f"set {n}" for n in range(12)])
    found = [each.step for each in conditions(outcome)]
    assert found.count(Step.CREATE_TOPIC) == 5 and found.count(Step.MORE_STEPS) == 1 and found[-1] == Step.CREATE_MORE
