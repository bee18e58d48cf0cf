"""What a start takes of a store, as places: equal in number to the plan. Real stores: tests/test_verdicts.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.base.errors import StoreError
from store_io.messages.lost.lost_places import lost_places
from tests.support.answers import product
from tests.support.answers.lost_messages import damaged_store, losses, planned, rows_of
from tests.support.damage import overwrite
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.timers import timer_store


def test_valid_messages_after_the_damage_are_listed_one_by_one(tmp_path: Path) -> None:
    root, conf, at = damaged_store(tmp_path / "store")
    done = product.audit(root, "5.3.3", conf)
    rows = rows_of(done, only_lost=True)
    assert [(row["phy_offset"], row["lost"]) for row in rows] == [(place, "cut") for place in at[12:]]
    assert planned(done) == (8, 0)
    assert [row["phy_offset"] for row in rows_of(done) if row["lost"] is None] == at[:11]


def test_messages_without_an_entry_are_listed_one_by_one(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message("T", queue_id=n % 2, body=b"body")) for n in range(20)]
    made = builder.write(tmp_path / "store")
    (path,) = (made.root / "consumequeue" / "T" / "1").iterdir()
    overwrite(path, 40, bytes(20))
    done = product.audit(made.root, "5.3.3", made.broker_conf)
    rows = rows_of(done, only_lost=True)
    assert [row["phy_offset"] for row in rows] == [r.at for r in records[5::2]]  # the queue ends before the zeros
    assert losses(done)["unreachable"] == planned(done)[0] == 8


def test_timer_messages_that_are_never_delivered(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", waiting=300)
    (made.root / "timerwheel").unlink()
    done = product.audit(made.root, "5.3.3", made.conf)
    found = losses(done)
    assert (sum(found.values()), found["undelivered"]) == planned(done)[1:] * 2 == (194, 194)
    places = lost_places(done.audit)
    assert places.undelivered == places.listed_timers == 194


def test_timers_that_are_too_many_to_be_held_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = timer_store(tmp_path / "store", waiting=300)
    (made.root / "timerwheel").unlink()
    monkeypatch.setattr("store_io.kinds.timers.timer_kind.MAX_TIMERS", 10)
    places = lost_places(product.audit(made.root, "5.3.3", made.conf).audit)
    assert (places.undelivered, places.listed_timers) == (194, 0)


def test_a_store_that_does_not_start_or_was_not_read_says_so(tmp_path: Path) -> None:
    root, conf, _ = damaged_store(tmp_path / "store")
    path = next((root / "commitlog").iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(StoreError, match="would not start on this copy, so a start loses nothing"):
        lost_places(product.audit(root, "5.3.3", conf).audit)
    path.write_bytes(whole)
    (root / "config").mkdir(exist_ok=True)
    (root / "consumequeue" / "T" / "0" / "00000000000000000000").unlink()
    (root / "consumequeue" / "T" / "0" / "00000000000000000000").symlink_to("/dev/null")
    with pytest.raises(StoreError, match="what a start would lose is not known"):
        lost_places(product.audit(root, "5.3.3", conf).audit)
