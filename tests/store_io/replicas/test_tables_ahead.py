"""Tables of config/ of two copies of one log. What they hold is written here; the expected rows follow from that by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.report.texts.comparison_words import config_words
from schemas.replicas import Group
from schemas.rows import LOSS
from store_io.audit.audit_store import run_audit
from store_io.base.tasks import run_task
from store_io.model.audit_request import AuditRequest
from store_io.replicas.replica_groups import ReplicaGroup, replica_groups
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.rocksdb_stores import write_database

VERSION = {"counter": 7, "timestamp": 1_700_000_000_000, "stateVersion": 0}


def offsets(**of_topics: int) -> str:
    table = {f"{topic}@G": {"0": offset} for topic, offset in of_topics.items()}
    return json.dumps({"dataVersion": VERSION, "offsetTable": table})


def topics(*names: str) -> str:
    rows = {n: {"topicName": n, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": 0} for n in names}
    return json.dumps({"dataVersion": VERSION, "topicConfigTable": rows})


def groups(*names: str) -> str:
    rows = {name: {"groupName": name, "consumeEnable": True, "retryQueueNums": 1} for name in names}
    return json.dumps({"dataVersion": VERSION, "subscriptionGroupTable": rows})


def compared(root: Path, configs: Sequence[Mapping[str, str]], counts: Sequence[int] = (40, 40)) -> Group:
    """The group. configs: of each copy, file of config/ -> its text."""
    return audited_group(root, configs, counts).result


def audited_group(root: Path, configs: Sequence[Mapping[str, str]], counts: Sequence[int] = (40, 40)) -> ReplicaGroup:
    audits = []
    for number, (config, count) in enumerate(zip(configs, counts, strict=True)):
        builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
        for each in range(count):
            builder.clock += 10
            builder.put(Message("T", 0, bytes(100), uniq=f"U{each:03}"))
        store = builder.write(root / str(number))
        (store.root / "config").mkdir(exist_ok=True)
        for name, text in config.items():
            (store.root / "config" / name).write_text(text)
        request = AuditRequest("ab"[number], StoreLocation(str(store.root)), "5.3.3", store.broker_conf, "g", number)
        audits.append(run_audit(request))
    (group,) = replica_groups(audits)
    group.finish([run_task(task) for task in group.tasks()])
    return group


def rows(result: Group, table: str) -> list[tuple[Any, ...]]:
    return [(r.store, r.holder, r.lacks, r.behind, r.messages, r.holder_file) for r in result.config if r.table == table]


def test_the_copy_with_the_greater_offsets_is_named(tmp_path: Path) -> None:
    result = compared(tmp_path, [{"consumerOffset.json": offsets(T=10)}, {"consumerOffset.json": offsets(T=30, U=4)}])
    assert rows(result, "offsets") == [("a", "b", 1, 1, 20, "config/consumerOffset.json")]
    (row,) = (r for r in result.config if r.table == "offsets")
    assert [(e.topic, e.group, e.own, e.other) for e in row.entries] == [("T", "G", 10, 30), ("U", "G", None, 4)]
    (said,) = config_words(result, "a")
    assert "1 consumer offset of a is smaller than those of b, by 20; b has 1 consumer offset that a lacks" in said
    assert "take config/consumerOffset.json of b before a is started as master" in said


def test_equal_tables_have_no_row(tmp_path: Path) -> None:
    config = {"consumerOffset.json": offsets(T=10), "topics.json": topics("T"), "subscriptionGroup.json": groups("G")}
    result = compared(tmp_path, [config, config])
    assert not result.config and not result.problems and not list(config_words(result))


def test_where_each_copy_has_greater_offsets_no_file_is_the_one_to_take(tmp_path: Path) -> None:
    result = compared(tmp_path, [{"consumerOffset.json": offsets(T=10, U=9)}, {"consumerOffset.json": offsets(T=30, U=4)}])
    assert [row[:5] for row in rows(result, "offsets")] == [("a", "b", 0, 1, 20), ("b", "a", 0, 1, 5)]
    assert all("take the greatest of each from both" in said for said in config_words(result))


def test_topics_and_groups_that_a_copy_lacks_are_named_without_those_that_a_broker_makes(tmp_path: Path) -> None:
    own = {"topics.json": topics("T"), "subscriptionGroup.json": groups("G")}
    more = {
        "topics.json": topics("T", "V", "SELF_TEST_TOPIC", "RMQ_SYS_TRACE_TOPIC"),
        "subscriptionGroup.json": groups("G", "H", "TOOLS_CONSUMER"),
    }
    result = compared(tmp_path, [own, more])
    assert rows(result, "topics") == [("a", "b", 1, 0, 0, "config/topics.json")]
    assert rows(result, "groups") == [("a", "b", 1, 0, 0, "config/subscriptionGroup.json")]
    assert list(config_words(result)) == [
        "b has 1 topic in config/topics.json that a lacks: V",
        "b has 1 group in config/subscriptionGroup.json that a lacks: H",
    ]


@pytest.mark.parametrize("file", ["consumerOffset.json.bak", "lmqConsumerOffset.json"])
def test_each_form_of_a_table_counts(tmp_path: Path, file: str) -> None:
    result = compared(tmp_path, [{"consumerOffset.json": offsets(T=10)}, {file: offsets(T=30)}])
    assert rows(result, "offsets") == [("a", "b", 0, 1, 20, f"config/{file}")]


def test_a_database_that_these_settings_do_not_read_counts(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    entry = (b"T@G", b'{"offsetTable":{0:30}}')
    write_database(tmp_path / "1" / "config" / "consumerOffsets", {"default": [entry]})
    result = compared(tmp_path, [{"consumerOffset.json": offsets(T=10)}, {}])
    assert rows(result, "offsets") == [("a", "b", 0, 1, 20, "config/consumerOffsets/")]
    assert "take what config/consumerOffsets/ of b shows" in next(config_words(result))


def test_a_damaged_table_counts_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    result = compared(
        tmp_path, [{"consumerOffset.json": offsets(T=10)}, {"consumerOffset.json": '{"offsetTable":{"T@G":{"0":30}'}]
    )
    assert rows(result, "offsets") == [("a", "b", 0, 1, 20, "config/consumerOffset.json")]  # salvaged: the pair is whole


def test_delay_levels_are_compared(tmp_path: Path) -> None:
    texts = [json.dumps({"offsetTable": {"1": first, "2": 8}}) for first in (3, 5)]
    result = compared(tmp_path, [{"delayOffset.json": text} for text in texts])
    assert rows(result, "delay_offsets") == [("a", "b", 0, 1, 2, "config/delayOffset.json")]


def test_offsets_of_a_longer_log_are_not_to_be_put_into_a_shorter_one(tmp_path: Path) -> None:
    result = compared(tmp_path, [{"consumerOffset.json": offsets(T=10)}, {"consumerOffset.json": offsets(T=38)}], (20, 40))
    (said,) = config_words(result)
    assert "b has the greater ones, and the longer log" in said and "take config/" not in said


@pytest.mark.parametrize(("later", "names", "lost"), [(1, "T", True), (0, "T", False), (-1, "T", False), (1, "Else", False)])
def test_a_topic_that_another_copy_s_newer_table_names_is_lost(later: int, names: str, lost: bool, tmp_path: Path) -> None:
    """The messages of T are older than both tables, so nothing in the copy itself shows that nobody deleted it."""
    time = VERSION["timestamp"] + 1_000_000

    def table(name: str, at: int) -> str:
        return topics(name).replace(str(VERSION["timestamp"]), str(at))

    group = audited_group(tmp_path, [{"topics.json": table("Kept", time)}, {"topics.json": table(names, time + later)}])
    found = [f for copy in group.copies for f in copy.audit.findings if f.code == "topic_not_in_table" and f.weight == LOSS]
    assert [(f.topic, f.count) for f in found] == ([("T", 40)] if lost else [])
    assert all("b, whose table is newer, names it" in f.message for f in found)
