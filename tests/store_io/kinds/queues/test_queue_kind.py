"""Tasks on the queues of a copy."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from store_io.kinds.queues import queue_kind
from store_io.kinds.queues.queue_kind import QUEUES, entries_on_disk
from tests.support.handmade.evidence import SEGMENT, copy_of, log_path, queue_path, request_of

COPY = copy_of({log_path(0): SEGMENT, **{queue_path(0, "T", number): 200 for number in range(5)}})


@pytest.mark.parametrize(("name", "value"), [("QUEUE_GROUP_COUNT", 2), ("QUEUE_GROUP_BYTES", 400)])
def test_small_queues_go_together(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(queue_kind, name, value)
    groups = [cast(Any, group).tasks for group in QUEUES.first_tasks(request_of(), COPY)]
    assert [len(group) for group in groups] == [2, 2, 1]
    assert [task.key for group in groups for task in group] == sorted(COPY[QUEUES].served.folders)


def test_the_quick_level_reads_the_last_files_of_queues() -> None:
    groups = [*QUEUES.first_tasks(request_of(level="quick"), COPY)]
    assert groups and all(task.last_only for group in groups for task in cast(Any, group).tasks)


def test_entries_that_a_fold_asks_for_again_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def read(*asked: Any) -> np.ndarray:
        calls.append(asked[1:])
        return np.zeros(1)

    monkeypatch.setattr(queue_kind, "read_file_entries", read)
    monkeypatch.setattr(queue_kind, "MAX_REMEMBERED", 1)
    disk = entries_on_disk(None)  # type: ignore[arg-type]
    for path in ("consumequeue/T/0/0", "consumequeue/T/0/0", "batchconsumequeue/B/0/0", "batchconsumequeue/B/0/0"):
        disk(path, 0, 1)
    assert [(path, batch) for path, _, _, batch in calls] == [
        ("consumequeue/T/0/0", False), ("batchconsumequeue/B/0/0", True), ("batchconsumequeue/B/0/0", True),
    ]  # fmt: skip
