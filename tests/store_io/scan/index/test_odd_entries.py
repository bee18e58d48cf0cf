"""Entries without a place: counted beyond a bound, told by what they lead to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from schemas import finding_codes as codes
from schemas.rows import EXTENT_DAMAGED, EXTENT_UNWRITTEN, Extent
from store_io.rules.message_verdict import VALID
from store_io.scan.index import odd_entries
from store_io.scan.index.index_files import IndexFileRef, SegmentPlace
from store_io.scan.index.odd_entries import MessageKeys, OddEntries
from store_io.scan.segment_findings import Findings

FILE = IndexFileRef("index/f", 4096, 0, 900, 1, 60, 3, 100)
PLACE = SegmentPlace("commitlog/0", 1000, 500, 2000)
EXTENTS = [Extent(EXTENT_DAMAGED, 0, 300), Extent(EXTENT_UNWRITTEN, 300, 500)]


def no_message(_: int) -> Any:
    return SimpleNamespace(kind="damaged", message=None, size=0)


def told(entries: list[tuple[int, int, int, int]], dropped: int = 0) -> tuple[list[tuple[str, int]], dict[str, int]]:
    odd, findings = OddEntries([FILE], PLACE, MessageKeys(PLACE, no_message)), Findings()
    odd.add(entries, dropped)
    odd.judge(EXTENTS, findings)
    return [(f.code, f.count) for f in findings.ordered()], findings.dropped


def test_neighbours_of_one_kind_are_one_finding() -> None:
    entries = [(0, 1, 1010, 5), (0, 2, 1020, 5), (0, 4, 1030, 5), (0, 5, 1400, 5), (0, 6, 3000, 5), (0, 7, 10, 5)]
    found = [(codes.INDEX_DANGLING, 2), (codes.INDEX_DANGLING, 1), (codes.INDEX_BEYOND, 2), (codes.INDEX_DANGLING, 1)]
    assert told(entries) == (found, {})


def test_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odd_entries, "MAX_ODD", 2)
    odd = OddEntries([FILE], PLACE, MessageKeys(PLACE, no_message))
    odd.add([(0, 1, 1010, 5), (0, 2, 1020, 5)], 3)
    assert odd.room == 0
    assert told([(0, 1, 1010, 5)], 3) == ([(codes.INDEX_DANGLING, 1)], {codes.INDEX_DANGLING: 3})


def test_the_keys_of_a_message_are_looked_up_once_and_of_this_segment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def verdict(position: int) -> Any:
        seen.append(position)
        return SimpleNamespace(kind=VALID, size=90, message=SimpleNamespace(topic="T", properties={}))

    monkeypatch.setattr(odd_entries, "index_keys", lambda _: ["k"])
    keys = MessageKeys(PLACE, verdict)
    first = keys.at(1010)
    assert len(first) == 1 and keys.at(1010) == first and keys.at(999) == keys.at(1500) == odd_entries.NONE
    assert seen == [10]
