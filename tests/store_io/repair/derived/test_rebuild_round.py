"""Rounds of making anew what is derived."""

from __future__ import annotations

import pytest

from store_io.repair.derived.index_plan import IndexPlan
from store_io.repair.derived.queue_plan import QueuePlan
from store_io.repair.derived.rebuild_round import Rebuilt, is_findable


def test_a_queue_counts_as_it_was_made_last_and_the_index_as_long_as_nothing_blames_it_again() -> None:
    first, second, again = (
        QueuePlan((topic, 0), f"consumequeue/{topic}/0", end=end) for topic, end in (("A", 1), ("B", 2), ("A", 3))
    )
    made, index = Rebuilt(), IndexPlan(("index/1",), 5, ("index_entry_wrong",))
    made.add([first, second], index)
    made.add([again], IndexPlan())
    assert [plan.end for plan in made.queues] == [2, 3] and made.index == index


@pytest.mark.parametrize(("topic", "found"), [("T", True), ("%RETRY%g", True), ("a/b", False), ("..", False)])
def test_a_broker_finds_a_queue_again_by_its_folder(topic: str, found: bool) -> None:
    assert is_findable(topic) is found
