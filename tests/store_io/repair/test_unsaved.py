"""Which messages a repair could not save, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from schemas.repair import DroppedMessage, QueueRange
from schemas.rows import RUN_DTYPE, RUN_QUEUE, WALK_AUDIT, QueueKey, SegmentSummary
from store_io.model.queue_leftovers import LeftoverResult, LostEntry
from store_io.repair import unsaved as unsaved_module
from store_io.repair.unsaved import MOST_HASHES, LeftOut, Missing, Unsaved, find_missing, given_up, key_hashes, not_accounted
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
    answered = [QueueRange(*KEY, 3, 7, 0), QueueRange(*LIGHT, 9, 11, 0)]
    dropped = [DroppedMessage("commitlog/0", 0, 9, *KEY, 20, False, 0, "why")]
    counted = given_up(leftovers, answered, dropped, 0, []).missing
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
    counted = given_up(leftovers, [], [], 0, []).missing
    assert find_missing(leftovers, [], [], counted) == ((Missing(*KEY, 0, 1, 10, 200),), 5)
    assert find_missing({}, [], [], 0) == ((), 0)


def segment_with(records: dict[QueueKey, int]) -> SegmentSummary:
    runs = np.zeros(len(records), RUN_DTYPE)
    runs["walk"], runs["kind"], runs["queue"] = WALK_AUDIT, RUN_QUEUE, np.arange(len(records))
    runs["records"] = [*records.values()]
    return SegmentSummary("commitlog/0", 0, 4096, queues=[*records], runs=runs)


@pytest.mark.parametrize("topic", ["T", "S", "STORE", "", "STORE_AUDIT_BRIDGE"])
@pytest.mark.parametrize("added", [0, 1, 2])
def test_each_record_of_the_new_log_is_of_the_copy_or_added(topic: str, added: int) -> None:
    key, other = (topic, 0), ("Other", 3)
    before, left = (
        [segment_with({key: 5, other: 2})],
        LeftOut(4096, set(), [DroppedMessage("commitlog/0", 0, 9, topic, 0, 0, True, 0, "why")]),
    )
    for after in range(9):
        wrong = not_accounted(before, [segment_with({other: 2, key: after})], left, {key: added})
        assert wrong == ({key: 4 + added - after} if after != 4 + added else {})


def test_an_index_that_leads_to_one_message_alone_gives_it_a_few_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "commitlog").mkdir()
    hashes = np.arange(300_000) // 2  # each twice
    batch = pa.record_batch({"phy_offset": np.where(hashes < 5, 900, 800), "key_hash": hashes})
    monkeypatch.setattr(unsaved_module, "numbered_files", lambda tree, folder: [None])
    monkeypatch.setattr(unsaved_module, "scan_index_entries", lambda scan, file, source: [batch])
    missing = (Missing(*KEY, 4, 5, 800, 200), Missing(*KEY, 5, 6, 900, 200), Missing(*KEY, 6, 7))
    found = key_hashes(Unsaved(StoreLocation(str(tmp_path)), rules_of("", "5.3.3"), missing))
    assert found == {900: [0, 1, 2, 3, 4], 800: list(range(5, 5 + MOST_HASHES))}
