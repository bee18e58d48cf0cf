"""Runs a round of tasks as one Spark job, a very large round as several.

A task's bytes are read where it runs; only its small result comes back.

The round's tasks are broadcast once; a row of the job names the tasks of one partition. Heavy tasks have a partition of
their own, small ones (a fleet of small stores has thousands) share one.
"""

from __future__ import annotations

import gc
import heapq
import io
import pickle
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from pyspark import SparkContext, TaskContext

from jobs.runtime import interrupts
from jobs.tables.datasets import DatasetPlan
from jobs.tasks.task_process import Apart, run_pickled
from schemas.advice import Cause, Gap
from schemas.rows import SegmentSummary
from store_io.base.crc import checksum
from store_io.base.packed import PackedValue
from store_io.base.tasks import NotRead, Task, too_late
from store_io.log.scan.segment_scan import SegmentTask
from store_io.log.scan.stored_runs import KeyTable
from store_io.rocksdb.kept_open import databases_kept_open
from store_io.source.remote_file import fetched_bytes

Report = Callable[..., None]  # with a task's bytes, its segments and the number of its store
Answer = tuple[int, float, int, bytes]  # number of the task, seconds, bytes fetched from elsewhere, pickle of its result

PARTITION_BYTES = 512 << 20  # a partition costs Spark some 10 ms, which is what 100 MB take to audit
FEW_BYTES, FEW_TASKS = 16 << 20, 100  # a round of less has a partition per core
PARTITIONS_PER_CORE = 3
# Answers lie in the JVM's heap, whose default is 1 GiB, until all of one job have come: `spark.driver.maxResultSize` ends a job
# whose answers are larger. So a large round is several jobs: the first shows how large answers are.
ANSWER_BYTES = 64 << 20  # of one job
_MANY_FINDINGS = 100  # of one result
_MANY_FILES = 10
_MANY_RUNS = 10_000
FIRST_PARTITIONS_PER_CORE = 16  # of the first job: smaller rounds are one job


class Runner:
    """Runs rounds of tasks on Spark."""

    def __init__(self, context: SparkContext, report: Report):
        """Take the session's context.

        report: called when a task has run.
        """
        self.report = report
        self.context = context
        self.seconds: dict[int, float] = defaultdict(float)  # by `task.store`: that its tasks took, one after the other
        self.fetched: Counter[int] = Counter()  # by `task.store`: bytes that its tasks had from another machine

    def run(self, tasks: Sequence[Task], describe: str) -> list[Any]:
        """Return the tasks' results in their order. A failed task, or one whose process was lost each time, gives a Gap."""
        return self._run(tasks, describe, pickle.loads)

    def _run(
        self,
        tasks: Sequence[Task],
        describe: str,
        read: Callable[[bytes], Any],
        plan: DatasetPlan | None = None,
        stores: Sequence[str] = (),
    ) -> list[Any]:
        """Run tasks; see `run`.

        read: makes a result of its pickle.
        plan: with it segments give a SegmentOutput, their datasets written on the way.
        stores: as the tables call them.
        """
        interrupts.check()
        late = [too_late(task) for task in tasks]
        if any(late):  # not worth a job
            in_time = [task for task, now in zip(tasks, late, strict=True) if not now]
            others = iter(self._run(in_time, describe, read, plan, stores))
            return [NotRead() if now else next(others) for now in late]
        if not tasks:
            return []
        bins = partition(tasks, self.context.defaultParallelism)
        shared = self.context.broadcast(pack(tasks, bins))
        self.context.setJobDescription(f"{describe}: {len(tasks)} tasks")
        results: list[Any] = [Gap(Cause.TASK_WITHOUT_RESULT)] * len(tasks)
        keys = KeyTable()
        try:
            for index, seconds, fetched, answer in self._answers(len(bins), _worker(shared, self.report, plan, stores)):
                self.seconds[tasks[index].store] += seconds
                self.fetched[tasks[index].store] += fetched
                result = results[index] = read(answer)
                summary = getattr(result, "summary", result)
                if isinstance(summary, SegmentSummary):
                    keys.share(summary)
        finally:
            self.context.setJobDescription(None)  # type: ignore[arg-type]
            shared.unpersist()
        return results

    def _answers(self, partitions: int, work: Callable[[Iterable[int]], Iterator[Answer]]) -> Iterator[Answer]:
        """Yield all that the work yields over these partitions' numbers, in jobs of bounded answers."""
        done, size, count = 0, 0, FIRST_PARTITIONS_PER_CORE * max(1, self.context.defaultParallelism)
        while done < partitions:
            part = range(done, min(done + count, partitions))
            # No DataFrame: Spark SQL takes a second to begin, and has nothing to plan here.
            answers = self.context.parallelize(part, len(part)).mapPartitions(work).collect()
            done = part.stop
            size += sum(len(answer) for *_, answer in answers)
            answers.reverse()
            while answers:  # let go of one after the other
                yield answers.pop()
            count = max(1, ANSWER_BYTES * done // max(size, 1))

    def answers(
        self, tasks: Sequence[Task], describe: str, plan: DatasetPlan | None = None, stores: Sequence[str] = ()
    ) -> list[Any]:
        """Run tasks for an audit, which opens results one by one.

        A large result is replaced by a `PackedValue`.
        plan, stores: as `_run` has them.
        """
        return self._run(tasks, describe, _packed, plan, stores)


def _packed(answer: bytes) -> Any:
    """Return the result, or a `PackedValue` if it is large: all results of a round would lie here together."""
    result = pickle.loads(answer)
    return PackedValue(answer) if _is_large(result) else result


def _is_large(result: Any) -> bool:
    """Say whether an answer is about many queues or files, or has many findings or runs."""
    if isinstance(result, list):
        return len(result) > 1 or any(len(getattr(one, "digests", ())) > _MANY_FILES for one in result)
    many = len(getattr(result, "findings", ())) > _MANY_FINDINGS or len(getattr(result, "runs", ())) > _MANY_RUNS
    return many and not hasattr(result, "summary")


def partition(tasks: Sequence[Task], cores: int) -> list[list[int]]:
    """Return task numbers by partition, each to the partition with the least so far: dearest first.

    Where time counts, a partition per core, so that all begin at once, and in order: every store's first task, then every
    store's second one, ...
    """
    weights = [task.cost if isinstance(task, SegmentTask) else task.bytes_to_read for task in tasks]
    size = sum(task.bytes_to_read for task in tasks)
    if any(task.not_after for task in tasks):
        count, met = cores, Counter[int]()
        places = []
        for i, task in enumerate(tasks):
            places.append((met[task.store], task.store, i))
            met[task.store] += 1
        order = [i for _, _, i in sorted(places)]
    else:
        each = 1 if size < FEW_BYTES and len(tasks) < FEW_TASKS else PARTITIONS_PER_CORE
        count = max(1, min(len(tasks), max(cores * each, size // PARTITION_BYTES)))
        order = sorted(range(len(tasks)), key=lambda i: -weights[i])
    bins: list[list[int]] = [[] for _ in range(count)]
    heap = [(0, b) for b in range(count)]
    for i in order:
        load, b = heapq.heappop(heap)
        bins[b].append(i)
        heapq.heappush(heap, (load + weights[i] + (1 << 16), b))  # a task costs something however little it reads
    return [b for b in bins if b]


# What the tasks of one store have in common: pickled once a round, not once a partition.
_COMMON = ("rules", "queue_files", "batch_queue_files", "ext_files", "index", "location", "log", "others")


# Classes of their own: Python 3.13.0 lets nobody set these methods of a pickler.


class _Referring(pickle.Pickler):
    """Writes a number for each object that has one."""

    def __init__(self, stream: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(stream, protocol=5)
        self._numbers = numbers

    def persistent_id(self, value: Any) -> int | None:
        return self._numbers.get(id(value))


class _Resolving(pickle.Unpickler):
    """Reads the object for each such number."""

    def __init__(self, content: bytes, load: Callable[[int], Any]) -> None:
        super().__init__(io.BytesIO(content))
        self._load = load

    def persistent_load(self, reference: int) -> Any:
        return self._load(reference)


def pack(tasks: Sequence[Task], bins: Sequence[Sequence[int]]) -> tuple[list[bytes], list[bytes]]:
    """Return pickles of the objects that tasks share, and one pickle per partition, which refers to them by number."""
    numbers: dict[int, int] = {}
    common: list[bytes] = []
    for task in tasks:
        for name in _COMMON:
            value = getattr(task, name, None)
            if value is not None and id(value) not in numbers:
                numbers[id(value)] = len(common)
                common.append(pickle.dumps(value, protocol=5))
    packed = []
    for bin_ in bins:
        stream = io.BytesIO()
        _Referring(stream, numbers).dump([(i, tasks[i]) for i in bin_])
        packed.append(stream.getvalue())
    return common, packed


def unpack(shared: tuple[list[bytes], list[bytes]], number: int) -> list[tuple[int, Task]]:
    """Return the tasks of one partition."""
    common, packed = shared
    loaded: dict[int, Any] = {}

    def load(reference: int) -> Any:
        if reference not in loaded:
            loaded[reference] = pickle.loads(common[reference])
        return loaded[reference]

    tasks: list[tuple[int, Task]] = _Resolving(packed[number], load).load()
    return tasks


def _worker(
    shared: Any, report: Report, plan: DatasetPlan | None, stores: Sequence[str]
) -> Callable[[Iterable[int]], Iterator[Answer]]:
    def work(numbers: Iterable[int]) -> Iterator[Answer]:
        spare_the_collector()
        checksum.trust()
        context = TaskContext.get()
        with ExitStack() as stack:
            stack.enter_context(databases_kept_open())
            run = run_pickled
            if context is not None and context.attemptNumber():  # a worker was lost with one of these tasks
                run = stack.enter_context(Apart()).run
            for number in numbers:
                for index, task in unpack(shared.value, number):
                    began, before = time.monotonic(), fetched_bytes()
                    answer = run(task, plan, stores)
                    yield index, time.monotonic() - began, fetched_bytes() - before, answer
                    report(task.bytes_to_read, int(isinstance(task, SegmentTask)), task.store)

    return work


def spare_the_collector() -> None:
    """Have Python's garbage collector leave alone what is in memory now: above all what the compiler's modules are made of.

    A worker collects after each partition (pyspark/daemon.py) and looked through some hundred thousand objects each time, which
    took longer than most partitions. Present garbage goes first, so that it is not kept.
    """
    gc.collect()
    gc.freeze()
