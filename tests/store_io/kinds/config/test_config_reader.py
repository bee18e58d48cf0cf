"""config/*.json as fastjson writes them, and what a damaged one means."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.advice import Advice, Step
from schemas.losses import GroupBeyond, LevelBeyond
from schemas.rows import NOTE
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.config_rules import ConfigRules, config_rules
from store_io.broker.texts.beans import LeftOut
from store_io.kinds.config import config_reader
from store_io.kinds.config.config_reader import StoreConfig, read_config
from store_io.kinds.config.offsets_beyond import delays_beyond, groups_beyond
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from store_io.wording.gaps import gap_text

TOPICS = b"""{
\t"dataVersion":{"counter":14,"stateVersion":0,"timestamp":1795211254147},
\t"topicConfigTable":{
\t\t"orders":{"attributes":{},"order":false,"perm":6,"topicName":"orders"},
\t\t"events":{"attributes":{"queue.type":"BatchCQ"},"topicName":"events"},
\t\t"old":{"topicName":"old"}
\t}
}"""
OFFSETS = b'{"offsetTable":{"orders@G_1":{0:12,1:3\n\t\t},"%RETRY%G_1@G_1":{0:0\n\t\t},"gone@G_1":{0:7}}}'


def read(root: Path, files: dict[str, bytes], release: str = "5.3.3", **settings: object) -> StoreConfig:
    for name in ("commitlog", "config"):
        (root / name).mkdir(exist_ok=True)
    for name, data in files.items():
        (root / "config" / name).write_bytes(data)
    location = StoreLocation(str(root))
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in settings.items()})
    return read_config(open_source(location), list_store(location), rules)


@pytest.mark.parametrize("end", [b"", b'":{}}}'])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3", "5.5.0"])
def test_a_text_of_escapes_takes_a_few_times_its_size_and_is_let_go(release: str, end: bytes) -> None:
    """Whoever keeps the error of a parser keeps the text with it: a cut file of 198 MB took 1.6 GB."""
    data = b'{"topicConfigTable":{"' + b"\\n" * (1 << 20) + end
    rules = config_rules(broker_rules(release))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        bad = config_reader.taken_from("config/topics.json", data, rules).bad
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert (bad != []) == (end == b"") and left < len(data) // 10 and most < 3 * len(data), (left, most)


def test_reads_topics_and_offsets(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {
            "topics.json": TOPICS,
            "consumerOffset.json": OFFSETS,
            "delayOffset.json": b'{"dataVersion":{},"offsetTable":{1:172,18:0}}',
        },
    )
    assert set(config.topics or {}) == {"orders", "events", "old"} and config.batch_topics == {"events"}
    assert config.offsets[("G_1", "orders", 1)] == 3
    assert config.offsets_file == "config/consumerOffset.json"
    assert config.delay_offsets == {1: 172, 18: 0}
    assert not config.findings and not config.problems and len(config.files) == 3


def test_nothing_at_all_is_fine(tmp_path: Path) -> None:
    config = read(tmp_path, {})
    assert config.topics is None and not config.batch_topics and not config.findings


def test_an_empty_or_damaged_file_leaves_it_to_the_one_before(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {"topics.json": b"", "topics.json.bak": TOPICS, "consumerOffset.json": bytes(50), "consumerOffset.json.bak": OFFSETS},
    )
    assert config.batch_topics == {"events"} and config.offsets[("G_1", "orders", 0)] == 12
    assert config.offsets_file == "config/consumerOffset.json.bak"
    assert [(f.code, f.file, f.start, f.end, f.severity, f.actual) for f in config.findings] == [
        ("config_damaged", "config/consumerOffset.json", 0, 50, NOTE, "50 zeros")
    ]


def test_where_neither_can_be_decoded_it_is_more_than_a_note(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {
            "topics.json": TOPICS[:200],
            "topics.json.bak": b"[{}]",
            "delayOffset.json": b"x",
            "delayOffset.json.bak": b'{"offsetTable":{1:"y"}}',
        },
    )
    assert config.topics is None
    assert [(f.file, f.severity) for f in config.findings] == [
        ("config/topics.json", ""),
        ("config/topics.json.bak", ""),
        ("config/delayOffset.json", ""),
        ("config/delayOffset.json.bak", ""),
    ]


@pytest.mark.parametrize(
    ("backup", "helps"), [(TOPICS, True), (None, False), (b"", False), (TOPICS[:90], False), (bytes(40), False)]
)
@pytest.mark.parametrize("content", [TOPICS[:200], b" "], ids=["torn", "blank, and taken"])
def test_a_bak_is_no_remedy_where_it_is_damaged_too(tmp_path: Path, content: bytes, backup: bytes | None, helps: bool) -> None:
    files = {"topics.json": content} | ({"topics.json.bak": backup} if backup is not None else {})
    found = read(tmp_path, files).findings
    assert found and {finding.next for finding in found} == {None if helps else Advice(Step.RESTORE_OR_FIX)}


def test_offsets_beyond_the_new_ends(tmp_path: Path) -> None:
    config = read(
        tmp_path, {"topics.json": TOPICS, "consumerOffset.json": OFFSETS, "delayOffset.json": b'{"offsetTable":{1:10,2:3}}'}
    )
    ends = {("orders", 0): 11, ("SCHEDULE_TOPIC_XXXX", 0): 10}
    assert groups_beyond(config, ends) == [GroupBeyond("G_1", "orders", 0, 12, 11), GroupBeyond("G_1", "orders", 1, 3, 0)]
    assert delays_beyond(config, ends) == [LevelBeyond(2, 3, 0)]


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text(alphabet='{}[]",:0123456789ntableoffsT@-.eE \\', max_size=60).map(str.encode)))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.mktemp("store")
    names = ("topics.json", "consumerOffset.json", "lmqConsumerOffset.json", "delayOffset.json")
    config = read(root, dict.fromkeys(names, data))
    groups_beyond(config, {})
    delays_beyond(config, {})
    assert all(f.start is not None and f.end is not None and 0 <= f.start <= f.end <= len(data) for f in config.findings)


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"offsetTable":{"a@b":{0:' + b"9" * 10_000 + b"}}}", b'{"offsetTable":{1:true}}']
)
def test_extreme_numbers_and_nesting_are_findings(tmp_path: Path, data: bytes) -> None:
    config = read(tmp_path, {"consumerOffset.json": data, "delayOffset.json": data})
    assert {f.code for f in config.findings} == {"config_damaged"}


_SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "abc", "1", "queue.type"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["topicConfigTable", "attributes", "offsetTable", "lmqOffsetTable", "T", "T@G", "0"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(_SHAPES)
@example({"topicConfigTable": {"T": {"attributes": "abc"}}})
@example({"offsetTable": [True]})
@example({"lmqOffsetTable": ["T@g"]})
@example({"topicConfigTable": {"T": {"attributes": [["queue.type", "BatchCQ"]]}}})
def test_no_shape_raises(tmp_path_factory: pytest.TempPathFactory, content: object) -> None:
    data = json.dumps(content).encode()
    config = read(tmp_path_factory.mktemp("store"), {"topics.json": data, "consumerOffset.json": data, "delayOffset.json": data})
    assert {f.code for f in config.findings} <= {"config_damaged"} and not config.problems


def test_attributes_of_another_shape_are_a_finding(tmp_path: Path) -> None:
    config = read(tmp_path, {"topics.json": b'{"topicConfigTable":{"T":{"attributes":"abc"}}}'})
    assert [(f.code, f.actual) for f in config.findings] == [("config_damaged", "JSON of another shape")]
    assert config.topics is None


def test_attributes_may_be_named_like_fields(tmp_path: Path) -> None:
    row = b'"perm":6,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":1'
    config = read(tmp_path, {"topics.json": b'{"topicConfigTable":{"T":{"attributes":{"topicName":"a"},%s}}}' % row})
    assert config.topics is not None and config.topics["T"]["attributes"] == {"topicName": "a"}


@pytest.mark.parametrize(("data", "release", "refuses"), [(b"}", "5.3.3", True), (b"}", "5.5.0", True), (b'""', "5.5.0", False)])
def test_static_topics_of_no_object(data: bytes, release: str, refuses: bool, tmp_path: Path) -> None:
    """A lone brace is an object without the table, which TopicQueueMappingManager does not stand; an empty text is none."""
    config = read(tmp_path, {"topicQueueMapping.json": data, "topicQueueMapping.json.bak": b'{"x'}, release)
    assert config.loads["config/topicQueueMapping.json"].refuses is refuses


def test_one_file_may_hold_both_tables(tmp_path: Path) -> None:
    data = b'{"offsetTable":{"orders@G":{0:7}},"lmqOffsetTable":{"%LMQ%a@G":5}}'
    config = read(tmp_path, {"lmqConsumerOffset.json": data, "consumerOffset.json": OFFSETS}, enableLmq=True)
    assert config.offsets == {("G", "orders", 0): 7, ("G", "%LMQ%a", 0): 5}
    assert config.offsets_file == "config/lmqConsumerOffset.json"


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        (b'{"offsetTable":{"orders@G":{0:7}},"lmqOffsetTable":{"%LMQ%a@G":5}}', True),
        (b'{"offsetTable":3}', True),
        (b"null", True),
        (b'{"offsetTable":{"orders@G":{0:7}', False),
        (b" ", False),
        (b"}", False),
    ],
)
def test_a_manager_whose_fields_the_parser_does_not_fill(data: bytes, taken: bool, tmp_path: Path) -> None:
    """As LmqConsumerOffsetManager of 4.9.3 by fastjson 1.2.76 (seen): the text is parsed, and nothing of it is taken."""
    config = read(tmp_path, {"lmqConsumerOffset.json": data, "lmqConsumerOffset.json.bak": data}, "4.9.3", enableLmq=True)
    done = config.loads["config/lmqConsumerOffset.json"]
    assert (done.name != "", done.refuses) == (taken, not taken) and config.offsets == {}
    assert done.left_out == (2 if b"%LMQ%" in data else 0)


def test_a_bak_does_not_stand_in_for_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_reader, "MAX_FILE_BYTES", len(OFFSETS) - 1)
    config = read(tmp_path, {"consumerOffset.json": OFFSETS, "consumerOffset.json.bak": b'{"offsetTable":{}}'})
    assert not config.read_from and not config.files
    assert [problem.path for problem in config.problems] == ["config/consumerOffset.json"]


def test_what_is_no_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "config" / "topics.json").mkdir(parents=True)
    os.mkfifo(tmp_path / "config" / "delayOffset.json")
    problems = read(tmp_path, {"topics.json.bak": TOPICS}).problems
    assert [gap_text(problem).partition(", not a file")[0] for problem in problems] == [
        "config/topics.json: a directory",
        "config/delayOffset.json: a FIFO, socket or device",
    ]


GROUPS = b'{"dataVersion":{"counter":4},"subscriptionGroupTable":{"G":{"groupName":"G"},"TOOLS_CONSUMER":{}}}'
ROCKSDB = {"storeType": "defaultRocksDB", "brokerName": "b"}


def test_a_database_takes_in_the_files_with_a_greater_version(tmp_path: Path) -> None:
    files = {"topics.json": TOPICS, "subscriptionGroup.json": GROUPS, "consumerOffset.json": OFFSETS}
    config = read(tmp_path, files, **ROCKSDB)
    assert {"orders", "events", "old", "TBW102", "b", "DefaultCluster"} <= set(config.topics or {})
    assert {"G", "TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS"} <= set(config.groups)
    assert not config.offsets and config.database == "config/topics"  # their version is 0
    assert {path: done.left_out for path, done in config.loads.items() if done.left_out} == {"config/consumerOffset.json": 4}
    files["consumerOffset.json"] = b'{"dataVersion":{"counter":3},' + OFFSETS[1:]
    assert len(read(tmp_path, files, **ROCKSDB).offsets) == 4
    assert set(read(tmp_path, files, "5.1.4", **ROCKSDB).groups) & {"G"} == set()  # takes in none
    assert "G" not in read(tmp_path, files, "5.4.0", configManagerVersion="v2").groups


def test_a_file_that_cannot_be_read_for_its_version_ends_the_broker_whatever_its_bak(tmp_path: Path) -> None:
    config = read(tmp_path, {"topics.json": TOPICS[:80], "topics.json.bak": TOPICS}, **ROCKSDB)
    assert config.loads["config/topics.json"].refuses
    config = read(tmp_path, {"topics.json": TOPICS, "topics.json.bak": TOPICS[:80]}, **ROCKSDB)
    assert not config.loads["config/topics.json"].refuses and config.read_from["config/topics.json"] == "config/topics.json"


def test_entries_stay_where_the_manager_fails_behind_them(tmp_path: Path) -> None:
    null = b'{"dataVersion":null,"topicConfigTable":{"only-here":{},"orders":{"perm":2}}}'
    config = read(tmp_path, {"topics.json": null, "topics.json.bak": TOPICS})
    assert set(config.topics or {}) == {"only-here", "orders", "events", "old"}
    assert (config.topics or {})["orders"]["perm"] == 6 and config.read_from["config/topics.json"] == "config/topics.json.bak"
    alone = read(tmp_path, {"topics.json": null, "topics.json.bak": b""}).loads["config/topics.json"]
    assert not alone.refuses and set(alone.entries) == {"only-here", "orders"}


def test_topics_of_equal_settings_share_them(tmp_path: Path) -> None:
    rows = ",".join(f'"T{n}":{{"topicName":"T{n}","readQueueNums":4,"writeQueueNums":4,"perm":6}}' for n in range(50))
    topics = read(tmp_path, {"topics.json": f'{{"topicConfigTable":{{{rows}}}}}'.encode()}).topics or {}
    assert len(topics) == 50 and len({id(row) for row in topics.values()}) == 1


def test_a_bak_that_nobody_needs_is_only_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = TOPICS.replace(b"14", b"13")
    assert read(tmp_path, {"topics.json": older, "topics.json.bak": TOPICS}).backup_versions == {"config/topics.json": 14}
    config = read(tmp_path, {"topics.json.bak": TOPICS[:90]})
    assert config.useless_backups == ["config/topics.json.bak"] and not config.findings
    monkeypatch.setattr(config_reader, "MAX_BACKUP_BYTES", 89)
    assert not read(tmp_path, {}).useless_backups


MAPPING = b"""{"dataVersion":{"counter":2,"stateVersion":0,"timestamp":1795211254147},"topicQueueMappingInfoMap":{"static":{
"bname":"broker-a","currIdMap":{0:0,1:1},"dirty":false,"epoch":1795211254147,"hostedQueues":{0:[{"bname":"broker-a","endOffset":-1,
"gen":0,"logicOffset":0,"queueId":0,"startOffset":0,"timeOfEnd":-1,"timeOfStart":-1}],1:[]},"scope":"__global__","topic":"static",
"totalQueues":2}}}"""


@pytest.mark.parametrize("release", ["5.0.0", "5.3.3", "5.4.0", "5.5.0"])
def test_static_topics_are_taken_as_a_broker_writes_them(tmp_path: Path, release: str) -> None:
    config = read(tmp_path, {"topics.json": TOPICS, "topicQueueMapping.json": MAPPING}, release)
    done = config.loads["config/topicQueueMapping.json"]
    assert done.name and not done.bad and done.odd is None and not config.findings and not config.problems


def test_filters_as_a_broker_writes_them_are_not_kept() -> None:
    text = {"bloomFilterData": {"bitNum": 1600, "bitPos": [17, 300]}, "bornTime": 1, "consumerGroup": "g", "dead": False}
    hook = LeftOut("consumerFilter.json", ConfigRules())
    assert hook(text) == {}
    for bloom in ({"0": 1}, {"bitNum": "x", "bitPos": []}, {"bitNum": 1, "bitPos": ["x"]}, 5):
        assert hook({**text, "bloomFilterData": bloom}) != {}


_PIECES = st.sampled_from(
    ["{", "}", "[", "]", ":", ",", "0", "1e99999999999999999999", "9" * 5000, '"1e99999999999999999999"', '"a@g"', '"x"', "null",
     '"offsetTable"', '"topicConfigTable"', '"subscriptionGroupTable"', '"forbiddenTable"', '"dataVersion"', '"counter"',
     '"perm"', '{"offsetTable":{"a@g":{', '{"topicConfigTable":{"T":{"readQueueNums":', "0.5", "-", "NULL", "'", "x:", "}}}"]
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(_PIECES, max_size=14).map("".join), st.sampled_from(["4.9.8", "5.3.3", "5.4.0", "5.5.0"]))
@example('{"offsetTable":{"a@g":{1e99999999999999999999:1}}}', "5.4.0")
@example('{"offsetTable":{"a@g":{1e99999999999999999999:1}}}', "4.9.8")
@example('{"topicConfigTable":{"T":{"readQueueNums":"1e99999999999999999999"}}}', "5.5.0")
def test_a_load_never_raises(text: str, release: str) -> None:
    rules = config_rules(broker_rules(release))
    for name in ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "topicQueueMapping.json"):
        done = config_reader.Load()
        if not config_reader._take(done, f"config/{name}", text.encode(), rules):
            assert done.bad[0].reason and "decimal" not in done.bad[0].reason
