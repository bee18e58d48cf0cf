"""The last messages that a query finds: first where they begin, from the log's end back, then a reading from there on.

The tasks of such a search, and of any with a limit, run in waves: where the first ones are enough, the others need not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from schemas.rows import MappedFile
from store_io.base.crc import checksum
from store_io.messages.message_filter import Contents
from store_io.messages.message_search import LastTask, last_places
from store_io.messages.scans import MessageScan

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from jobs.runtime.spark_start import LazySpark

MOST = 10_000_000  # places are held: 8 bytes each
WAVE_BYTES = 256 << 20  # of places that the tasks of a wave bring back at most; one task alone may bring back more
GROWTH, MOST_TIMES = 2, 16  # each part is so many times as large as the one before, up to so many times the first
_T = TypeVar("_T")


def first_of_last(
    scan_of: Callable[[MappedFile], MessageScan], contents: Contents, segments: Sequence[MappedFile], most: int, spark: LazySpark
) -> tuple[int, int]:
    """Return (physical offset of the first of the last `most` messages, how many rows from it on come before these).

    With fewer messages it is that of the first one. Reads segments from the last one back, until they hold so many.
    """
    end = segments[-1].start + segments[-1].size if segments else 0
    return start_of(_found(scan_of, contents, segments, most, spark), most, end)


def start_of(places: Iterator[np.ndarray], most: int, end: int) -> tuple[int, int]:
    """Return the start by places, ascending, of one segment after the other from the last one back.

    It is `end` if there are none.
    """
    left, first, above = most, end, 0
    for found in places:
        taken = found[-left:]
        if len(taken):
            first = int(taken[0])
            above = int((found == first).sum()) - int((taken == first).sum())  # others of the same inner batch
        left -= len(taken)
        if left <= 0:
            break
    return first, above


def _found(
    scan_of: Callable[[MappedFile], MessageScan], contents: Contents, segments: Sequence[MappedFile], most: int, spark: LazySpark
) -> Iterator[np.ndarray]:
    """Yield the places of each segment, from the last one back.

    A large search goes through Spark, after the last segment alone.
    """
    tasks = [LastTask(scan_of(file), contents, most) for file in reversed(segments)]
    if len(tasks) < 3 or not spark.wanted(sum(file.size for file in segments[:-1])):
        yield from map(last_places, tasks)
        return
    yield last_places(tasks[0])
    context = spark.session.spark.sparkContext
    for part in waves(tasks[1:], context.defaultParallelism, max(1, WAVE_BYTES // (8 * most))):
        yield from context.parallelize(part, len(part)).map(_run).collect()


def _run(task: LastTask) -> np.ndarray:
    checksum.trust()
    return last_places(task)


def without_first(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches without their first `count` rows."""
    for batch in batches:
        if count < batch.num_rows:
            yield batch.slice(count)
        count = max(0, count - batch.num_rows)


def waves(tasks: Sequence[_T], at_once: int, most: int | None = None) -> Iterator[Sequence[_T]]:
    """Yield all tasks, in order, in parts that grow while nobody has enough. The first part has as many as can run at once.

    most: the tasks of one part; None: no other bound than that of growth.
    """
    bound = at_once * MOST_TIMES if most is None else min(at_once * MOST_TIMES, most)
    size, at = min(at_once, bound), 0
    while at < len(tasks):
        yield tasks[at : at + size]
        at, size = at + size, min(size * GROWTH, bound)
