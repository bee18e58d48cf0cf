"""An audit that is killed (SIGKILL) at any point and run again under its id leaves what one undisturbed run leaves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.environment import setup as environment
from tests.jobs.tables.test_delta_tables import log_content

pytestmark = pytest.mark.spark
Do = Callable[[Path, str, str | None], dict[str, Any]]
COMMIT = "before replace_run runs 2"  # the first takes out what an earlier run of this id left
CHANGING = ("started_at", "seconds", "verified_at")


@pytest.fixture
def do(spark: SparkSession) -> Iterator[Do]:
    """Runs one audit into a folder, in a process of its own."""
    gateway: Any = spark.sparkContext._gateway
    words = [str(gateway.gateway_parameters.port), gateway.gateway_parameters.auth_token]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed_audit", *words],
        cwd=environment.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        sent, answers = process.stdin, process.stdout

        def run(out: Path, run_id: str, kill: str | None) -> dict[str, Any]:
            sent.write(json.dumps({"out": str(out), "run_id": run_id, "kill": kill}) + "\n")
            sent.flush()
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        yield run
        sent.close()


def steady(out: Path) -> dict[str, Any]:
    """All that a run leaves, but for times."""
    found: dict[str, Any] = {}
    for table, rows in log_content(out / "tables").items():
        found[table] = sorted(str(sorted((k, v) for k, v in json.loads(row).items() if k not in CHANGING)) for row in rows)
    for path in sorted((out / "store").iterdir()):
        found[path.name] = path.read_text() if path.suffix != ".html" else None
    result = json.loads((out / "result.json").read_text())
    return {**found, "result.json": (sorted(result), result["run_id"], result["exit_code"], result["complete"])}


def test_killed_at_any_point_and_run_again(do: Do, tmp_path: Path) -> None:
    before = tmp_path / "before"
    assert do(before, "other", None)["killed"] is False
    once = tmp_path / "once"
    shutil.copytree(before, once)
    events = do(once, "a", None)["events"]
    wanted = steady(once)
    assert {name: len(wanted[name]) for name in ("runs", "segments")} == {"runs": 2, "segments": 10}
    assert events[-1] == "after write result.json 1" and events.index(COMMIT) > events.index("after replace_run findings 1")
    for kill, earlier in (
        ("before write findings.jsonl 1", once),
        ("after replace_run segments 1", before),  # while other tables are written
        (COMMIT, once),  # where it takes the place of a whole run
    ):
        out = tmp_path / kill
        shutil.copytree(earlier, out)
        assert do(out, "a", kill) == {"killed": True, "events": []}
        seen = {json.loads(row)["run_id"] for row in log_content(out / "tables")["runs"]}
        assert seen == ({"other", "a"} if kill.startswith("before write") else {"other"}), kill
        assert not (out / "result.json").exists()
        assert do(out, "a", None)["killed"] is False
        assert steady(out) == wanted, kill
