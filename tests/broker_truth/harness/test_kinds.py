"""The harness opens stores of other kinds: what was put comes back, after a clean stop and after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.kinds import CONTROLLER, CONTROLLER_RELEASES, DLEDGER, ROCKSDB, ROCKSDB_RELEASES, Seen, Session
from tests.broker_truth.harness.real_broker import RELEASES, Put

pytestmark = pytest.mark.broker

SIZES = {"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 1200, "maxHashSlotNum": 100, "maxIndexNum": 600}


def puts(first: int, count: int) -> list[Put]:
    return [Put(f"Topic{n % 2}", b"body %d" % n, n // 2 % 2, "tag", f"key{n}", f"U{n}") for n in range(first, first + count)]


def bodies(seen: Seen) -> list[bytes]:
    assert seen.served is not None
    return sorted(message.record.body for message in seen.served.messages)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("release", ROCKSDB_RELEASES)
def test_a_store_with_rocksdb_queues(release: str, kill: bool, tmp_path: Path) -> None:
    session = Session(release, tmp_path, SIZES | ROCKSDB, kill)
    assert {answer.status for answer in session.run(puts(0, 60)).answers} == {"PUT_OK"}
    assert (tmp_path / "consumequeue" / "CURRENT").exists()
    again = session.run(puts(60, 20))
    assert bodies(again) == sorted(put.body for put in puts(0, 80))
    assert [answer.queue_offset for answer in again.answers[:4]] == [15, 15, 15, 15]


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_dledger_store(release: str, kill: bool, tmp_path: Path) -> None:
    own_network.needed()
    session = Session(release, tmp_path, SIZES | DLEDGER, kill)
    assert {answer.status for answer in session.run_dledger(puts(0, 60)).answers} == {"PUT_OK"}
    assert (tmp_path / "dledger-n0" / "data").is_dir()
    again = session.run_dledger(puts(60, 20))
    assert bodies(again) == sorted(put.body for put in puts(0, 80))


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("release", CONTROLLER_RELEASES)
def test_a_store_in_controller_mode(release: str, kill: bool, tmp_path: Path) -> None:
    own_network.needed()
    session = Session(release, tmp_path, SIZES | CONTROLLER, kill)
    assert {answer.status for answer in session.run_controlled(1, puts(0, 60)).answers} == {"PUT_OK"}
    again = session.run_controlled(2, puts(60, 20))
    assert bodies(again) == sorted(put.body for put in puts(0, 80))
    assert (tmp_path / "epochFileCheckpoint").read_text().splitlines()[2:] == ["1-0", f"2-{again.answers[0].phy_offset}"]
