"""Queue offsets that begin again: what a start changes decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.finding_codes import Code
from schemas.rows import NOTE
from store_io.answer.headline import verdict_text
from tests.support import damage
from tests.support.answers import product
from tests.support.answers.lost_messages import losses
from tests.support.stores.builders import Message, Store, StoreBuilder
from tests.support.stores.made_again import BATCH, FILES, KINDS, ROCKSDB, made_again


def audited(store: Store) -> product.Audited:
    done = product.audit(store.root, store.release, store.broker_conf)
    assert done.broker is not None and done.incomplete == []
    return done


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("lives", [(30, 12), (9, 9), (30, 20, 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_was_deleted_and_made_again_lost_nothing(
    kind: str, lives: tuple[int, ...], clean: bool, tmp_path: Path
) -> None:
    store = made_again(tmp_path / "store", kind, lives, [len(lives) - 1], clean)
    done = audited(store)
    assert done.broker is not None and done.broker["lost"]["messages"] == 0 and not losses(done)
    if clean:
        assert done.above_note == [] and done.outcome.exit_code == 0
    (note,) = (f for f in done.findings if f.code == Code.QUEUE_BEGINS_AGAIN)
    fall = [r for r in store.records if r.topic == "A"][-lives[-1]]
    assert (note.severity, note.count, note.phy_offset) == (NOTE, sum(lives[:-1]), fall.at)
    assert f"{sum(lives[:-1])} earlier messages" in note.message and note.message in verdict_text(done.outcome)


@pytest.mark.parametrize("kind", KINDS)
def test_without_an_earlier_life_nothing_is_said(kind: str, tmp_path: Path) -> None:
    assert audited(made_again(tmp_path / "store", kind, [30], [0])).findings == []


def test_later_messages_that_a_start_leaves_without_an_entry_are_a_loss(tmp_path: Path) -> None:
    """A broker that forgot the end of its queue appends the first entry at the wrong number, and no other (recovery.md 7.2)."""
    done = audited(made_again(tmp_path / "store", FILES, [30, 12], [0]))
    assert done.outcome.exit_code == 20 and not any(f.code == Code.QUEUE_BEGINS_AGAIN for f in done.findings)
    assert done.broker is not None and done.broker["lost"]["messages"] >= 11


def test_where_later_entries_lie_over_earlier_ones_these_are_counted(tmp_path: Path) -> None:
    """A broker with queues in RocksDB that forgot where they end."""
    done = audited(made_again(tmp_path / "store", ROCKSDB, [12, 30], [0, 1]))
    (note,) = (f for f in done.findings if f.code == Code.QUEUE_BEGINS_AGAIN)
    assert note.count == 12 and done.outcome.exit_code == 0


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("lives", "first", "earlier"), [((30, 12), 0, 30), ((30, 1), 10, 20), ((30, 20, 5), 0, 50)])
def test_entries_beyond_the_end_that_a_later_life_set_are_in_no_queue(
    lives: tuple[int, ...], first: int, earlier: int, clean: bool, tmp_path: Path
) -> None:
    """A broker with queues in RocksDB that forgot where they end: no consumer gets past the end, and the next messages take over
    the entries after it."""
    done = audited(made_again(tmp_path / "store", ROCKSDB, lives, range(len(lives)), clean, first))
    (note,) = (f for f in done.findings if f.code == Code.QUEUE_BEGINS_AGAIN)
    assert note.count == earlier and done.outcome.exit_code == 0, done.findings
    assert done.broker is not None and done.broker["lost"]["messages"] == 0 == sum(losses(done).values())


@pytest.mark.parametrize("kind", KINDS)
def test_where_a_start_makes_the_queue_anew_each_message_without_an_entry_counts(kind: str, tmp_path: Path) -> None:
    store = made_again(tmp_path / "store", kind, [30, 12], [], clean=False)
    done = audited(store)
    assert not any(f.code == Code.QUEUE_BEGINS_AGAIN for f in done.findings)
    served = {FILES: 31, BATCH: 42, ROCKSDB: 12}[kind]  # the first one again is appended; all are; those before are overwritten
    assert done.broker is not None and done.broker["lost"]["messages"] == 42 - served == sum(losses(done).values())


@pytest.mark.parametrize("missing", [9, 10])
@pytest.mark.parametrize("bit", [0, 4])
def test_a_damaged_queue_offset_is_no_such_place(bit: int, missing: int, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message("A", body=b"some")) for _ in range(30)]
    store = builder.write(tmp_path / "store")
    damage.set_field(store, records[20], "queueOffset", lambda number: number ^ 1 << bit)
    damage.cq_zero_tail(store, "A", 0, missing)  # the last file holds ten
    done = audited(store)
    assert not any(f.code == Code.QUEUE_BEGINS_AGAIN for f in done.findings)


def test_messages_before_the_place_where_offsets_begin_again_keep_what_they_have(tmp_path: Path) -> None:
    """Offsets may begin again above 0: the entries before that stay, and those that are missing there are missing."""
    store = made_again(tmp_path / "store", FILES, [30, 12], [1], first=10)
    done = audited(store)
    assert done.broker is not None and done.broker["lost"]["messages"] == 10
    (note,) = (f for f in done.findings if f.code == Code.QUEUE_BEGINS_AGAIN)
    assert note.count == 20
