"""An audit of the example store, its messages and a repair, so that what each run loads and compiles is there already.

For `setup.class_archive`, in a process of its own: `python -m jobs.environment.warm_up ARCHIVE`. The JVM leaves its class archive
there when it ends, and the compiled decoders stay in the folder for compiled code: numba's own files, and object files for
single questions and repairs.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile

from jobs import repair, session, sources
from jobs.audit import run_audit as audit
from jobs.command_line import options
from jobs.environment import installation
from jobs.explore import explain, query

RELEASE = "4.9.8"  # that wrote the example


def main(archive: str) -> None:
    """Audit the example twice, as the first run and as one more: tables are made, then added to."""
    example = installation.ROOT / "examples" / "damaged-store"
    with tempfile.TemporaryDirectory(prefix="store-audit-") as out:
        words = [
            "audit",
            str(example / "store"),
            "--broker-conf",
            str(example / "broker.conf"),
            "--release",
            RELEASE,
            "--out",
            out,
        ]
        started = session.start(java_options=[f"-XX:ArchiveClassesAtExit={archive}"])
        for _ in range(2):
            asked = options.parse(words).audit
            assert asked is not None
            audit.run_with(started, asked)
        sources.read(started.spark, "messages", str(example / "store"), release=RELEASE, body="decoded").count()
        started.stop(wait=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            query.run(options.parse(["query", str(example / "store"), "--format", "jsonl"]))
            explain.run(options.parse(["explain", str(example / "store"), "--phy-offset", "530831"]))
            plan, new = os.path.join(out, "store", "plan.json"), os.path.join(out, "repaired")
            words = ["repair", str(example / "store"), "--release", RELEASE, "--plan", plan, "--to", new, "--policy", "salvage"]
            repair.run(options.parse(words))


if __name__ == "__main__":
    main(sys.argv[1])
