"""A database of queues in RocksDB, made anew by a repair."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from tests.support.answers import product
from tests.support.answers.repaired import content, numbers, plan_of, plan_with_steps, previewed, repaired, written
from tests.support.damage import flip_in
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.rocksdb_stores import (
    SIZES,
    KeyedStore,
    entry_key,
    entry_value,
    keyed_batches,
    keyed_store,
    offset_key,
    read_database,
)  # fmt: skip
from tests.support.texts.json_schemas import faults

pytest.importorskip("rocksdict")
DOUBLE = "rocksdbCQDoubleWriteEnable=true\n"


def rows(root: Path, folder: str = "consumequeue") -> dict[bytes, bytes]:
    return read_database(root / folder)["default"]


def ends(root: Path, which: bytes, folder: str = "consumequeue") -> dict[bytes, tuple[int, ...]]:
    """Keys of these ends -> physical offset and queue offset, of the mark its physical offset alone."""
    found = read_database(root / folder)["offset"]
    return {key: struct.unpack(f">{len(value) // 8}q", value) for key, value in found.items() if key[-8:-5] == which}


def expected_rows(store: KeyedStore, gone: set[int]) -> dict[bytes, bytes]:
    """Entries of all messages but those at these physical offsets."""
    return {entry_key(*key): entry_value(*value) for key, value in store.entries.items() if value[0] not in gone}


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_entries_of_the_messages_that_stay(policy: str, tmp_path: Path) -> None:
    """Two bytes of a message of the third segment are wrong: its number is answered under salvage; broker cuts the log."""
    store = keyed_store(tmp_path / "store").write()
    bad = next(r for r in store.records if r.at > 2 * SIZES.segment and r.queue_offset > 1)
    for byte in (2, 5):  # more than a single change would heal
        flip_in(store.plain, bad, "body", byte)
    before, target = content(store.root), tmp_path / "new"
    planned = plan_with_steps if policy == "salvage" else lambda root, release, conf, _: plan_of(root, release, conf)
    plan = planned(store.root, "5.3.3", store.broker_conf, policy)
    outcome = repaired(store.root, target, plan, policy)
    assert outcome.exit_code == 0 and outcome.report.steps_from == ("plan" if policy == "salvage" else "copy")
    assert faults("repair", json.dumps(written(outcome.report))) == []
    assert content(store.root) == before
    found, made = rows(target), outcome.report.database
    gone = {r.at for r in store.records if r.at >= bad.at} if policy == "broker" else {bad.at}
    answered = {entry_key(bad.topic, bad.queue_id, bad.queue_offset)} if policy == "salvage" else set()
    assert {key: value for key, value in found.items() if key not in answered} == expected_rows(store, gone)
    assert found.keys() >= answered and made is not None and made.entries == len(found)
    step = next(row for row in outcome.report.steps if row.action == "rebuild_database")
    assert step.sha256 == made.sha256 and step.kept == {"entries": len(found), "queues": 4}
    assert step.lost == ({"positions": 1} if policy == "salvage" else {})
    queues = {(r.topic, r.queue_id): (r.at, r.queue_offset) for r in store.records if r.at not in gone}
    mark = {offset_key("CHECKPOINT_TOPIC", 0, b"max"): (outcome.report.log_end,)}
    assert ends(target, b"max") == {offset_key(*key, b"max"): end for key, end in queues.items()} | mark
    assert {end[1] for end in ends(target, b"min").values()} == {0}
    audit = product.audit(target, "5.3.3", store.broker_conf)
    assert not audit.above_note and not audit.incomplete
    assert not [name for name in content(target) if name.endswith((".entries", "rocksdict-config.json", "LOG"))]


def test_inner_batches_have_one_entry_each_and_their_other_numbers_none(tmp_path: Path) -> None:
    store = keyed_batches(tmp_path / "store", [(0, 20), (20, 1), (21, 30), (51, 2)]).write()
    shutil.rmtree(store.root / "consumequeue")
    plan = plan_of(store.root, "5.4.0", store.broker_conf)
    dry = previewed(store.root, tmp_path / "new", plan, "salvage")
    outcome = repaired(store.root, tmp_path / "new", plan, "salvage")
    assert outcome.exit_code == 0 and numbers(dry) == outcome.report, outcome.report.problems
    assert rows(tmp_path / "new") == expected_rows(store, set()) and not outcome.report.answered
    assert ends(tmp_path / "new", b"max")[offset_key("Batch", 0, b"max")][1] == 51
    audit = product.audit(tmp_path / "new", "5.4.0", store.broker_conf)
    assert not audit.above_note  # not even that the search for the minimum passes over messages


def test_names_of_topics_are_keys_and_never_paths(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for topic in ("../../up", "a/b", "/tmp/root", "\u001b[31m"):
        builder.put(Message(topic, 0, b"x" * 30, tags="a"))
    store = builder.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue", ignore_errors=True)
    conf = store.broker_conf + "storeType=defaultRocksDB\n"
    before = content(tmp_path)
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.3.3", conf), "salvage")
    assert outcome.exit_code == 0, outcome.report.problems
    assert {key[5:-14] for key in rows(tmp_path / "new")} == {b"../../up", b"a/b", b"/tmp/root", b"\x1b[31m"}
    assert {name: digest for name, digest in content(tmp_path).items() if name.partition("/")[0] != "new"} == before


@pytest.mark.parametrize("damage", ["does not open", "wrong folder"])
def test_a_database_over_which_no_start_ends_goes(damage: str, tmp_path: Path) -> None:
    """Policy broker wants a start: what keeps the release from it goes, and what lies beside it stays."""
    store = keyed_store(tmp_path / "store", "5.5.0").write(
        "consumequeue" if damage == "does not open" else "consumequeue_rocksdb"
    )
    (store.root / "consumequeue" / "Topic0").mkdir(exist_ok=True)
    if damage == "does not open":
        next((store.root / "consumequeue").glob("MANIFEST-*")).write_bytes(b"nonsense")
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.5.0", store.broker_conf), "broker")
    assert outcome.exit_code == 0 and outcome.report.unblocked, outcome.report.problems
    assert rows(tmp_path / "new") == expected_rows(store, set())
    assert (tmp_path / "new" / "consumequeue" / "Topic0").is_dir()
    assert not list((tmp_path / "new").glob("consumequeue_rocksdb/*"))


@pytest.mark.parametrize("cut", [False, True])
def test_a_database_beside_queues_in_files_is_copied_or_left_out_where_the_log_changes(cut: bool, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    records = [builder.put(Message("Topic", 0, b"x" * 60, tags="a")) for _ in range(40)]
    store = builder.write(tmp_path / "store")
    database = keyed_store(tmp_path / "other").write()
    for file in (database.root / "consumequeue").iterdir():
        shutil.copy(file, store.root / "consumequeue" / file.name)
    if cut:
        flip_in(store, records[-1], "body")
    else:
        (store.root / "checkpoint").unlink()
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.3.3", store.broker_conf + DOUBLE), "salvage")
    assert outcome.exit_code == 0 and outcome.report.database is None, outcome.report.problems
    names = {file.name for file in (database.root / "consumequeue").iterdir()}
    left = {file.name for file in (tmp_path / "new" / "consumequeue").iterdir()}
    assert left == {"Topic"} | (set() if cut else names)


def test_an_added_segment_has_an_entry_that_leads_a_start_to_it(tmp_path: Path) -> None:
    """The release refuses messages that pass every check: salvage adds a segment, and the database gets its record."""
    store = keyed_store(tmp_path / "store", "5.4.0").write()
    conf = store.broker_conf + "forceVerifyPropCRC=true\n"
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.4.0", conf), "salvage")
    assert outcome.exit_code == 0 and outcome.report.bridges, outcome.report.problems
    bridge = outcome.report.bridges[-1].phy_offset
    own = expected_rows(store, set())
    (added,) = rows(tmp_path / "new").items() - own.items()
    assert added[0] == entry_key("STORE_AUDIT_BRIDGE", 0, 0) and struct.unpack(">q", added[1][:8]) == (bridge,)
    audit = product.audit(tmp_path / "new", "5.4.0", conf)
    assert audit.broker is not None and audit.broker["truncate_at"] == outcome.report.log_end and not audit.above_note
