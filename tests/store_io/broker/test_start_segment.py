"""In which segment recovery begins, release by release (recovery.md 4, 5)."""

from __future__ import annotations

import pytest

from schemas.layouts import commitlog_layout as layout
from schemas.rows import Checkpoint, FirstRecord, MappedFile
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.releases import Setting, broker_rules
from store_io.broker.start_segment import StartSearch

SIZE, COUNT = 100, 5


def first(number: int, **more: object) -> FirstRecord:
    """Of a healthy segment: stored at its own offset, at a thousand ms times its number, from 1,000,000 on."""
    fields = {"magic": layout.MAGIC_V1, "store_time": 1_000_000 + number * 1000, "phy_offset": number * SIZE, "check_ok": True}
    return FirstRecord(**{**fields, **more})  # type: ignore[arg-type]


def place(release: str, unclean: bool, m: int = 0, checkpoint: Checkpoint | None = None, **odd: object) -> int:
    """odd: segmentN=FirstRecord in the place of a healthy one; other names are settings."""
    firsts = {i: odd.pop(f"segment{i}", first(i)) for i in range(COUNT)}
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in odd.items()})
    segments = [MappedFile(f"commitlog/{i * SIZE:020d}", i * SIZE, SIZE) for i in range(COUNT)]
    needs = Needs()
    search = StartSearch(rules, checkpoint or Checkpoint(), unclean, segments, {}, firsts, needs)  # type: ignore[arg-type]
    found = rules.first_recovered(COUNT, search.place(m))
    assert not needs
    return found


def test_after_a_clean_exit_the_third_from_the_end_and_since_5_3_2_the_newest_that_queues_reach() -> None:
    for release in ("4.8.0", "5.3.1"):
        assert place(release, False, 0) == place(release, False, 450) == COUNT - 3
    assert [place("5.3.2", False, m) for m in (-1, 0, 99, 100, 250, 1000)] == [0, 0, 0, 1, 2, 4]


@pytest.mark.parametrize("release", ["4.8.0", "5.3.3"])
def test_after_an_unclean_exit_the_newest_that_the_checkpoint_has_flushed(release: str) -> None:
    times = Checkpoint(physic_time=1_005_500, logics_time=1_006_000)  # three seconds below the smaller: 1,002,500
    assert place(release, True, checkpoint=times) == 2
    assert place(release, True, checkpoint=times, segment2=first(2, magic=0)) == 1
    assert place(release, True, checkpoint=Checkpoint()) == 0
    safe = Checkpoint(physic_time=1_005_500, logics_time=1_006_000, index_time=1_001_200)
    assert place(release, True, checkpoint=safe) == 2
    assert place(release, True, checkpoint=safe, messageIndexSafe=True) == 1


def test_v2_is_known_since_5_1_0() -> None:
    times, v2 = Checkpoint(physic_time=1_009_000, logics_time=1_009_000), first(4, magic=layout.MAGIC_V2)
    assert [place(release, True, checkpoint=times, segment4=v2) for release in ("5.0.0", "5.1.0")] == [3, 4]


@pytest.mark.parametrize("release", ["5.3.4", "5.4.0"])
def test_since_5_3_4_the_first_record_is_checked_and_since_5_4_0_the_search_is_bounded(release: str) -> None:
    assert place(release, False, 250) == 2
    assert place(release, False, 250, segment2=first(2, check_ok=False)) == 1
    bounded = release == "5.4.0"
    for unclean in (False, True):
        assert place(release, unclean, -1, commitLogRecoverMaxNum=2) == (COUNT - 2 if bounded else 0)
    times = Checkpoint(physic_time=1_005_500, logics_time=1_006_000)
    assert place(release, True, checkpoint=times) == 2


def test_5_5_0_goes_by_what_the_checkpoint_says_of_queues() -> None:
    assert place("5.5.0", True, checkpoint=Checkpoint(logics_phy_offset=350)) == 3
    assert place("5.5.0", True, checkpoint=Checkpoint(physic_time=1, logics_time=1_002_000)) == 2


def test_a_record_that_is_not_known_is_asked_for() -> None:
    needs = Needs()
    segments = [MappedFile("commitlog/0", 0, SIZE)]
    search = StartSearch(broker_rules("5.3.3"), Checkpoint(), True, segments, {}, {}, needs)
    assert search.place(0) == 0
    assert needs.scans == {ScanId("segment", 0)}
