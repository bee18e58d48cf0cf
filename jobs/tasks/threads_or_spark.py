"""Tasks of one store, in threads of this process or on Spark."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

from jobs.cli import parser
from jobs.cli.terminal import redraws
from jobs.runtime.spark_start import LazySpark, worth_spark
from schemas.advice import Gap
from store_io.base.compiled.code_files import start_quickly
from store_io.base.errors import StoreError
from store_io.base.failed_reads import can_do_without
from store_io.base.tasks import Task, run_task
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_store
from store_io.wording.gaps import gap_text

if TYPE_CHECKING:  # loaded by repairs alone: a question is answered at once
    from store_io.repair.repair_work import RunTasks


@contextlib.contextmanager
def run_tasks_for(spark_words: Sequence[str], location: StoreLocation) -> Iterator[RunTasks]:
    """Run tasks in threads of this process, or by Spark if asked for or worth it.

    Tasks that read the copy while it is made run in threads in any case (`run_in_threads`).

    Compiled code and reading need no lock of Python's; and a thread sees what another one has copied so far.
    """
    with contextlib.ExitStack() as stack:
        spark = spark_words or worth_spark(_bytes(location))
        run_tasks = stack.enter_context(_on_spark(spark_words)) if spark else run_in_threads
        if "numba" not in sys.modules:  # which would take longer to load than a pass over a gigabyte
            start_quickly()
        yield run_tasks


@contextlib.contextmanager
def _progress_of(tasks: Sequence[Task], describe: str, counters: Callable[[], tuple[int, int]]) -> Iterator[None]:
    """Show how far these tasks are, and the time left, if a person looks. counters: (bytes, segments) that are done so far."""
    if not redraws(sys.stderr):
        yield
        return
    from jobs.tasks.progress import Progress
    from store_io.log.scan.segment_scan import SegmentTask

    before = counters()
    with Progress(sys.stderr, lambda: (counters()[0] - before[0], counters()[1] - before[1])) as progress:
        segments = sum(isinstance(task, SegmentTask) for task in tasks)
        progress.expect(describe, sum(task.bytes_to_read for task in tasks), segments)
        yield


def run_in_threads(tasks: Sequence[Task], describe: str) -> list[Any]:
    """Run the tasks in threads of this process: their results."""
    done: list[Task] = []

    def counters() -> tuple[int, int]:
        from store_io.log.scan.segment_scan import SegmentTask

        return sum(task.bytes_to_read for task in done[:]), sum(isinstance(task, SegmentTask) for task in done[:])

    with _progress_of(tasks, describe, counters):
        return _side_by_side(tasks, done.append)


def _side_by_side(tasks: Sequence[Task], ended: Callable[[Task], None] = lambda _: None) -> list[Any]:
    """Return the tasks' results, from as many threads as there are processors, largest tasks first. No task begins after one
    failed.

    ended: called with each task that has ended, by any thread.
    """
    order = iter(sorted(range(len(tasks)), key=lambda i: -tasks[i].bytes_to_read))
    results: list[Future[Any]] = [Future() for _ in tasks]
    stopped = False

    def work() -> None:
        nonlocal stopped
        while not stopped and (number := next(order, None)) is not None:
            try:
                results[number].set_result(run_task(tasks[number]))
                ended(tasks[number])
            except BaseException as problem:
                stopped = True
                results[number].set_exception(problem)

    threads = [Thread(target=work, daemon=True) for _ in range(min(len(tasks), os.cpu_count() or 1))]
    for thread in threads:
        thread.start()
    try:
        wait(results, return_when=FIRST_EXCEPTION)
        if stopped:
            for thread in threads:  # what they work on is removed next; after an interrupt nobody waits for that
                thread.join()
        return [result.result() for result in results if result.done()]
    finally:
        stopped = True


@contextlib.contextmanager
def _on_spark(spark_words: Sequence[str]) -> Iterator[RunTasks]:
    """Start the JVM now. On this machine Spark comes up in it when the first tasks need it, and the copy is made meanwhile."""
    with LazySpark(spark_words) as spark:
        spark.begin(_load_tasks)
        from jobs.runtime.jvm import is_local
        from jobs.tasks.progress import SparkCounters
        from jobs.tasks.runner import Runner

        @cache
        def runner() -> tuple[SparkCounters, Runner]:
            context = spark.session.context
            counters = SparkCounters(context)
            return counters, Runner(context, counters.report)

        def submitted(tasks: Sequence[Any], describe: str) -> list[Any]:
            counters, submitting = runner()
            with _progress_of(tasks, describe, counters):
                answers = submitting.run(tasks, describe)
            faults = [gap_text(answer) for answer in answers if isinstance(answer, Gap)]
            if faults:
                raise StoreError(f"a task failed: {faults[0]}")
            return answers

        if not is_local(parser.master_of(spark_words)):  # a cluster that is not there fails before the copy
            runner()
        yield submitted


class SparkWorkers:
    """Spark as the place for tasks of a question, if the command line asks for it or there is much to read."""

    def __init__(self, spark: LazySpark):
        self._spark = spark

    def at_once(self, size: int) -> int:
        """Return how many tasks run at once, for so many bytes to read; 0 if they are not worth Spark."""
        return self._spark.session.context.defaultParallelism if self._spark.wanted(size) else 0

    def run(self, tasks: Sequence[Task], describe: str) -> list[Any]:
        """Return the results in the order of the tasks, as `Runner.answers` gives them."""
        from jobs.tasks.runner import Runner

        return Runner(self._spark.session.context, lambda *_: None).answers(tasks, describe)


def _load_tasks() -> None:
    """Load what the tasks of a repair need, for all workers at once."""
    from jobs.tasks import progress, runner  # noqa: F401
    from store_io.repair import repair_store  # noqa: F401


def _bytes(location: StoreLocation) -> int:
    with can_do_without("the sizes of what is listed decide whether Spark is worth its start"):
        return sum(file.size for file in list_store(location).files if file.path.startswith("commitlog"))
