"""Repaired random stores, whatever was damaged: consistent by the audit, untouched source, and nothing left to repair."""

from __future__ import annotations

import random
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreError
from store_io.source.byte_source import StoreLocation
from tests.support import damage, random_stores
from tests.support.builders import Message, Sizes, StoreBuilder, encode
from tests.support.random_stores import RandomStore
from tests.support.repaired import Served, content, plan_of, previewed, repaired
from tests.support.repaired import numbers as numbers_of

SEEDS = range(5000, 5030)


@pytest.mark.parametrize("policy", ["broker", "salvage"])
@pytest.mark.parametrize("seed", SEEDS)
def test_any_damage(seed: int, policy: str, tmp_path: Path) -> None:
    made: RandomStore = random_stores.random_store(tmp_path / "store", random.Random(seed))
    root, conf = made.store.root, made.broker_conf
    before = content(root)
    if not has_segment(root):
        assert_nothing_to_repair_from(root, tmp_path / "new", made, policy)
        return
    outcome = repaired(root, tmp_path / "new", plan_of(root, made.release, conf), policy)
    assert content(root) == before
    assert outcome.exit_code == 0, (made.describe(), outcome.report["problems"])
    if not has_segment(tmp_path / "new"):  # no valid message, or the release cuts them all
        assert_nothing_to_repair_from(tmp_path / "new", tmp_path / "again", made, policy)
        return
    again = repaired(tmp_path / "new", tmp_path / "again", plan_of(tmp_path / "new", made.release, conf), policy)
    assert again.exit_code == 0, made.describe()
    assert content(tmp_path / "again") == content(tmp_path / "new"), made.describe()


def has_segment(root: Path) -> bool:
    return any(path.name.isdigit() and path.stat().st_size for path in (root / "commitlog").glob("*"))


def assert_nothing_to_repair_from(root: Path, target: Path, made: RandomStore, policy: str) -> None:
    with pytest.raises(StoreError, match="nothing to repair from"):
        repaired(root, target, plan_of(root, made.release, made.broker_conf), policy)
    assert not target.exists(), made.describe()


SIZES = Sizes(segment=4096)


def small_store(folder: Path) -> tuple[Path, str]:
    """Three segments and a bit of one queue's messages of 200 bytes."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        builder.put(Message("TopicA", 0, bytes([number]) * 60, tags="a", uniq=f"{number:032X}"))
    store = builder.write(folder / "store")
    return store.root, store.broker_conf


def lost(root: Path, conf: str, target: Path, policy: str = "salvage", donor: Path | None = None) -> tuple[set[int], Served]:
    """(places of the messages that the repaired queue leads to, what it serves)."""
    more = {"donor": StoreLocation(str(donor))} if donor is not None else {}
    outcome = repaired(root, target, plan_of(root, "5.3.3", conf), policy, **more)
    assert outcome.exit_code == 0, outcome.report["problems"]
    served = Served(target, SIZES.segment)
    return {phy for _, phy, _ in served.messages.values()}, served


def test_a_missing_segment_is_bridged_and_nothing_moves(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    whole, _ = lost(root, conf, tmp_path / "clean")
    (root / "commitlog" / f"{4096:020d}").unlink()
    found, served = lost(root, conf, tmp_path / "new")
    assert found == {place for place in whole if not 4096 <= place < 8192}
    bridge = next(r for r in served.records() if r.at == 4096)
    assert (bridge.topic, bridge.transaction, bridge.flag) == ("STORE_AUDIT_BRIDGE", 0xC, 0x52475031)


def test_a_donor_gives_what_is_lost_and_a_stranger_nothing(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path / "one")
    whole, _ = lost(root, conf, tmp_path / "clean")
    donor, _ = small_store(tmp_path / "two")
    stranger = tmp_path / "three" / "store"
    other = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        other.put(Message("TopicA", 0, bytes([number + 100]) * 60, tags="a", uniq=f"{number + 7:032X}"))
    other.write(stranger)
    segment = root / "commitlog" / f"{4096:020d}"
    good = segment.read_bytes()
    damage.zero_range(segment, 700, 1500)
    found, _ = lost(root, conf, tmp_path / "alone")
    assert found < whole
    with pytest.raises(StoreError, match=r"no copy of this log: of [0-9]+ messages compared none is the same") as refused:
        lost(root, conf, tmp_path / "foreign", donor=stranger)
    said = str(refused.value)
    assert said.count("a message of TopicA, queue 0, offset 0, ") == 2 and str(stranger) in said
    assert len(set(re.findall("body CRC 0x[0-9a-f]{8}", said))) == 2
    for policy in ("broker", "salvage"):
        assert lost(root, conf, tmp_path / policy, policy, donor)[0] == whole
        assert (tmp_path / policy / "commitlog" / segment.name).read_bytes() == good


@pytest.mark.parametrize("how", ["gone", "zero"])
def test_a_whole_segment_comes_from_a_copy_of_the_same_group_alone(how: str, tmp_path: Path) -> None:
    root, conf = small_store(tmp_path / "one")
    whole, _ = lost(root, conf, tmp_path / "clean")
    donor, _ = small_store(tmp_path / "two")
    other = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        other.put(Message("TopicB", 0, bytes([number + 100]) * 60, tags="a", uniq=f"{number + 7:032X}"))
    other.write(tmp_path / "three" / "store")
    segment = root / "commitlog" / f"{4096:020d}"
    good = segment.read_bytes()
    segment.unlink() if how == "gone" else damage.zero_range(segment, 0, 4096)
    with pytest.raises(StoreError, match=r"the copy has a message of TopicA.* the donor a message of TopicB"):
        lost(root, conf, tmp_path / "foreign", donor=tmp_path / "three" / "store")
    assert lost(root, conf, tmp_path / "healed", donor=donor)[0] == whole
    assert (tmp_path / "healed" / "commitlog" / segment.name).read_bytes() == good


def test_a_copy_that_parted_inside_of_the_segment_gives_nothing(tmp_path: Path) -> None:
    stores = []
    for name, first_other in (("one", 60), ("two", 23)):
        builder = StoreBuilder("5.3.3", SIZES)
        for number in range(60):
            body = bytes([number if number < first_other else number + 100]) * 60
            builder.put(Message("TopicA", 0, body, tags="a", uniq=f"{number:032X}"))
        stores.append(builder.write(tmp_path / name / "store"))
    root, conf = stores[0].root, stores[0].broker_conf
    damage.zero_range(root / "commitlog" / f"{4096:020d}", 2000, 2400)
    alone = lost(root, conf, tmp_path / "alone")[0]
    assert lost(root, conf, tmp_path / "parted", donor=stores[1].root)[0] == alone
    told = donor_told(root, conf, tmp_path / "told", stores[1].root)
    assert told["same"] and not told["taken"] and told["sentence"] == "nothing was taken"
    assert "other bytes beside it, at physical offsets" in told["not_taken"][0]["reason"]


def donor_told(root: Path, conf: str, target: Path, donor: Path) -> dict[str, Any]:
    plan, more = plan_of(root, "5.3.3", conf), {"donor": StoreLocation(str(donor))}
    dry = previewed(root, target, plan, "salvage", **more)
    outcome = repaired(root, target, plan, "salvage", **more)
    assert outcome.exit_code == 0 and numbers_of(dry) == outcome.report
    told: dict[str, Any] = outcome.report["donor"]
    return told


def test_what_a_donor_gave_is_told_and_why_the_rest_was_not_taken(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path / "one")
    donor, _ = small_store(tmp_path / "two")
    told = donor_told(root, conf, tmp_path / "sound", donor)
    assert (told["taken"], told["not_taken"]) == ([], [])
    assert told["sentence"] == "nothing was taken: up to its last message no range of the copy is damaged or missing"
    damage.zero_range(root / "commitlog" / f"{4096:020d}", 700, 1500)
    damage.zero_range(root / "commitlog" / f"{8192:020d}", 700, 1500)
    damage.zero_range(donor / "commitlog" / f"{8192:020d}", 400, 2500)
    told = donor_told(root, conf, tmp_path / "half", donor)
    assert [row["file"][-5:] for row in told["taken"]] == ["04096"] and told["taken_bytes"] > 800
    assert [(row["file"][-5:], row["reason"]) for row in told["not_taken"]] == [
        ("08192", "the copies have other bytes beside it, at physical offsets 8298 to 8810"),
    ]
    damage.zero_range(root / "commitlog" / f"{8192:020d}", 0, 3000)
    assert donor_told(root, conf, tmp_path / "both", donor)["not_taken"][0]["reason"] == "the donor has no valid message there"
    (donor / "commitlog" / f"{8192:020d}").unlink()
    told = donor_told(root, conf, tmp_path / "less", donor)
    assert [row["reason"] for row in told["not_taken"]] == ["the donor has no such segment"]


def test_a_donor_of_other_offsets_is_refused(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path / "one")
    donor, _ = small_store(tmp_path / "two")
    for segment in sorted((donor / "commitlog").iterdir()):
        segment.rename(segment.with_name(f"{int(segment.name) + (1 << 20):020d}"))
    plan = plan_of(root, "5.3.3", conf)
    for run in (previewed, repaired):
        with pytest.raises(StoreError, match=r"none of its segments .* hold 0 to 16384; the donor's hold 1048576 to 1064960"):
            run(root, tmp_path / "new", plan, donor=StoreLocation(str(donor)))


@pytest.mark.parametrize(("jump", "kept"), [(40, 40), (10**12, 0), (2**61, 0)])
@pytest.mark.parametrize("first", [0, 30])
def test_a_jump_that_no_disk_could_hold_is_not_filled(jump: int, kept: int, first: int, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        place = number if number < first else number + jump
        builder.put(Message("TopicA", 0, bytes([number]) * 60, tags="a", uniq=f"{number:032X}", queue_offset=place))
    store = builder.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue", ignore_errors=True)
    _, served = lost(store.root, store.broker_conf, tmp_path / "new")
    own = {place for _, _, place in served.messages}
    if first or jump == 40:
        assert own >= set(range(first)) | set(range(first + kept, 60 + kept)) and max(own) == 59 + kept
    assert len({phy for _, phy, _ in served.messages.values()}) == 60


def test_bytes_behind_the_cut_never_rise_again(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    segment = root / "commitlog" / f"{8192:020d}"
    damage.invert_byte(segment, 300)
    found, _ = lost(root, conf, tmp_path / "new", "broker")
    end = max(found)
    data = b"".join(p.read_bytes() for p in sorted((tmp_path / "new" / "commitlog").iterdir()))
    size = int.from_bytes(data[end : end + 4], "big")
    assert len(data) > end + size and not data[end + size :].strip(b"\0")


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


@pytest.mark.parametrize(("base", "count"), [(-5, 3), (-(2**63), 3), (7, 0), (7, -3)])
@pytest.mark.parametrize("place", [0, 20, 40])
@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_a_batch_that_no_entry_can_lead_to(base: int, count: int, place: int, policy: str, tmp_path: Path) -> None:
    """With a base below 0, or without messages: a broker's reading of the queue ends at its entry, so it gets none."""
    builder = StoreBuilder("5.3.3", SIZES, batch_topics={"Batch"})
    records = []
    for number in range(41):
        numbers = (("INNER_NUM", str(count)), ("INNER_BASE", str(base))) if number == place else ()
        name, inner = ("Batch", 0 if numbers else 3) if number % 2 == 0 else ("TopicA", 0)
        records.append(builder.put(Message(name, 0, b"x" * 40, uniq=f"{number:032X}", properties=numbers, inner_count=inner)))
    store, odd = builder.write(tmp_path / "store"), records[place]
    plan = plan_of(store.root, "5.3.3", store.broker_conf)
    dry = previewed(store.root, tmp_path / "new", plan, policy)
    outcome = repaired(store.root, tmp_path / "new", plan, policy)
    assert outcome.exit_code == 0, outcome.report["problems"]
    assert numbers_of(dry) == outcome.report
    assert [row["phy_offset"] for row in outcome.report["unserved"]] in ([odd.at], [])
    led_to = []
    for file in sorted((tmp_path / "new" / "batchconsumequeue" / "Batch" / "0").glob("*")):
        data = file.read_bytes()
        led_to += [struct.unpack_from(">q", data, at)[0] for at in range(0, len(data), 46) if any(data[at : at + 46])]
    batches = [r.at for r in Served(tmp_path / "new", SIZES.segment).records() if r.topic == "Batch"]
    assert led_to == [at for at in batches if at != odd.at] and odd.at in batches
