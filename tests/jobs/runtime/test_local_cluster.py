"""Executors in processes of their own, with Spark's jars and what they are sent, give the same answers as one process. More
stores: test_spark_cluster.py (-m cluster)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.audit import run_audit as audit
from jobs.cli import options
from jobs.runtime import setup as environment
from jobs.runtime.session import Session
from tests.support.stores.corpus_tools import cases

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes"),
]
STORES = ("g19", "g29")  # a cut one, one whose queues are wrong
RESULTS = ("plan.json", "findings.jsonl")


def test_a_cluster_of_processes_gives_identical_results(spark_session: Session, tmp_path: Path) -> None:
    rows = []
    for case in cases(*STORES):
        case.unpack(tmp_path / case.name)
        place = f'path = "{case.name}/store"\nbroker_conf = "{case.name}/broker.conf"'
        rows.append(f'[[store]]\nname = "{case.name}"\nrelease = "{case.release}"\n{place}\n')
    assert len(rows) == len(STORES)
    (tmp_path / "fleet.toml").write_text("".join(rows), "utf-8")

    here, there = tmp_path / "here", tmp_path / "there"
    start = ["--start-at", "2026-11-20T22:00:00Z", "--timezone", "UTC"]
    words = ["audit", "--fleet", str(tmp_path / "fleet.toml"), "--write", "consumequeue", *start]
    asked = options.parse([*words, "--out", str(here)]).audit
    assert asked is not None
    code = audit.run_with(spark_session, asked)
    done = subprocess.run(
        [sys.executable, "-m", "jobs.entry", "--master", "local-cluster[2,1,1024]", *words, "--out", str(there)],
        # Nothing here leads to the packages but what the driver sends: PYTHONPATH is the driver's alone.
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert json.loads((there / "result.json").read_text())["complete"] is True
    for case in cases(*STORES):
        for name in RESULTS:
            assert (there / case.name / name).read_bytes() == (here / case.name / name).read_bytes(), f"{case.name}/{name}"
