"""Lost delayed and timer messages whose delivered copy stays are not sent again. Each beside one that has to be sent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from store_io.messages.lost.lost_places import lost_places
from store_io.messages.lost.segment_loss import COPY_STAYS, PASSED, SPARED, TIMERS_HAVE_IT, UNSURE, Spared
from store_io.messages.lost.spared import with_spared
from tests.support.answers import product
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.timers import timer_store

DELAY = "SCHEDULE_TOPIC_XXXX"
REAL = (("REAL_TOPIC", "orders"), ("REAL_QID", "0"), ("DELAY", "3"))


def spared(root: Path, conf: str) -> Spared:
    audit = product.audit(root, "5.3.3", conf).audit
    return with_spared(audit, lost_places(audit)).spared


def delayed(root: Path, passed: int = 0) -> tuple[Path, str, list[int]]:
    """(root, broker.conf, places of the waiting messages): all lost their entries; of the first, third and fifth a copy stays."""
    builder = StoreBuilder("5.3.3")
    waiting = [
        builder.put(Message(DELAY, queue_id=2, body=b"body %d" % n, uniq=uniq, born_time=70 + n, properties=REAL))
        for n, uniq in enumerate(("A", "B", "C", "D", None, None))
    ]
    builder.put(Message("orders", body=b"body 0", uniq="A", born_time=70))
    builder.put(Message("other", body=b"body 1", uniq="B", born_time=71))  # of another topic: none of its copies
    builder.put(Message("orders", body=b"body 2", uniq="C", born_time=72))
    builder.put(Message("orders", body=b"body 3", uniq="D", born_time=99))  # of another time
    builder.put(Message("orders", body=b"body 4", born_time=74))
    builder.put(Message("other"))  # its entry stays: what is before it gets no new one
    offsets = {"delayOffset.json": json.dumps({"offsetTable": {"3": passed}})}
    made = builder.write(root, config=offsets)
    shutil.rmtree(made.root / "consumequeue" / DELAY)
    return made.root, made.broker_conf, [r.at for r in waiting]


def test_of_a_delayed_message_the_copy_that_stays_is_enough(tmp_path: Path) -> None:
    root, conf, at = delayed(tmp_path / "store")
    found = spared(root, conf)
    assert [found.why_not(DELAY, place) for place in at] == [SPARED[COPY_STAYS], None] * 2 + [SPARED[COPY_STAYS], None]
    assert found.why_not("orders", at[0]) is None


def test_a_copy_that_is_lost_itself_spares_nothing(tmp_path: Path) -> None:
    root, conf, at = delayed(tmp_path / "store")
    shutil.rmtree(root / "consumequeue" / "orders")
    found = spared(root, conf)
    assert [found.why_not(DELAY, place) for place in at] == [None] * 6


def test_without_a_unique_key_the_delay_offset_tells(tmp_path: Path) -> None:
    root, conf, at = delayed(tmp_path / "store", passed=6)
    found = spared(root, conf)
    assert [found.why_not(DELAY, place) for place in at[3:]] == [None, SPARED[PASSED], SPARED[PASSED]]


def test_where_they_are_too_many_all_further_ones_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, conf, at = delayed(tmp_path / "store")
    monkeypatch.setattr("store_io.messages.lost.spared.MAX_WAITING", 2)
    found = spared(root, conf)
    assert [found.why_not(DELAY, place) for place in at] == [SPARED[COPY_STAYS], None] + [UNSURE] * 4
    assert found.within(at[1], at[5]).why_not(DELAY, at[5]) == UNSURE


def test_a_message_that_the_timers_hold_is_delivered_by_them(tmp_path: Path) -> None:
    made = timer_store(tmp_path / "store", waiting=20)
    shutil.rmtree(made.root / "consumequeue" / "rmq_sys_wheel_timer")
    found = spared(made.root, made.conf)
    assert len(found.places) and set(np.unique(found.reasons).tolist()) <= {TIMERS_HAVE_IT, COPY_STAYS}
    assert TIMERS_HAVE_IT in found.reasons
