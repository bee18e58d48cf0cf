"""The audit as a table of contents: prepare, scan, fold, write. Many stores go through each Spark job together."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from jobs import RULES_VERSION, VERSION
from jobs.audit.copy_at_rest import broker_signs, listing_problems, refused
from jobs.audit.earlier_runs import Furthest, Reading, earlier_runs
from jobs.audit.finished_stores import FinishedStores
from jobs.audit.one_store import (
    Opened,
    SmallStores,
    Texts,
    WholeStore,
    opened_audit,
    page_context,
    request_of,
    store_files,
    unpacked_texts,
    with_repair_sections,
)
from jobs.audit.results import not_audited, put_away
from jobs.audit.store_batches import BYTES_PER_CORE, FoundCopies, batches, slow_stores
from jobs.cli.options import AuditOptions
from jobs.cli.stores import INDEX, REPLICAS, RESULT, StoreArgument
from jobs.report.files.result_files import RunInfo, replicas_json, result_json
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import PageContext
from jobs.report.texts.commands import store_words
from jobs.report.texts.summary_text import summary_text
from jobs.report.texts.text import printable
from jobs.runtime import interrupts
from jobs.runtime.faults import fault_sentence, is_no_room, reason
from jobs.runtime.output import OutputFailed, OutputFolder, Unwritten, said_once
from jobs.tables.datasets import DatasetPlan, SegmentOutput, by_dataset
from jobs.tables.table_files import DataFile
from jobs.tasks.progress import Progress, SparkCounters
from schemas.advice import Cause, Gap
from schemas.outcome import Outcome
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.base.crc import checksum
from store_io.base.errors import RefusedSetting, StoreError
from store_io.base.exit_codes import of_run
from store_io.base.paths import is_uri
from store_io.base.tasks import PartlyRead, Task
from store_io.base.wording import count_text
from store_io.log.scan.segment_scan import SegmentTask
from store_io.replicas.replica_groups import replica_groups
from store_io.source import disk_cache
from store_io.source.remote_file import fetched_bytes
from store_io.source.store_dir import StoreListing

_WARNINGS = 20  # of running brokers

if TYPE_CHECKING:
    from jobs.runtime.session import Session
    from jobs.tasks.runner import Runner


def open_ahead(asked: AuditOptions) -> Opened | None:
    """Open the store of a run of one, for which Spark need not be there; None of any other run."""
    if len(asked.stores) != 1 or asked.since_run is not None or asked.max_seconds is not None:
        return None
    return _prepare(0, asked.stores[0], Reading(asked.level, max_rate=asked.max_rate, since=asked.asked_at))


def run_with(started: Session, asked: AuditOptions, ahead: Opened | None = None) -> int:
    """Audit all stores, write all results, and return the exit code. ahead: as `open_ahead` gives it."""
    from jobs.tasks.runner import Runner

    began = time.monotonic()
    checksum.trust()  # the engine that this machine offers is trusted once crcmod agrees with it
    tables = asked.tables or f"{asked.out}/tables"
    info = RunInfo(asked.run_id, VERSION, RULES_VERSION, datetime.now(UTC), tables=tables, out=asked.out)
    output = OutputFolder(asked.out)
    with _noted(full_disk=True) as problems:
        output.begin([store.name for store in asked.stores], keep=True)
    finished = FinishedStores(output, asked)
    outcomes: list[Outcome] = []
    unwritten: set[str] = set()
    counters = SparkCounters(started.context)
    runner = Runner(started.context, counters.report)
    shown = sys.stderr if asked.progress or asked.progress_json else None
    with Progress(shown, counters, asked.progress_json) as progress:
        reading = replace(_reading(started, asked, info), past=_past(started, info, asked.stores))
        wanted = Wanted(DatasetPlan(info.tables, info.run_id, tuple(sorted(asked.write)))) if asked.write else None
        copies = FoundCopies(compare=not asked.of_fleet)
        small = SmallStores(runner, progress, info, reading, len(asked.stores)) if wanted is None else None
        to_audit = StoresToAudit(runner, asked.stores, progress, reading, wanted, finished, copies, small, ahead)
        for outcome in audit_stores(to_audit):
            if len(asked.stores) == 1:
                outcome = replace(outcome, in_use=_in_use(asked.stores[0]))
            context = page_context(asked.stores[len(outcomes)], info)
            failed = write_store(output, outcome, context, small.take_files(outcome.name) if small is not None else ())
            problems += failed
            if failed:
                unwritten.add(outcome.name)
            outcomes.append(put_away(outcome) if len(asked.stores) > 1 else outcome)
        past_problem = reading.past.result().problem if reading.past is not None else ""
        problems += [Unwritten(past_problem)] if past_problem else []
        problems += write_tables(started, replace(info, finished_at=datetime.now(UTC)), outcomes, wanted)
        for sentence in slow_stores([(o.name, o.cost.bytes_read, o.cost.task_seconds) for o in outcomes]):
            progress.say(sentence)
    info = replace(
        info, taken_over=finished.taken_over, seconds=time.monotonic() - began, problems=tuple(said_once(problems)),
        copies=tuple(copies.sentences),
    )  # fmt: skip
    missing = write_run_files(output, info, outcomes)
    problems += missing.values()
    unwritten.update(missing)
    info = replace(info, problems=tuple(said_once(problems)))
    with _noted(full_disk=True) as failed:
        output.write(RESULT, result_json(info, outcomes, {store.name: store_words(store) for store in asked.stores}))
    if failed:
        info = replace(info, problems=tuple(said_once([*problems, *failed])))
        unwritten.add(RESULT)
    info = replace(info, unwritten=frozenset(unwritten))
    finished.forget()
    words = store_words(asked.stores[0]) if len(asked.stores) == 1 else ()
    print(summary_text(info, outcomes, asked.out, asked.color, words), end="", flush=True)
    return of_run((o.exit_code for o in outcomes), info.problems)


@dataclass
class Wanted:
    """The record-level datasets of a run: what tasks shall write, and what they have written so far."""

    plan: DatasetPlan
    files: list[dict[str, DataFile]] = field(default_factory=list)
    problems: list[Unwritten] = field(default_factory=list)

    def take(self, answer: Any) -> Any:
        """Keep what a task wrote; what it found is passed on."""
        if isinstance(answer, PartlyRead):
            return replace(answer, result=self.take(answer.result))
        if not isinstance(answer, SegmentOutput):
            return answer
        self.files.append(answer.files)
        if answer.problem:
            self.problems.append(answer.problem)
        return answer.summary


@dataclass
class StoresToAudit:
    """The stores of a run, and what their audits share.

    reading: how much is read.
    wanted: datasets that the first round, which reads each segment whole, writes on the way.
    finished: what this run had finished before it was killed, and keeps now.
    copies: looks for copies of one log without a group, among the stores that are opened together.
    small: audits small stores by one task each, and has files rendered by tasks.
    ahead: the run's only store, if it is opened.
    """

    runner: Runner
    stores: Sequence[StoreArgument]
    progress: Progress
    reading: Reading = field(default_factory=Reading)
    wanted: Wanted | None = None
    finished: FinishedStores | None = None
    copies: FoundCopies | None = None
    small: SmallStores | None = None
    ahead: Opened | None = None


def audit_stores(asked: StoresToAudit) -> Iterator[Outcome]:
    """Yield the outcome of each store, in their order. Several of them share each Spark job, and all copies of a group do."""
    stores, progress, reading, finished, copies = asked.stores, asked.progress, asked.reading, asked.finished, asked.copies
    small, ahead = asked.small, asked.ahead
    progress.of_stores([store.name for store in stores])
    done = finished.take(reading.earlier) if finished is not None else {}  # outcomes of stores whose turn has not come, too
    progress.taken_over(len(done))
    taken, turn = frozenset(done), 0
    # A copy that may turn out to be one of a group is not kept before.
    keep = finished.keep_whole if finished is not None and (copies is None or not copies.compare) else None
    for batch in batches(stores):
        waiting = [one for one in batch if one[0] not in taken]
        known: Sequence[Opened | None] = [ahead] if ahead is not None else [None] * len(waiting)
        if small is not None and ahead is None:
            known = small.audits(waiting, keep)
        prepared = _prepared(waiting, known, reading)
        _warn_of_brokers(waiting, prepared, progress)
        if copies is not None:
            waiting, known = copies.grouped(waiting, prepared)
            prepared = _prepared(waiting, known, reading)  # a copy that one task has audited is opened to be compared
        opened = dict(enumerate(prepared))
        del known, prepared  # audits are let go of when they have ended
        for outcomes in _outcomes(asked, waiting, opened):
            if small is not None:
                small.render([waiting[place] for place in outcomes], [opened[place] for place in outcomes], [*outcomes.values()])
            for place in [*outcomes]:
                (number, store), one = waiting[place], opened.pop(place)
                outcome = done[number] = outcomes.pop(place)
                progress.ended(outcome.name, outcome.exit_code, outcome.cost.bytes_read, outcome.cost.task_seconds)
                # A copy whose group was found is not kept: another try looks for the group again.
                if finished is not None and store == stores[number] and not (keep and isinstance(one, WholeStore)):
                    finished.keep(store, outcome, _listing_of(one))
            while turn in done:
                yield done.pop(turn)
                turn += 1
    while turn in done:
        yield done.pop(turn)
        turn += 1


def _prepared(stores: Sequence[tuple[int, StoreArgument]], known: Sequence[Opened | None], reading: Reading) -> list[Opened]:
    """Return these numbered stores opened. A store without a known opening is opened now."""
    with interrupts.threads(8) as threads:
        return list(threads.map(lambda store, one: one or _prepare(store[0], store[1], reading), stores, known))


def _listing_of(one: Opened) -> StoreListing | None:
    """Return the listing of a store that could be opened."""
    if isinstance(one, WholeStore):
        return one.listing
    return one.copy.listing if isinstance(one, StoreAudit) and not one.failed else None


def _warn_of_brokers(stores: Sequence[tuple[int, StoreArgument]], prepared: Sequence[Opened], progress: Progress) -> None:
    """Say on the terminal, and nowhere else, on which of the stores a broker may still run."""
    said = [sentence for (_, store), one in zip(stores, prepared, strict=True) for sentence in _broker_signs(store, one)]
    for sentence in said[:_WARNINGS]:
        progress.warn(printable(f"{sentence}. Audit a copy that nothing writes to."))
    if len(said) > _WARNINGS:
        progress.warn(f"and {count_text(len(said) - _WARNINGS, 'more sign')} of running brokers")


def _broker_signs(store: StoreArgument, opened: Opened) -> list[str]:
    if isinstance(opened, WholeStore):
        return opened.broker_signs
    listing = _listing_of(opened)
    return broker_signs(store.path, listing.files).sentences() if listing is not None else []


def _in_use(store: StoreArgument) -> str:
    """Say why a repair refuses the store as long as a broker holds its lock; "" if none does."""
    signs = broker_signs(store.path, ())
    return f"A repair refuses a directory that a broker uses. {refused(signs, 'audit and repair')}." if signs.held else ""


def _outcomes(
    asked: StoresToAudit, stores: Sequence[tuple[int, StoreArgument]], prepared: Mapping[int, Opened]
) -> Iterator[dict[int, Outcome]]:
    """Yield outcomes of these numbered, opened stores, by the store's place in the list.

    The first outcomes are of stores that one task has audited. Then come as many stores together as keep all cores busy for
    a while. If time is limited all these stores are read together, so that each gets its share of the time.
    """
    opened = {place: one for place, one in prepared.items() if not isinstance(one, WholeStore)}
    yield {
        place: replace(one.outcome, cost=replace(one.outcome.cost, task_seconds=asked.runner.seconds[stores[place][0]]))
        for place, one in prepared.items()
        if isinstance(one, WholeStore)
    }
    weights = [sum(t.bytes_to_read for t in one.first) if isinstance(one, StoreAudit) else 0 for one in opened.values()]
    most = sum(weights) + 1 if asked.reading.not_after else BYTES_PER_CORE * max(1, asked.runner.context.defaultParallelism)
    places = [*opened]
    for part in batches([stores[place][1] for place in places], most, weights):
        own = [places[at] for at, _ in part]
        part_opened = [opened.pop(place) for place in own]
        yield dict(zip(own, _outcomes_together(asked, [stores[place] for place in own], part_opened), strict=True))


def _outcomes_together(
    asked: StoresToAudit, part: Sequence[tuple[int, StoreArgument]], prepared: Sequence[StoreAudit | Outcome]
) -> list[Outcome]:
    """Return the outcomes of these numbered stores, which share each job."""
    audits = [a for a in prepared if isinstance(a, StoreAudit)]
    for audit in audits:
        audit.begin()
    witness = ThreadPoolExecutor(1)  # Spark's listing runs beside the first round: neither waits for the other
    listed = witness.submit(listing_problems, asked.runner.context, audits)
    witness.shutdown(wait=False)
    plans = [asked.wanted.plan] if asked.wanted is not None else []  # of the first round alone
    keys = [store.key for store in asked.stores]

    def run_tasks(tasks: list[Task]) -> list[Any]:
        segments = sum(isinstance(task, SegmentTask) for task in tasks)
        sizes: Counter[int] = Counter()
        for task in tasks:
            sizes[task.store] += task.bytes_to_read
        asked.progress.expect("reading", sizes.total(), segments, sizes)
        answers = asked.runner.answers(tasks, f"{len(sizes)} stores", plans.pop() if plans else None, keys)
        return answers if asked.wanted is None else [asked.wanted.take(answer) for answer in answers]

    first_tasks = [(audit, audit.first) for audit in audits]
    for audit in audits:
        audit.first = []
    run_rounds(first_tasks, run_tasks)
    for audit, gaps in zip(audits, listed.result(), strict=True):
        audit.gaps.add(gaps)
    for (_, store), one in zip(part, prepared, strict=True):
        if isinstance(one, StoreAudit):
            with one.no_fault_beyond():
                if asked.reading.past is not None:
                    past = asked.reading.past.result()
                    one.hold_against(past.of(store), store.named, partial(past.begins, store))
                    one.hold_bytes_against(past.seen(store), store.named)
                one.settle()
    compare_replicas(asked.runner, prepared, asked.progress)
    outcomes = [answer.outcome() if isinstance(answer, StoreAudit) else answer for answer in prepared]
    outcomes = with_repair_sections(asked.runner, [store for _, store in part], outcomes, asked.reading)
    for at, (number, store) in enumerate(part):
        fetched = asked.runner.fetched[number] + sum(map(fetched_bytes, store.roots))
        cost = replace(outcomes[at].cost, bytes_fetched=fetched, task_seconds=asked.runner.seconds[number])
        outcomes[at] = replace(outcomes[at], key=store.key, cost=cost)
        for root in filter(is_uri, store.roots):
            disk_cache.forget(root)
    return outcomes


def compare_replicas(runner: Runner, prepared: Sequence[StoreAudit | Outcome], progress: Progress) -> None:
    """Compare the copies of each group, in one Spark job.

    Adds to the audits' findings, gives them their group, and makes those incomplete whose files could not
    be compared.
    """
    audits = [audit for audit in prepared if isinstance(audit, StoreAudit)]
    absent = [(store.replica_group, store.name) for store in prepared if isinstance(store, Outcome) and store.replica_group]
    groups = replica_groups(audits, absent)
    try:
        tasks = [group.tasks() for group in groups]
        if groups:
            progress.expect("comparing copies", sum(task.bytes_to_read for own in tasks for task in own), 0)
        answers = iter(runner.answers([task for own in tasks for task in own], "copies of one log"))
        for group, own in zip(groups, tasks, strict=True):
            group.finish([next(answers) for _ in own])
            group.blame()
    except Exception as fault:  # a bug here must not lose the audits: they are marked incomplete
        for audit in audits:
            if audit.request.replica_group and not audit.replicas.copies:
                audit.gaps.add([Gap(Cause.COPIES_NOT_COMPARED, values=(f"{type(fault).__name__}: {reason(fault)}",))])


def _reading(started: Session, asked: AuditOptions, info: RunInfo) -> Reading:
    """Return how much is to be read. Spark runs by now, and the time that was granted counts from here."""
    not_after = time.time() + asked.max_seconds if asked.max_seconds is not None else 0
    if asked.since_run is None and asked.max_seconds is None:
        return Reading(asked.level, max_rate=asked.max_rate, since=asked.asked_at)
    from jobs.tables.delta_tables import Tables

    before = earlier_runs(Tables(started, info.tables), asked.stores, asked.since_run, info.run_id, info.rules_version)
    return Reading(asked.level, not_after, before, asked.since_run is not None, max_rate=asked.max_rate, since=asked.asked_at)


def _past(started: Session, info: RunInfo, stores: Sequence[StoreArgument]) -> Future[Furthest]:
    """Read beside the first round what earlier runs saw of each store's log. No task waits for the answer."""
    from jobs.tables.delta_tables import Tables

    thread = ThreadPoolExecutor(1)
    past = thread.submit(lambda: Furthest(lambda: Tables(started, info.tables), info.run_id, stores).read())
    thread.shutdown(wait=False)
    return past


def _prepare(number: int, store: StoreArgument, reading: Reading) -> StoreAudit | Outcome:
    """Return the store's audit with its first tasks; an outcome of code 3 if it cannot even begin."""
    if store.problem:
        return not_audited(store, Gap(Cause.WRONG_ARGUMENTS, values=(store.problem,)))
    try:
        return opened_audit(request_of(number, store, reading))
    except RefusedSetting as problem:
        said = problem.within(store.broker_conf_file or "broker.conf")
        return not_audited(store, Gap(Cause.WRONG_ARGUMENTS, values=(said,)))
    except StoreError as problem:
        return not_audited(store, problem.gap())
    except OSError as problem:
        return not_audited(store, Gap(Cause.ERROR, values=(str(problem),)))


def write_store(
    output: OutputFolder, outcome: Outcome, context: PageContext | None = None, rendered: Texts = ()
) -> list[Unwritten]:
    """Write the store's own files; why something could not be written. rendered: their texts, if a task has made them."""
    with _noted() as problems:
        for name, text in unpacked_texts(rendered) if rendered else store_files(outcome, context):
            output.write(f"{outcome.name}/{name}", text)
    return problems


def write_run_files(output: OutputFolder, info: RunInfo, outcomes: Sequence[Outcome]) -> dict[str, Unwritten]:
    """Write the page of the whole run, and how groups of copies compare. Returns by name why a file could not be written."""
    missing = {}
    files: list[tuple[str, Callable[[], str | Iterable[str]]]] = [(INDEX, lambda: index_html(info, outcomes))]
    if any(outcome.replicas.copies for outcome in outcomes):
        files.append((REPLICAS, lambda: replicas_json(outcomes)))
    for name, text in files:
        with _noted() as problems:
            output.write(name, text())
        if problems:
            missing[name] = problems[0]
    return missing


def write_tables(started: Session, info: RunInfo, outcomes: Sequence[Outcome], wanted: Wanted | None) -> list[Unwritten]:
    """Write the run's rows. Returns why something could not be written, the datasets of tasks too."""
    from jobs.tables.delta_tables import Tables

    with _noted() as problems:
        Tables(started, info.tables).write_run(info, outcomes, by_dataset(wanted.files) if wanted is not None else None)
    return [*dict.fromkeys(wanted.problems if wanted is not None else ()), *problems]


@contextlib.contextmanager
def _noted(full_disk: bool = False) -> Iterator[list[Unwritten]]:
    """Note what keeps results from being written. full_disk: this alone is noted, anything else is raised."""
    problems: list[Unwritten] = []
    try:
        yield problems
    except StoreError as problem:
        no_room = is_no_room(problem)
        if full_disk and not (isinstance(problem, OutputFailed) and no_room):
            raise
        problems.append(Unwritten(str(problem), no_room))
    except Exception as fault:  # a bug in the rendering of one store must not lose the others'
        if full_disk:
            raise
        problems.append(Unwritten(fault_sentence(fault), is_no_room(fault)))
