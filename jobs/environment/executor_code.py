"""Object files of compiled code for executors: what `pack` puts into its archive.

A process of its own (`python -m jobs.environment.executor_code`) audits the example store, works out its repair, writes its
datasets, reads its messages and follows the chains of a damaged index file; what was compiled for that is left in the folder for
compiled code. An object file is named by sources, types and processor (`store_io.base.compiled.native`): executors with other
ones never load it.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.environment import installation
from store_io.base.compiled import code_files

if TYPE_CHECKING:
    from store_io.kinds.index.index_reader import IndexTask

EXAMPLE = installation.ROOT / "examples" / "damaged-store"
RELEASES = ("4.9.8", "5.3.3")  # of the example's broker, and one with more checks


def object_files(folder: str) -> list[Path]:
    """Return the files, made in this folder; none if that fails, which costs executors time and nothing else."""
    command = [sys.executable, "-P", "-m", installation.module_name("jobs.environment.executor_code")]
    variables = {**os.environ, "PYTHONPATH": installation.python_path(""), code_files.FOLDER: folder}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        installation.say(f"the archive has no compiled code, executors compile it themselves: {said}")
        return []
    return sorted(Path(folder).glob("*.object"))


def main() -> None:
    """Fill the folder for compiled code."""
    from jobs.audit.datasets import DatasetPlan, scan_and_write
    from jobs.command_line import options
    from jobs.explore import query
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
        for task in StoreAudit(AuditRequest("store", location, RELEASES[0], conf)).first_tasks():
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
    main()
