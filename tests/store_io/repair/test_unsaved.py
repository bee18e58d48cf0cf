"""Which messages a repair could not save, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from store_io.model.queue_leftovers import LeftoverResult, LostEntry
from store_io.repair import unsaved as unsaved_module
from store_io.repair.unsaved import MOST_HASHES, Missing, Unsaved, find_missing, given_up, key_hashes
from store_io.source.byte_source import StoreLocation
from tests.support.answers.segment_tasks import rules_of

KEY, LIGHT = ("T", 0), ("%LMQ%a", 0)


def leftover(key: tuple[str, int], *entries: tuple[int, int], more: int = 0) -> LeftoverResult:
    lost = [LostEntry(number, phy, 200, 1) for number, phy in entries]
    return LeftoverResult(key, lost=lost, lost_count={1: len(lost) + more})


def test_each_message_has_one_name_and_as_many_as_are_counted() -> None:
    leftovers = {
        KEY: leftover(KEY, (4, 800), (6, 1200)),
        ("U", 1): leftover(("U", 1), (0, 1200)),  # the same message as another queue's
        LIGHT: leftover(LIGHT, (9, 800), (10, 1400)),
    }
    answered = [{"topic": "T", "queue_id": 0, "first": 3, "end": 7}, {"topic": LIGHT[0], "queue_id": 0, "first": 9, "end": 11}]
    dropped = [{"topic": "T", "queue_id": 0, "queue_offset": 20, "valid": False}]
    counted = given_up(leftovers, answered, dropped, 0, [])["missing"]
    found, not_named = find_missing(leftovers, answered, dropped, counted)
    assert found == (
        Missing(*LIGHT, 10, 11, 1400, 200),
        Missing(*KEY, 3, 4),
        Missing(*KEY, 4, 5, 800, 200),
        Missing(*KEY, 5, 6),
        Missing(*KEY, 6, 7, 1200, 200),
        Missing(*KEY, 20, 21),
    )
    assert (sum(row.end - row.first for row in found), not_named) == (counted, 0)


def test_what_is_known_by_number_alone_is_counted() -> None:
    leftovers = {KEY: leftover(KEY, (0, 10), more=5)}
    counted = given_up(leftovers, [], [], 0, [])["missing"]
    assert find_missing(leftovers, [], [], counted) == ((Missing(*KEY, 0, 1, 10, 200),), 5)
    assert find_missing({}, [], [], 0) == ((), 0)


def test_an_index_that_leads_to_one_message_alone_gives_it_a_few_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "commitlog").mkdir()
    hashes = np.arange(300_000) // 2  # each twice
    batch = pa.record_batch({"phy_offset": np.where(hashes < 5, 900, 800), "key_hash": hashes})
    monkeypatch.setattr(unsaved_module, "numbered_files", lambda tree, folder: [None])
    monkeypatch.setattr(unsaved_module, "scan_index_entries", lambda scan, file, source: [batch])
    missing = (Missing(*KEY, 4, 5, 800, 200), Missing(*KEY, 5, 6, 900, 200), Missing(*KEY, 6, 7))
    found = key_hashes(Unsaved(StoreLocation(str(tmp_path)), rules_of("", "5.3.3"), missing))
    assert found == {900: [0, 1, 2, 3, 4], 800: list(range(5, 5 + MOST_HASHES))}
