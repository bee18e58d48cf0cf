"""Tasks on the queues of a copy."""

from __future__ import annotations

from typing import Any, cast

import pytest

from store_io.kinds.queues import queue_kind
from store_io.kinds.queues.queue_kind import QUEUES
from tests.support.handmade.evidence import SEGMENT, copy_of, log_path, queue_path, request_of

COPY = copy_of({log_path(0): SEGMENT, **{queue_path(0, "T", number): 200 for number in range(5)}})


@pytest.mark.parametrize(("name", "value"), [("QUEUE_GROUP_COUNT", 2), ("QUEUE_GROUP_BYTES", 400)])
def test_small_queues_go_together(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(queue_kind, name, value)
    groups = [cast(Any, group).tasks for group in QUEUES.first_tasks(request_of(), COPY)]
    assert [len(group) for group in groups] == [2, 2, 1]
    assert [task.key for group in groups for task in group] == sorted(COPY.queues_in_files.served.folders)


def test_the_quick_level_reads_the_last_files_of_queues() -> None:
    groups = [*QUEUES.first_tasks(request_of(level="quick"), COPY)]
    assert groups and all(task.last_only for group in groups for task in cast(Any, group).tasks)
