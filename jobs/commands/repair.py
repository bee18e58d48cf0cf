"""repair STORE --plan PLAN --to NEWSTORE: a new directory that a broker of the plan's release opens and serves."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobs.cli import argument_places, options
from jobs.cli.options import Command
from jobs.cli.parser import is_cluster_mode, uses_other_machines
from jobs.cli.stores import StoreArgument
from jobs.repair.repair_request import read_request, remove_unfinished
from jobs.runtime import interrupts, uploads
from jobs.runtime.faults import say
from jobs.tasks.threads_or_spark import run_in_threads, run_tasks_for
from schemas.layouts.store_names import BESIDE
from store_io.base.crc import checksum
from store_io.base.errors import StoreError, UsageError
from store_io.base.paths import is_uri
from store_io.repair.copy_under_way import CopyUnderWay, started
from store_io.repair.repair_work import RepairOutcome, RepairRequest, RunTasks

if TYPE_CHECKING:
    from jobs.report.pages.hand_over_page import HandOver


def run(command: Command) -> int:
    """Repair one store, or with --dry-run show what that would do. Returns 0 if it is done, 10 or 20 if the result was not
    consistent and so was not put in place."""
    done = carry_out(command, says_steps=True)
    if done.handed is not None:
        from jobs.report.pages.hand_over_page import next_text

        print(next_text(done.handed), end="", flush=True)
    return done.exit_code


@dataclass(frozen=True)
class Done:
    """How a repair ended. handed: what lies beside the new store, None without one."""

    exit_code: int
    handed: HandOver | None = None


def carry_out(command: Command, assumed: Sequence[str] = (), says_steps: bool = False) -> Done:
    """Repair, and return what is handed over. assumed: sentences for the hand-over page.

    says_steps: show the audit's steps first, which a rescue has shown by itself.
    """
    to = argument_places.absolute(command.options.get("--to", "."))
    if not is_uri(to):
        store, request = read_request(command)
        _tell_list(request, says_steps)
        return _carried_out(store, request, command, assumed)
    uploads.refuse_elsewhere(command.spark)
    store, target = options.single_store(command), uploads.target_of(to)
    argument_places.refuse_inside(to, "--to", store.roots)
    target.check_new(command.options["--to"], BESIDE)
    with tempfile.TemporaryDirectory(prefix="store-audit-new-", ignore_cleanup_errors=True) as folder:
        here = os.path.join(folder, argument_places.folder_name(argument_places.last_part(to)))
        store, request = read_request(replace(command, options={**command.options, "--to": here}))
        _tell_list(request, says_steps)
        return _carried_out(store, replace(request, uploaded=target.uri), command, assumed, target)


def _tell_list(request: RepairRequest, wanted: bool) -> None:
    """Show the audit's answer and its steps, what can lose nothing first: this command is one of them."""
    if wanted and request.plan.answer:
        from jobs.report.texts.repair_text import list_text

        print(list_text(request.plan), end="", flush=True)


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
    in_place, plan = False, argument_places.absolute(command.options["--plan"])
    handed: list[HandOver] = []

    def keep(outcome: RepairOutcome, folder: str) -> None:
        from jobs.repair.hand_over import hand_over

        made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")  # no dry run can know it
        outcome.report = replace(outcome.report, made_at=made_at)
        handed.append(hand_over(store, request, outcome, plan, folder, assumed))

    for path in remove_unfinished(request.target):
        say(f"warning: {path} is left from a run that was killed, and cannot be removed; remove it, nothing needs it")
    try:
        with (
            interrupts.first_only(),
            run_tasks_for(command.spark, request.location) as run_tasks,
            started(request, run_in_threads) as copying,
        ):
            try:
                outcome = _repair(request, run_tasks, keep, copying)
            finally:
                in_place = copying.writer.published and upload is None
        if os.path.lexists(copying.writer.folder):
            say(f"warning: {copying.writer.folder} cannot be removed; remove it, nothing in it is needed")
        if upload is not None and not outcome.exit_code:
            _upload(request, upload)
            in_place = True
        _tell(store, request, outcome)
        return Done(outcome.exit_code, handed[0] if handed and not outcome.exit_code else None)
    except BaseException as problem:
        if in_place and (interrupts.came() or not isinstance(problem, StoreError)):  # whose sentence says enough
            say(f"the new store {request.place} is in place and complete, and so are the files beside it")
        raise


def _upload(request: RepairRequest, target: uploads.Target) -> None:
    """Upload the files beside the new store first, as on a disk: if the new store is whole, they are there."""
    tell_step("uploading")
    put: list[str] = []
    try:
        for suffix in BESIDE:
            if os.path.lexists(request.target + suffix):
                target.put_beside(request.target + suffix, suffix)
                put.append(suffix)
        target.put(request.target)
    except BaseException:
        for suffix in put:
            target.remove_beside(suffix)
        raise


def _tell(store: StoreArgument, request: RepairRequest, outcome: RepairOutcome, dry: bool = False) -> None:
    from jobs.report.texts.repair_text import repair_text

    print(repair_text(outcome.report, store.path, request.place, dry), end="", flush=True)


def _repair(
    request: RepairRequest, run_tasks: RunTasks, keep: Callable[[RepairOutcome, str], None], copying: CopyUnderWay
) -> RepairOutcome:
    from store_io.repair.repair_store import repair  # while the first bytes are copied

    return repair(request, run_tasks, keep, tell_step, copying)


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
