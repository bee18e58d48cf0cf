"""Programs for processes of their own, which work on the example store so that later runs find compiled code.

`python -m jobs.warm_up ARCHIVE`, for `setup.class_archive`: an audit, messages and a repair. The JVM leaves its class archive
when it ends, and the compiled decoders stay in the folder for compiled code: numba's own files, and object files for single
questions and repairs.

Without an argument, for `pack`: an audit, the steps of its repair, its datasets, its messages, and the chains of a damaged index
file; what was compiled for that is left in the folder for compiled code. An object file is named by sources, types and processor
(`store_io.base.compiled.native`): executors with other ones never load it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import installation
from store_io.base.compiled import code_files

if TYPE_CHECKING:
    from store_io.kinds.index.index_reader import IndexTask

EXAMPLE = installation.ROOT / "examples" / "damaged-store"
RELEASE = "4.9.8"  # that wrote the example
RELEASES = (RELEASE, "5.3.3")  # and one with more checks


def main(archive: str) -> None:
    """Audit the example twice, as the first run and as one more: tables are made, then added to."""
    from jobs import sources
    from jobs.audit import run_audit as audit
    from jobs.cli import options
    from jobs.commands import explain_offset, query, repair
    from jobs.runtime import session

    store = str(EXAMPLE / "store")
    with tempfile.TemporaryDirectory(prefix="store-audit-") as out:
        words = ["audit", store, "--broker-conf", str(EXAMPLE / "broker.conf"), "--release", RELEASE, "--out", out]
        started = session.start(java_options=[f"-XX:ArchiveClassesAtExit={archive}"])
        for _ in range(2):
            asked = options.parse(words).audit
            assert asked is not None
            audit.run_with(started, asked)
        sources.read(started.spark, "messages", store, release=RELEASE, body="decoded").count()
        started.stop(wait=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            query.run(options.parse(["query", store, "--format", "jsonl"]))
            explain_offset.run(options.parse(["explain", store, "--phy-offset", "530831"]))
            plan, new = os.path.join(out, "store", "plan.json"), os.path.join(out, "repaired")
            words = ["repair", store, "--release", RELEASE, "--plan", plan, "--to", new, "--policy", "salvage"]
            repair.run(options.parse(words))


def compile_example() -> None:
    """Fill the folder for compiled code."""
    from jobs.cli import options
    from jobs.commands import query
    from jobs.tables.datasets import DatasetPlan, scan_and_write
    from schemas.tables import DATASETS
    from store_io.audit.audit_store import StoreAudit, run_local
    from store_io.base.tasks import run_task
    from store_io.kinds.index.index_reader import IndexTask
    from store_io.log.scan.segment_scan import SegmentTask
    from store_io.model.audit_request import AuditRequest
    from store_io.repair.plan_repair_section import steps_tasks
    from store_io.source.byte_source import StoreLocation

    code_files.start_quickly()
    location, conf = StoreLocation(str(EXAMPLE / "store")), (EXAMPLE / "broker.conf").read_text("latin-1")
    for release in RELEASES:
        outcome = run_local(AuditRequest("store", location, release, conf))
        for steps in steps_tasks(outcome, location):
            run_task(steps)
    with tempfile.TemporaryDirectory(prefix="store-audit-") as tables:
        plan = DatasetPlan(tables, "run", tuple(DATASETS))
        for task in StoreAudit(AuditRequest("store", location, RELEASE, conf)).first_tasks():
            if isinstance(task, SegmentTask):
                scan_and_write(task, plan, "store")
            elif isinstance(task, IndexTask):
                run_task(_cut_in_half(task, tables))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        query.run(options.parse(["query", location.root, "--format", "jsonl", "--body", "text"]))


def _cut_in_half(task: IndexTask, folder: str) -> IndexTask:
    """Return the task for a copy of its file, in this folder, whose second half is lost.

    The example's own files are sound, and chains of sound files are not followed back.
    """
    copy = Path(folder, task.path)
    copy.parent.mkdir(exist_ok=True)
    whole = (EXAMPLE / "store" / task.path).read_bytes()
    copy.write_bytes(whole[: len(whole) // 2].ljust(len(whole), b"\0"))
    return replace(task, location=replace(task.location, root=folder))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        compile_example()
