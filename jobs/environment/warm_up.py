"""An audit of the example store, and its messages, so that what each run loads and compiles is loaded and compiled already.

For `setup.class_archive`, in a process of its own: `python -m jobs.environment.warm_up ARCHIVE`. The JVM leaves its class archive
there when it ends, and the compiled decoders stay in numba's cache.
"""

from __future__ import annotations

import sys
import tempfile

from jobs import session, sources
from jobs.audit import run_audit as audit
from jobs.command_line import options
from jobs.environment import setup as environment


def main(archive: str) -> None:
    """Audit the example twice, as the first run and as one more: tables are made, then added to."""
    example = environment.ROOT / "examples" / "damaged-store"
    with tempfile.TemporaryDirectory(prefix="store-audit-") as out:
        words = ["audit", str(example / "store"), "--broker-conf", str(example / "broker.conf"), "--out", out]
        started = session.start(java_options=[f"-XX:ArchiveClassesAtExit={archive}"])
        for _ in range(2):
            asked = options.parse(words).audit
            assert asked is not None
            audit.run_with(started, asked)
        sources.read(started.spark, "messages", str(example / "store"), body="decoded").count()
        started.stop(wait=True)


if __name__ == "__main__":
    main(sys.argv[1])
