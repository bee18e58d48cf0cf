"""What a repair takes from another copy of the log, and what it does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schemas.repair import DonorReport, LeftRange, LogRange
from store_io.base.errors import StoreError
from store_io.repair.log.donor import _sentence
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.answers.repaired import plan_of, previewed, repaired
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES, donor_told, lost, small_store


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
    assert told.same and not told.taken and told.sentence == "nothing was taken"
    assert "other bytes beside it, at physical offsets" in told.not_taken[0].reason


def test_what_a_donor_gave_is_told_and_why_the_rest_was_not_taken(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path / "one")
    donor, _ = small_store(tmp_path / "two")
    told = donor_told(root, conf, tmp_path / "sound", donor)
    assert (told.taken, told.not_taken) == ((), ())
    assert told.sentence == "nothing was taken: up to its last message no range of the copy is damaged or missing"
    damage.zero_range(root / "commitlog" / f"{4096:020d}", 700, 1500)
    damage.zero_range(root / "commitlog" / f"{8192:020d}", 700, 1500)
    damage.zero_range(donor / "commitlog" / f"{8192:020d}", 400, 2500)
    told = donor_told(root, conf, tmp_path / "half", donor)
    assert [part.file[-5:] for part in told.taken] == ["04096"] and told.taken_bytes > 800
    assert [(part.file[-5:], part.reason) for part in told.not_taken] == [
        ("08192", "the copies have other bytes beside it, at physical offsets 8298 to 8810")
    ]
    damage.zero_range(root / "commitlog" / f"{8192:020d}", 0, 3000)
    assert donor_told(root, conf, tmp_path / "both", donor).not_taken[0].reason == "the donor has no valid message there"
    (donor / "commitlog" / f"{8192:020d}").unlink()
    told = donor_told(root, conf, tmp_path / "less", donor)
    assert [part.reason for part in told.not_taken] == ["the donor has no such segment"]


@pytest.mark.parametrize("gone", [0, 1])
def test_a_donor_whose_log_continues_is_told_to_be_used_itself(gone: int, tmp_path: Path) -> None:
    """A copy without its last segments: a donor gives nothing after the copy's last message."""
    root, conf = small_store(tmp_path / "one")
    donor, _ = small_store(tmp_path / "two")
    segments = sorted((root / "commitlog").iterdir())
    for path in segments[len(segments) - gone :]:
        path.unlink()
    sentence = donor_told(root, conf, tmp_path / "new", donor).sentence
    assert sentence.startswith("nothing was taken") and sentence.endswith("use the donor's store instead") is bool(gone)


def test_a_donor_of_other_offsets_is_refused(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path / "one")
    donor, _ = small_store(tmp_path / "two")
    for segment in sorted((donor / "commitlog").iterdir()):
        segment.rename(segment.with_name(f"{int(segment.name) + (1 << 20):020d}"))
    plan = plan_of(root, "5.3.3", conf)
    for run in (previewed, repaired):
        with pytest.raises(StoreError, match=r"none of its segments .* hold 0 to 16384; the donor's hold 1048576 to 1064960"):
            run(root, tmp_path / "new", plan, donor=StoreLocation(str(donor)))


def test_what_was_taken_is_counted_in_whole_words() -> None:
    part, left = LogRange("commitlog/0", 0, 9, 0), LeftRange("commitlog/0", 9, 12, 9, "why")
    assert _sentence(DonorReport("/d", 1, 1, (part,), 130821)) == "130,821 bytes in 1 range were taken"
    assert (
        _sentence(DonorReport("/d", 1, 1, (part, part), 5, (left,)))
        == "5 bytes in 2 ranges were taken; of 1 damaged range not all could be"
    )
