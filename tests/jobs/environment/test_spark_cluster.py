"""A real cluster, whose workers have nothing of the project but what a driver sends: the same results as one process.

./spark-submit.sh test -m cluster
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.environment import setup as environment
from tests.support.corpus_tools import cases
from tests.support.spark_cluster import Cluster, cluster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes"),
]
STORES = ("g04", "g19", "g29", "g37", "g103")  # clean, cut, queues wrong, damaged, of a DLedger group
_SECONDS = 900  # of one command, on a machine that is busy
CHANGING = ("run_id", "started_at", "seconds", "task_seconds", "tables")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where commands are typed: no folder of the project."""
    return tmp_path


def here(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same command on two cores of this machine."""
    own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    return subprocess.run(
        [sys.executable, "-m", "jobs.cli", words[0], "--master", "local[2]", *words[1:]],
        env={"PATH": os.environ["PATH"], **own}, cwd=cwd, capture_output=True, text=True, timeout=_SECONDS,
    )  # fmt: skip


def steady(value: Any) -> Any:
    """A result without what differs from run to run."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in CHANGING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_audit_export_repair_and_history_as_in_one_process(running: Cluster, elsewhere: Path) -> None:
    rows = []
    for case in cases(*STORES):
        case.unpack(elsewhere / case.name)
        place = f'path = "{case.name}/store"\nbroker_conf = "{case.name}/broker.conf"'
        rows.append(f'[[store]]\nname = "{case.name}"\nrelease = "{case.release}"\n{place}\n')
    (elsewhere / "fleet.toml").write_text("".join(rows), "utf-8")
    words = ["audit", "--fleet", "fleet.toml", "--write", "consumequeue", "--out"]
    one, many = here([*words, "one"], elsewhere), running.run([*words, "many"], elsewhere)
    assert (many.returncode, many.stderr) == (one.returncode, "")
    results = [json.loads((elsewhere / name / "result.json").read_text()) for name in ("one", "many")]
    assert steady(results[1]) == steady(results[0])
    found = list(cases(*STORES))
    assert len(found) == len(STORES)
    for case in found:
        for name in ("plan.json", "findings.jsonl", "config.json"):
            assert (elsewhere / "many" / case.name / name).read_bytes() == (elsewhere / "one" / case.name / name).read_bytes(), (
                name
            )

    damaged = next(case for case in found if case.name.startswith("g37"))
    store = ["--release", damaged.release, "--broker-conf", f"{damaged.name}/broker.conf"]
    words = ["repair", f"{damaged.name}/store", "--plan", f"many/{damaged.name}/plan.json", *store, "--policy", "salvage", "--to"]
    one, many = here([*words, "new-one"], elsewhere), running.run([*words, "new-many"], elsewhere)
    assert (many.returncode, many.stderr) == (one.returncode, "") == (0, "")
    assert files(elsewhere / "new-many") == files(elsewhere / "new-one") != {}

    words = ["export", f"{damaged.name}/store", *store, "--format", "jsonl", "--to"]
    one, many = here([*words, "rows-one"], elsewhere), running.run([*words, "rows-many"], elsewhere)
    assert (many.returncode, many.stderr) == (one.returncode, "") == (0, "")
    exported = [files(elsewhere / name) for name in ("rows-one", "rows-many")]
    assert exported[1].keys() == exported[0].keys() and exported[0]
    assert all(exported[1][name] == content for name, content in exported[0].items() if "manifest" not in name)

    for words in (["report"], ["coverage", "--within", "1d"]):
        told = [here_only([*words, "--format", "json", "--tables", f"{name}/tables"], elsewhere) for name in ("one", "many")]
        assert [row.returncode for row in told] == [0, 0]
        assert len(json.loads(told[1].stdout)["stores"]) == len(json.loads(told[0].stdout)["stores"]) == len(STORES)


def here_only(words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that needs no Spark."""
    own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    return subprocess.run(
        [sys.executable, "-m", "jobs.cli", *words],
        env={"PATH": os.environ["PATH"], **own}, cwd=cwd, capture_output=True, text=True, timeout=_SECONDS,
    )  # fmt: skip
