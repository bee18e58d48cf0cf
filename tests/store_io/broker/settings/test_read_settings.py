"""broker.conf as Java reads it, and sizes from the files where it says nothing."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from store_io.base.errors import UsageError
from store_io.broker.releases import ALL_DEFAULTS, Setting, broker_rules
from store_io.broker.settings.read_settings import infer_slots, read_given, read_settings
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import StoreListing, list_store

SEGMENT = "commitlog/00000000000000000000"


def store(root: Path, files: dict[str, int]) -> StoreListing:
    for name, size in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.truncate(size)
    return list_store(StoreLocation(str(root)))


def index_file(slots: int, most: int, keys: int, begin: int = 395, seed: int = 1) -> bytes:
    """An index file as a broker writes it, with some random keys."""
    rng = random.Random(seed)
    data = bytearray(40 + 4 * slots + 20 * most)
    used = 0
    for number in range(1, keys + 1):
        key_hash = rng.randrange(1 << 31)
        at = 40 + 4 * (key_hash % slots)
        (previous,) = struct.unpack_from(">i", data, at)
        used += previous == 0
        struct.pack_into(">iqii", data, 40 + 4 * slots + 20 * number, key_hash, begin + 1000 * number, 0, previous)
        struct.pack_into(">i", data, at, number)
    if keys:
        struct.pack_into(">qqqqii", data, 0, 5, 6, begin + 1000, begin + 1000 * keys, used, keys + 1)
    return bytes(data)


def test_broker_conf_goes_before_the_files_and_unknown_keys_are_ignored(tmp_path: Path) -> None:
    listing = store(tmp_path, {SEGMENT: 65536})
    text = "mappedFileSizeCommitLog=131072\nstorePathCommitLog=/etc\nmessageIndexSafe=TRUE\nnamesrvAddr=x:1\nbrokerId=1"
    settings = read_settings(text, listing)
    assert settings.keys() == ALL_DEFAULTS.keys()
    assert (settings["mappedFileSizeCommitLog"].value, settings["mappedFileSizeCommitLog"].origin) == (131072, "broker.conf")
    assert settings["messageIndexSafe"].value is True and settings["brokerId"].value == 1
    assert settings["checkCRCOnRecover"].origin == "default"
    assert broker_rules("5.3.3", settings).segment_bytes == 131072


@pytest.mark.parametrize(
    "line",
    [
        "mappedFileSizeConsumeQueue=0",
        "maxIndexNum=-5",
        "messageDelayLevel=1s 5x",
        "messageDelayLevel=1s  5s",
        "messageDelayLevel=",
    ],
)
def test_a_bad_value_is_a_usage_error_with_key_and_value(tmp_path: Path, line: str) -> None:
    listing = store(tmp_path, {SEGMENT: 8})
    with pytest.raises(UsageError) as caught:
        broker_rules("5.3.3", read_settings(line, listing))
    key, value = line.split("=")
    assert key in str(caught.value) and value.split(" ")[-1] in str(caught.value)


def test_sizes_come_from_the_files_where_they_agree(tmp_path: Path) -> None:
    listing = store(
        tmp_path,
        {
            SEGMENT: 1000,
            "commitlog/00000000000000001000": 1000,
            "commitlog/00000000000000002000": 500,
            "commitlog/readme": 7,
            "consumequeue/T/0/00000000000000000000": 400,
            "consumequeue/T/1/00000000000000000000": 400,
            "consumequeue_ext/T/0/00000000000000000000": 64,
            "batchconsumequeue/B/0/00000000000000000000": 460,
        },
    )
    settings = read_settings(None, listing)
    assert [(settings[key].value, settings[key].origin) for key in list(ALL_DEFAULTS)[:4]] == [
        (1000, "inferred"),
        (400, "inferred"),
        (64, "inferred"),
        (460, "inferred"),
    ]
    assert settings["maxIndexNum"].origin == "default"


def test_names_decide_where_as_many_files_are_cut_as_whole(tmp_path: Path) -> None:
    files = {SEGMENT: 1000, "commitlog/00000000000000001000": 600, "consumequeue/T/0/00000000000000000000": 30}
    settings = read_settings(None, store(tmp_path, files))
    assert settings["mappedFileSizeCommitLog"].value == 1000
    assert settings["mappedFileSizeConsumeQueue"].origin == "default"  # no whole number of entries


def test_files_of_the_default_sizes_are_the_default(tmp_path: Path) -> None:
    settings = read_settings(None, store(tmp_path, {SEGMENT: 1 << 30, "index/20260101000000000": 420_000_040}))
    assert {settings[key].origin for key in ALL_DEFAULTS} == {"default"}


@pytest.mark.parametrize(
    ("slots", "most", "keys"), [(100, 1000, 999), (100, 1000, 400), (5000, 20000, 3000), (7, 33, 2), (13, 60, 59)]
)
def test_an_index_file_tells_its_slots_by_its_entries(tmp_path: Path, slots: int, most: int, keys: int) -> None:
    store(tmp_path, {SEGMENT: 8, "index/20260101000000000": 0})
    (tmp_path / "index/20260101000000000").write_bytes(index_file(slots, most, keys))
    settings = read_settings(None, list_store(StoreLocation(str(tmp_path))))
    assert (settings["maxHashSlotNum"].value, settings["maxIndexNum"].value) == (slots, most)
    assert settings["maxIndexNum"].origin == "inferred"


@pytest.mark.parametrize("at", [3, 18, 28, 35, 39, 40 + 400 + 20 + 7, 40 + 40])
def test_a_damaged_byte_does_not_mislead(tmp_path: Path, at: int) -> None:
    data = bytearray(index_file(100, 1000, 600))
    data[at] ^= 0x15
    (tmp_path / "index").mkdir()
    (tmp_path / "index/x").write_bytes(data)
    with open_source(StoreLocation(str(tmp_path))).open("index/x") as file:
        assert infer_slots(file) == 100


def test_a_broker_conf_that_is_silent_about_sizes_means_the_defaults(tmp_path: Path) -> None:
    listing = store(tmp_path, {SEGMENT: 8, "index/20260101000000000": 40 + 4 * 100 + 20 * 1000})
    settings = read_settings("maxHashSlotNum=100", listing)
    assert (settings["maxHashSlotNum"].value, settings["maxHashSlotNum"].origin) == (100, "broker.conf")
    assert (settings["maxIndexNum"].value, settings["maxIndexNum"].origin) == (20_000_000, "default")
    assert (settings["mappedFileSizeCommitLog"].value, settings["mappedFileSizeCommitLog"].origin) == (1 << 30, "default")


@example_settings(deadline=None)
@given(st.binary(max_size=200), st.binary(min_size=40, max_size=40))
def test_no_bytes_in_an_index_file_raise(tmp_path_factory: pytest.TempPathFactory, body: bytes, header: bytes) -> None:
    root = tmp_path_factory.mktemp("index")
    (root / "index").mkdir()
    (root / "index/20260101000000000").write_bytes(header + body)
    rules = broker_rules("5.3.3", read_settings(None, list_store(StoreLocation(str(root)))))
    assert rules.index_slots > 0 and rules.index_max > 0


@pytest.mark.parametrize(
    ("file", "key", "shown", "default", "other"),
    [
        ("epochFileCheckpoint", "enableControllerMode", True, False, ()),
        ("config/rdb/CURRENT", "configManagerVersion", "v2", "v1", ("config/topics.json",)),
        # some broker without light queues wrote the other one, earlier or later
        ("config/lmqConsumerOffset.json", "enableLmq", True, False, ("config/consumerOffset.json.bak",)),
    ],
)
def test_a_file_shows_a_setting_where_no_broker_conf_says_otherwise(
    file: str, key: str, shown: object, default: object, other: tuple[str, ...], tmp_path: Path
) -> None:
    listing = store(tmp_path, {SEGMENT: 8, file: 16})
    inferred = read_settings(None, listing)[key]
    assert (inferred.value, inferred.origin) == (shown, "inferred")
    for conf in ("", f"{key}={default}".lower() if default is False else ""):
        assert read_settings(conf, listing)[key].value == default
    for name in other:
        assert read_settings(None, store(tmp_path, {SEGMENT: 8, name: 2}))[key].value == default


def test_data_of_a_dledger_group_turn_it_on_unless_a_broker_conf_says_what_the_broker_reads(tmp_path: Path) -> None:
    (tmp_path / "dledger-n0" / "data").mkdir(parents=True)
    listing = store(tmp_path, {SEGMENT: 100})
    for conf in (None, ""):
        assert read_settings(conf, listing)["enableDLegerCommitLog"].value is False
    listing = store(tmp_path, {f"dledger-n0/data/{0:020d}": 100})
    inferred = read_settings(None, listing)
    assert (inferred["enableDLegerCommitLog"].value, inferred["dLegerSelfId"].value) == (True, "n0")
    for conf in ("", "mappedFileSizeCommitLog=100", "dLegerSelfId=n0", "enableControllerMode=true"):
        assert read_settings(conf, listing)["enableDLegerCommitLog"] == Setting(False, "default")
    assert read_settings("enableDLegerCommitLog=true", listing)["dLegerSelfId"] == Setting("", "default")


def test_of_several_dledger_groups_no_file_says_which_one_is_meant(tmp_path: Path) -> None:
    listing = store(tmp_path, {f"dledger-{node}/data/{0:020d}": 100 for node in ("n0", "n1")})
    inferred = read_settings(None, listing)
    assert (inferred["enableDLegerCommitLog"].value, inferred["dLegerSelfId"].value) == (True, "")


@pytest.mark.parametrize(
    ("files", "key"),
    [
        ({"epochFileCheckpoint": 9}, "enableControllerMode"),
        ({"consumequeue/CURRENT": 16}, "storeType"),
        ({"config/metadata/CURRENT": 16}, "configManagerVersion"),
        ({"config/lmqConsumerOffset.json": 2}, "enableLmq"),
        ({"kvStore/CURRENT": 16}, "popConsumerKVServiceInit"),
        ({"config/users/CURRENT": 16}, "authenticationMetadataProvider"),
        ({"config/tieredStoreMetadata.json": 2}, "messageStorePlugIn"),
        ({f"dledger-n0/data/{0:020d}": 100}, "enableDLegerCommitLog"),
    ],
)
def test_nothing_but_what_broker_conf_says_is_taken_once_there_is_one(tmp_path: Path, files: dict[str, int], key: str) -> None:
    listing = store(tmp_path, {SEGMENT: 8, **files})
    assert read_settings("", listing)[key].origin == "default"
    assert all(setting.origin != "inferred" for setting in read_settings("", listing).values())


@pytest.mark.parametrize("line", ["commitLogRecoverMaxNum=0", "commitLogRecoverMaxNum=-3", "timerPrecisionMs=300"])
def test_a_repair_takes_the_same_of_a_broker_conf_as_the_plan(tmp_path: Path, line: str) -> None:
    key, planned = line.partition("=")[0], broker_rules("5.4.0", read_settings(line, store(tmp_path / "store", {SEGMENT: 1})))
    assert read_given(line, "5.4.0") == {key: planned.value(key)}
    assert int(planned.value(key)) > 0
