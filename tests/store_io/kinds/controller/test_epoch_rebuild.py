"""The epochs of a repaired replica: those that fit the new log, in a file that every start reads."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from store_io.broker.epochs import Epoch
from store_io.kinds.controller.epoch_rebuild import rising
from tests.support import damage
from tests.support.answers import product
from tests.support.answers.repaired import content, plan_of, repaired
from tests.support.stores.builders import Store
from tests.support.stores.replica import epoch_text, replica


def mended(store: Store, target: Path, policy: str = "broker") -> tuple[bytes | None, list[str]]:
    """(the new store's epoch file, the actions on it). The new store starts, and its audit finds nothing."""
    outcome = repaired(store.root, target, plan_of(store.root, store.release, store.broker_conf), policy)
    assert outcome.exit_code == 0, outcome.report.problems
    audit = product.audit(target, store.release, store.broker_conf)
    assert audit.broker is not None and audit.broker["starts"] and not audit.above_note
    assert audit.broker["lost"]["messages"] == 0 and audit.broker["controller"]["election"]["recorded"]
    file = target / "epochFileCheckpoint"
    steps = [step.action for step in outcome.report.steps if step.file.startswith("epochFile")]
    return file.read_bytes() if file.exists() else None, steps


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_an_empty_file_is_written_from_its_bak(policy: str, tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    (store.root / "epochFileCheckpoint.bak").write_bytes(epoch_text((1, 0)))
    (store.root / "epochFileCheckpoint").write_bytes(b"")
    before = content(store.root)
    assert mended(store, tmp_path / "new", policy) == (epoch_text((1, 0)), ["remove", "write_epochs"])
    assert content(store.root) == before


def test_an_empty_file_without_a_bak_goes(tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    (store.root / "epochFileCheckpoint").write_bytes(b"")
    assert mended(store, tmp_path / "new") == (None, ["remove"])


def test_epochs_that_do_not_fit_the_log_are_left_out(tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    sound = store.records[9].at
    (store.root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (2, sound), (3, sound + 5), (4, 1 << 40)))
    assert mended(store, tmp_path / "new") == (epoch_text((1, 0), (2, sound)), ["write_epochs"])


@pytest.mark.parametrize("epoch", [2, 3])
def test_an_epoch_stays_although_another_one_names_its_start_or_number(epoch: int, tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    start = store.records[9].at
    (store.root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (2, start), (epoch, start)))
    assert mended(store, tmp_path / "new") == (epoch_text((1, 0), (2, start)), ["write_epochs"])


def test_epochs_beyond_a_cut_go_with_it(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", "5.1.4", clean=False)
    cut = store.records[30]
    (store.root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (2, store.records[35].at)))
    damage.flip_in(store, cut, "body")
    data, _ = mended(store, tmp_path / "new")
    assert data == epoch_text((1, 0))
    (confirmed,) = struct.unpack_from(">q", (tmp_path / "new" / "checkpoint").read_bytes(), 32)
    assert confirmed == cut.at
    assert (tmp_path / "new" / "brokerIdentity").read_bytes() == b"DefaultCluster#broker-a#1"


def test_only_rising_epochs_are_kept() -> None:
    assert rising([Epoch(1, 0), Epoch(2, 0), Epoch(3, 9), Epoch(4, 5)]) == [Epoch(1, 0), Epoch(3, 9)]
    assert rising([]) == []
