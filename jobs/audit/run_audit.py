"""The audit as a table of contents: prepare, scan, fold, write. Many stores go through each Spark job together."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from jobs import RULES_VERSION, VERSION
from jobs.audit.datasets import DatasetPlan, SegmentOutput, by_dataset
from jobs.audit.earlier_runs import Furthest, Reading, earlier_runs
from jobs.audit.listing import listing_problems
from jobs.audit.outcomes import not_audited
from jobs.audit.progress import Progress, SparkCounters
from jobs.command_line.options import AuditOptions
from jobs.command_line.stores import StoreArgument
from jobs.faults import reason
from jobs.output import INDEX, REPLICAS, RESULT, OutputFolder
from jobs.report.files.result_json import RunInfo, result_json
from jobs.report.files.store_json import config_json, findings_jsonl, plan_json, replicas_json
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts.commands import store_words
from jobs.report.texts.summary_text import summary_text
from jobs.tables.data_file import DataFile
from schemas.rows import AuditOutcome
from store_io.audit.audit_request import AuditRequest
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.audit.compared.compared_audit import ComparedAudit
from store_io.base import checksum
from store_io.base.errors import StoreError
from store_io.base.exit_codes import of_run
from store_io.base.tasks import Task
from store_io.replicas.replica_groups import replica_groups
from store_io.scan.segment_scan import SegmentTask
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:
    from jobs.audit.runner import Runner
    from jobs.jvm import Jvm
    from jobs.session import Session

BATCH_STORES = 256  # audited together; bounds what the driver holds of a large fleet


def run(asked: AuditOptions, jvm: Jvm) -> int:
    """Audit all stores, write all results; the exit code. jvm: the one that starts for it."""
    from jobs import session
    from jobs.audit import runner  # noqa: F401  so that workers have it loaded too
    from jobs.warm_workers import WarmWorkers
    from jobs.without_pandas import leave_pandas_out

    leave_pandas_out()
    with contextlib.closing(WarmWorkers(jvm.workers_place)) as workers, session.on(jvm, workers) as started:
        return run_with(started, asked)


def run_with(started: Session, asked: AuditOptions) -> int:
    """The same on a running session."""
    began = time.monotonic()
    checksum.trust()  # the engine that this machine offers is trusted once crcmod agrees with it
    info = RunInfo(asked.run_id, VERSION, RULES_VERSION, datetime.now(UTC), tables=asked.tables or f"{asked.out}/tables")
    output = OutputFolder(asked.out)
    output.begin([store.name for store in asked.stores])
    problems: list[str] = []
    outcomes: list[AuditOutcome] = []
    counters = SparkCounters(started.context)
    shown = sys.stderr if asked.progress or asked.progress_json else None
    with Progress(shown, counters, asked.progress_json) as progress:
        reading = replace(_reading(started, asked, info), past=_past(started, info))
        wanted = Wanted(DatasetPlan(info.tables, info.run_id, tuple(sorted(asked.write)))) if asked.write else None
        for outcome in audit_stores(started, asked.stores, progress, counters, wanted, reading):
            outcomes.append(outcome)
            plan = f"{asked.out}/{outcome.name}/plan.json"
            context = PageContext(info, store_words(asked.stores[len(outcomes) - 1]), plan, index=True)
            problems += write_store(output, outcome, context)
        problems += [problem for problem in (reading.past.result().problem,) if problem] if reading.past is not None else []
        problems += write_tables(started, info, outcomes, wanted)
    info = replace(info, seconds=time.monotonic() - began, problems=tuple(problems))
    info = replace(info, problems=(*problems, *write_run_files(output, info, outcomes)))
    output.write(RESULT, result_json(info, outcomes))
    words = store_words(asked.stores[0]) if len(asked.stores) == 1 else ()
    print(summary_text(info, outcomes, asked.out, asked.color, words), end="", flush=True)
    return of_run((o.exit_code for o in outcomes), info.problems)


@dataclass
class Wanted:
    """The record-level datasets of a run: what tasks shall write, and what they have written so far."""

    plan: DatasetPlan
    files: list[dict[str, DataFile]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def take(self, answer: Any) -> Any:
        """Keep what a task wrote; what it found is passed on."""
        if not isinstance(answer, SegmentOutput):
            return answer
        self.files.append(answer.files)
        if answer.problem:
            self.problems.append(answer.problem)
        return answer.summary


def audit_stores(
    started: Session,
    stores: Sequence[StoreArgument],
    progress: Progress,
    counters: SparkCounters,
    wanted: Wanted | None = None,
    reading: Reading | None = None,
) -> Iterator[AuditOutcome]:
    """The outcome of each store, in their order; BATCH_STORES of them share each Spark job, and all copies of a group do.

    wanted: datasets that the first round, which reads each segment whole, writes on the way.  reading: how much is read;
    None: every byte.
    """
    from jobs.audit.add_repair_sections import add_repair_sections
    from jobs.audit.runner import Runner

    runner = Runner(started.context, counters.report)
    names = [store.name for store in stores]
    done: dict[int, AuditOutcome] = {}  # those whose turn has not come
    turn = 0
    for batch in batches(stores):
        with ThreadPoolExecutor(8) as threads:
            prepared = list(threads.map(lambda one: _prepare(one[0], one[1], reading or Reading()), batch))
        audits = [a for a in prepared if isinstance(a, StoreAudit)]
        witness = ThreadPoolExecutor(1)  # Spark's listing runs beside the first round: neither waits for the other
        listed = witness.submit(listing_problems, started.context, audits)
        witness.shutdown(wait=False)
        plans = [wanted.plan] if wanted is not None else []  # of the first round alone

        def run_tasks(tasks: list[Task], plans: list[DatasetPlan] = plans) -> list[Any]:
            segments = sum(isinstance(task, SegmentTask) for task in tasks)
            progress.expect("reading", sum(task.bytes_to_read for task in tasks), segments)
            asking = len({task.store for task in tasks})
            answers = runner.answers(tasks, f"{asking} stores", plans.pop() if plans else None, names)
            return answers if wanted is None else [wanted.take(answer) for answer in answers]

        run_rounds([(a, a.first) for a in audits], run_tasks)
        for audit, sentences in zip(audits, listed.result(), strict=True):
            audit.incomplete.extend(sentences)
        for (_, store), one in zip(batch, prepared, strict=True):
            if isinstance(one, StoreAudit):
                if reading is not None and reading.past is not None:
                    past = reading.past.result()
                    one.hold_against(past.of(store), store.named, partial(past.segments, store))
                one.settle()
        compare_replicas(runner, prepared, progress)
        outcomes = [answer.outcome() if isinstance(answer, StoreAudit) else answer for answer in prepared]
        add_repair_sections(runner, [store for _, store in batch], outcomes)
        done.update(zip((number for number, _ in batch), outcomes, strict=True))
        while turn in done:
            yield done.pop(turn)
            turn += 1


def batches(stores: Sequence[StoreArgument], most: int = BATCH_STORES) -> Iterator[list[tuple[int, StoreArgument]]]:
    """The stores with their numbers, `most` together, and more only where a group's copies would be separated."""
    groups: dict[str, list[int]] = {}
    for number, store in enumerate(stores):
        if store.replica_group:
            groups.setdefault(store.replica_group, []).append(number)
    batch: list[int] = []
    taken: set[int] = set()
    for number, store in enumerate(stores):
        if number in taken:
            continue
        together = groups[store.replica_group] if store.replica_group else [number]
        taken.update(together)
        batch += together
        if len(batch) >= most:
            yield [(n, stores[n]) for n in sorted(batch)]
            batch = []
    if batch:
        yield [(n, stores[n]) for n in sorted(batch)]


def compare_replicas(runner: Runner, prepared: Sequence[StoreAudit | AuditOutcome], progress: Progress) -> None:
    """Compare the copies of each group, in one Spark job.

    Adds to the audits' findings, gives them their group's row of replicas.json, and makes those incomplete whose files could not
    be compared.
    """
    audits = [audit for audit in prepared if isinstance(audit, StoreAudit)]
    absent = [(store.replica_group, store.name) for store in prepared if isinstance(store, AuditOutcome) and store.replica_group]
    groups = replica_groups(audits, absent)
    try:
        tasks = [group.tasks() for group in groups]
        if groups:
            progress.expect("comparing copies", sum(task.bytes_to_read for own in tasks for task in own), 0)
        answers = iter(runner.answers([task for own in tasks for task in own], "copies of one log"))
        for group, own in zip(groups, tasks, strict=True):
            group.finish([next(answers) for _ in own])
    except Exception as fault:  # a bug here must not lose the audits: they are marked incomplete
        for audit in audits:
            if audit.request.replica_group and not audit.replicas:
                audit.incomplete.append(f"the copies of this log could not be compared: {type(fault).__name__}: {reason(fault)}")


def _reading(started: Session, asked: AuditOptions, info: RunInfo) -> Reading:
    """How much is to be read. The time that was granted counts from here, where Spark is there."""
    not_after = time.time() + asked.max_seconds if asked.max_seconds is not None else 0
    if asked.since_run is None and asked.max_seconds is None:
        return Reading(asked.level)
    from jobs.tables.delta_tables import Tables

    before = earlier_runs(Tables(started, info.tables), asked.stores, asked.since_run, info.run_id, info.rules_version)
    return Reading(asked.level, not_after, before, asked.since_run is not None)


def _past(started: Session, info: RunInfo) -> Future[Furthest]:
    """How far each store's log reached in earlier runs: read beside the first round, which waits for nothing of it."""
    from jobs.tables.delta_tables import Tables

    thread = ThreadPoolExecutor(1)
    past = thread.submit(lambda: Furthest(lambda: Tables(started, info.tables), info.run_id).read())
    thread.shutdown(wait=False)
    return past


def _prepare(number: int, store: StoreArgument, reading: Reading) -> StoreAudit | AuditOutcome:
    """The store's audit with its first tasks; an outcome of code 3 where it cannot even begin."""
    if store.problem:
        return not_audited(store, store.problem)
    request = AuditRequest(
        store.name, StoreLocation(store.path, store.parts), store.release, store.broker_conf, store.replica_group or "", number,
        level=reading.level, not_after=reading.not_after, earlier=reading.earlier.get(store.name), reuse=reading.reuse,
        release_from=store.release_from, releases=store.releases, perhaps_emptied=True,
    )  # fmt: skip
    audit = ComparedAudit(request) if request.releases else StoreAudit(request)
    try:
        audit.first = audit.first_tasks()
    except (StoreError, OSError) as problem:
        return not_audited(store, str(problem))
    return audit


def write_store(output: OutputFolder, outcome: AuditOutcome, context: PageContext | None = None) -> list[str]:
    """The store's own files; sentences about what could not be written."""
    with _noted() as problems:
        output.write(f"{outcome.name}/plan.json", plan_json(outcome))
        output.write(f"{outcome.name}/findings.jsonl", findings_jsonl(outcome.findings))
        if outcome.config is not None:
            output.write(f"{outcome.name}/config.json", config_json(outcome.config))
        output.write(f"{outcome.name}/report.html", report_html(outcome, context))
    return problems


def write_run_files(output: OutputFolder, info: RunInfo, outcomes: Sequence[AuditOutcome]) -> list[str]:
    """The page of the whole run, and how groups of copies compare; sentences about what could not be written."""
    with _noted() as problems:
        output.write(INDEX, index_html(info, outcomes))
        if any(outcome.replicas for outcome in outcomes):
            output.write(REPLICAS, replicas_json(outcomes))
    return problems


def write_tables(started: Session, info: RunInfo, outcomes: Sequence[AuditOutcome], wanted: Wanted | None) -> list[str]:
    """The run's rows; sentences about what could not be written, the datasets of tasks too."""
    from jobs.tables.delta_tables import Tables

    with _noted() as problems:
        Tables(started, info.tables).write_run(info, outcomes, by_dataset(wanted.files) if wanted is not None else None)
    return [*dict.fromkeys(wanted.problems if wanted is not None else ()), *problems]


@contextlib.contextmanager
def _noted() -> Iterator[list[str]]:
    problems: list[str] = []
    try:
        yield problems
    except StoreError as problem:
        problems.append(str(problem))
