"""after-start STORE --plan PLAN: is the store, on which a broker was started, what the plan has predicted? Needs no Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

from jobs.cli import options
from jobs.cli.options import Command
from jobs.repair.disk_of_target import on_its_disk
from jobs.repair.repair_request import plan_at
from jobs.report.texts.after_start_text import after_start_json, after_start_text
from jobs.tasks.threads_or_spark import run_in_threads
from schemas.advice import Cause
from schemas.first_day import StartMoment
from schemas.layouts.store_names import COMMITLOG
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import StoreChanged, StoreError, UsageError
from store_io.base.failed_reads import every_read
from store_io.base.paths import is_uri
from store_io.broker.settings.day_settings import DAY_DEFAULTS
from store_io.first_day.after_start import AfterStart, Leaving, Promise, after_start, read_ends, state_of
from store_io.model.audit_request import AuditRequest
from store_io.repair.repair_plan import RepairPlan
from store_io.rocksdb.kept_open import databases_kept_open
from store_io.source.byte_source import StoreLocation

TRIES = 3  # a broker may remove a file between its listing and its reading


def run(command: Command) -> int:
    """Compare, and print the answer. Returns 0, 10 or 20."""
    store, given = options.single_store(command), command.options
    if "--plan" not in given:
        raise UsageError("--plan is missing: NEW.plan.json, which repair and rescue leave beside the new store")
    plan = plan_at(given["--plan"]).with_day_of(store.broker_conf)
    if not plan.broker["starts"]:
        raise UsageError(f"--plan {given['--plan']!r}: by it the broker does not start on the store")
    deleted = frozenset(plan.broker["deleted_files"])
    promise = Promise(state_of(read_ends(plan.broker), [*plan.inputs]), plan.inputs, None, plan.edges, deleted)
    checksum.trust()
    start_quickly()
    found = _compared(plan, promise, StoreLocation(store.path, store.parts), "--full" in command.flags)
    text = after_start_json(found) if given.get("--format") == "json" else after_start_text(found)
    print(text, end="", flush=True)
    return found.exit_code


def _compared(plan: RepairPlan, promise: Promise, location: StoreLocation, full: bool) -> AfterStart:
    """Return the comparison; if a file was removed meanwhile, that of another try. Raises StoreError."""
    for left in reversed(range(TRIES)):
        try:
            with every_read():
                return _compare(plan, promise, location, full)
        except StoreChanged:
            if not left:
                raise
    raise AssertionError


def _compare(plan: RepairPlan, promise: Promise, location: StoreLocation, full: bool) -> AfterStart:
    audit = StoreAudit(AuditRequest(plan.store, location, plan.release, plan.broker_conf, level="quick", living=True))
    with databases_kept_open():
        run_rounds([(audit, audit.first_tasks())], lambda tasks: run_in_threads(tasks, "reading"))
        outcome = audit.outcome()
    if outcome.effect is None:
        moved = any(gap.cause is Cause.CHANGED_WHILE_READ for gap in outcome.gaps)
        raise (StoreChanged if moved else StoreError)(f"not known what is there: {outcome.incomplete[0]}")
    listing = audit.copy.listing

    def size_of(path: str) -> int | None:
        entry = listing.get(path)
        return entry.size if entry is not None and entry.kind == "file" else None

    if plan.leaving is not None:
        promise = replace(promise, going=_going(plan, plan.leaving, location, size_of))
    return after_start(promise, outcome.effect, size_of, audit.source, full)


def _going(plan: RepairPlan, leaving: Leaving, location: StoreLocation, size_of: Callable[[str], int | None]) -> frozenset[str]:
    """Return the paths that retention may have deleted by now, by the settings of the plan, or of the broker.conf named."""
    paths = leaving.at_once | leaving.in_delete_when | leaving.if_disk_full
    freed = sum(plan.inputs[path][0] for path in paths if path in plan.inputs and size_of(path) is None)
    hours = {**DAY_DEFAULTS, **plan.day}["fileReservedTime"]
    return leaving.by_now(time.time_ns() // 1_000_000, _disk_used(location, freed), plan.cleaning, hours)


def _disk_used(location: StoreLocation, freed: int) -> float | None:
    """Return the percent of the log's disk that was used before these bytes were freed; None if it is not known."""
    folders = dict(location.parts).get(COMMITLOG, (location.root,))
    if len(folders) != 1 or is_uri(folders[0]):
        return None
    return on_its_disk(StartMoment(0), os.path.join(folders[0], ""), freed).disk_used
