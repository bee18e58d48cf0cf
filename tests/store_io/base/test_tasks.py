"""A task is run, or left where the time is spent before it begins."""

from __future__ import annotations

import time
from dataclasses import dataclass

from store_io.base.tasks import NotRead, run_task, too_late


@dataclass
class Counting:
    not_after: float = 0
    store: int = 0
    bytes_to_read: int = 1
    paths: tuple[str, ...] = ("a",)
    runs: int = 0

    def run(self) -> str:
        self.runs += 1
        return "done"


def test_a_task_without_a_limit_or_in_time_is_run() -> None:
    for task in (Counting(), Counting(time.time() + 1000)):
        assert not too_late(task)
        assert (run_task(task), task.runs) == ("done", 1)


def test_a_task_that_is_too_late_is_not_begun() -> None:
    task = Counting(time.time() - 1)
    assert too_late(task)
    assert (run_task(task), task.runs) == (NotRead(), 0)
