"""Measures questions about the messages of a store as a table, each against two Spark tasks that read and sum the same bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dev.bench_stores import BenchFailed
from dev.sample_store import RELEASE
from jobs import sources
from jobs.runtime.session import Session
from store_io.base.crc import checksum
from store_io.messages.open_store import open_store
from store_io.source.byte_source import StoreLocation, open_source

TASKS = 2  # of the floor
BUFFER_BYTES = 1 << 20
FLOOR = "floor: read and CRC-32 in two tasks"
LIMITS: dict[str, float | None] = {
    FLOOR: None,
    "two columns by schema": 1.5,
    "all columns but bodies": 4.0,
    "count() of one column": 1.5,
    "count() of all columns": 1.5,
    "one message by its unique key": 1.0,
}


@dataclass(frozen=True)
class QuestionTimes:
    """The least seconds of the rounds by question, on the clock and of the processors of all processes (empty without /proc).

    first: the seconds on the clock of the first question, before the rounds.
    """

    size_bytes: int
    first: float
    wall: dict[str, float]
    processors: dict[str, float]


def measure_questions(started: Session, root: Path, rounds: int) -> QuestionTimes:
    """Ask each question in turns with the floor, in a session that has asked none yet."""
    spark, location = started.spark, StoreLocation(str(root))
    segments = [(file.path, file.size) for file in open_store(location).segments()]

    def table(columns: str | None = None, where: str | None = None) -> Any:
        named = {} if columns is None else {"columns": columns}
        return sources.read(spark, "messages", root, where=where, release=RELEASE, **named)

    def two_columns() -> None:
        table("topic,store_time").selectExpr("count(topic)", "max(store_time)").collect()

    began = time.perf_counter()
    two_columns()
    first = time.perf_counter() - began
    last = table("unique_key", f"phy_offset > {_end(root) - (1 << 20)}").head()
    wanted = last["unique_key"]

    def one() -> None:
        found = table("unique_key,topic,phy_offset", f"unique_key = '{wanted}'").collect()
        if len(found) != 1:
            raise BenchFailed(f"{root}: {len(found)} messages of one unique key")

    questions: tuple[Callable[[], object], ...] = (
        lambda: _read_and_sum(started, location, segments),
        two_columns,
        lambda: table().write.format("noop").mode("overwrite").save(),
        lambda: table("phy_offset").count(),
        lambda: table().count(),
        one,
    )
    asked = dict(zip(LIMITS, questions, strict=True))
    wall: dict[str, float] = {}
    processors: dict[str, float] = {}
    for _ in range(rounds):
        for what, ask in asked.items():
            before, began = _tree_seconds(), time.perf_counter()
            ask()
            wall[what] = min(wall.get(what, float("inf")), time.perf_counter() - began)
            used = sum(seconds - before.get(process, 0) for process, seconds in _tree_seconds().items())
            if before:
                processors[what] = min(processors.get(what, float("inf")), used)
    return QuestionTimes(_end(root), first, wall, processors)


def _end(root: Path) -> int:
    """Return the end of the log's data, as the file system knows it."""
    last = max((root / "commitlog").iterdir())
    return int(last.name) + min(last.stat().st_size, last.stat().st_blocks * 512)


def _read_and_sum(started: Session, location: StoreLocation, segments: list[tuple[str, int]]) -> None:
    """Have each of two tasks read its half of each segment."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        checksum.trust()
        buffer = np.empty(BUFFER_BYTES, np.uint8)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                total = 0
                for path, size in segments:
                    with open_source(location).open(path) as file:
                        at, high = size * number // TASKS, size * (number + 1) // TASKS
                        while (at := file.next_data(at)) < high:
                            count = file.read_into(at, buffer[: high - at])
                            total = checksum.crc32(buffer[:count].data, total)
                            at += count
                yield pa.RecordBatch.from_pydict({"total": [total]})

    started.spark.range(0, TASKS, 1, TASKS).mapInArrow(work, "total long").collect()


def _tree_seconds() -> dict[int, float]:
    """Return the processor seconds of this process and of all living ones below it; empty without /proc."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            with suppress(OSError, ValueError):  # it has just ended
                fields = Path(f"/proc/{name}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(name))
                used[int(name)] = int(fields[11]) + int(fields[12])
    found: dict[int, float] = {}
    left = [os.getpid()] if used else []
    while left:
        process = left.pop()
        found[process] = used.get(process, 0) / os.sysconf("SC_CLK_TCK")
        left += children.get(process, ())
    return found
