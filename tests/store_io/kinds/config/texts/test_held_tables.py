"""Tables of config/ in RocksDB: what a release takes from them, and over what it ends."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, GROUPS, TOPICS, ConfigRules
from store_io.broker.texts.tables import SharedSettings
from store_io.kinds.config.config_reader import StoreConfig, read_config
from store_io.kinds.config.texts import held_tables
from store_io.kinds.config.texts.records import BadRecord, Records
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from store_io.wording.gaps import gap_text
from tests.support.damage import invert_byte
from tests.support.stores.rocksdb_stores import write_database

pytest.importorskip("rocksdict")

TOPIC = {"topicName": "A", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6, "order": False}
OFFSETS = b'{"offsetTable":{0:5,1:7}}'


def held(root: Path, name: str, entries: Mapping[str, bytes], counter: int = 0, single: str = "") -> None:
    """single: the family in the one database of all tables; "": a database of its own."""
    version = [(b"kvDataVersionKey", b'{"counter":%d,"stateVersion":0,"timestamp":1}' % counter)] if counter else []
    families = {single or "default": [(k.encode(), v) for k, v in entries.items()]}
    families[f"{single}Version" if single else "kvDataVersion"] = version
    write_database(root / "config" / name, families)


def read(root: Path, release: str = "5.3.3", **more: Any) -> StoreConfig:
    settings = {"storeType": "defaultRocksDB", **more}
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in settings.items()})
    (root / "commitlog").mkdir(exist_ok=True)
    location = StoreLocation(str(root))
    return read_config(open_source(location), list_store(location), rules)


def topic(name: str = "A", queues: int = 3) -> bytes:
    return json.dumps({**TOPIC, "topicName": name, "readQueueNums": queues}).encode()


@pytest.mark.parametrize("release", ["5.3.1", "5.3.3", "5.4.0", "5.5.0"])
def test_the_three_tables(release: str, tmp_path: Path) -> None:
    held(tmp_path, "topics", {"A": topic(), "%RETRY%g": topic("%RETRY%g", 1)}, 4)
    held(tmp_path, "subscriptionGroups", {"g": b'{"groupName":"g","retryMaxTimes":2}'}, 1)
    held(tmp_path, "consumerOffsets", {"A@g": OFFSETS}, 0)
    config = read(tmp_path, release)
    assert config.topics is not None and config.topics["A"]["readQueueNums"] == 3 and "%RETRY%g" in config.topics
    assert config.groups["g"]["retryMaxTimes"] == 2
    assert config.offsets == {("g", "A", 0): 5, ("g", "A", 1): 7}
    assert config.offsets_file == "config/consumerOffsets"
    assert not config.findings and not config.problems and not any(done.refuses for done in config.loads.values())


def test_a_file_is_taken_in_where_its_version_is_greater(tmp_path: Path) -> None:
    held(tmp_path, "topics", {"A": topic(), "B": topic("B")}, 4)
    held(tmp_path, "consumerOffsets", {"A@g": OFFSETS}, 4)
    for counter, queues in ((4, 3), (5, 9)):
        table = {"A": {**TOPIC, "readQueueNums": 9}}
        (tmp_path / TOPICS).write_text(json.dumps({"dataVersion": {"counter": counter}, "topicConfigTable": table}))
        (tmp_path / CONSUMER_OFFSETS).write_text(f'{{"dataVersion":{{"counter":{counter}}},"offsetTable":{{"B@g":{{0:1}}}}}}')
        config = read(tmp_path)
        assert config.topics is not None and (config.topics["A"]["readQueueNums"], "B" in config.topics) == (queues, True)
        assert set(config.offsets) == ({("g", "B", 0)} if counter == 5 else {("g", "A", 0), ("g", "A", 1)})
        assert not any(done.left_out for done in config.loads.values())
    assert read(tmp_path, "5.2.0").loads[TOPICS].refuses  # it does not open a database with families of later releases


def test_one_database_for_all_takes_in_a_newer_one_of_a_table(tmp_path: Path) -> None:
    held(tmp_path, "topics", {"A": topic(queues=1), "B": topic("B")}, 4)
    held(tmp_path, "metadata", {"A": topic()}, 3, single="topic")
    newer = read(tmp_path, "5.4.0", useSingleRocksDBForAllConfigs=True)
    assert newer.topics is not None and newer.topics["A"]["readQueueNums"] == 1 and "B" in newer.topics
    held(tmp_path, "metadata", {}, 4, single="topic")
    older = read(tmp_path, "5.4.0", useSingleRocksDBForAllConfigs=True)
    assert older.topics is not None and older.topics["A"]["readQueueNums"] == 3 and "B" not in older.topics


@pytest.mark.parametrize("value", [b"", b"null", b"{", b'{"readQueueNums":"x"}', b"[]"])
def test_a_value_that_cannot_be_decoded_ends_the_broker(value: bytes, tmp_path: Path) -> None:
    held(tmp_path, "topics", {"A": topic(), "B": value})
    config = read(tmp_path)
    assert config.loads[TOPICS].refuses and not config.loads[GROUPS].refuses


@pytest.mark.parametrize(("release", "refuses"), [("5.3.3", False), ("5.4.0", True)])
def test_bad_bytes_end_the_load_or_the_broker(release: str, refuses: bool, tmp_path: Path) -> None:
    held(tmp_path, "topics", {f"T{n:05d}" + "x" * 90: topic(f"{n}" * 40) for n in range(3000)})
    table = max((tmp_path / "config" / "topics").glob("*.sst"), key=lambda path: path.stat().st_size)
    invert_byte(table, table.stat().st_size // 2, 1)
    config = read(tmp_path, release)
    assert config.loads[TOPICS].refuses is refuses
    if not refuses:
        known = config.loads[TOPICS].entries
        assert 0 < len(known) < 3000 and config.held[TOPICS].damaged is not None
        assert sorted(known) == [f"T{n:05d}" + "x" * 90 for n in range(len(known))]


def test_a_database_that_does_not_open_ends_the_broker(tmp_path: Path) -> None:
    held(tmp_path, "topics", {"A": topic()})
    next((tmp_path / "config" / "topics").glob("*.sst")).unlink()
    assert read(tmp_path).loads[TOPICS].refuses


# ---- the second version ----------------------------------------------------------------------------------------------


def name(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def entry(number: int, text: bytes) -> bytes:
    return b"\x01" + struct.pack(">H", number) + b"\x02" + name(text)


def place(group: bytes, of: bytes, queue: int) -> bytes:
    return entry(1, group) + b"\x01" + name(of) + b"\x01" + struct.pack(">i", queue)


TOPIC_KEY, GROUP_KEY = entry(3, b"A"), entry(4, b"g")
RECORDS = {
    b"\x01\x00\x03\x01data_version": struct.pack(">qqq", 0, 1, 7),
    TOPIC_KEY: b"\x01" + topic(),
    GROUP_KEY: b'\x01{"groupName":"g","retryMaxTimes":2}',
    place(b"g", b"A", 0): struct.pack(">q", 5),
    place(b"g", b"%LMQ%x", 0): struct.pack(">q", 9),
    b"\x01\x00\x02\x02" + place(b"g", b"A", 0)[4:]: struct.pack(">q", 4),
}


def records(root: Path, more: Mapping[bytes, bytes], release: str = "5.5.0", **settings: Any) -> StoreConfig:
    write_database(root / "config" / "rdb", {"default": sorted({**RECORDS, **more}.items())})
    return read(root, release, storeType="default", **{"configManagerVersion": "v2", **settings})


@pytest.mark.parametrize("release", ["5.3.2", "5.3.3", "5.4.0", "5.5.0"])
def test_the_tables_of_the_second_version(release: str, tmp_path: Path) -> None:
    config = records(tmp_path, {}, release)
    assert config.topics == {"A": {"order": False, "readQueueNums": 3, "writeQueueNums": 3, "perm": 6, "topicSysFlag": 0}}
    assert config.groups["g"]["retryMaxTimes"] == 2 and config.offsets == {("g", "A", 0): 5}
    assert config.database == "config/rdb" and "TBW102" in (config.known_topics or ())
    assert not config.findings and not config.problems and not any(done.refuses for done in config.loads.values())
    assert records(tmp_path, {}, release, enableLmq=True).offsets == config.offsets


def test_a_file_in_the_place_of_the_folder_ends_the_broker(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    for folder, own, release, path in (
        ("rdb", {"storeType": "default", "configManagerVersion": "v2"}, "5.4.0", GROUPS),
        ("topics", {}, "5.1.4", TOPICS),
        ("consumerOffsets", {}, "5.3.3", CONSUMER_OFFSETS),
    ):
        assert not any(done.refuses for done in read(tmp_path, release, **own).loads.values())
        (tmp_path / "config" / folder).write_bytes(b"x")
        done = read(tmp_path, release, **own).loads[path]
        assert done.refuses and done.database_refusal == Refusal(RefusalKind.CONFIG_DATABASE_IS_FILE, f"config/{folder}")
        (tmp_path / "config" / folder).unlink()


def test_light_queues_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    light = {place(b"g", b"%%LMQ%%%d" % n, 0): bytes(8) for n in range(100)}
    monkeypatch.setattr(held_tables, "MAX_TABLE_VALUES", 50)
    assert records(tmp_path, light).offsets == {("g", "A", 0): 5}
    monkeypatch.setattr(held_tables, "MAX_TABLE_VALUES", 0)
    kept = read(tmp_path, "5.5.0", storeType="default", configManagerVersion="v2")
    assert kept.held[CONSUMER_OFFSETS].problem == Gap(Cause.CONFIG_TABLE_LARGE, "config/rdb")


def test_sentences_name_the_entry_and_not_its_key(tmp_path: Path) -> None:
    """Whatever the name is: no control sequence."""
    odd = {entry(3, b"B\x1b"): b"", GROUP_KEY: b"\x01" + b"[" * 2000, place(b"g", b"A", 1): b""}
    tables = records(tmp_path, odd).held
    bad = tables[TOPICS]
    fault = Refusal(RefusalKind.CONFIG_DATABASE_VALUE, "config/rdb", actual="the value of topic 'B\\x1b' is empty")
    assert (bad.refusal, bad.refused_key) == (fault, entry(3, b"B\x1b"))
    assert gap_text(tables[GROUPS].problem).startswith("config/rdb/: the value of group 'g': ")
    refusal = tables[CONSUMER_OFFSETS].refusal
    assert refusal is not None and refusal.actual == "the offset of group 'g' in topic 'A' is cut short"


def test_only_v2_itself_asks_for_it(tmp_path: Path) -> None:
    for release, value in (("5.5.0", "V2"), ("5.3.1", "v2")):
        assert records(tmp_path, {}, release, configManagerVersion=value).database == ""


REFUSALS: list[tuple[dict[bytes, bytes], str]] = [
    ({TOPIC_KEY: b""}, TOPICS),
    ({TOPIC_KEY: b"\x01{"}, TOPICS),
    ({TOPIC_KEY: b'\x01{"readQueueNums":3}'}, TOPICS),
    ({TOPIC_KEY: b'\x01{"topicName":"A","perm":"x"}'}, TOPICS),
    ({entry(3, b"A")[:-2] + b"\x07": b"\x01{}"}, TOPICS),
    ({GROUP_KEY: b"\x01[]"}, GROUPS),
    ({place(b"g", b"A", 1)[:-1]: struct.pack(">q", 5)}, CONSUMER_OFFSETS),
    ({place(b"g", b"A", 1): b"\0" * 7}, CONSUMER_OFFSETS),
    ({b"\x01\x00\x01\x02\xff\xffg": b"\0" * 8}, CONSUMER_OFFSETS),
    ({TOPIC_KEY: b"\x01null", GROUP_KEY: b"\x02x", place(b"g", b"A", 0) + b"rest": b"\0" * 9}, ""),
    ({TOPIC_KEY: b"\x01"}, ""),
]
ODD_RECORDS = [more for more, _ in REFUSALS]


@pytest.mark.parametrize(("more", "refused"), REFUSALS)
def test_which_records_end_a_broker(more: dict[bytes, bytes], refused: str, tmp_path: Path) -> None:
    config = records(tmp_path, more)
    assert [path for path, done in config.loads.items() if done.refuses] == ([refused] if refused else [])
    if not refused:
        assert config.topics == {} and not config.problems


def test_the_name_in_the_value_counts_and_files_beside_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / TOPICS).write_text('{"dataVersion":{"counter":99},"topicConfigTable":{"F":{"topicName":"F"}}}')
    config = records(tmp_path, {TOPIC_KEY: b"\x01" + topic("B")})
    assert (config.topics or {}).keys() == {"B"} and not config.loads[TOPICS].left_out
    shutil.rmtree(tmp_path / "config" / "rdb")
    assert read(tmp_path, "5.5.0", storeType="default", configManagerVersion="v2").loads[TOPICS].left_out == 1


@example_settings(deadline=None, max_examples=200)
@given(st.sampled_from((1, 3, 4)), st.binary(max_size=40), st.binary(max_size=40))
def test_any_record_is_taken_or_refused(number: int, key: bytes, value: bytes) -> None:
    taken = Records(number, SharedSettings(), ConfigRules(ignores_types=True))
    for own in (key, entry(number, b"g") + b"\x01" + name(b"A") + key):
        try:
            taken.take(own, value, held_tables._parse)
        except (BadRecord, held_tables._BadValue, held_tables._UnknownValue):
            pass
