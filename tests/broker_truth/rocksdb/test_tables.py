"""Index and transactions in RocksDB: what the releases write there, and what a start puts and never puts, against the audit
(rocksdb.md 10)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.broker_truth.harness.damaged_copies import older, unclean, zero
from tests.broker_truth.harness.real_broker import Jvm, Put, conf_of
from tests.broker_truth.harness.table_stores import SETTINGS, half, write_lives
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores.rocksdb_stores import read_database

pytestmark = pytest.mark.broker


def started(jvm: Jvm, store: Path, more: Sequence[Put] = ()) -> None:
    """One life without anything else than this."""
    broker = jvm.broker(store, SETTINGS)
    broker.begin()
    broker.put(more)
    broker.catch_up()
    time.sleep(1)
    broker.shutdown()


@pytest.fixture(scope="module", params=["5.4.0", "5.5.0"])
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, folder): `stopped` after two lives, `killed` a copy from within the second, `older` the database of the first."""
    return request.param, write_lives(jvm_of(request.param), tmp_path_factory.mktemp("written"))


def audited(release: str, store: Path) -> Audited:
    audit = product.audit(store, release, conf_of(SETTINGS))
    assert not audit.incomplete and "rocksdbstore" not in audit.outcome.covered.not_judged
    return audit


def of_tables(audit: Audited) -> dict[tuple[str, str], int]:
    """(code, severity) -> how many."""
    found: dict[tuple[str, str], int] = {}
    for finding in audit.findings:
        if finding.file == "rocksdbstore":
            found[finding.code, finding.severity] = found.get((finding.code, finding.severity), 0) + finding.count
    return found


def test_after_a_clean_stop_every_entry_is_there(written: tuple[str, Path]) -> None:
    release, folder = written
    audit = audited(release, folder / "stopped")
    assert audit.above_note == [] and of_tables(audit) == {}
    database = read_database(folder / "stopped" / "rocksdbstore")
    assert len(database["trans"]) == 12 + 1 and len(database["default"]) > 600


def test_what_a_kill_leaves_out_a_start_puts(written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path) -> None:
    release, folder = written
    killed = shutil.copytree(folder / "killed", tmp_path / "killed")
    audit = audited(release, killed)
    assert audit.above_note == [] and of_tables(audit)["index_entry_missing", "note"] > 200
    assert of_tables(audit)["transaction_entry_missing", "note"] == 6
    started(jvm_of(release), killed)
    assert of_tables(audited(release, killed)) == {}


def test_an_older_database_stays_behind_where_the_audit_says_so(
    written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, folder = written
    shutil.copytree(folder / "older", tmp_path / "older")
    store = shutil.copytree(folder / "stopped", tmp_path / "store")
    older(store, "rocksdbstore")
    before = of_tables(audited(release, store))
    stays = release == "5.4.0"
    assert before["index_entry_missing", "rebuildable" if stays else "note"] > 200
    assert before["transaction_entry_missing", "note"] == 6
    started(jvm_of(release), store)
    after = of_tables(audited(release, store))
    assert {code for code, _ in after} == ({"index_entry_missing", "transaction_entry_missing"} if stays else set())


def test_a_cut_log_gets_no_entries_until_it_is_as_long_again(
    written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, folder = written
    store = shutil.copytree(folder / "stopped", tmp_path / "store")
    zero(store, 0.5)
    unclean(store)
    told = of_tables(audited(release, store))
    assert told["index_entry_beyond_end", "rebuildable"] == told["transaction_entry_wrong", "rebuildable"] == 1
    started(jvm_of(release), store, [Put("New", b"new", keys="new", uniq="NEW"), half(999)])
    database = read_database(store / "rocksdbstore")
    assert not any(b"@New@" in key for key in database["default"]) and not any(b"999" in key for key in database["trans"])
    after = product.audit(store, release, conf_of(SETTINGS))
    again = of_tables(after)
    assert again["index_entry_missing", "rebuildable"] >= 2 and again["transaction_entry_missing", "note"] >= 1
    assert "rocksdbstore" in after.outcome.covered.not_judged  # without timers nothing shows whether the broker gave it up
