"""Tasks on the queues of a copy."""

from __future__ import annotations

from typing import Any, cast

import pytest

from store_io.audit.rounds.task_making import TaskMaker
from store_io.kinds.queues import queue_kind
from store_io.kinds.queues.queue_kind import QUEUES
from store_io.model.queue_views import QueueView
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, request_of

COPY = copy_of({log_path(0): SEGMENT, **{queue_path(0, "T", number): 200 for number in range(5)}})


@pytest.mark.parametrize(("name", "value"), [("QUEUE_GROUP_COUNT", 2), ("QUEUE_GROUP_BYTES", 400)])
def test_small_queues_go_together(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(queue_kind, name, value)
    groups = [cast(Any, group).tasks for group in QUEUES.first_tasks(request_of(), COPY)]
    assert [len(group) for group in groups] == [2, 2, 1]
    assert [task.key for group in groups for task in group] == sorted(COPY.queue_folders)


def test_the_quick_level_reads_the_last_files_of_queues() -> None:
    groups = [*QUEUES.first_tasks(request_of(level="quick"), COPY)]
    assert groups and all(task.last_only for group in groups for task in cast(Any, group).tasks)


def test_leftovers_are_only_asked_of_queues_that_have_some() -> None:
    views = {("T", number): QueueView(("T", number), False, "", leftover=[(0, number)] if number else []) for number in (3, 0, 1)}
    tasks = QUEUES.tasks_after_prediction(evidence_of(COPY, views=views), TaskMaker(request_of(), COPY).base)
    assert [cast(Any, task).key for task in tasks] == [("T", 1), ("T", 3)]
