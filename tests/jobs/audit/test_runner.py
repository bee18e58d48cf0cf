"""How tasks are spread over partitions, and what a worker does before it works."""

from __future__ import annotations

import gc
import weakref

import pytest

from jobs.audit.runner import PARTITION_BYTES, PARTITIONS_PER_CORE, partition, spare_the_collector
from store_io.base.tasks import Task
from store_io.rules.releases import broker_rules
from store_io.scan.segment_scan import SegmentTask
from store_io.source.byte_source import StoreLocation


def segments(*sizes: int) -> list[Task]:
    rules = broker_rules()
    return [SegmentTask(0, f"commitlog/{i:020d}", i << 30, size, StoreLocation("/x"), rules) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("sizes", [[5], [1 << 30] * 3, [1 << 30, *[1000] * 500], [0] * 1000, list(range(100))])
def test_each_task_is_in_one_partition(sizes: list[int]) -> None:
    bins = partition(segments(*sizes), 2)
    assert sorted(i for bin_ in bins for i in bin_) == list(range(len(sizes)))
    assert all(bins) and len(bins) <= max(2 * PARTITIONS_PER_CORE, sum(sizes) // PARTITION_BYTES)


def test_a_large_segment_shares_its_partition_with_nothing() -> None:
    bins = partition(segments(1 << 30, 1 << 30, *[1 << 20] * 200), 2)
    assert [0] in bins and [1] in bins


def test_the_collector_is_spared_what_is_there_but_not_garbage() -> None:
    class Node:
        pass

    kept, garbage = Node(), Node()
    kept.me, garbage.me = kept, garbage  # type: ignore[attr-defined]
    seen, gone = weakref.ref(kept), weakref.ref(garbage)
    del garbage
    try:
        spare_the_collector()
        assert gone() is None and seen() is kept
        assert gc.get_freeze_count() > 0 and not any(found is kept for found in gc.get_objects())
    finally:
        gc.unfreeze()
