"""What the log of a repaired store is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.layouts.commitlog_layout import BODY_POSITION
from schemas.layouts.store_names import BRIDGE_TOPIC
from store_io.repair.log import log_plan
from tests.support import damage
from tests.support.answers.repaired import Served, plan_of, repaired
from tests.support.stores.builders import Message, Sizes, StoreBuilder, encode
from tests.support.stores.small_repairs import lost, small_store


def test_a_missing_segment_is_bridged_and_nothing_moves(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    whole, _ = lost(root, conf, tmp_path / "clean")
    (root / "commitlog" / f"{4096:020d}").unlink()
    found, served = lost(root, conf, tmp_path / "new")
    assert found == {place for place in whole if not 4096 <= place < 8192}
    bridge = next(r for r in served.records() if r.at == 4096)
    assert (bridge.topic, bridge.transaction, bridge.flag) == ("STORE_AUDIT_BRIDGE", 0xC, 0x52475031)


def test_bytes_behind_the_cut_never_rise_again(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    segment = root / "commitlog" / f"{8192:020d}"
    damage.invert_byte(segment, 300)
    found, _ = lost(root, conf, tmp_path / "new", "broker")
    end = max(found)
    data = b"".join(p.read_bytes() for p in sorted((tmp_path / "new" / "commitlog").iterdir()))
    size = int.from_bytes(data[end : end + 4], "big")
    assert len(data) > end + size and not data[end + size :].strip(b"\0")


@pytest.mark.parametrize("body", [1, 4, 16, 17])
def test_a_bridge_without_room_for_its_whole_topic_is_no_message_of_that_topic(body: int, tmp_path: Path) -> None:
    topic = BRIDGE_TOPIC[: 1 + body]  # of the bridge in place of the damaged message; here a producer has chosen it, too
    builder = StoreBuilder("5.3.3", Sizes(segment=4096))
    kept, short = Message(topic, 0, b"x" * 40), Message("T", 0, b"x" * body, raw_properties=b"")
    damaged = [builder.put(message) for message in (kept, kept, kept, short, kept, kept)][3]
    store = builder.write(tmp_path / "store", clean=False)
    damage.invert_byte(sorted((store.root / "commitlog").iterdir())[0], damaged.at + BODY_POSITION)
    done = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.3.3", store.broker_conf), "salvage")
    assert (done.exit_code, done.report.problems, done.report.messages_after) == (0, (), 5)
    assert [record.topic for record in Served(tmp_path / "new", 4096).records()] == [topic] * 6


@pytest.mark.parametrize("byte", [2, 5, 9, 86])  # total size, magic, body CRC, body length
def test_a_message_inside_of_a_message_is_never_salvaged(byte: int, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=8192))
    for number in range(5):
        last = builder.put(Message("TopicA", 0, b"x" * 50, uniq=f"{number:032X}"))
    at, nested = builder.end + 88, b""
    for number in range(3):
        inner = encode(replace(last, phy_offset=at + len(nested), queue_offset=70 + number, topic="Nested"))
        nested += inner
    outer = builder.put(Message("TopicA", 0, nested, uniq="F" * 32))
    for number in range(5):
        builder.put(Message("TopicA", 0, b"x" * 50, uniq=f"{number + 50:032X}"))
    store = builder.write(tmp_path / "store")
    damage.invert_byte(sorted((store.root / "commitlog").iterdir())[0], outer.at + byte, 0x10)
    plan = plan_of(store.root, "5.3.3", store.broker_conf)
    assert repaired(store.root, tmp_path / "new", plan, "salvage").exit_code == 0
    topics = [record.topic for record in Served(tmp_path / "new", 8192).records()]
    assert topics == ["TopicA"] * 5 + ["STORE_AUDIT_BRIDGE"] + ["TopicA"] * 5


class Unread(list[tuple[int, int]]):
    """Places that may be asked for by their numbers, and not gone through."""

    def __iter__(self) -> Any:
        raise AssertionError("all are looked at")


def test_a_bridge_finds_the_message_before_it_in_few_steps() -> None:
    """A segment may have a hundred thousand gaps, and each asks."""
    places = [(100 * n, 100 * n + 60) for n in range(2000)]
    segment = SimpleNamespace(number=0, valid=Unread(places), summary=object())
    repair: Any = SimpleNamespace(whole=[segment], _last_time=lambda segment, place: place)
    found: Any
    for n in (0, 1, 999, 1999):
        for position in (100 * n + 60, 100 * n + 61, 100 * n + 100, 100 * n + 159):
            found = log_plan._LogRepair._time_near(repair, segment, position)  # type: ignore[arg-type]
            assert found == places[n]
