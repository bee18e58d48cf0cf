"""Entries that lead to lost messages: the first are listed, of the others the number is known by place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from schemas.layouts.entries import ENTRY_DTYPE
from schemas.rows import EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, SegmentSummary
from store_io.model import log_map as lm
from store_io.model import lost_entries
from store_io.model.lost_entries import LostEntries, LostStretch, lost_places
from store_io.model.queue_leftovers import LeftoverResult

SEGMENT = 10_000
LOG = lm.log_map(
    [
        SegmentSummary(
            "commitlog/0", 0, SEGMENT, extents=[Extent(EXTENT_MESSAGE, 0, 1000, 10), Extent(EXTENT_UNWRITTEN, 1000, SEGMENT)]
        )
    ],
    SEGMENT,
)


def queue(topic: str, phy: list[int], together: int = 7) -> LeftoverResult:
    """A queue whose entries lead to messages of 100 bytes there; so many are read together."""
    lost = LostEntries(LOG)
    for at in range(0, len(phy), together):
        part = phy[at : at + together]
        rows = np.zeros(len(part), ENTRY_DTYPE)
        rows["phy_offset"], rows["size"] = part, 100
        lost.add(np.arange(at, at + len(part)), rows, LOG.kind_at(np.array(part)))
    return LeftoverResult((topic, 0), lost=lost.listed, lost_more=lost.stretches, lost_count=lost.count)


@pytest.mark.parametrize("number", [19, 20, 21, 200])
def test_however_many_are_listed_each_place_has_its_number(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_entries, "MAX_LOST", 20)
    phy = [1000 + 100 * n for n in range(number)]
    found = queue("T", phy)
    assert len(found.lost) == min(number, 20) and sum(found.lost_count.values()) == number
    places = lost_places([found], LOG, (lm.UNWRITTEN, lm.BEYOND))
    told = [(kind, place, at.count, at.bytes, at.bounds, at.exact) for (kind, place), at in places.items()]
    segments = {p - p % SEGMENT for p in phy}
    expected = []
    for start in sorted(segments):
        own = [p for p in phy if p - p % SEGMENT == start]
        kind, place = (lm.BEYOND, start) if start else (lm.UNWRITTEN, 1000)
        expected.append((kind, place, len(own), 100 * len(own), (own[0], own[-1] + 100), True))
    assert told == expected
    assert all(at.all_listed for at in places.values()) == (number <= 20)


def test_light_queues_and_copied_ones_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_entries, "MAX_LOST", 20)
    phy = [20_000 + 100 * n for n in range(50)]
    for others in ([("%LMQ%a", phy[::2])], [("%LMQ%a", phy)], [("copied", phy)]):
        (at,) = lost_places([queue("T", phy), *(queue(*other) for other in others)], LOG, (lm.BEYOND,)).values()
        assert (at.count, at.exact) == (50, True)
    (alone,) = lost_places([queue("%LMQ%a", phy)], LOG, (lm.BEYOND,)).values()
    assert (alone.count, alone.text) == (50, "50 messages")


def test_entries_that_lead_to_one_message_make_a_least_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_entries, "MAX_LOST", 20)
    (at,) = lost_places([queue("T", [20_000 + 100 * (n // 2) for n in range(60)])], LOG, (lm.BEYOND,)).values()
    assert not at.exact and at.text == "at least 30 messages"


def test_places_beyond_the_bound_are_counted_in_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_entries, "MAX_LOST", 2)
    monkeypatch.setattr(lost_entries, "MAX_STRETCHES", 3)
    found = queue("T", [SEGMENT * (2 + n) for n in range(50)], together=50)
    assert len(found.lost_more) == 3 and sum(more.count for more in found.lost_more) == 48


def test_each_place_beyond_the_bound_costs_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(dict[tuple[int, int], LostStretch]):
        looks = 0

        def __iter__(self) -> Iterator[tuple[int, int]]:
            Counted.looks += 1
            return super().__iter__()

    monkeypatch.setattr(lost_entries, "MAX_LOST", 0)
    monkeypatch.setattr(lost_entries, "MAX_STRETCHES", 3)
    lost = LostEntries(LOG)
    lost._stretches = Counted()
    rows = np.zeros(50, ENTRY_DTYPE)
    rows["phy_offset"], rows["size"] = SEGMENT * np.arange(2, 52), 100
    lost.add(np.arange(50), rows, LOG.kind_at(rows["phy_offset"].astype(np.int64)))
    assert Counted.looks <= 1 and sum(more.count for more in lost.stretches) == 50
