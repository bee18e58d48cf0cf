"""An audit that is killed (SIGKILL) at any point and run again under its id leaves what one undisturbed run leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.runtime import setup as environment
from tests.jobs.tables.test_delta_tables import log_content
from tests.support.damage import overwrite
from tests.support.processes.opened_files import opened_below
from tests.support.stores.builders import Message, Sizes, StoreBuilder

pytestmark = pytest.mark.spark
Do = Callable[..., dict[str, Any]]
COMMIT = "before replace_run runs 2"  # the first takes out what an earlier run of this id left
CHANGING = ("started_at", "finished_at", "run_started_at", "seconds", "verified_at", "out", "first_day_at")  # and the folder


@pytest.fixture
def do(spark: SparkSession) -> Iterator[Do]:
    """Runs one audit into a folder, in a process of its own."""
    gateway: Any = spark.sparkContext._gateway
    words = [str(gateway.gateway_parameters.port), gateway.gateway_parameters.auth_token]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.processes.killed_audit", *words],
        cwd=environment.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        sent, answers = process.stdin, process.stdout

        def run(out: Path, run_id: str, kill: str | None, fleet: Path | None = None) -> dict[str, Any]:
            told = {"out": str(out), "run_id": run_id, "kill": kill, "fleet": None if fleet is None else str(fleet)}
            sent.write(json.dumps(told) + "\n")
            sent.flush()
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        yield run
        sent.close()


def without_moment(content: bytes) -> bytes:
    """A plan but for the moment of its first day, which is that of the run if nobody names a start."""
    return re.sub(rb'"as_of": "[^"]*"', b"", content)


def steady(out: Path) -> dict[str, Any]:
    """All that a run leaves, but for times and its folder."""
    found: dict[str, Any] = {}
    for table, rows in log_content(out / "tables").items():
        found[table] = sorted(str(sorted((k, v) for k, v in json.loads(row).items() if k not in CHANGING)) for row in rows)
    for path in sorted((out / "store").iterdir()):
        found[path.name] = without_moment(path.read_bytes()) if path.suffix != ".html" else None
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


def test_a_fleet_goes_on_where_it_was_killed(do: Do, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    for number in range(4):
        builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=200))
        for message in range(40):
            body = b"%d%03d" % (number, message) * 10  # copies of one log would be compared
            builder.put(Message(queue_id=message % 3, body=body, uniq=f"u{message}"))
        store = builder.write(fleet / f"store-{number}")
        if number in (1, 3):  # damaged ones are taken over like others
            overwrite(store.root / "commitlog" / f"{0:020d}", 700, b"damage")
        (tmp_path / f"{store.root.name}.conf").write_text(store.broker_conf or "")
    whole, out = tmp_path / "a" / "out", tmp_path / "b" / "out"
    assert do(whole, "night", None, fleet)["killed"] is False
    assert do(out, "night", "after write .finished 3", fleet)["killed"] is True
    os.utime(fleet / "store-0" / "checkpoint", (1, 1))  # of a store that has changed since nothing is taken over
    with opened_below(fleet) as opened:
        assert do(out, "night", None, fleet)["killed"] is False
    assert {path.partition("/")[0] for path in opened} == {"store-0", "store-3"}
    os.utime(fleet / "store-0" / "checkpoint", (2, 2))
    results = [json.loads((folder / "result.json").read_text()) for folder in (whole, out)]
    assert [result["taken_over"] for result in results] == [0, 2]
    for number in range(4):
        for name in ("plan.json", "findings.jsonl", "config.json"):
            ours, theirs = ((folder / f"store-{number}" / name).read_bytes() for folder in (out, whole))
            assert without_moment(ours) == without_moment(theirs), name
        assert not (out / f"store-{number}" / ".finished").exists()
    assert results[1]["exit_code"] == results[0]["exit_code"] == 20
    assert [store["messages"] for store in results[1]["stores"]] == [store["messages"] for store in results[0]["stores"]]
