"""A real YARN, whose containers have nothing of the project but what a driver sends: the same results as in one process.

./spark-submit.sh test -m cluster tests/jobs/runtime/test_yarn.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.runtime import setup as environment
from tests.support.processes.small_yarn import SmallYarn
from tests.support.stores.corpus_tools import cases

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes"),
]
STORES = ("g04", "g37")  # clean, damaged
_SECONDS = 900  # of one command, on a machine that is busy


@pytest.fixture(scope="module")
def yarn() -> Iterator[SmallYarn]:
    started = SmallYarn()
    yield started
    started.stop()


def run(words: list[str], cwd: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home()), "HOME": str(cwd)}
    return subprocess.run(
        [sys.executable, "-m", "jobs.entry", *words],
        env={"PATH": os.environ["PATH"], **own, **variables}, cwd=cwd, capture_output=True, text=True, timeout=_SECONDS,
    )  # fmt: skip


def test_audits_in_client_and_cluster_mode_are_as_in_one_process(yarn: SmallYarn, archive: Path, tmp_path: Path) -> None:
    rows = []
    for case in cases(*STORES):
        case.unpack(tmp_path / case.name)
        place = f'path = "{case.name}/store"\nbroker_conf = "{case.name}/broker.conf"'
        rows.append(f'[[store]]\nname = "{case.name}"\nrelease = "{case.release}"\n{place}\n')
    (tmp_path / "fleet.toml").write_text("".join(rows), "utf-8")
    packed = ["--archives", f"{archive}#environment", "--conf", "spark.pyspark.python=./environment/bin/python"]
    there = ["audit", *yarn.words, *packed, "--fleet", "fleet.toml", "--run-id", "night", "--out"]
    whole = run(["audit", "--master", "local[2]", "--fleet", "fleet.toml", "--run-id", "night", "--out", "here"], tmp_path, {})
    assert whole.returncode == 20, whole.stderr
    for out, mode in (("client", []), ("cluster", ["--deploy-mode", "cluster"])):
        done = run([*there, str(tmp_path / out), *mode], tmp_path, yarn.variables)
        assert done.returncode == whole.returncode, done.stdout + done.stderr
        result = json.loads((tmp_path / out / "result.json").read_text())
        assert result["complete"] and [store["code"] for store in result["stores"]] == [0, 20]
        for case in cases(*STORES):
            for name in ("plan.json", "findings.jsonl"):
                there_bytes, here_bytes = ((tmp_path / place / case.name / name).read_bytes() for place in (out, "here"))
                assert there_bytes == here_bytes, f"{out}: {case.name}: {name}"
        told = run(["report", "--format", "json", "--tables", str(tmp_path / out / "tables")], tmp_path, {})
        assert told.returncode == 0 and len(json.loads(told.stdout)["stores"]) == len(STORES)
