"""Which entry number each message of a repaired log gets."""

from __future__ import annotations

import pytest

from schemas.layouts.commitlog_layout import MIN_SIZE_V1_BYTES
from store_io.repair.derived.queue_places import BridgedRanges, QueueRun, place_runs


def run(offset: int, records: int, first: int, known: bool = True) -> QueueRun:
    last = first + 100 * (records - 1)
    return QueueRun(offset, records, first, last, last + 100, 100, 0, False, "commitlog/0", known, True)


@pytest.mark.parametrize(
    ("runs", "places"),
    [
        ([run(0, 3, 0), run(3, 2, 300)], [0, 3]),
        ([run(0, 20, 0), run(9, 1, 2000), run(20, 20, 2100)], [0, 40, 20]),  # a wrong queue offset: after all others
        ([run(0, 20, 0), run(1, 2, 2000), run(25, 20, 2200)], [0, 20, 25]),  # or into the gap that it fits
        ([run(-5, 2, 0), run(-9, 3, 200)], [0, 2]),  # no chain at all: in the order of the log
        ([run(4, 2, 0, known=False), run(0, 5, 200)], [None, 0]),  # of an earlier life of the topic
    ],
)
def test_places(runs: list[QueueRun], places: list[int | None]) -> None:
    place_runs(runs, BridgedRanges(), with_earlier=False)
    assert [r.place for r in runs] == places


def test_damaged_bytes_held_so_many_messages_at_most() -> None:
    bridged = BridgedRanges([(0, 10), (1000, 1000 + 2 * MIN_SIZE_V1_BYTES)])
    assert bridged.messages(0, 10) == 1 and bridged.messages(20, 900) == 0
    assert bridged.messages(1000, 10_000) == 3


def test_queue_offsets_that_an_inner_batch_takes_up_are_no_gap() -> None:
    """Of queues in RocksDB: one entry, many queue offsets. A start continues right after the entry, whatever the batch holds."""
    batch, after = run(0, 1, 0), run(1, 2, 100)
    batch.more = 40
    place_runs([batch, after], BridgedRanges(), with_earlier=False)
    assert (batch.place, after.place) == (0, 1)
    last = run(41, 1, 100)
    place_runs([batch, last], BridgedRanges(), with_earlier=False)
    assert (batch.place, last.place) == (0, 41)
