"""Which stores go through Spark together, and which are told as slow."""

from __future__ import annotations

from jobs.audit.store_batches import SLOW_SECONDS, batches, slow_stores
from jobs.cli.stores import StoreArgument


def stores(*groups: str | None) -> list[StoreArgument]:
    return [StoreArgument(str(i), f"/{i}", replica_group=group) for i, group in enumerate(groups)]


def numbers(found: list[list[tuple[int, StoreArgument]]]) -> list[list[int]]:
    return [[number for number, _ in batch] for batch in found]


def test_as_many_as_reach_the_weight_and_copies_together() -> None:
    assert numbers([*batches(stores(None, None, None, None), 10, [4, 7, 30, 1])]) == [[0, 1], [2], [3]]
    assert numbers([*batches(stores("g", None, None, "g"), 10, [4, 7, 1, 5])]) == [[0, 1, 3], [2]]
    assert numbers([*batches(stores("g", None, None, "g"), 5, [4, 7, 1, 5])]) == [[0, 3], [1], [2]]
    assert numbers([*batches(stores(None, None), 10, [0, 0])]) == [[0, 1]]


def test_a_store_is_slow_beside_others() -> None:
    quick = [(f"quick-{i}", 10 << 30, 20.0) for i in range(4)]
    assert slow_stores(quick) == []
    told = slow_stores([*quick, ("slow", 1 << 30, 20.0)])
    assert len(told) == 1 and told[0].startswith("slow was slow: 53.7 MB/s")
    assert slow_stores([*quick, ("small", 1 << 10, SLOW_SECONDS / 2)]) == []  # it kept nobody waiting
    assert slow_stores([("a", 1 << 30, 20.0), ("b", 10 << 30, 20.0)]) == []  # of two nobody knows which is usual
