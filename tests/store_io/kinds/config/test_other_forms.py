"""Tables of config/ that a start takes from one form while another form in the copy shows more."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.report.texts.commands import repair_commands
from schemas.rows import LOSS, NOTE, REBUILDABLE, Finding
from store_io.answer.headline import judge, verdict_text
from store_io.broker.settings.config_rules import TABLE_NOUNS
from store_io.kinds.config.config_kind import CONFIG
from store_io.outcome.safety import Safety
from store_io.repair.proposals import config_helps
from store_io.wording.steps import next_text
from tests.support.answers import product
from tests.support.answers.repaired import plan_of, repaired
from tests.support.failing_reads import failing_reads
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder
from tests.support.stores.rocksdb_stores import keyed_store, write_database

RELEASE = "5.4.0"  # knows each form
CONF = {
    "files": "",
    "separate": "storeType=defaultRocksDB\n",
    "single": "storeType=defaultRocksDB\nuseSingleRocksDBForAllConfigs=true\n",
    "second": "configManagerVersion=v2\n",
    "lmq": "enableLmq=true\n",
}
LOST_TABLE = "config_table_lost"
BUILT_IN = {"topics": ("TBW102",), "groups": ("TOOLS_CONSUMER",)}
Offsets = Mapping[str, int]


class Tables:
    """Topics, groups, and offsets of queue 0 by `topic@group`, at a time. Built-in ones are always among them."""

    def __init__(self, topics: int = 2, groups: int = 1, offsets: Offsets | None = None, time: int = 1000, counter: int = 3):
        self.topics = {name: self.topic(name) for name in (*BUILT_IN["topics"], *(f"Topic{n}" for n in range(topics)))}
        self.groups = {name: {"groupName": name} for name in (*BUILT_IN["groups"], *(f"g{n}" for n in range(groups)))}
        self.offsets = {"Topic0@g0": 2} if offsets is None else dict(offsets)
        self.time, self.counter = time, counter

    @staticmethod
    def topic(name: str) -> dict[str, Any]:
        return {"topicName": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 7 if name == "TBW102" else 6}

    @property
    def version(self) -> dict[str, int]:
        return {"counter": self.counter, "stateVersion": 0, "timestamp": self.time}


def put_files(config: Path, held: Tables, offsets: str = "consumerOffset.json") -> None:
    config.mkdir(exist_ok=True)
    parts = {
        "topics.json": {"topicConfigTable": held.topics},
        "subscriptionGroup.json": {"subscriptionGroupTable": held.groups},
        offsets: {"offsetTable": {key: {"0": value} for key, value in held.offsets.items()}},
    }
    for name, part in parts.items():
        version = held.version if name != offsets else {**held.version, "counter": 0}  # as below 500 commits
        (config / name).write_text(json.dumps({"dataVersion": version, **part}))


def put_lmq(config: Path, held: Tables) -> None:
    put_files(config, held, "lmqConsumerOffset.json")


def rows(held: Tables) -> dict[str, list[tuple[bytes, bytes]]]:
    return {
        "topics": [(name.encode(), json.dumps(row).encode()) for name, row in held.topics.items()],
        "subscriptionGroups": [(name.encode(), json.dumps(row).encode()) for name, row in held.groups.items()],
        "consumerOffsets": [(key.encode(), b'{"offsetTable":{0:%d}}' % value) for key, value in held.offsets.items()],
    }


def put_separate(config: Path, held: Tables) -> None:
    version = [(b"kvDataVersionKey", json.dumps(held.version).encode())]
    for name, pairs in rows(held).items():
        write_database(config / name, {"default": pairs, "kvDataVersion": version})


def put_single(config: Path, held: Tables) -> None:
    version = [(b"kvDataVersionKey", json.dumps(held.version).encode())]
    families = dict(zip(("topic", "subscriptionGroup", "consumerOffset"), rows(held).values(), strict=True))
    write_database(config / "metadata", {**families, **{f"{name}Version": version for name in families}})


def put_second(config: Path, held: Tables) -> None:
    def name(text: str) -> bytes:
        return struct.pack(">H", len(text)) + text.encode()

    found = {}
    for number, table in ((3, held.topics), (4, held.groups)):
        head = b"\x01" + struct.pack(">H", number)
        found[head + b"\x01data_version"] = struct.pack(">3q", 0, held.time, held.counter)
        found |= {head + b"\x02" + name(key): b"\x01" + json.dumps(row).encode() for key, row in table.items()}
    for key, value in held.offsets.items():
        topic, _, group = key.partition("@")
        place = b"\x01\x00\x01\x02" + name(group) + b"\x01" + name(topic) + b"\x01" + struct.pack(">i", 0)
        found[place] = struct.pack(">q", value)
    write_database(config / "rdb", {"default": sorted(found.items())})


PUT: dict[str, Callable[[Path, Tables], None]] = {
    "files": put_files, "lmq": put_lmq, "separate": put_separate, "single": put_single, "second": put_second,
}  # fmt: skip


def store(root: Path, kind: str, held: Mapping[str, Tables]) -> tuple[Store, str]:
    """A store whose config/ has these forms, and the broker.conf of a start that reads `kind`."""
    if kind in ("separate", "single"):
        made = keyed_store(root, RELEASE).write().plain
    else:
        builder = StoreBuilder(RELEASE, Sizes(segment=1 << 14))
        for number in range(6):
            builder.put(Message("Topic0", 0, b"x", uniq=f"M{number}"))
        made = builder.write(root)
    config = root / "config"
    config.mkdir(exist_ok=True)
    (config / "delayOffset.json").write_text('{"offsetTable":{}}')
    for name, tables in held.items():
        PUT[name](config, tables)
    return made, made.broker_conf + CONF[kind]


def lost(audit: product.Audited) -> dict[str, Finding]:
    """By the noun of what is lost."""
    found = [f for f in audit.findings if f.code == LOST_TABLE and f.severity == LOSS]
    return {TABLE_NOUNS[f.file.removesuffix(".bak")]: f for f in found}


def audited(made: Store, conf: str | None) -> product.Audited:
    return product.audit(made.root, RELEASE, conf)


@pytest.mark.parametrize(
    ("reads", "there", "setting", "over"),
    [
        ("files", "separate", "storeType=defaultRocksDB", "rocksDBConfigToJson"),
        ("files", "single", "useSingleRocksDBForAllConfigs=true", "--fix-config"),
        ("files", "second", "configManagerVersion=v2", "--fix-config"),
        ("second", "files", "configManagerVersion=v1", "copy config/rdb/"),
        ("second", "separate", "configManagerVersion=v1", "copy config/rdb/"),
        ("separate", "second", "configManagerVersion=v2", "copy config/topics/"),
        ("separate", "single", "useSingleRocksDBForAllConfigs=true", "copy config/topics/"),
    ],
)
def test_what_another_setting_would_read(reads: str, there: str, setting: str, over: str, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", reads, {there: Tables()})
    audit = audited(made, conf)
    found = lost(audit)
    assert {noun: f.count for noun, f in found.items()} == {"topic": 2, "group": 1, "offset": 1}, audit.findings
    assert setting in next_text(found["topic"].next) and over in next_text(found["topic"].next)
    assert audit.outcome.exit_code == 20
    answer = judge(audit.outcome)
    assert answer.kind == Safety.STOP and "without 2 topics, 1 group and 1 offset" in answer.headline
    assert "begin without 2 topics, 1 group and 1 offset" in verdict_text(audit.outcome)
    assert not any(name.startswith("config/") and "." not in name for name in audit.outcome.covered.not_judged)
    sound, conf = store(tmp_path / "sound", reads, {reads: Tables()})
    assert not audited(sound, conf).above_note


@pytest.mark.parametrize("there", ["separate", "single", "second"])
def test_a_repair_takes_the_database_over(there: str, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "files", {there: Tables()})
    before = audited(made, conf)
    assert config_helps(before.outcome)
    repaired(made.root, tmp_path / "new", plan_of(made.root, RELEASE, conf), fix_config=True)
    after = product.audit(tmp_path / "new", RELEASE, conf)
    assert not after.above_note and after.broker is not None
    assert [after.broker["config"][name] for name in ("topics", "groups", "offsets")] == [2, 1, 1]


def test_files_that_no_new_database_takes_in(tmp_path: Path) -> None:
    """Topics and groups are imported, offsets below 500 commits are not."""
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "separate", {"files": Tables()})
    found = lost(audited(made, conf))
    assert found.keys() == {"offset"} and "set the counter" in next_text(found["offset"].next)
    topics = made.root / "config" / "topics.json"
    topics.rename(f"{topics}.bak")
    assert "copy config/topics.json.bak to config/topics.json, and set" in next_text(lost(audited(made, conf))["topic"].next)


@pytest.mark.parametrize(("reads", "there"), [("lmq", "files"), ("files", "lmq")])
def test_the_file_of_light_queues(reads: str, there: str, tmp_path: Path) -> None:
    made, conf = store(tmp_path / "s", reads, {there: Tables()})
    found = lost(audited(made, conf))
    assert {noun: f.count for noun, f in found.items()} == {"offset": 1}
    assert f"enableLmq={'true' if there == 'lmq' else 'false'}" in next_text(found["offset"].next)
    assert (reads == "lmq") == ("copy config/consumerOffset.json to" in next_text(found["offset"].next))
    repaired(made.root, tmp_path / "new", plan_of(made.root, RELEASE, conf), fix_config=True)
    after = product.audit(tmp_path / "new", RELEASE, conf)
    assert not after.above_note and after.broker is not None and after.broker["config"]["offsets"] == 1
    sound, conf = store(
        tmp_path / "sound", reads, {reads: Tables(), there: Tables(offsets={"Topic0@g0": 1, "Topic0@gone": 1}, time=1)}
    )
    assert not audited(sound, conf).above_note


NEWER = {"topics": 3, "groups": 2, "offsets": {"Topic0@g0": 3, "Topic0@g1": 1}}


@pytest.mark.parametrize("there", ["separate", "single", "second"])
def test_files_from_before_the_databases(there: str, tmp_path: Path) -> None:
    """A broker that went back from its databases takes files that were left behind; the repair takes the newer form."""
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "files", {"files": Tables(), there: Tables(**NEWER, time=2000, counter=9)})  # type: ignore[arg-type]
    found = lost(audited(made, conf))
    assert {noun: f.count for noun, f in found.items()} == {"topic": 1, "group": 1, "offset": 2}  # a greater offset, too
    repaired(made.root, tmp_path / "new", plan_of(made.root, RELEASE, conf), fix_config=True)
    after = product.audit(tmp_path / "new", RELEASE, conf)
    assert not after.above_note and after.broker is not None
    assert [after.broker["config"][name] for name in ("topics", "groups", "offsets")] == [3, 2, 2]


@pytest.mark.parametrize(
    ("reads", "there"), [("files", "separate"), ("files", "second"), ("separate", "files"), ("second", "files")]
)
def test_an_older_form_is_no_witness(reads: str, there: str, tmp_path: Path) -> None:
    """What was deleted since that was written stays in it."""
    pytest.importorskip("rocksdict")
    older = Tables(5, 4, {"Topic0@g0": 1, "Topic0@g1": 1}, time=10, counter=1)
    made, conf = store(tmp_path / "s", reads, {reads: Tables(), there: older})
    assert not audited(made, conf).above_note


def test_built_in_topics_and_groups_do_not_count(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "files", {"separate": Tables(0, 0, {})})
    assert not any(f.code == LOST_TABLE for f in audited(made, conf).findings)


def test_a_backup_with_a_deleted_topic_is_sound(tmp_path: Path) -> None:
    made, conf = store(tmp_path / "s", "files", {"files": Tables()})
    config = made.root / "config"
    (config / "topics.json").rename(config / "topics.json.bak")
    put_files(config, Tables(0, 1, time=2000, counter=4))
    assert not lost(audited(made, conf))


@pytest.mark.parametrize("text", ["null", '{"dataVersion":{"counter":1}}'])
def test_a_file_without_its_table_hides_its_backup(text: str, tmp_path: Path) -> None:
    made, conf = store(tmp_path / "s", "files", {"files": Tables()})
    topics = made.root / "config" / "topics.json"
    topics.rename(f"{topics}.bak")
    topics.write_text(text)
    found = lost(audited(made, conf))
    assert found["topic"].count == 2 and "config/topics.json.bak" in found["topic"].message


def test_a_torn_file_shows_more_than_its_backup(tmp_path: Path) -> None:
    made, conf = store(tmp_path / "s", "files", {"files": Tables()})
    topics = made.root / "config" / "topics.json"
    (made.root / "config" / "topics.json.bak").write_bytes(topics.read_bytes())
    put_files(made.root / "config", Tables(4, 1, time=2000, counter=5))
    topics.write_bytes(topics.read_bytes()[:-2])
    found = lost(audited(made, conf))
    assert found["topic"].count == 2 and "--fix-config" in next_text(found["topic"].next)
    put_files(made.root / "config", Tables(1, 1, time=2000, counter=5))
    topics.write_bytes(topics.read_bytes()[:-2])
    assert not lost(audited(made, conf))


def test_without_a_broker_conf_nothing_is_called_lost(tmp_path: Path) -> None:
    """Whose settings are not named may read the other form."""
    made, _ = store(tmp_path / "s", "files", {"lmq": Tables()})
    (made.root / "config" / "consumerOffset.json").write_text("{}")
    audit = audited(made, None)
    found = [f for f in audit.findings if f.code == LOST_TABLE]
    assert [f.severity for f in found] == [REBUILDABLE] and "--broker-conf" in next_text(found[0].next)


def test_offsets_of_light_queues_alone_show_their_setting(tmp_path: Path) -> None:
    made, _ = store(tmp_path / "s", "files", {"lmq": Tables()})
    audit = audited(made, None)
    assert audit.broker is not None and audit.broker["config"]["offsets"] == 1 and not audit.above_note
    assert "from the files enableLmq = True" in verdict_text(audit.outcome)
    assert lost(audited(made, made.broker_conf)).keys() == {"offset"}  # a broker.conf that is silent about it


@pytest.mark.parametrize("there", ["files", "lmq"])
def test_the_release_that_takes_no_offsets_from_the_file_of_light_queues(there: str, tmp_path: Path) -> None:
    builder = StoreBuilder("4.9.3", Sizes(segment=1 << 14))
    builder.put(Message("Topic0", 0, b"x"))
    made = builder.write(tmp_path / "s")
    conf = made.broker_conf + CONF["lmq"]
    PUT[there](made.root / "config", Tables(offsets={"Topic0@g0": 1, "Topic1@g0": 4}))
    audit = product.audit(made.root, "4.9.3", conf)
    (found,) = lost(audit).values()
    assert found.count == 2 and "Start 4.9.4" in next_text(found.next) and audit.outcome.exit_code == 20
    assert audit.broker is not None and audit.broker["starts"] and audit.broker["config"]["offsets"] == 0
    assert repair_commands(audit.outcome, ("/s", "--release", "4.9.3"), "/plan.json") == []
    if there == "lmq":
        later = product.audit(made.root, "4.9.4", conf)
        assert not lost(later) and later.broker is not None and later.broker["config"]["offsets"] == 2
        PUT["lmq"](made.root / "config", Tables(offsets={}))
        assert not lost(product.audit(made.root, "4.9.3", conf))


def test_a_slave_gets_its_tables_from_its_master(tmp_path: Path) -> None:
    made, conf = store(tmp_path / "s", "lmq", {"files": Tables()})
    slave = audited(made, conf + "brokerRole=SLAVE\nbrokerId=1\n")
    assert not lost(slave)


@pytest.mark.parametrize("kind", ["separate", "single", "second"])
def test_databases_that_are_gone(kind: str, tmp_path: Path) -> None:
    """Nothing shows their entries: derived data differ, and the topics with messages are named."""
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", kind, {})
    audit = audited(made, conf)
    gone = [f for f in audit.findings if f.code == LOST_TABLE]
    assert len(gone) == 3 and {f.severity for f in gone} == {REBUILDABLE} and audit.outcome.exit_code == 10
    assert any(f.code == "topic_not_in_table" for f in audit.findings)
    assert judge(audit.outcome).kind == Safety.REBUILD and "clients cannot find Topic0" in judge(audit.outcome).headline
    (made.root / "config" / "delayOffset.json").unlink()  # no config/ was copied, which a note of its own says
    assert not any(f.code == LOST_TABLE and f.severity != NOTE for f in audited(made, conf).findings)


def test_one_database_that_is_gone(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "separate", {"separate": Tables()})
    for file in (made.root / "config" / "consumerOffsets").iterdir():
        file.unlink()
    (found,) = (f for f in audited(made, conf).findings if f.code == LOST_TABLE)
    assert found.file == "config/consumerOffsets" and found.severity == REBUILDABLE


def test_a_form_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "files", {"files": Tables(), "separate": Tables()})
    (manifest,) = (made.root / "config" / "topics").glob("MANIFEST-*")
    manifest.write_bytes(manifest.read_bytes()[:20])
    audit = audited(made, conf)
    assert not audit.above_note
    assert any(f.file == "config/topics" and "not known" in f.message for f in audit.findings)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)], ids=["some reads", "each read"])
@pytest.mark.parametrize("files", [{}, {"files": Tables()}], ids=["no file", "files"])
def test_a_failed_read_of_a_database_that_no_setting_uses_is_named(files: dict[str, Tables], step: int, tmp_path: Path) -> None:
    """It may show more than a start holds, so that without it nobody knows the answer."""
    pytest.importorskip("rocksdict")
    made, conf = store(tmp_path / "s", "files", {**files, "separate": Tables(**NEWER, time=2000, counter=9)})  # type: ignore[arg-type]
    folder = made.root / "config" / "consumerOffsets"
    whole = audited(made, conf).outcome
    with failing_reads(folder) as reads:
        assert audited(made, conf).outcome.complete
    assert reads.count
    for fail_at in range(step // 2, reads.count, step):
        with failing_reads(folder, fail_at) as failing:
            outcome = audited(made, conf).outcome
        assert failing.failed[0]
        assert outcome.found.findings == whole.findings if outcome.complete else "consumerOffsets" in outcome.incomplete[0]


# ---- every pair of forms of the offsets: the same keys, so that nothing but their values shows which is newer ---------------


def put_bak(config: Path, held: Tables) -> None:
    put_files(config, held)
    (config / "consumerOffset.json").rename(config / "consumerOffset.json.bak")


def put_tmp(config: Path, held: Tables) -> None:
    put_files(config, held)
    (config / "consumerOffset.json").rename(config / "consumerOffset.json.tmp")


FORMS = {**PUT, "bak": put_bak, "tmp": put_tmp}
NAMES = {
    "files": "config/consumerOffset.json", "lmq": "config/lmqConsumerOffset.json", "separate": "config/consumerOffsets/",
    "single": "config/metadata/", "second": "config/rdb/", "bak": "config/consumerOffset.json.bak",
    "tmp": "config/consumerOffset.json.tmp",
}  # fmt: skip
# What a start reads with the settings of CONF, and the form that lies beside it. A .bak beside a file that is taken is always
# older, so that no broker and no audit opens it.
PAIRS = [
    pytest.param(reads, there, marks=pytest.mark.soak if (number + place) % 2 else ())  # by default every other one
    for number, reads in enumerate(("files", "lmq", "separate", "single", "second", "bak"))
    for place, there in enumerate(FORMS)
    if reads != there and there != "bak" and (reads, there) != ("bak", "files")
]


def pair(root: Path, reads: str, there: str, newer: bool) -> tuple[Store, str]:
    """The form that a start reads beside another one, whose offset is greater, or smaller, and all else is equal."""
    made, conf = store(root, "files" if reads == "bak" else reads, {})
    FORMS[there](made.root / "config", Tables(offsets={"Topic0@g0": 5 if newer else 1}, time=1000))
    FORMS[reads](made.root / "config", Tables(offsets={"Topic0@g0": 3}, time=1000))
    return made, conf


@pytest.mark.parametrize(("reads", "there"), PAIRS, ids=lambda name: name)
def test_greater_offsets_in_any_other_form(reads: str, there: str, tmp_path: Path) -> None:
    """The audit names the form, and --fix-config takes it where the release reads files; an older form is no finding."""
    pytest.importorskip("rocksdict")
    made, conf = pair(tmp_path / "s", reads, there, newer=True)
    audit = audited(made, conf)
    (found,) = (f for f in audit.findings if f.code == LOST_TABLE and f.severity == LOSS and "offset" in f.message)
    assert (found.count, audit.outcome.exit_code) == (1, 20)
    assert NAMES[there] in found.message and "smaller offset than" in found.message
    if reads in ("files", "lmq", "bak"):
        repaired(made.root, tmp_path / "new", plan_of(made.root, RELEASE, conf), fix_config=True)
        after = product.audit(tmp_path / "new", RELEASE, conf)
        assert after.audit.copy[CONFIG].tables.offsets == {("g0", "Topic0", 0): 5} and not lost(after)
    older, conf = pair(tmp_path / "older", reads, there, newer=False)
    assert not lost(audited(older, conf))


@pytest.mark.parametrize("name", ["topics.json", "subscriptionGroup.json", "delayOffset.json"])
@pytest.mark.parametrize("newer", [True, False], ids=["newer", "older"])
def test_a_whole_tmp_of_every_table(name: str, newer: bool, tmp_path: Path) -> None:
    """A kill between the deletion of a file and the renaming of its .tmp: a start takes the .bak."""
    made, conf = store(tmp_path / "s", "files", {"files": Tables()})
    file = made.root / "config" / name
    file.rename(f"{file}.bak")
    put_files(made.root / "config", Tables(topics=3, groups=2, time=2000 if newer else 1000, counter=4 if newer else 3))
    if name == "delayOffset.json":
        (made.root / "config" / f"{name}.bak").write_text('{"offsetTable":{1:3,2:3}}')
        file.write_text('{"offsetTable":{1:4,2:3}}' if newer else '{"offsetTable":{1:2,2:3}}')
    file.rename(f"{file}.tmp")
    found = [f for f in audited(made, conf).findings if f.code == LOST_TABLE and f"{name}.tmp" in f.message]
    assert [f.count for f in found] == ([1] if newer else [])
    done = repaired(made.root, tmp_path / "new", plan_of(made.root, RELEASE, conf), fix_config=True)
    taken = {row.file: row.taken_from[0] for row in done.report.config}
    assert taken[f"config/{name}"] == f"config/{name}{'.tmp' if newer else '.bak'}"
