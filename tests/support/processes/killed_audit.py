"""Audits that are killed, in processes of their own on the JVM of the one Spark session: what `test_killed_audit` runs.

    python -m tests.support.processes.killed_audit PORT SECRET < jobs

Each line of the input is a job as JSON: {"out", "run_id", "kill", "fleet"}. fleet: a folder of stores that are audited, one after
the other, in the place of the example; null for none.  kill: the event at which the process ends by SIGKILL, null for
none. An event is a step that leaves something behind, before or after it is done, and how often it was met: "before write
plan.json 1", "after replace_run runs 2". Each line of the output is {"killed": whether, "events": their names}. Modules are
loaded once; every job is a fork.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from jobs.audit import run_audit as audit
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.runtime import setup as environment
from jobs.runtime.output import OutputFolder
from jobs.tables.delta_log import DeltaLog

EXAMPLE = environment.ROOT / "examples" / "damaged-store"


class Events:
    """Names what happens, and kills this process at one of the events."""

    def __init__(self, kill: str | None):
        self._kill = kill
        self._lock = threading.Lock()
        self.names: list[str] = []

    def happen(self, step: str) -> None:
        with self._lock:
            self.names.append(f"{step} {1 + sum(name.rpartition(' ')[0] == step for name in self.names)}")
            if self.names[-1] == self._kill:
                os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        @functools.wraps(real)
        def watched(log_or_folder: Any, *words: Any) -> Any:
            what = str(getattr(log_or_folder, "uri", words[0])).rpartition("/")[2]
            self.happen(f"before {name} {what}")
            done = real(log_or_folder, *words)
            self.happen(f"after {name} {what}")
            return done

        setattr(owner, name, watched)


def attach() -> SparkSession:
    """The session of the JVM that is there already."""
    gateway: Any = launch_gateway()
    SparkContext._ensure_initialized(gateway=gateway)
    jvm = gateway.jvm
    java_session = jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    java_context = jvm.org.apache.spark.api.java.JavaSparkContext(java_session.sparkContext())
    context = SparkContext(jsc=java_context, gateway=gateway, conf=SparkConf(_jconf=java_context.getConf()))
    return SparkSession(context, java_session)


def run(job: dict[str, Any]) -> list[str]:
    """The whole audit of the example, or of a fleet; its events."""
    events = Events(job["kill"])
    for owner, name in ((OutputFolder, "write"), (DeltaLog, "write_file"), (DeltaLog, "replace_run")):
        events.watch(owner, name)
    spark = attach()
    started: Any = SimpleNamespace(spark=spark, context=spark.sparkContext)
    if job["fleet"] is None:
        own = (EXAMPLE / "broker.conf").read_text()
        stores = [StoreArgument("store", str(EXAMPLE / "store"), "4.9.8", own)]
    else:
        audit.BYTES_PER_CORE = 1  # type: ignore[attr-defined]  # each store by itself
        folder = Path(job["fleet"])
        paths = [(path, folder.parent / f"{path.name}.conf") for path in sorted(folder.iterdir())]
        stores = [StoreArgument(path.name, str(path), "5.3.3", conf.read_text()) for path, conf in paths]
    audit.run_with(started, AuditOptions(tuple(stores), job["out"], run_id=job["run_id"], run_id_named=True))
    return events.names


def main() -> None:
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the audits' own summaries
    for line in sys.stdin:
        job = json.loads(line)
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            os.write(writing, json.dumps(run(job)).encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        names = os.read(reading, 65536)
        os.close(reading)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        answers.write(json.dumps({"killed": killed, "events": json.loads(names or b"[]")}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
