"""Stores larger than a disk: what the driver holds, and how the time between the tasks grows.

Each shape is a segment on the disk that `dev.sample_repeats` repeats. An audit goes its usual way, through Spark, to files
and tables; only the second listing by Spark is left out, as such a store is no folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dev.bench_stores import BenchFailed, write_pieces
from dev.sample_repeats import RepeatedLocation, light_template_pieces, template_pieces
from dev.sample_store import RELEASE, SampleStore
from dev.this_machine import peak_bytes, reset_peak
from jobs import RULES_VERSION, VERSION
from schemas.outcome import Outcome
from store_io.answer.headline import verdict_text
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.model.audit_request import AuditRequest

if TYPE_CHECKING:
    from jobs.runtime.session import Session

_MIB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A store, or several of them. Numbers for a part of 1; the repetitions, or the queues, go with the part.

    topics, queues: of each topic.
    segment_bytes, body: of the segment that is repeated.
    wide: the queues go with the part, and the segment with them.
    lost: no queue is there any more.
    """

    about: str
    repeats: int
    segment_bytes: int
    body: int
    topics: int
    queues: int = 8
    queue_file_bytes: int = 6_000_000
    stores: int = 1
    light: int = 0
    wide: bool = False
    wrong_every: int = 0
    lost: bool = False

    def make(self, folder: Path, part: float) -> list[RepeatedLocation]:
        """Write the segment into a new folder; return the places of the stores that repeat it."""
        share = part if self.wide else 1.0
        size = max(1, round(self.segment_bytes * share / 4096)) * 4096
        repeats = self.repeats if self.wide else max(1, round(self.repeats * part))
        if self.light:
            light = max(1, round(self.light * share))
            write_pieces(folder, light_template_pieces(light, 3 * light, self.queue_file_bytes))
        else:
            topics = max(1, round(self.topics * share))
            store = SampleStore([self.body], size, topics=topics, queues=self.queues, queue_file_bytes=self.queue_file_bytes)
            write_pieces(folder, template_pieces(store))
        return [RepeatedLocation(str(folder), repeats=repeats, wrong_every=self.wrong_every, lost=self.lost)] * self.stores


SHAPES = {
    "log": Shape("1 KiB messages in segments of 1 GiB", 64, 1 << 30, 1024, 20),
    "runs": Shape("5,000 queues x 200 segments", 200, 6 * _MIB, 64, 625),
    "files": Shape("1,000,000 queue files of 5,000 queues", 200, 6 * _MIB, 64, 625, queue_file_bytes=80),
    "queues": Shape("1,000,000 queues, a file each", 1, 1 << 30, 64, 125_000, queue_file_bytes=2000, wide=True),
    "lost": Shape("1,000,000 queues, all lost", 1, 1 << 30, 64, 125_000, queue_file_bytes=2000, wide=True, lost=True),
    "light": Shape("100,000 light queues", 2, 0, 0, 0, queue_file_bytes=2000, light=100_000, wide=True),
    "fleet": Shape("50,000 segments of 50 stores", 1000, _MIB, 1024, 2, queue_file_bytes=60_000, stores=50),
    "findings": Shape("10,000,000 wrong entries", 200, 30 * _MIB, 64, 625, wrong_every=2),
}


@dataclass(frozen=True)
class ScaleTimes:
    """An audit of one shape. Seconds; bytes.

    tasks: the wall time of all tasks, one after the other.
    driver: the processor time of this process, to the last file.
    tables: of these, for the tables.
    peak: the most memory of this process; started: before the audit. None if the system does not say.
    """

    shape: str
    segments: int
    queues: int
    queue_files: int
    messages: int
    findings: int
    log_bytes: int
    wall: float
    tasks: float
    driver: float
    tables: float
    started: int | None
    peak: int | None

    @property
    def units(self) -> int:
        """Return the number with which the driver's time grows: segments, queues and their files."""
        return self.segments + self.queues + self.queue_files


def measure_scale(started: Session, folder: Path, shape: str, part: float) -> ScaleTimes:
    """Audit the stores of a shape, or a part of it. Raises BenchFailed if an audit has an unexpected finding."""
    from jobs.audit import run_audit as audit
    from jobs.audit.results import put_away
    from jobs.report.files.result_files import RunInfo
    from jobs.runtime.output import OutputFolder, said_once
    from jobs.tasks.runner import Runner

    asked, out = SHAPES[shape], folder / "out"
    locations = asked.make(folder / shape, part)
    names = [f"{shape}-{number}" for number in range(len(locations))]
    runner = Runner(started.context, lambda *_: None)
    before = reset_peak()
    began, processor = time.perf_counter(), time.process_time()
    requests = [
        AuditRequest(name, location, RELEASE, location.settings(), store=number)
        for number, (name, location) in enumerate(zip(names, locations, strict=True))
    ]
    outcomes = _outcomes(requests, lambda tasks: runner.answers(tasks, shape))
    files = sum(int(queue["file_count"]) for outcome in outcomes for queue in outcome.rows.queues)
    info = RunInfo(shape, VERSION, RULES_VERSION, datetime.now(UTC), tables=f"{out}/tables")
    output = OutputFolder(str(out))
    output.begin(names)
    problems = []
    for outcome in outcomes:
        problems += audit.write_store(output, outcome)
        if len(outcomes) > 1:
            put_away(outcome)
    driver, at = time.process_time() - processor, time.process_time()
    problems += audit.write_tables(started, info, outcomes, None)
    wrong = [
        verdict_text(outcome)
        for outcome in outcomes
        if bool(outcome.exit_code) != bool(asked.wrong_every or asked.lost) or not outcome.complete
    ]
    if problems or wrong:
        raise BenchFailed(f"{shape}: {[*said_once(problems), *wrong][0]}")
    return ScaleTimes(
        shape,
        sum(outcome.holds.segment_count for outcome in outcomes),
        sum(len(outcome.rows.queues) for outcome in outcomes),
        files,
        sum(outcome.holds.messages for outcome in outcomes),
        sum(len(outcome.found.findings) + sum(outcome.found.dropped.values()) for outcome in outcomes),
        sum(int(segment["size_bytes"]) for outcome in outcomes for segment in outcome.rows.segments),
        time.perf_counter() - began,
        sum(runner.seconds.values()),
        driver,
        time.process_time() - at,
        before,
        peak_bytes(),
    )


def _outcomes(requests: Sequence[AuditRequest], run_tasks: Callable[[list[Any]], list[Any]]) -> list[Outcome]:
    audits = [StoreAudit(request) for request in requests]
    run_rounds([(audit, audit.first_tasks()) for audit in audits], run_tasks)
    outcomes = []
    while audits:
        outcomes.append(audits.pop(0).outcome())  # and what is known of the store besides is not needed any more
    return outcomes
