"""Stores with queues in RocksDB, whole: what real brokers made of them, and what built ones show of the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.kinds.config.config_kind import CONFIG
from store_io.outcome.plan_writer import audit_plan
from tests.support.answers import product
from tests.support.damage import invert_byte, overwrite
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.corpus_tools import Case
from tests.support.stores.rocksdb_stores import KeyedStore, keyed_batches, keyed_of, keyed_store, write_database

CASES = corpus_tools.of_kind("rocksdb")
FIELDS = {"min_offset": "minOffsetInQueue", "max_offset": "maxOffsetInQueue", "max_phy_offset": "maxPhysicOffset"}


def state(recorded: dict[str, Any]) -> dict[str, Any]:
    queues = [
        {"topic": topic, "queue_id": int(number), **{ours: queue[theirs] for ours, theirs in FIELDS.items()}}
        for topic, by_id in recorded["queues"].items()
        for number, queue in by_id.items()
    ]
    return {
        "commitlog": [{"file": f["name"], "wrote": f["wrotePosition"]} for f in recorded["commitLogFiles"]],
        "queues": sorted(queues, key=lambda queue: (queue["topic"], queue["queue_id"])),
    }


@pytest.fixture(autouse=True)
def _reader() -> None:
    pytest.importorskip("rocksdict")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_plan_is_what_the_broker_did(case: Case, tmp_path: Path) -> None:
    audited = product.audit(case.unpack(tmp_path), case.release, case.broker_conf)
    broker, expected = audited.broker, case.expected
    assert broker is not None and broker["starts"] is expected["load"]["result"]
    assert broker["truncate_at"] == expected["afterLoad"]["maxPhyOffset"]
    for moment, recorded in (("after_load", "afterLoad"), ("after_dispatch", "converged")):
        ours = {name: broker[moment][name] for name in ("commitlog", "queues")}
        assert ours == state(expected[recorded])
        if "otherKind" in expected[recorded]:  # queues in files beside those that consumers are served from
            other = state(expected[recorded] | {"queues": expected[recorded]["otherKind"]})
            assert broker[moment]["queues_files"] == other["queues"]
    if "configTables" in expected:
        config = audited.audit.copy[CONFIG].tables
        tables = expected["configTables"]
        assert (config.topics or {}).keys() == tables["topics"].keys() and config.groups.keys() == set(tables["groups"])
        assert config.offsets == {}  # where they lie there is a bad bit
        assert tables["loads"] == [True] * 3 and tables["offsets"] == {}
    assert not [name for name in broker["deleted_files"] if name.startswith("consumequeue")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_entry_that_the_broker_serves_is_known(case: Case, tmp_path: Path) -> None:
    """Entries that the broker had after load: each is on disk below the queue's end, or put by recovery at its number."""
    audited = product.audit(case.unpack(tmp_path), case.release, case.broker_conf)
    prediction = audited.audit.prediction
    assert prediction is not None and prediction.after_load is not None
    served: dict[tuple[str, int], set[int]] = {}
    for entry in case.entries() or []:
        if entry.get("rdb"):
            served.setdefault((entry["t"], entry["q"]), set()).add(entry["i"])
    assert served
    for key, numbers in served.items():
        queue = prediction.after_load.queues[key]
        assert isinstance(queue, RocksQueue)
        put = {n for first, last, _, _ in queue.put_and_served() for n in range(first, last)}
        view = audited.audit.views[key]
        stored = {n for first, last in view.covered + view.leftover for n in range(first, last)}
        assert {n for n in numbers if n < queue.max_offset} <= put | stored


def audited(store: KeyedStore, release: str | None = None) -> product.Audited:
    return product.audit(store.write().root, release or store.plain.release, store.broker_conf)


def queues(audit: product.Audited) -> dict[tuple[str, int], dict[str, Any]]:
    assert audit.broker is not None, audit.incomplete
    return {(q["topic"], q["queue_id"]): q for q in audit.broker["after_load"]["queues"]}


@pytest.mark.parametrize("release", ["5.2.0", "5.3.3", "5.4.0", "5.5.0"])
def test_an_undamaged_store_is_consistent(release: str, tmp_path: Path) -> None:
    audit = audited(keyed_store(tmp_path / "s", release))
    assert (audit.findings, audit.outcome.exit_code, audit.incomplete) == ([], 0, [])
    assert {q["max_offset"] for q in queues(audit).values()} == {15}


@pytest.mark.parametrize("release", ["5.3.3", "5.4.0", "5.5.0"])
def test_a_killed_broker_loses_nothing(release: str, tmp_path: Path) -> None:
    audit = audited(keyed_store(tmp_path / "s", release, clean=False, dispatched=40))
    assert audit.outcome.exit_code == 10 and {f.code for f in audit.above_note} <= {"queue_entry_missing", "index_range_missing"}
    assert audit.broker is not None and audit.broker["lost"]["messages"] == 0
    assert {q["max_offset"] for q in queues(audit).values()} == {15}


BATCHES = [(0, 3), (3, 1), (4, 5), (9, 4), (13, 5)]


def test_inner_batches_without_a_base_are_healthy(tmp_path: Path) -> None:
    """Their queue offsets leave gaps; a start continues after the last entry."""
    for name, more in (("s", []), ("restarted", [(14, 2), (16, 1)])):
        store = keyed_batches(tmp_path / name, BATCHES + more)
        store.minima["Batch", 0] = store.records[0].at, 0
        audit = product.audit(store.write().root, "5.4.0", store.broker_conf)
        assert (audit.above_note, audit.incomplete) == ([], [])
    gap = keyed_batches(tmp_path / "gap", [*BATCHES, (20, 2), (22, 1)])
    gap.minima["Batch", 0] = gap.records[0].at, 0
    audit = product.audit(gap.write().root, "5.4.0", gap.broker_conf)
    assert [(f.code, f.queue_offset) for f in audit.above_note] == [("queue_offset_gap", 20)]


def test_a_minimum_that_is_searched_for_can_pass_over_inner_batches(tmp_path: Path) -> None:
    """As the brokers of 5.3.3, 5.4.0 and 5.5.0 do: pulls below it get OFFSET_TOO_SMALL. 6, 10, 11 and 12 have no entry."""
    store = keyed_batches(tmp_path / "s", BATCHES).write()
    audit = product.audit(store.root, "5.4.0", store.broker_conf)
    (skipped,) = audit.above_note
    assert (skipped.code, skipped.count) == ("broker_skips_messages", 13)
    assert skipped.message.startswith("the queue's minimum becomes 13, above 13 messages")


def test_without_its_database_a_clean_start_skips_the_first_record(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s", "5.4.0", dispatched=0)
    audit = product.audit(store.root, "5.4.0", store.broker_conf)
    assert audit.broker is not None and audit.broker["lost"]["messages"] == 1
    (skipped,) = [f for f in audit.findings if f.code == "broker_skips_messages"]
    assert skipped.count == 1 and "begins exactly at" in skipped.message


def test_an_older_database_leaves_a_hole(tmp_path: Path) -> None:
    audit = audited(keyed_store(tmp_path / "s", dispatched=40))
    assert audit.broker is not None and audit.broker["lost"]["messages"] == 1
    hole = keyed_store(tmp_path / "t").records[40]
    (skipped,) = [f for f in audit.findings if f.code == "broker_skips_messages"]
    assert (skipped.topic, skipped.queue_id) == (hole.topic, hole.queue_id)
    assert audited(keyed_store(tmp_path / "u", "5.3.1", dispatched=40)).broker["lost"]["messages"] == 20  # type: ignore[index]


def test_messages_further_back_than_the_release_looks(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s", "5.4.0", clean=False, dispatched=0)
    few = product.audit(store.root, "5.4.0", store.broker_conf + "commitLogRecoverMaxNum=2\n")
    (first, *_) = [f for f in few.findings if f.code == "broker_skips_messages"]
    assert few.broker is not None and few.broker["lost"]["messages"] > 1 and "at most 2 CommitLog files" in first.message
    enough = product.audit(store.root, "5.4.0", store.broker_conf + "commitLogRecoverMaxNum=100\n")
    assert enough.broker is not None and enough.broker["lost"]["messages"] == 0


def cut_in_last_segment(store: KeyedStore, kept: int) -> int:
    """Zero the log's last segment after so many of its records; where it ends then."""
    base = max(int(path.name) for path in (store.root / "commitlog").iterdir() if any(path.read_bytes()))
    end = [r for r in store.plain.records if r.at >= base][kept].at
    path = store.root / "commitlog" / f"{base:020d}"
    path.write_bytes(path.read_bytes()[: end - base].ljust(4096, b"\0"))
    return end


def test_truncation_moves_maxima_back_and_can_leave_valid_messages_out(tmp_path: Path) -> None:
    """The search ends at an entry that leads exactly to the cut, with what it has found by then."""
    store = keyed_store(tmp_path / "s")
    end = cut_in_last_segment(store, 2)
    at_cut = next((r.topic, r.queue_id) for r in store.records if r.at == end)
    audit = audited(store)
    assert audit.broker is not None and audit.broker["truncate_at"] == end
    for key, queue in queues(audit).items():
        below = [r for r in store.records if (r.topic, r.queue_id) == key and r.at < end]
        if key == at_cut:
            assert queue["max_offset"] < len(below)
        else:
            assert (queue["max_offset"], queue["max_phy_offset"]) == (len(below), below[-1].at) and "or" not in queue
    codes = {f.code for f in audit.above_note}
    assert {"message_lost", "queue_entry_beyond_end"} <= codes and "queue_end_undecided" not in codes
    (skipped,) = [f for f in audit.findings if f.code == "broker_skips_messages"]
    assert (skipped.topic, skipped.queue_id) == at_cut and skipped.count == 1 and "given again" in skipped.message


def test_after_a_crash_a_race_decides(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s", clean=False)
    end = cut_in_last_segment(store, 2)
    again = {(r.topic, r.queue_id) for r in store.records if end - end % 4096 <= r.at < end}
    assert 0 < len(again) < 4
    audit = audited(store)
    found = queues(audit)
    undecided = {key for key, queue in found.items() if "or" in queue}
    assert undecided == set(found) - again == {(f.topic, f.queue_id) for f in audit.findings if f.code == "queue_end_undecided"}
    for key, queue in found.items():
        below = sum((r.topic, r.queue_id) == key and r.at < end for r in store.records)
        assert queue["max_offset"] == below if key in again else queue["max_offset"] <= below
        assert key in again or queue["or"]["max_offset"] == 15


@pytest.mark.parametrize("release", ["5.2.0", "5.3.1"])
def test_after_a_crash_recovery_has_put_all_before_it_truncates_up_to_5_3_1(release: str, tmp_path: Path) -> None:
    """The mark is at the cut by then: queues into which it puts nothing keep a maximum beyond the cut."""
    store = keyed_store(tmp_path / "s", release, clean=False)
    end = cut_in_last_segment(store, 2)
    again = {(r.topic, r.queue_id) for r in store.records if end - end % 4096 <= r.at < end}
    assert 0 < len(again) < 4
    audit = audited(store)
    assert all(f.code != "queue_end_undecided" for f in audit.findings)
    for key, queue in queues(audit).items():
        below = sum((r.topic, r.queue_id) == key and r.at < end for r in store.records)
        assert "or" not in queue and queue["max_offset"] == (below if key in again else 15)


def test_up_to_5_3_1_truncation_goes_by_topics(tmp_path: Path) -> None:
    """Queues of topics that the broker does not know, and those beyond a topic's number, end where they did."""
    store = keyed_store(tmp_path / "s", "5.3.1")
    end = cut_in_last_segment(store, 2)
    whole = audited(store)
    assert whole.broker is None and "no table of topics" in whole.incomplete[0]
    write_database(store.root / "config" / "topics", {"default": [(b"Topic0", b'{"writeQueueNums": 1}')]})
    cut = {key for key, queue in queues(audited(store)).items() if queue["max_offset"] < 15}
    assert cut == {("Topic0", 0)}
    assert len([key for key, queue in queues(audited(store, "5.3.2")).items() if queue["max_offset"] < 15]) == 4
    store.minima["Topic0", 0] = end + 1, 1  # it begins beyond the cut
    refused = audited(store).broker
    assert refused is not None and not refused["starts"]
    assert refused["refusal"].startswith("consumequeue/CURRENT: truncation of the queues throws: ")


def test_a_database_in_the_other_folder_stops_5_5_0(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s", "5.5.0").write("consumequeue_rocksdb")
    own = product.audit(store.root, "5.5.0", store.broker_conf + "useSeparateStorePathForRocksdbCQ=true\n")
    assert own.outcome.exit_code == 0
    other = product.audit(store.root, "5.5.0", store.broker_conf)
    assert other.broker is not None and "consumequeue_rocksdb/CURRENT" in other.broker["refusal"]


def test_5_1_4_has_queues_in_files(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s", "5.1.4").write()
    audit = product.audit(store.root, "5.1.4", store.broker_conf)
    assert audit.broker is None and "RocksDB files" in audit.incomplete[0]


@pytest.mark.parametrize("release", ["5.3.3", "5.4.0", "5.5.0"])
def test_bad_bytes_where_the_end_mark_is(release: str, tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s", release).write()
    table = min((store.root / "consumequeue").glob("*.sst"), key=lambda path: path.stat().st_size)
    invert_byte(table, 20, 1)
    audit = product.audit(store.root, release, store.broker_conf)
    assert "queue_database_damaged" in {f.code for f in audit.above_note}
    assert audit.broker is not None and "end mark" in audit.broker["refusal"]


def test_retention_leaves_entries(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s")
    first = sorted((store.root / "commitlog").iterdir())[0]
    first.unlink()
    audit = audited(store)
    assert audit.above_note == []
    for (topic, queue_id), queue in queues(audit).items():
        gone = sum(r.topic == topic and r.queue_id == queue_id and r.at < 4096 for r in store.records)
        assert queue["min_offset"] == gone > 0


def test_a_database_alone_shows_the_store_type(tmp_path: Path) -> None:
    store = keyed_store(tmp_path / "s").write()
    audit = product.audit(store.root, "5.3.3", None)
    assert audit.outcome.exit_code == 0 and audit_plan(audit.outcome)["settings"]["storeType"]["from"] == "inferred"


def test_queues_in_files_beside_an_old_database(tmp_path: Path) -> None:
    """A broker leaves the database alone and dispatches everything anew, whether broker.conf names the default or is silent."""
    store = keyed_store(tmp_path / "s", clean=False).write()
    for named in ("storeType=default\n", ""):
        audit = product.audit(store.root, "5.3.3", store.plain.broker_conf + named)
        assert audit.broker is not None and audit.broker["lost"]["messages"] == 0
        assert [f.severity for f in audit.findings if f.code == "file_unrecognised"] == ["note"]


@pytest.mark.parametrize(("release", "judged"), [("5.3.1", True), ("5.3.3", True), ("5.4.0", False), ("5.5.0", False)])
def test_queues_that_are_written_twice(release: str, judged: bool, tmp_path: Path) -> None:
    """Up to 5.3.3 recovery reads the files alone, and no damage of the database matters; later the two are one store."""
    store = keyed_store(tmp_path / "s", release, clean=False).write()
    next((store.root / "consumequeue").glob("*.sst")).unlink()
    audit = product.audit(store.root, release, store.plain.broker_conf + "rocksdbCQDoubleWriteEnable=true\n")
    assert audit.broker is not None and audit.broker["starts"] is judged
    codes = {f.code for f in audit.findings}
    assert "file_unrecognised" not in codes and ("queue_database_damaged" in codes) is not judged
    (store.root / "consumequeue" / "CURRENT").unlink()
    again = product.audit(store.root, release, store.plain.broker_conf + "rocksdbCQDoubleWriteEnable=true\n")
    assert again.broker is not None and again.broker["starts"] is judged


@pytest.mark.parametrize(
    ("release", "clean", "tables", "judged"),
    [
        ("5.3.1", False, 1, True),
        ("5.3.3", False, 1, False),
        ("5.3.3", True, 1, True),
        ("5.3.3", True, 2, False),
        ("5.5.0", False, 1, False),
        ("5.5.0", True, 1, True),
    ],
)
def test_bad_entries_that_a_compaction_meets(release: str, clean: bool, tables: int, judged: bool, tmp_path: Path) -> None:
    """After a kill 5.3.2 and later write what recovery puts to a table of its own at once, the second one."""
    store = keyed_store(tmp_path / "s", release, clean=clean, dispatched=30)
    for _ in range(tables - 1):
        store.write()
        store.put(store.records[30])
    store.write()
    folder = store.root / "consumequeue"
    table = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    invert_byte(table, 100, 1)
    audit = product.audit(store.root, release, store.broker_conf)
    assert "queue_database_damaged" in {f.code for f in audit.above_note}
    assert (audit.broker is not None) is judged
    assert judged or any("compacts" in sentence for sentence in audit.incomplete)


def test_a_record_that_names_a_wrong_offset_moves_the_mark(tmp_path: Path) -> None:
    """It is dispatched as it says, so the mark may lie beyond the log's end when recovery truncates; a race decides."""
    store = keyed_store(tmp_path / "s", clean=False)
    last = store.records[-1]
    file = store.root / "commitlog" / f"{last.at - last.at % 4096:020d}"
    overwrite(file, last.at % 4096 + 28, (last.at + (1 << 40)).to_bytes(8, "big"))
    found = queues(audited(store))
    queue = found.pop((last.topic, last.queue_id))
    assert (queue["max_offset"], queue["or"]["max_offset"]) == (14, 15)
    assert queue["or"]["max_phy_offset"] == last.at + (1 << 40)
    assert all(q["max_offset"] == 15 and "or" not in q for q in found.values())


@pytest.mark.parametrize("more", ["", "rocksdbCQDoubleWriteEnable=true\ncombineCQPreferCQType=defaultRocksDB\n"])
def test_a_light_queue_s_offset_that_is_no_number_is_not_modelled(more: str, tmp_path: Path) -> None:
    builder = StoreBuilder("5.4.0", Sizes(segment=4096))
    lists = ("INNER_MULTI_DISPATCH", "%LMQ%a,%LMQ%b"), ("INNER_MULTI_QUEUE_OFFSET", "0,x")
    for number in range(10):
        builder.put(Message("Topic", 0, b"x" * 30, properties=lists if number == 6 else ()))
    plain = builder.write(tmp_path / "store", clean=False)
    keyed = keyed_of(plain, clean=False, dispatched=4).write()
    conf = "enableLmq=true\n" + (keyed.plain.broker_conf + more if more else keyed.broker_conf)
    audit = product.audit(keyed.root, "5.4.0", conf)
    assert audit.broker is None and any("names the LMQ offset 'x'" in sentence for sentence in audit.incomplete)
    assert product.audit(keyed.root, "5.4.0", conf.replace("enableLmq=true", "enableLmq=false")).broker is not None
