"""Runs a task in the worker itself or, once it cost a worker, in a process of its own.

The system may kill a process when memory runs out. Spark then tries the whole partition again: now each of its tasks
runs in a second process, so that one that ends its process again takes nothing else with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from jobs.installation import module_name
from jobs.runtime.faults import ending, reason
from jobs.tables.datasets import DatasetPlan, scan_and_write
from schemas.advice import Cause, Gap
from store_io.base.crc import checksum
from store_io.base.tasks import Task, read_wholly, run_task
from store_io.log.scan.segment_scan import SegmentTask

TRIES = 2  # of one task, apart, after the worker that was lost


def run_pickled(task: Any, plan: DatasetPlan | None, stores: Sequence[str]) -> bytes:
    """Return the pickle of the task's result, or of the gap in its place.

    plan: with it a segment's datasets are written on the way.
    """
    try:
        if plan is not None and isinstance(task, SegmentTask):
            return pickle.dumps(read_wholly(lambda: scan_and_write(task, plan, stores[task.store])), protocol=5)
        return pickle.dumps(run_task(task), protocol=5)
    except Exception as problem:  # makes the audit of this one store incomplete
        where = traceback.extract_tb(problem.__traceback__)[-1]
        said = f"{type(problem).__name__}: {reason(problem)} ({where.name}, line {where.lineno})"
        return pickle.dumps(Gap(Cause.TASK_FAULT, values=(said,)), protocol=5)


class Apart:
    """Runs tasks in a process of their own, which is started again when one ends it. Use as a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Connection | None = None

    def run(self, task: Any, plan: DatasetPlan | None, stores: Sequence[str]) -> bytes:
        """Run a task as `run_pickled`.

        If the process is lost with the task `TRIES` times, the answer is a Gap that names the files.
        """
        ended = 0
        for _ in range(TRIES):
            line = self._begun()
            try:
                line.send_bytes(pickle.dumps((task, plan, stores), protocol=5))
                return line.recv_bytes()
            except (EOFError, OSError):
                ended = self._end()
        path = task.paths[0] if len(task.paths) == 1 else ""
        return pickle.dumps(Gap(Cause.WORKER_LOST, path, (files_of(task), ending(ended), ended < 0)), protocol=5)

    def _begun(self) -> Connection:
        if self._line is None:
            self._line, theirs = multiprocessing.Pipe()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", module_name("jobs.tasks.task_process"), str(theirs.fileno())],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        return self._line

    def _end(self) -> int:
        """End the process by closing its connection, and return its code."""
        if self._line is None or self._process is None:
            return 0
        self._line.close()
        code = self._process.wait()
        self._line = self._process = None
        return code

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()


def files_of(task: Task) -> str:
    """Return the file that a task reads; of several the first, with their number."""
    return task.paths[0] + (f" and {len(task.paths) - 1} more" if len(task.paths) > 1 else "")


def main(handle: int) -> None:
    """Answer tasks until the connection is closed."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory is short it shall be this process that goes, not Spark's
    checksum.trust()
    with Connection(handle) as line, contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            line.send_bytes(run_pickled(*pickle.loads(line.recv_bytes())))


if __name__ == "__main__":
    main(int(sys.argv[1]))
