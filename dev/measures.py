"""The measurements of `dev.run_bench`, one function each. Times are wall time, of kinds processor time: the least of the
rounds.

What is compared takes turns over the same bytes within a round: another program on the machine then slows both.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dev.bench_stores import BenchFailed
from dev.peers import measure_load
from dev.sample_store import RELEASE
from dev.this_machine import peak_bytes, reset_peak
from jobs import RULES_VERSION, VERSION
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.installation import command_words
from jobs.runtime import setup as environment
from jobs.tasks.runner import spare_the_collector
from schemas.tables import DATASETS
from store_io.answer.headline import verdict_text
from store_io.audit.audit_store import StoreAudit, run_local
from store_io.base.crc import checksum
from store_io.base.tasks import run_task
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.repair.repair_plan import plan_text
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.wording.gaps import gap_text

if TYPE_CHECKING:
    from jobs.runtime.session import Session

FLOOR_BUFFERS = (256 << 10, 1 << 20, 4 << 20)  # bytes; the fastest of them counts


# ---- the segment task, in this process -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScanTimes:
    """Seconds for the segments of one nominal body size, one after the other on one core.

    floor: reading them and the CRC-32 of all their bytes.
    task: the whole task without the index.
    with_index: with it.
    """

    body: int
    size_bytes: int
    messages: int
    floor: float
    task: float
    with_index: float


def measure_scans(root: Path, bodies: Sequence[int], rounds: int) -> list[ScanTimes]:
    """Return the tasks against the floor, by body size. bodies: the nominal one of each segment of the store, in order."""
    tasks = [task for task in _audit(root).first_tasks() if isinstance(task, SegmentTask)]
    source = open_source(StoreLocation(str(root)))
    buffers = [np.empty(size, np.uint8) for size in FLOOR_BUFFERS]
    messages = [_check_scan(task) for task in tasks]
    spare_the_collector()  # as a worker does
    best: dict[tuple[int, str], float] = {}
    for _ in range(rounds):
        for number, task in enumerate(tasks):
            alone = replace(task, index=None)
            for buffer in buffers:
                _keep_least(best, (number, "floor"), lambda t=task, b=buffer: _read_and_sum(source, t.path, b))  # type: ignore[misc]
            _keep_least(best, (number, "task"), lambda t=alone: run_task(t))  # type: ignore[misc]
            _keep_least(best, (number, "with_index"), lambda t=task: run_task(t))  # type: ignore[misc]
    gc.unfreeze()
    found = []
    for body in dict.fromkeys(bodies):
        mine = [number for number, of_segment in enumerate(bodies) if of_segment == body]
        sums = [sum(best[number, what] for number in mine) for what in ("floor", "task", "with_index")]
        found.append(ScanTimes(body, sum(tasks[n].size for n in mine), sum(messages[n] for n in mine), *sums))
    return found


def _keep_least(
    best: dict[tuple[int, str], float],
    key: tuple[int, str],
    action: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    began = clock()
    action()
    best[key] = min(best.get(key, float("inf")), clock() - began)


def _processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _audit(root: Path) -> StoreAudit:
    return StoreAudit(AuditRequest(root.name, StoreLocation(str(root)), RELEASE))


def _check_scan(task: SegmentTask) -> int:
    """Run the task once, and check that it finds a sound segment. Compiled code is then loaded, and the file is in memory."""
    summary = run_task(task)
    messages: int = sum(extent.message_count for extent in summary.extents)
    unlike = {int(match) for match in summary.runs["match"]} if len(summary.runs) else set()
    if summary.problem or summary.findings or not messages or len(unlike) != 1:
        why = gap_text(summary.problem) if summary.problem else ""
        raise BenchFailed(f"{task.path}: a sound segment is not found sound: {why or summary.findings[:1]}")
    return messages


def _read_and_sum(source: ByteSource, path: str, buffer: np.ndarray) -> None:
    view = buffer.data
    with source.open(path) as file:
        at = 0
        while at < file.size:
            count = file.read_into(at, buffer)
            checksum.crc32(view[:count])
            at += count


# ---- other kinds of store, in this process ------------------------------------------------------------------------------


@dataclass(frozen=True)
class KindTimes:
    """Seconds of processor time for an audit of one kind of store, with the process that reads RocksDB.

    audit: all tasks and the work between them.
    floor: reading the log's files and the CRC-32 of all their bytes.
    entries: those of all ConsumeQueues.
    """

    kind: str
    size_bytes: int
    entries: int
    floor: float
    audit: float


def measure_kind(root: Path, kind: str, settings: str, rounds: int) -> KindTimes:
    """Return the whole audit of the store against the floor. settings: of its broker.conf."""
    request = AuditRequest(root.name, StoreLocation(str(root)), RELEASE, settings)
    source, outcome = open_source(request.location), run_local(request)
    if outcome.exit_code or outcome.found.findings:
        raise BenchFailed(f"{root}: a sound store is not found sound: {verdict_text(outcome)}")
    spare_the_collector()
    paths = [row["file"] for row in outcome.rows.segments]
    best: dict[tuple[int, str], float] = {}
    buffer = np.empty(FLOOR_BUFFERS[1], np.uint8)

    def read_log() -> None:
        for path in paths:
            _read_and_sum(source, path, buffer)

    for _ in range(rounds):
        _keep_least(best, (0, "floor"), read_log, _processor_seconds)
        _keep_least(best, (0, "audit"), lambda: run_local(request), _processor_seconds)
    size = sum(int(row["size_bytes"]) for row in outcome.rows.segments)
    return KindTimes(kind, size, outcome.holds.messages, best[0, "floor"], best[0, "audit"])


# ---- audits in a session ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditTimes:
    """Seconds of audits.

    first: the first audit in the session, with tables.
    audit: a later one, to plan and findings.
    tables: the Delta tables on top.
    datasets: all record-level datasets on top of both; None if not asked for.
    """

    first: float
    audit: float
    tables: float
    datasets: float | None


def measure_audits(started: Session, root: Path, out: Path, rounds: int, datasets: bool) -> AuditTimes:
    """Run audits of one store in one session, which has done nothing yet. All rounds add to the same tables."""
    asked = AuditOptions((StoreArgument(root.name, str(root), RELEASE),), str(out))
    everything = replace(asked, write=frozenset(DATASETS))
    first = sum(_one_audit(started, replace(asked, run_id="first")))
    plain, more = [], []
    for number in range(rounds):
        plain.append(_one_audit(started, replace(asked, run_id=f"round-{number}")))
        if datasets:
            more.append(sum(_one_audit(started, replace(everything, run_id=f"datasets-{number}"))))
    audit, tables = min(row[0] for row in plain), min(row[1] for row in plain)
    return AuditTimes(first, audit, tables, min(more) - audit - tables if more else None)


def _one_audit(started: Session, asked: AuditOptions) -> tuple[float, float]:
    """Return seconds (to plan and findings, for the tables): what `jobs.audit.run_audit.run_with` does, with a clock between the
    two."""
    from jobs.audit import run_audit as audit
    from jobs.cli.stores import RESULT
    from jobs.report.files.result_files import RunInfo, result_json
    from jobs.runtime.output import OutputFolder, Unwritten, said_once
    from jobs.tables.datasets import DatasetPlan
    from jobs.tasks.progress import Progress, SparkCounters
    from jobs.tasks.runner import Runner

    began = time.perf_counter()
    info = RunInfo(asked.run_id, VERSION, RULES_VERSION, datetime.now(UTC), tables=f"{asked.out}/tables")
    output = OutputFolder(asked.out)
    output.begin([store.name for store in asked.stores])
    counters = SparkCounters(started.context)
    runner = Runner(started.context, counters.report)
    wanted = audit.Wanted(DatasetPlan(info.tables, info.run_id, tuple(sorted(asked.write)))) if asked.write else None
    outcomes = []
    problems: list[Unwritten] = []
    with Progress(None, counters) as progress:
        for outcome in audit.audit_stores(audit.StoresToAudit(runner, asked.stores, progress, wanted=wanted)):
            outcomes.append(outcome)
            problems += audit.write_store(output, outcome)
    output.write(RESULT, result_json(info, outcomes))
    audited = time.perf_counter()
    problems += audit.write_tables(started, info, outcomes, wanted)
    written = time.perf_counter()
    if problems or any(outcome.exit_code for outcome in outcomes):
        raise BenchFailed(f"a sound store is not found sound: {said_once(problems) or verdict_text(outcomes[0])}")
    return audited - began, written - audited


# ---- the memory of a worker ------------------------------------------------------------------------------------------


def measure_peak(started: Session, root: Path) -> int | None:
    """Return the most memory (RSS, bytes) that a Spark worker held during the task of the store's one segment.

    None if the system does not measure it.
    """
    if reset_peak() is None:
        return None
    task = next(task for task in _audit(root).first_tasks() if isinstance(task, SegmentTask))
    packed = pickle.dumps(task)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            peak, problem = _peak_of(pickle.loads(packed))
            yield pa.RecordBatch.from_pydict({"peak": [peak], "problem": [problem]})

    row = started.spark.range(0, 1, 1, 1).mapInArrow(work, "peak long, problem string").collect()[0]
    if row["problem"]:
        raise BenchFailed(row["problem"])
    return int(row["peak"])


def _peak_of(task: SegmentTask) -> tuple[int, str]:
    reset_peak()
    summary = run_task(task)
    return peak_bytes() or 0, gap_text(summary.problem) if summary.problem else "" if summary.extents else "nothing was scanned"


# ---- the command -----------------------------------------------------------------------------------------------------


def measure_command(root: Path, out: Path, spark_words: Sequence[str], rounds: int) -> float | None:
    """Return the seconds of the audit command as a process of its own; None if the environment is not made."""
    if not environment.is_ready():
        return None
    words = [*command_words(), "audit", str(root), "--out", str(out), "--release", RELEASE, *spark_words]
    best = float("inf")
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        began = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, env=command_variables())
        best = min(best, time.perf_counter() - began)
        if done.returncode:
            raise BenchFailed(f"the audit command ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return best


# ---- the repair, as a command ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RepairTimes:
    """Least wall time of the rounds, in seconds, for a store without queues and index.

    body: the nominal body size of its messages.
    copy: `cp -r` of it.
    flushed: the same, and the copy flushed to the disk.
    repair: the command, from its start to its end.
    load: load() of such a copy by a release, which makes queues and index anew as well; None without its jars.
    """

    body: int
    size_bytes: int
    copy: float
    flushed: float
    repair: float
    load: float | None = None


def measure_repair(
    root: Path, body: int, spark_words: Sequence[str], rounds: int, jars: Path | None = None
) -> RepairTimes | None:
    """Damage the store, so that all that can be made anew is, and repair it again and again.

    None if the environment is not made, or there is no `cp`.
    jars: those of a release.
    """
    if not environment.is_ready() or shutil.which("cp") is None:
        return None
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)
    (root / "abort").touch()  # without it a start would not make them anew
    (root / "checkpoint").write_bytes(bytes(4096))
    outcome = run_local(AuditRequest(root.name, StoreLocation(str(root)), RELEASE))
    plan, copy, new = (root.with_name(f"{root.name}-{what}") for what in ("plan.json", "copy", "new"))
    plan.write_text(plan_text(outcome), "utf-8")
    words = [*command_words(), "repair", str(root), "--plan", str(plan), "--to", str(new), *spark_words]
    best: dict[str, float] = {}
    for _ in range(rounds):
        began = time.perf_counter()
        done = subprocess.run(["cp", "-r", str(root), str(copy)], capture_output=True, text=True)
        copied = time.perf_counter()
        if done.returncode:
            raise BenchFailed(f"cp ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        _flush_folder(copy)
        flushed = time.perf_counter()
        if jars is not None:
            best["load"] = min(best.get("load", float("inf")), measure_load(copy, jars))
        shutil.rmtree(copy)
        os.sync()  # so that what was written or removed before slows nothing that is measured
        at = time.perf_counter()
        done = subprocess.run(words, capture_output=True, text=True, env=command_variables())
        repaired = time.perf_counter()
        if done.returncode:
            raise BenchFailed(f"the repair command ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
        for made in root.parent.glob(f"{new.name}*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        os.sync()  # so that what was written or removed before slows nothing that is measured
        for what, seconds in (("copy", copied - began), ("flushed", flushed - began), ("repair", repaired - at)):
            best[what] = min(best.get(what, float("inf")), seconds)
    size = sum(int(row["size_bytes"]) for row in outcome.rows.segments)
    return RepairTimes(body, size, best["copy"], best["flushed"], best["repair"], best.get("load"))


def command_variables() -> dict[str, str]:
    """Return variables for a command as users type it: without those that change Python, as one that keeps no compiled modules
    does."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**known, "STORE_AUDIT_HOME": str(environment.home())}


def _flush_folder(folder: Path) -> None:
    """Flush all files below the folder to the disk."""
    for path in sorted(folder.rglob("*")):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
