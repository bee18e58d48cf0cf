"""Whole commands, from their start to their exit code, against a plain PySpark session that runs one Python task on ten rows.

The session has Spark's default settings and the same Python, Java and jars. Machines differ twofold from hour to hour, and the
start of a JVM with them: so only the ratio says something, and the runs take turns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dev.bench_stores import BenchFailed
from dev.sample_store import RELEASE
from jobs import installation
from jobs.runtime import setup as environment

YARDSTICK = "a plain PySpark session with one task"
SMALL_AUDIT, LARGE_AUDIT = "cold audit of a small store", "cold audit of the audited store"
EXPLAIN, QUERY, HELP, FAULT = "explain", "query of a small store", "--help", "a usage error"
COLD_RUNS = {SMALL_AUDIT: 0.5, LARGE_AUDIT: 0.6, EXPLAIN: 0.06, QUERY: 0.06, HELP: 0.015, FAULT: 0.015}  # times the yardstick

_SESSION = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
assert len(spark.range(0, 10, 1, 1).mapInArrow(lambda batches: batches, "id long").collect()) == 10
spark.stop()
"""


@dataclass(frozen=True)
class ColdRun:
    """One command.

    out: a folder that it must not find when it begins.
    code: what it must end with.
    """

    name: str
    words: Sequence[str]
    out: Path | None = None
    code: int = 0
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def cold_runs(small: Path, large: Path, out: Path, spark_words: Sequence[str]) -> list[ColdRun]:
    """Return the yardstick and what is compared with it.

    small, large: stores.
    out: a folder for the audits' results.
    """
    command = installation.command_words()
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
    python = str(environment.python())
    plain = {**known, "JAVA_HOME": environment.java_runtime().home, "PYSPARK_PYTHON": python}
    ours = {**known, "STORE_AUDIT_HOME": str(environment.home())}
    audit = ["--release", RELEASE, "--out", str(out), *spark_words]
    return [
        ColdRun(YARDSTICK, [python, "-c", _SESSION], variables=plain),
        ColdRun(SMALL_AUDIT, [*command, "audit", str(small), *audit], out, variables=ours),
        ColdRun(LARGE_AUDIT, [*command, "audit", str(large), *audit], out, variables=ours),
        ColdRun(EXPLAIN, [*command, "explain", str(small), "--phy-offset", "0"], variables=ours),
        ColdRun(QUERY, [*command, "query", str(small), "--limit", "5"], variables=ours),
        ColdRun(HELP, [*command, "--help"], variables=ours),
        ColdRun(FAULT, [*command, "audit", str(small), "--no-such-option"], None, 2, ours),
    ]


def measure_cold(runs: Sequence[ColdRun], rounds: int) -> dict[str, float] | None:
    """Return run -> its least seconds, in their order; None if the environment is not made. Raises BenchFailed."""
    if not environment.is_ready():
        return None
    least = dict.fromkeys((run.name for run in runs), float("inf"))
    for _ in range(rounds):
        for run in runs:
            least[run.name] = min(least[run.name], _seconds(run))
    return least


def _seconds(run: ColdRun) -> float:
    if run.out is not None:
        shutil.rmtree(run.out, ignore_errors=True)
    began = time.perf_counter()
    done = subprocess.run(
        run.words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=dict(run.variables)
    )
    seconds = time.perf_counter() - began
    if done.returncode != run.code:
        raise BenchFailed(f"{run.name} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return seconds
