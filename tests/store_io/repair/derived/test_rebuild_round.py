"""Rounds of making anew what is derived."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.repair.derived.index_plan import IndexPlan
from store_io.repair.derived.queue_plan import QueuePlan
from store_io.repair.derived.rebuild_round import Rebuilt, is_findable
from tests.support.answers.repaired import plan_of, repaired
from tests.support.damage import copy_under_wrong_name, remove
from tests.support.stores.rocksdb_stores import keyed_store


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


@pytest.mark.parametrize("in_files", [True, False])
def test_a_file_under_the_name_of_the_last_segment_goes_and_what_is_made_anew_is_not_of_it(
    in_files: bool, tmp_path: Path
) -> None:
    """Its messages are those of another segment: it is removed without another audit, and the rebuild does not look for it."""
    keyed = keyed_store(tmp_path / "store", "5.5.0").write()
    root, names = keyed.root, sorted(path.name for path in (keyed.root / "commitlog").iterdir())
    copy_under_wrong_name(root / "commitlog" / names[0], names[-1])
    conf = keyed.plain.broker_conf if in_files else keyed.broker_conf
    remove(root / "consumequeue")
    outcome = repaired(root, tmp_path / "new", plan_of(root, "5.5.0", conf), "salvage")
    assert outcome.exit_code == 0, outcome.report["problems"]
    assert f"commitlog/{names[-1]}" in outcome.report["removed"]
    here = [record for record in keyed.records if record.at < int(names[-1])]
    assert sum(row["entries"] for row in outcome.report["queues"]) == len(here)
