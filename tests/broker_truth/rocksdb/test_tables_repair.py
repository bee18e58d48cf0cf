"""Stores with index and transactions in RocksDB, damaged and repaired: the real release opens them, finds each message by its
keys there, has the transactions that are open, takes new ones, and a second start changes nothing (rocksdb.md 10)."""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.broker_truth.harness.damaged_copies import flip, older, remove_segments, unclean, zero
from tests.broker_truth.harness.real_broker import Jvm, Put, conf_of
from tests.broker_truth.harness.repairs import POLICIES, expected, repair, valid_records
from tests.broker_truth.harness.table_stores import SETTINGS, done, half, write_lives
from tests.broker_truth.rocksdb.test_combined_repair import assert_same
from tests.support.answers import product
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.damage import invert_byte, remove
from tests.support.stores.builders import Record
from tests.support.stores.rocksdb_stores import read_database
from tests.support.stores.rocksdb_tables import DONE, HALF, MARK, half_pair, index_pairs, table_store

pytestmark = pytest.mark.broker
FROM_TABLES = SETTINGS | {"indexFileReadEnable": "false"}
TABLES = "rocksdbstore"


def bit_of(pattern: str) -> Callable[[Path], None]:
    def change(store: Path) -> None:
        path = max((store / TABLES).glob(pattern), key=lambda p: p.stat().st_size)
        invert_byte(path, path.stat().st_size // 2, 1)

    return change


DAMAGES: Mapping[str, tuple[str, Callable[[Path], object]]] = {
    "killed": ("killed", lambda s: None),
    "stopped, unclean": ("stopped", unclean),
    "database gone": ("stopped", lambda s: remove(s / TABLES)),
    "database a file": ("stopped", lambda s: (remove(s / TABLES), (s / TABLES).write_bytes(b"x"))),
    "MANIFEST bit": ("stopped", bit_of("MANIFEST-*")),
    "CURRENT gone": ("stopped", lambda s: (s / TABLES / "CURRENT").unlink()),
    "table bit": ("stopped", bit_of("*.sst")),
    "older": ("stopped", lambda s: older(s, TABLES)),
    "older, log zeroed, unclean": ("stopped", lambda s: (older(s, TABLES), zero(s, 0.7, 20), unclean(s))),
    "log zeroed": ("stopped", lambda s: zero(s, 0.5)),
    "log zeroed, unclean": ("stopped", lambda s: (zero(s, 0.4), unclean(s))),
    "log torn, database gone": ("killed", lambda s: (zero(s, 0.8, 30), remove(s / TABLES))),
    "log bit": ("killed", lambda s: flip(s, 0.6)),
    "retention": ("stopped", lambda s: (remove_segments(s, slice(2)), bit_of("*.sst")(s))),
    "segment gone": ("stopped", lambda s: remove_segments(s, slice(2, 3))),
}


@pytest.fixture(scope="module", params=["5.4.0", "5.5.0"])
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, folder): `stopped` after two lives, `killed` a copy from within the second, `older` the database of the first."""
    return request.param, write_lives(jvm_of(request.param), tmp_path_factory.mktemp("written"))


def open_halves(records: list[Record]) -> dict[bytes, bytes]:
    ended = {int(r.properties["TRANS_OFFSET"]) for r in records if r.topic == DONE}
    return dict(half_pair(r) for r in records if r.topic == HALF and r.at not in ended)


@pytest.mark.parametrize("what", DAMAGES)
def test_the_tables_of_a_repaired_store_are_those_of_its_log(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, folder = written
    how, change = DAMAGES[what]
    policy = POLICIES[(list(DAMAGES).index(what) + (release == "5.5.0")) % 2]
    copy = shutil.copytree(folder / how, tmp_path / "copy")
    shutil.copytree(folder / "older", tmp_path / "older")
    change(copy)
    valid = valid_records(copy)
    repaired = repair(copy, release, conf_of(SETTINGS), policy, tmp_path / "new")
    assert repaired.root is not None, repaired.report.get("problems")
    new = repaired.root
    audit = product.audit(new, release, conf_of(SETTINGS))
    assert audit.above_note == [] and not audit.incomplete and TABLES not in audit.outcome.covered.not_judged
    limit = repaired.report["log_end"]
    kept = {at: pair for at, pair in valid.items() if at < limit}
    records = [record for record, _ in kept.values()]
    wanted = {pair[0]: pair[1] for record in records for pair in index_pairs(record)}
    before = read_database(new / TABLES)
    puts = repaired.report["tables"] is None  # what is missing is put by a start
    assert puts == ((release, what) == ("5.5.0", "older"))
    if not puts:
        mark = before["default"].pop(MARK)
        del before["default"][b"lastStoreTimeStamp"]
        assert before["default"] == wanted and before["timer"] == {}
        assert before["trans"] == open_halves(records) | {MARK: mark}
        (last,) = struct.unpack(">q", mark)
        assert max(kept) <= last < limit

    broker = jvm_of(release).broker(new, FROM_TABLES)
    broker.begin()
    assert broker.state()["maxPhyOffset"] == limit
    assert_same(broker.serve(), expected(kept))
    (ended,) = [r for r in records if r.topic == HALF and half_pair(r)[0] in before["trans"]][-1:]
    number = int(ended.properties["__transactionId__"][1:])
    answers = broker.put([Put("New", b"new", keys="fresh", uniq="NEW"), half(999), done(number, ended.at)])
    assert {answer.status for answer in answers} == {"PUT_OK"}
    broker.catch_up()
    time.sleep(1)  # threads of their own write the tables
    assert broker.query([("New", "fresh"), ("New", "NEW")]) == [{answers[0].phy_offset}] * 2
    broker.shutdown()
    after = read_database(new / TABLES)
    gained = {key for key in after["trans"] if key not in open_halves(records)} - {MARK}
    assert {key[8:] for key in gained} == {b"@pay@H%031d" % 999} and half_pair(ended)[0] not in after["trans"]
    assert len(after["trans"]) == len(open_halves(records)) + 1
    assert wanted.items() <= after["default"].items() and sum(b"@New@" in key for key in after["default"]) == 2

    again = jvm_of(release).broker(new, FROM_TABLES)
    again.begin()
    again.catch_up()
    time.sleep(0.5)
    again.shutdown()
    assert read_database(new / TABLES) == after
    assert product.audit(new, release, conf_of(SETTINGS)).above_note == []


def test_a_sound_database_is_copied_and_one_that_is_not_in_use_goes_with_another_log(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store").write()
    outcome = repaired(made.root, tmp_path / "whole", plan_of(made.root, "5.4.0", made.conf), "salvage")
    assert outcome.report.tables is None and content(tmp_path / "whole") == content(made.root)
    alone = made.plain.broker_conf + "indexRocksDBEnable=true\n"
    (made.root / "abort").touch()
    outcome = repaired(made.root, tmp_path / "index", plan_of(made.root, "5.4.0", alone), "salvage")
    assert outcome.exit_code == 0 and read_database(tmp_path / "index" / TABLES)["trans"] == {}
