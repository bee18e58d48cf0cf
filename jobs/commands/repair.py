"""repair STORE --plan PLAN --to NEWSTORE: a new directory that a broker of the plan's release opens and serves."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from threading import Thread
from typing import TYPE_CHECKING, Any

from jobs.audit.copy_at_rest import broker_signs, refused
from jobs.cli import argument_places, options
from jobs.cli.options import Command
from jobs.cli.stores import StoreArgument
from jobs.installation import SPEAKER
from jobs.report.files.json_text import document
from jobs.report.texts.text import printable
from jobs.runtime import interrupts, uploads
from jobs.runtime.output import OutputFailed, OutputFolder
from jobs.tasks.spark_start import worth_spark
from schemas.gaps import Gap
from schemas.rows import NAMED, Row
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import StoreError, UsageError
from store_io.base.failed_reads import every_read
from store_io.base.paths import is_uri
from store_io.base.tasks import Task, run_task
from store_io.formats.settings import read_given
from store_io.repair.copy_under_way import CopyUnderWay, started
from store_io.repair.repair_plan import BROKER, PLAN_BYTES, RepairPlan, other_settings, read_plan
from store_io.repair.repair_work import RepairOutcome, RepairRequest, RunTasks
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from store_io.wording.gaps import gap_text

if TYPE_CHECKING:
    from jobs.report.pages.hand_over_page import HandOver


def run(command: Command) -> int:
    """Repair one store, or with --dry-run show what that would do. Returns 0 if it is done, 10 or 20 if the result was not
    consistent and so was not put in place."""
    done = carry_out(command)
    if done.handed is not None:
        from jobs.report.pages.hand_over_page import next_text

        print(next_text(done.handed), end="", flush=True)
    return done.exit_code


@dataclass(frozen=True)
class Done:
    """How a repair ended. handed: what lies beside the new store, None without one."""

    exit_code: int
    handed: HandOver | None = None


def carry_out(command: Command, assumed: Sequence[str] = ()) -> Done:
    """The repair, and what is handed over. assumed: sentences for the hand-over page."""
    to = argument_places.absolute(command.options.get("--to", "."))
    if not is_uri(to):
        return _carried_out(*_request(command), command, assumed)
    from jobs.repair.hand_over import SUFFIXES

    uploads.refuse_elsewhere(command.spark)
    store, target = options.single_store(command), uploads.target_of(to)
    argument_places.refuse_inside(to, "--to", store.roots)
    target.check_new(command.options["--to"], SUFFIXES)
    with tempfile.TemporaryDirectory(prefix="store-audit-new-") as folder:
        here = os.path.join(folder, argument_places.folder_name(argument_places.last_part(to)))
        store, request = _request(replace(command, options={**command.options, "--to": here}))
        return _carried_out(store, replace(request, uploaded=target.uri), command, assumed, target)


def _carried_out(
    store: StoreArgument, request: RepairRequest, command: Command, assumed: Sequence[str], upload: uploads.Target | None = None
) -> Done:
    """Carry out a repair.

    upload: the target to which the new store and the files beside it go from the request's target.
    """
    if command.spark:
        from jobs.audit import cluster_mode

        if cluster_mode.is_cluster_mode(command.spark):
            raise UsageError(
                "--deploy-mode cluster: a repair writes a folder of this machine, or one mounted on all, from a driver here"
            )
    checksum.trust()
    if "--dry-run" in command.flags:
        from store_io.repair.repair_store import preview

        with interrupts.first_only(), runner(command.spark, request.location) as run_tasks:
            outcome = preview(request, run_tasks, _scratch(command, request), tell_step)
        _tell(store, request, outcome, dry=True)
        return Done(outcome.exit_code)
    in_place = False
    try:
        with interrupts.first_only(), runner(command.spark, request.location) as run_tasks, started(request, run_here) as copying:
            try:
                outcome = _repair(request, run_tasks, copying)
            finally:
                in_place = copying.writer.published and upload is None
        if upload is not None and not outcome.exit_code:
            _upload(request, upload)
            in_place = True
        _tell(store, request, outcome)
        if outcome.exit_code:
            return Done(outcome.exit_code)
        done = _hand_over(store, request, outcome, argument_places.absolute(command.options["--plan"]), assumed)
        if upload is not None and done.handed is not None:
            files = done.handed.files
            for path in filter(None, (files.page, files.unsaved, files.resend)):
                suffix = path.removeprefix(request.place)
                upload.put_beside(request.target + suffix, suffix)
        return done
    except BaseException as problem:
        if in_place and (interrupts.came() or not isinstance(problem, StoreError)):  # whose sentence says enough
            said = f"the new store {request.place} is in place and complete; its hand-over page is not written,"
            print(f"{SPEAKER}: {printable(said)} and lists of messages beside it may be missing", file=sys.stderr, flush=True)
        raise


def _upload(request: RepairRequest, target: uploads.Target) -> None:
    """Upload the report first, as on a disk: if the new store is whole, its report exists."""
    from store_io.audit.checks.repaired_store import REPORT_SUFFIX

    tell_step("uploading")
    target.put_beside(request.target + REPORT_SUFFIX, REPORT_SUFFIX)
    try:
        target.put(request.target)
    except BaseException:
        target.remove_beside(REPORT_SUFFIX)
        raise


def _tell(store: StoreArgument, request: RepairRequest, outcome: RepairOutcome, dry: bool = False) -> None:
    from jobs.report.texts.repair_text import repair_text

    print(repair_text(outcome.report, store.path, request.place, dry), end="", flush=True)


def _hand_over(store: StoreArgument, request: RepairRequest, outcome: RepairOutcome, plan: str, assumed: Sequence[str]) -> Done:
    from jobs.repair.hand_over import hand_over

    try:
        with every_read():
            handed = hand_over(store, request, outcome, plan, assumed)
        return Done(0, handed)
    except StoreError as problem:  # the new store is in place, whatever becomes of its page
        print(f"{SPEAKER}: no hand-over page: {printable(problem)}", file=sys.stderr, flush=True)
        return Done(0)


def _repair(request: RepairRequest, run_tasks: RunTasks, copying: CopyUnderWay) -> RepairOutcome:
    """Do it; the report goes beside the new store, just before that is put in place."""
    from store_io.audit.checks.repaired_store import REPORT_SUFFIX  # while the first bytes are copied
    from store_io.repair.repair_copy import mode_beside
    from store_io.repair.repair_store import repair

    folder, name = OutputFolder(os.path.dirname(request.target)), os.path.basename(request.target) + REPORT_SUFFIX
    mode = mode_beside(request.location)

    def forget() -> None:
        with contextlib.suppress(OSError):
            os.unlink(request.target + REPORT_SUFFIX)

    def keep(report: Row) -> None:
        report["made_at"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")  # no dry run can know it
        folder.write(name, document(report), mode)

    return repair(request, run_tasks, keep, forget, tell_step, copying)


def _scratch(command: Command, request: RepairRequest) -> str:
    """Return the folder in which a dry run works: this machine's temporary folder, or the target's.

    It is the target's if other machines work, too.
    """
    master = next((value for word, value in pairwise(command.spark) if word == "--master"), "local")
    return tempfile.gettempdir() if master.startswith("local") else os.path.dirname(request.target)


def tell_step(sentence: str) -> None:
    """Say what is done now, if a person looks. Raises if the command was interrupted."""
    interrupts.check()
    if sys.stderr.isatty():
        print(f"  {sentence} ...", file=sys.stderr, flush=True)


# ---- the command line ------------------------------------------------------------------------------------------------


@every_read()
def _request(command: Command) -> tuple[StoreArgument, RepairRequest]:
    given = command.options
    store = options.single_store(command)
    for option in ("--plan", "--to"):
        if option not in given:
            wrote = "; an audit writes the plan: OUT/NAME/plan.json" if option == "--plan" else ""
            raise UsageError(f"{option} is missing: repair STORE --plan PLAN --to NEWSTORE{wrote}")
    target = target_of(given["--to"], store)
    plan = _plan(given["--plan"])
    if "--release" in given and (store.release, store.release_from) != (plan.release, NAMED):
        raise UsageError(f"--release {given['--release']}: the plan was made for {plan.release}")
    if plan.assumed and "--release" not in given:
        raise UsageError(
            f"--plan {given['--plan']!r}: its release, {plan.release}, was assumed: name the broker's own with --release"
        )
    if "--empty-config" in command.flags and "--fix-config" not in command.flags:
        raise UsageError("--empty-config: it says how --fix-config decides; name that, too")
    settings = _compare_settings(store.broker_conf, plan)
    location = StoreLocation(store.path, store.parts)
    _look_for_a_broker(location)
    donor = donor_of(given["--donor"], location, target) if "--donor" in given else None
    return store, RepairRequest(
        plan.store,
        location,
        target,
        plan,
        given.get("--policy", BROKER),
        donor,
        fix_offsets="--fix-offsets" in command.flags,
        fix_config="--fix-config" in command.flags,
        empty_config="--empty-config" in command.flags,
        settings=settings,
        heal_risk=_heal_risk(command),
        with_earlier="--with-earlier" in command.flags,
    )


def _look_for_a_broker(location: StoreLocation) -> None:
    """Say what shows that a broker still writes to the copy. Raises StoreError if its lock is held."""
    try:
        signs = broker_signs(location.root, list_store(location).files)
    except StoreError:
        return  # no store: the repair itself says why
    if signs.held:
        raise StoreError(refused(signs, "repair"))
    for said in signs.sentences():
        print(f"{SPEAKER}: warning: {printable(said)}. Repair a copy that nothing writes to.", file=sys.stderr, flush=True)


def _heal_risk(command: Command) -> float | None:
    if "--heal" in command.flags:
        from store_io.audit.healing.changes import DEFAULT_RISK

        return float(command.options.get("--heal-risk", DEFAULT_RISK))
    if "--heal-risk" in command.options:
        raise UsageError("--heal-risk: it says how --heal decides; name that, too")
    return None


def donor_of(text: str, store: StoreLocation, target: str) -> StoreLocation:
    """The second copy: a store, and not the one that is repaired."""
    donor = StoreLocation(argument_places.absolute(text))
    argument_places.refuse_inside(target, "--to", [donor.root])
    try:
        list_store(donor)
    except StoreError as problem:
        raise type(problem)(f"--donor {text}: {problem}") from None
    logs = [paths[0] for part, paths in store.parts if part == "commitlog"] or [f"{store.root}/commitlog"]
    for own, other in ((store.root, donor.root), (logs[0], f"{donor.root}/commitlog")):
        if own == other or os.path.exists(own) and os.path.exists(other) and os.path.samefile(own, other):
            raise UsageError(f"--donor {text}: {other!r} is {own!r} itself, so it has nothing to give; name another copy")
    return donor


def target_of(text: str, store: StoreArgument) -> str:
    """Return the path of the new store. Raises UsageError."""
    target = argument_places.absolute(text)
    if is_uri(target):
        raise UsageError(f"--to {text!r}: a folder of this machine, or one that is mounted here")
    if os.path.lexists(target):
        raise UsageError(f"--to {text!r}: exists; a repair makes a new folder and replaces nothing")
    if not os.path.isdir(os.path.dirname(target)):
        raise UsageError(f"--to {text!r}: there is no folder {os.path.dirname(target)!r}")
    argument_places.refuse_inside(target, "--to", store.roots)
    return target


def _plan(path: str) -> RepairPlan:
    place = argument_places.absolute(path)
    try:
        data = _fetched(place) if is_uri(place) else argument_places.read_regular(place, PLAN_BYTES)
    except (OSError, ValueError) as problem:
        raise UsageError(f"--plan {path!r}: {getattr(problem, 'strerror', None) or problem}") from None
    except OutputFailed as problem:
        raise StoreError(f"--plan {problem}") from None
    try:
        return read_plan(data)
    except StoreError as problem:
        raise type(problem)(f"--plan {path}: {problem}") from None


def _fetched(uri: str) -> bytes:
    """Read a plan in the place of an audit's --out. Raises FileNotFoundError, OutputFailed."""
    folder, _, name = uri.rpartition("/")
    data = OutputFolder(folder).read(name, PLAN_BYTES) if name else None
    if data is None:
        raise FileNotFoundError(errno.ENOENT, "no such file")
    return data


def _compare_settings(text: str | None, plan: RepairPlan) -> str:
    """Return the origin of the settings, for the report. Raises UsageError if the file given now says anything else."""
    own = sum(origin == "broker.conf" for origin in plan.origins.values())
    if text is None:
        made = f"{own} of them from the broker.conf of its audit" if own else "made without a broker.conf"
        return f"those of the plan, {made}; no --broker-conf was given to compare them with"
    if wrong := other_settings(plan, read_given(text, plan.release)):
        raise UsageError(f"--broker-conf: {wrong[0]}. Name the file that the audit was given, or audit again with this one")
    return "those of the plan; broker.conf agrees"


# ---- where tasks run -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def runner(spark_words: Sequence[str], location: StoreLocation) -> Iterator[RunTasks]:
    """Threads of this process for a store of usual size, Spark where it was asked for or there is much to read; what reads the
    copy while it is made runs in threads in any case (`run_here`).

    Compiled code and reading need no lock of Python's; and a thread sees what another one has copied so far.
    """
    with contextlib.ExitStack() as stack:
        spark = spark_words or worth_spark(_bytes(location))
        run_tasks = stack.enter_context(_on_spark(spark_words)) if spark else run_here
        if "numba" not in sys.modules:  # which would take longer to load than a pass over a gigabyte
            start_quickly()
        yield run_tasks


@contextlib.contextmanager
def _progress_of(tasks: Sequence[Task], describe: str, counters: Callable[[], tuple[int, int]]) -> Iterator[None]:
    """Show how far these tasks are, and the time left, if a person looks. counters: (bytes, segments) that are done so far."""
    if not sys.stderr.isatty():
        yield
        return
    from jobs.tasks.progress import Progress
    from store_io.scan.segment_scan import SegmentTask

    before = counters()
    with Progress(sys.stderr, lambda: (counters()[0] - before[0], counters()[1] - before[1])) as progress:
        segments = sum(isinstance(task, SegmentTask) for task in tasks)
        progress.expect(describe, sum(task.bytes_to_read for task in tasks), segments)
        yield


def run_here(tasks: Sequence[Task], describe: str) -> list[Any]:
    """Run the tasks in threads of this process: their results."""
    done: list[Task] = []

    def counters() -> tuple[int, int]:
        from store_io.scan.segment_scan import SegmentTask

        return sum(task.bytes_to_read for task in done[:]), sum(isinstance(task, SegmentTask) for task in done[:])

    with _progress_of(tasks, describe, counters):
        return _side_by_side(tasks, done.append)


def _side_by_side(tasks: Sequence[Task], ended: Callable[[Task], None] = lambda _: None) -> list[Any]:
    """The tasks' results, from as many threads as there are processors, largest tasks first. No task begins after one failed.

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
    """The JVM starts now; on this machine Spark comes up in it when the first tasks need it, and the copy is made meanwhile."""
    from jobs.runtime import session
    from jobs.runtime.jvm import Jvm, is_local, master_of
    from jobs.runtime.python_workers import WarmWorkers
    from jobs.tasks.progress import SparkCounters
    from jobs.tasks.runner import Runner
    from jobs.tasks.spark_start import leave_pandas_out
    from store_io.repair import repair_store  # noqa: F401  so that workers have it loaded too

    leave_pandas_out()
    with contextlib.ExitStack() as stack:
        jvm = Jvm(spark_words)
        stack.callback(jvm.end)
        stack.enter_context(contextlib.closing(WarmWorkers(jvm.workers_place)))

        @cache
        def spark() -> tuple[SparkCounters, Runner]:
            context = stack.enter_context(session.on(jvm)).context
            counters = SparkCounters(context)
            return counters, Runner(context, counters.report)

        def submitted(tasks: Sequence[Any], describe: str) -> list[Any]:
            counters, runner = spark()
            with _progress_of(tasks, describe, counters):
                answers = runner.run(tasks, describe)
            faults = [gap_text(answer) for answer in answers if isinstance(answer, Gap)]
            if faults:
                raise StoreError(f"a task failed: {faults[0]}")
            return answers

        if not is_local(master_of(spark_words)):  # a cluster that is not there fails before the copy
            spark()
        yield submitted


def _bytes(location: StoreLocation) -> int:
    source = open_source(location)
    return sum(e.size for e in list_store(location).files if e.path.startswith("commitlog")) if source else 0
