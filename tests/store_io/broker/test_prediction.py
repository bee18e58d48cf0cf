"""The types of a fold: what it asks for, and its answer as plan.json has it."""

from __future__ import annotations

from schemas.rows import MappedFile
from store_io.broker.prediction import Checkpoint, LogFile, Memory, Needs, Prediction, ScanId


def test_the_time_up_to_which_all_is_flushed() -> None:
    assert Checkpoint(physic_time=10_000, logics_time=9_000).min_time == 6_000
    assert Checkpoint(physic_time=2_000, logics_time=9_000).min_time == 0


def test_needs_are_something_as_soon_as_anything_is_asked() -> None:
    scan, key = ScanId("segment", 1), ("T", 0)
    assert not Needs()
    for fill in (
        lambda n: n.scans.add(scan),
        lambda n: n.phy_cuts[scan].add(5),
        lambda n: n.queue_cuts[scan][key].add(5),
        lambda n: n.number_cuts[scan][key].add(5),
        lambda n: n.marks[scan].add((0, 1)),
    ):
        needs = Needs()
        fill(needs)
        assert needs


def test_cuts_of_one_scan_are_sorted() -> None:
    needs, one, other = Needs(), ScanId("segment", 1), ScanId("reput", 1, 0, 9)
    needs.phy_cuts[one].update((9, 3))
    needs.queue_cuts[one]["T", 0].update((8, 2))
    needs.phy_cuts[other].add(1)
    cuts = needs.cuts(one)
    assert (cuts.phy_offsets, cuts.by_queue) == ((3, 9), {("T", 0): (2, 8)})
    assert needs.cuts(ScanId("segment", 7)).phy_offsets == ()


def test_a_refused_start_is_nulls() -> None:
    section = Prediction(False, True, truncate_at=7).broker_section()
    assert (section["starts"], section["exit"]) == (False, "unclean")
    assert {value for key, value in section.items() if key not in ("starts", "exit")} == {None}


def test_a_start_has_its_states() -> None:
    file = LogFile(MappedFile("commitlog/00000000000000000100", 100, 50), 20)
    memory = Memory([file], {}, [])
    section = Prediction(True, False, truncate_at=120, after_load=memory, after_dispatch=memory).broker_section()
    assert (section["starts"], section["exit"], section["truncate_at"]) == (True, "clean", 120)
    assert section["after_load"] == {"commitlog": [{"file": "00000000000000000100", "wrote": 20}], "queues": [], "index": []}
