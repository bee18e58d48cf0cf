"""after-start STORE --plan PLAN: is the store, on which a broker was started, what the plan has predicted? Needs no Spark."""

from __future__ import annotations

from jobs.cli import options
from jobs.cli.options import Command
from jobs.repair.repair_request import plan_at
from jobs.report.texts.after_start_text import after_start_json, after_start_text
from jobs.tasks.threads_or_spark import run_in_threads
from schemas.advice import Cause
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import StoreChanged, StoreError, UsageError
from store_io.base.failed_reads import every_read
from store_io.first_day.after_start import AfterStart, Promise, after_start, state_of
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
    plan = plan_at(given["--plan"])
    if not plan.broker["starts"]:
        raise UsageError(f"--plan {given['--plan']!r}: by it the broker does not start on the store")
    promise = Promise(
        state_of(plan.broker, [*plan.inputs]), plan.inputs, plan.going, plan.edges, frozenset(plan.broker["deleted_files"])
    )
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
    broker = outcome.plan["broker"]
    if broker is None:
        moved = any(gap.cause is Cause.CHANGED_WHILE_READ for gap in outcome.gaps)
        raise (StoreChanged if moved else StoreError)(f"not known what is there: {outcome.incomplete[0]}")
    listing = audit.copy.listing

    def size_of(path: str) -> int | None:
        entry = listing.get(path)
        return entry.size if entry is not None and entry.kind == "file" else None

    return after_start(promise, broker, size_of, audit.source, full)
