"""Tasks on the queues of a copy."""

from __future__ import annotations

from typing import Any, cast

import pytest

from store_io.kinds.queues import queue_making
from store_io.kinds.queues.queue_making import QueueMaker
from store_io.model.log_map import log_map
from store_io.model.queue_views import QueueView
from tests.support.handmade.evidence import SEGMENT, copy_of, log_path, queue_path, request_of

COPY = copy_of({log_path(0): SEGMENT, **{queue_path(0, "T", number): 200 for number in range(5)}})


@pytest.mark.parametrize(("name", "value"), [("QUEUE_GROUP_COUNT", 2), ("QUEUE_GROUP_BYTES", 400)])
def test_small_queues_go_together(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(queue_making, name, value)
    groups = [cast(Any, group).tasks for group in QueueMaker(request_of(), COPY).queues()]
    assert [len(group) for group in groups] == [2, 2, 1]
    assert [task.key for group in groups for task in group] == sorted(COPY.queue_folders)


def test_the_quick_level_reads_the_last_files_of_queues() -> None:
    groups = QueueMaker(request_of(level="quick"), COPY).queues()
    assert groups and all(task.last_only for group in groups for task in cast(Any, group).tasks)


def test_leftovers_are_only_asked_of_queues_that_have_some() -> None:
    views = {("T", number): QueueView(("T", number), False, "", leftover=[(0, number)] if number else []) for number in (3, 0, 1)}
    tasks = QueueMaker(request_of(), COPY).leftovers(views, log_map([], SEGMENT))
    assert [cast(Any, task).key for task in tasks] == [("T", 1), ("T", 3)]
