"""A piece of work that can be done by itself, here or on another machine: a picklable value with a `run`.

A runner needs to know no kind of task. Results are small; a reading problem is part of them and is not raised.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.advice import Gap
from store_io.base.failed_reads import failed_reads
from store_io.base.packed import PackedValue, opened


class Task(Protocol):
    """A task that a worker runs.

    store: the number of its store in the run.
    not_after: seconds since 1970 at which it is too late to begin; 0: never.
    """

    @property
    def store(self) -> int: ...
    @property
    def not_after(self) -> float: ...
    @property
    def bytes_to_read(self) -> int:
        """Return how much it may read: the longest tasks begin first."""

    @property
    def paths(self) -> Sequence[str]:
        """Return the files that it reads."""

    def run(self) -> Any: ...


class OfScan:
    """A task that reads one segment, as its `scan` does."""

    scan: Any

    @property
    def store(self) -> int:
        return int(self.scan.store)

    @property
    def bytes_to_read(self) -> int:
        return int(self.scan.size)

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.scan.path,)


@dataclass(frozen=True, eq=False)
class PackedTask:
    """A large task in little memory, until it runs. Once pickled it is the task itself."""

    store: int
    not_after: float
    bytes_to_read: int
    packed: PackedValue

    @classmethod
    def of(cls, task: Task) -> PackedTask:
        """Return the task, packed."""
        return cls(task.store, task.not_after, task.bytes_to_read, PackedValue(pickle.dumps(task, protocol=5)))

    @property
    def paths(self) -> Sequence[str]:
        return self.open().paths

    def open(self) -> Task:
        """Return the task, made anew each time."""
        task: Task = self.packed.open()
        return task

    def run(self) -> Any:
        return self.open().run()

    def __reduce__(self) -> tuple[Any, ...]:
        return opened, (self.packed,)


def unpacked(task: Task) -> Task:
    """Return the task itself, whether it was packed or not."""
    return task.open() if isinstance(task, PackedTask) else task


@dataclass(frozen=True)
class PartlyRead:
    """A task's result, some of whose reads have failed, whatever the task made of that. failed: a gap each, by path."""

    result: Any
    failed: Mapping[str, Gap]


@dataclass(frozen=True)
class NotRead:
    """In the place of a result: the time was spent before the task began."""


def too_late(task: Task) -> bool:
    """Say whether the time is spent in which this task may begin."""
    return 0 < task.not_after <= time.time()


def run_task(task: Task) -> Any:
    """Return the task's result, as `read_wholly` gives it, or `NotRead`. A task of a repair raises StoreError if it fails; one of
    an audit never does."""
    return NotRead() if too_late(task) else read_wholly(task.run)


class Workers(Protocol):
    """A place at which tasks can run beside this process."""

    def at_once(self, size: int) -> int:
        """Return how many tasks run there at once, for so many bytes to read. 0: reading here is quicker."""

    def run(self, tasks: Sequence[Task], describe: str) -> list[Any]:
        """Return the results in the order of the tasks, as `run_task` gives them, or a Gap. A large one may be packed."""


class _Here:
    """No such place: one task after the other runs in this process."""

    def at_once(self, size: int) -> int:
        return 0

    def run(self, tasks: Sequence[Task], describe: str) -> list[Any]:
        return [run_task(task) for task in tasks]


HERE: Workers = _Here()


def read_wholly(run: Callable[[], Any]) -> Any:
    """Return the result of `run`, in a PartlyRead if a read has failed."""
    with failed_reads() as failed:
        result = run()
    return PartlyRead(result, dict(failed)) if failed else result
