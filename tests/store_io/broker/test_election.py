"""From the fenced broker to the master: what is dispatched, what is cut, which epochs stay (controller.md 3, 4)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store_io.answer.headline import verdict_text
from tests.support import damage
from tests.support.answers import product
from tests.support.stores.builders import Store
from tests.support.stores.replica import epoch_text, replica, with_a_light_queue


def broker_of(store: Store, release: str | None = None) -> dict[str, Any]:
    audit = product.audit(store.root, release or store.release, store.broker_conf)
    assert audit.broker is not None, audit.incomplete
    return audit.broker


def entries(state: dict[str, Any]) -> int:
    return sum(queue["max_offset"] for queue in state["queues"])


@pytest.mark.parametrize("release", ["5.1.4", "5.3.1", "5.3.3", "5.5.0"])
def test_a_fenced_broker_waits_and_its_election_dispatches_all(release: str, tmp_path: Path) -> None:
    store = replica(tmp_path / "store", release, undispatched=10, clean=False)
    broker = broker_of(store)
    assert entries(broker["after_load"]) == entries(broker["after_dispatch"]) == 30
    assert entries(broker["after_election"]) == 40 and broker["lost"]["messages"] == 0
    end = store.records[-1].at + store.records[-1].size
    assert broker["controller"]["election"] == {"epoch": 3, "start": end, "recorded": True, "removed": [], "cut_at": None}


def test_an_unclean_exit_dispatches_up_to_confirm_offset(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", "5.1.4", undispatched=10, clean=False)
    damage.set_checkpoint(store, confirm=store.records[34].at + 1)
    broker = broker_of(store)
    assert entries(broker["after_dispatch"]) == 34 and entries(broker["after_election"]) == 40
    assert broker["controller"]["confirm_offset"] == store.records[34].at


def test_before_5_1_1_there_is_no_confirm_offset(tmp_path: Path) -> None:
    broker = broker_of(replica(tmp_path / "store", "5.1.0", undispatched=10, clean=False))
    assert entries(broker["after_load"]) == entries(broker["after_election"]) == 40
    assert broker["controller"]["confirm_offset"] == -1


def test_outside_of_controller_mode_nothing_of_it_is_said(tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    for release, conf in (("5.3.3", store.broker_conf.replace("true", "false")), ("4.9.8", store.broker_conf)):
        broker = product.audit(store.root, release, conf).broker
        assert broker is not None and broker["after_election"] is broker["controller"] is None


def test_an_election_cuts_where_dispatch_cannot_read_on(tmp_path: Path) -> None:
    """After a clean exit recovery does not read the first segment; an election of a broker that confirmed nothing does."""
    store = replica(tmp_path / "store", "5.1.4", messages=60)
    victim = store.records[5]
    damage.set_field(store, victim, "magic", lambda magic: magic ^ 1)
    broker = broker_of(store)
    assert broker["truncate_at"] == store.records[-1].at + store.records[-1].size
    election = broker["controller"]["election"]
    assert election["cut_at"] == election["start"] == victim.at and election["removed"] == [2]
    assert broker["after_election"]["commitlog"] == [{"file": f"{0:020d}", "wrote": victim.at}]
    assert entries(broker["after_election"]) == 5
    assert broker["lost"]["messages"] == 54
    audit = product.audit(store.root, "5.1.4", store.broker_conf)
    (found,) = [f for f in audit.findings if f.code == "broker_drops_messages"]
    assert (found.file, found.start, found.count) == (f"commitlog/{0:020d}", victim.at, 54)
    assert "election" in found.message and "election" in verdict_text(audit.outcome)


def test_a_body_that_fails_its_checksum_is_dispatched_all_the_same(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", "5.1.4", messages=60)
    damage.flip_in(store, store.records[5], "body")
    broker = broker_of(store)
    assert broker["controller"]["election"]["cut_at"] is None and entries(broker["after_election"]) == 60


def test_an_epoch_beyond_the_end_goes_where_dispatch_was_behind(tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    end = store.records[-1].at + store.records[-1].size
    (store.root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (2, end + 1)))
    election = broker_of(store)["controller"]["election"]
    assert election["removed"] == [2] and election["recorded"] and election["epoch"] == 3
    damage.set_checkpoint(store, confirm=end)
    election = broker_of(store)["controller"]["election"]
    assert election["removed"] == [] and not election["recorded"]


def test_an_empty_epoch_file_stops_the_start(tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    (store.root / "epochFileCheckpoint").write_bytes(b"")
    broker = broker_of(store)
    assert not broker["starts"] and broker["refusal"].startswith("epochFileCheckpoint: ") and broker["controller"] is None
    assert broker_of(store, "4.9.8")["starts"]


@pytest.mark.parametrize(
    ("broker_id", "field", "later"),
    [
        (0, "magic", lambda at, segment: at // segment > 0),  # a master gives up the rest of the segment, and reads on
        (1, "magic", lambda at, segment: False),  # any other broker stays there until the log is cut
        # Sizes that do not fit: the messages behind are read on, and the segment's end leads to the one after the next.
        (0, "size", lambda at, segment: at // segment != 1),
    ],
)
def test_what_lies_behind_a_cut_is_indexed_before(
    broker_id: int, field: str, later: Callable[[int, int], bool], tmp_path: Path
) -> None:
    """The cut waits for the dispatching thread. Queue entries go with the log, index entries do not."""
    store = replica(tmp_path / "store", "5.1.4", messages=60)
    shutil.rmtree(store.root / "index")
    segment, victim = store.sizes.segment, store.records[5]
    damage.set_field(store, victim, field, lambda value: value ^ 1 if field == "magic" else value + segment - 500)
    audit = product.audit(store.root, "5.1.4", f"{store.broker_conf}brokerId={broker_id}\n")
    assert audit.broker is not None and audit.broker["controller"]["election"]["cut_at"] == victim.at
    state = audit.broker["after_election"]
    kept = [r for r in store.records if r.at < victim.at or r.at > victim.at and later(r.at, segment)]
    assert sum(file["index_count"] - 1 for file in state["index"]) == 2 * len(kept)
    assert state["index"][-1]["end_phy_offset"] == kept[-1].at and entries(state) == 5


def test_a_gap_in_the_log_ends_it_at_an_election(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", "5.1.4", messages=90)
    gap = store.sizes.segment
    damage.remove(store.root / "commitlog" / f"{gap:020d}")
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.broker is not None and audit.broker["controller"]["election"]["cut_at"] == gap
    (found,) = [f for f in audit.findings if f.code == "broker_drops_messages"]
    assert (found.file, found.start) == (f"commitlog/{gap:020d}", None)


@pytest.mark.parametrize(
    ("more", "cuts"),
    [
        ("", True),
        ("recheckReputOffsetFromCq=true\n", False),  # it begins where the queues end, which is the log's end
        ("readUnCommitted=true\n", False),  # the dispatching thread has passed the record by then
        ("readUnCommitted=true\nbrokerId=1\n", True),  # it has not
    ],
)
def test_an_election_looks_at_what_start_has_not_dispatched(more: str, cuts: bool, tmp_path: Path) -> None:
    store = replica(tmp_path / "store", "5.3.1", messages=60)
    victim = store.records[5]
    damage.flip_in(store, victim, "propsLength", 0, 6)  # over another magic load() throws
    audit = product.audit(store.root, store.release, store.broker_conf + more)
    assert audit.broker is not None, audit.incomplete
    assert audit.broker["controller"]["election"]["cut_at"] == (victim.at if cuts else None)
    assert entries(audit.broker["after_election"]) == (5 if cuts else 60)


def test_what_is_not_confirmed_is_dispatched_where_the_settings_say_so(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", undispatched=10, clean=False)
    for more, fenced in (("", 30), ("recheckReputOffsetFromCq=true\n", 30), ("readUnCommitted=true\n", 40)):
        audit = product.audit(store.root, store.release, store.broker_conf + more)
        assert audit.broker is not None and entries(audit.broker["after_dispatch"]) == fenced
        assert entries(audit.broker["after_election"]) == 40


def test_a_start_that_looks_at_the_queues_waits_for_what_is_confirmed(tmp_path: Path) -> None:
    """Nobody asks the controller then: no election, and no new epoch."""
    store = replica(tmp_path / "store")
    damage.set_checkpoint(store, confirm=store.records[20].at)
    shutil.rmtree(store.root / "commitlog")
    audit = product.audit(store.root, store.release, store.broker_conf + "recheckReputOffsetFromCq=true\n")
    assert audit.broker is not None and "broker_hangs" in {finding.code for finding in audit.findings}
    assert audit.broker["controller"]["election"] is audit.broker["after_election"] is None
    (found,) = [finding for finding in audit.findings if finding.code == "broker_hangs"]
    assert found.message == "a start waits here and never ends" and "election" not in verdict_text(audit.outcome)


@pytest.mark.parametrize("more", ["", "readUnCommitted=true\n"])
def test_an_election_waits_for_a_message_that_no_thread_can_dispatch(more: str, tmp_path: Path) -> None:
    """The log is not cut there, and the new epoch is written before. Releases: tests/broker_truth/test_controlled."""
    store = with_a_light_queue(tmp_path / "store", "5.3.3")
    audit = product.audit(store.root, store.release, store.broker_conf + more)
    assert audit.broker is not None and audit.broker["starts"]
    (found,) = [finding for finding in audit.findings if finding.code == "broker_hangs"]
    assert found.phy_offset == store.records[25].at and "the election waits here" in found.message
    assert "election as master, alone in its syncStateSet, never ends" in verdict_text(audit.outcome)
    end = store.records[-1].at + store.records[-1].size
    assert audit.broker["controller"]["election"] == {"epoch": 2, "start": end, "recorded": True, "removed": [], "cut_at": None}
    ends = {queue["topic"]: queue["max_offset"] for queue in audit.broker["after_election"]["queues"]}
    assert ends == {"Topic": 26, "light": 25}


def test_without_a_log_an_election_cuts_none(tmp_path: Path) -> None:
    store = replica(tmp_path / "store", "5.1.4", undispatched=10)
    damage.set_checkpoint(store, confirm=-2)
    shutil.rmtree(store.root / "commitlog")
    assert broker_of(store)["controller"]["election"] == {
        "epoch": 3, "start": 0, "recorded": True, "removed": [1, 2], "cut_at": None,
    }  # fmt: skip
