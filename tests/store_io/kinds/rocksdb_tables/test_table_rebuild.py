"""Index and transactions in rocksdbstore/, made anew by a repair."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from store_io.kinds.rocksdb_tables import table_rebuild_tasks
from tests.support import damage
from tests.support.answers.repaired import content, numbers, plan_of, previewed, repaired, written
from tests.support.stores import dledger_stores
from tests.support.stores.builders import Record
from tests.support.stores.rocksdb_stores import read_database, write_database
from tests.support.stores.rocksdb_tables import DONE, HALF, MARK, half_pair, index_pairs, table_store
from tests.support.texts.json_schemas import faults

pytest.importorskip("rocksdict")
TIME_MARK = b"lastStoreTimeStamp"
Pairs = dict[bytes, bytes]


def tables(root: Path) -> dict[str, Pairs]:
    return read_database(root / "rocksdbstore")


def expected(records: Iterable[Record], asked: Mapping[int, int] | None = None) -> dict[str, Pairs]:
    """Of a log with these messages. asked: physical offset -> how often that half message's producer was asked."""
    kept = sorted(records, key=lambda r: r.at)
    mark = {MARK: struct.pack(">q", kept[-1].at)}
    ended = {int(r.properties["TRANS_OFFSET"]) for r in kept if r.topic == DONE}
    index = {key: value for r in kept for key, value in index_pairs(r)}
    halves = dict(half_pair(r, (asked or {}).get(r.at, 0)) for r in kept if r.topic == HALF and r.at not in ended)
    time = {TIME_MARK: struct.pack(">q", max(r.store_time for r in kept))}
    return {"default": index | mark | time, "timer": {}, "trans": halves | mark}


def at_of(key: bytes) -> int:
    return int.from_bytes(key[:8], "big")


def test_a_frame_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many entries of a frame as there may be could take gigabytes: each holds its message's unique key."""
    written: list[bytes] = []
    writer = SimpleNamespace(require=lambda size, what: None)
    file = SimpleNamespace(write=lambda at, data: written.append(data))
    monkeypatch.setattr(table_rebuild_tasks, "FRAME_BYTES", 1000)
    sink = table_rebuild_tasks._Sink(cast(Any, SimpleNamespace(writer=writer)), cast(Any, file))
    for _ in range(10):
        sink._put(b"i", bytes(400), b"")
    sink.flush()
    assert len(written) == 4 and max(map(len, written)) < 1400


def test_all_three_tables(tmp_path: Path) -> None:
    """The index lacks entries. Of five half messages two are done, one was given up, of one the copy knows how often its producer
    was asked, of one it has a wrong size. Timers stay as they are."""
    made = table_store(tmp_path / "store")
    index = {key: made.index[key] for key in sorted(made.index)[4:]}
    given_up, known, wrong = sorted(made.halves)
    (size,) = struct.unpack(">i", made.halves[known][4:])
    halves = {known: struct.pack(">ii", 4, size), wrong: struct.pack(">ii", 7, size + 1), MARK: struct.pack(">q", made.half_mark)}
    timers = {b"sys_topic_scan_offset_checkpoint": bytes(8), b"timeline_checkpoint": struct.pack(">q", 1)}
    families = {"default": index.items(), "timer": timers.items(), "trans": halves.items()}
    write_database(made.root / "rocksdbstore", families)
    hour_later = max(r.store_time for r in made.records) + 3_600_000
    (made.root / "config").mkdir(exist_ok=True)
    (made.root / "config" / "timercheck").write_bytes(struct.pack(">4q", hour_later, 0, 0, 0).ljust(4096, b"\0"))
    before, target, plan = content(made.root), tmp_path / "new", plan_of(made.root, "5.4.0", made.conf)
    dry = previewed(made.root, target, plan, "salvage")
    outcome = repaired(made.root, target, plan, "salvage")
    assert outcome.exit_code == 0, outcome.report.problems
    assert numbers(dry) == outcome.report and content(made.root) == before
    assert faults("repair", json.dumps(written(outcome.report))) == []
    wanted, found = expected(made.records, {at_of(known): 4}), tables(target)
    del wanted["trans"][given_up]
    assert found == wanted | {"timer": timers}
    step = next(row for row in outcome.report.steps if row.action == "rebuild_tables")
    row = outcome.report.tables
    assert row is not None
    assert step.sha256 == row.sha256 and step.kept == {"entries": sum(map(len, found.values()))}
    assert [row.index, row.timers, row.transactions] == [len(found[name]) for name in ("default", "timer", "trans")]
    assert not [name for name in content(target) if ".entries" in name]


def test_a_cut_takes_entries_along_and_opens_transactions_again(tmp_path: Path) -> None:
    """The last message of the log that is left is the half message of a transaction that was done."""
    made = table_store(tmp_path / "store").write()
    half = sorted((r for r in made.records if r.topic == HALF), key=lambda r: r.at)[1]
    kept = sorted((r for r in made.records if r.at <= half.at), key=lambda r: r.at)
    path = made.root / "commitlog" / f"{0:020d}"
    end = half.at + half.size
    damage.overwrite(path, end, bytes(path.stat().st_size - end))
    outcome = repaired(made.root, tmp_path / "new", plan_of(made.root, "5.4.0", made.conf), "broker")
    assert outcome.exit_code == 0, outcome.report.problems
    found = tables(tmp_path / "new")
    assert found == expected(kept) and half_pair(half)[0] in found["trans"]


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_beside_a_dledger_log(policy: str, tmp_path: Path) -> None:
    store = dledger_stores.build(tmp_path / "store", "5.5.0")
    records = [entry.record for entry in store.entries]
    pairs = [pair for record in records[:20] for pair in index_pairs(record)]
    mark = [(MARK, struct.pack(">q", records[19].at))]
    write_database(store.root / "rocksdbstore", {"default": [*pairs, *mark], "timer": [], "trans": []})
    plan = plan_of(store.root, "5.5.0", store.broker_conf + "indexRocksDBEnable=true\n")
    outcome = repaired(store.root, tmp_path / "new", plan, policy)
    assert outcome.exit_code == 0, outcome.report.problems
    assert tables(tmp_path / "new")["default"] == expected(records)["default"]
