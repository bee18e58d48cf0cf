"""repair STORE --plan PLAN --to NEWSTORE: a new directory that a broker of the plan's release opens and serves."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobs.cli import argument_places, options
from jobs.cli.options import Command
from jobs.cli.parser import is_cluster_mode, uses_other_machines
from jobs.cli.stores import StoreArgument
from jobs.repair.repair_request import read_request
from jobs.report.files.json_text import document
from jobs.runtime import interrupts, uploads
from jobs.runtime.faults import say
from jobs.runtime.output import OutputFolder
from jobs.tasks.threads_or_spark import run_in_threads, run_tasks_for
from schemas.rows import Row
from schemas.store_names import BESIDE, REPORT_SUFFIX
from store_io.base.crc import checksum
from store_io.base.errors import StoreError, UsageError
from store_io.base.failed_reads import every_read
from store_io.base.paths import is_uri
from store_io.repair.copy_under_way import CopyUnderWay, started
from store_io.repair.repair_work import RepairOutcome, RepairRequest, RunTasks

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
    """Repair, and return what is handed over. assumed: sentences for the hand-over page."""
    to = argument_places.absolute(command.options.get("--to", "."))
    if not is_uri(to):
        return _carried_out(*read_request(command), command, assumed)
    uploads.refuse_elsewhere(command.spark)
    store, target = options.single_store(command), uploads.target_of(to)
    argument_places.refuse_inside(to, "--to", store.roots)
    target.check_new(command.options["--to"], BESIDE)
    with tempfile.TemporaryDirectory(prefix="store-audit-new-") as folder:
        here = os.path.join(folder, argument_places.folder_name(argument_places.last_part(to)))
        store, request = read_request(replace(command, options={**command.options, "--to": here}))
        return _carried_out(store, replace(request, uploaded=target.uri), command, assumed, target)


def _carried_out(
    store: StoreArgument, request: RepairRequest, command: Command, assumed: Sequence[str], upload: uploads.Target | None = None
) -> Done:
    """Carry out a repair.

    upload: the target to which the new store and the files beside it go from the request's target.
    """
    if is_cluster_mode(command.spark):
        raise UsageError(
            "--deploy-mode cluster: a repair writes a folder of this machine, or one mounted on all, from a driver here"
        )
    checksum.trust()
    if "--dry-run" in command.flags:
        from store_io.repair.repair_store import preview

        with interrupts.first_only(), run_tasks_for(command.spark, request.location) as run_tasks:
            outcome = preview(request, run_tasks, _scratch(command, request), tell_step)
        _tell(store, request, outcome, dry=True)
        return Done(outcome.exit_code)
    in_place = False
    try:
        with (
            interrupts.first_only(),
            run_tasks_for(command.spark, request.location) as run_tasks,
            started(request, run_in_threads) as copying,
        ):
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
            say(f"{said} and lists of messages beside it may be missing")
        raise


def _upload(request: RepairRequest, target: uploads.Target) -> None:
    """Upload the report first, as on a disk: if the new store is whole, its report exists."""
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
        say(f"no hand-over page: {problem}")
        return Done(0)


def _repair(request: RepairRequest, run_tasks: RunTasks, copying: CopyUnderWay) -> RepairOutcome:
    """Do it; the report goes beside the new store, just before that is put in place."""
    from store_io.repair.repair_copy import mode_beside  # while the first bytes are copied
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
    return os.path.dirname(request.target) if uses_other_machines(command.spark) else tempfile.gettempdir()


def tell_step(sentence: str) -> None:
    """Say what is done now, if a person looks. Raises if the command was interrupted."""
    interrupts.check()
    if sys.stderr.isatty():
        print(f"  {sentence} ...", file=sys.stderr, flush=True)
