"""Runs one after another over the same tables: what one has verified the next need not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import run_audit as audit
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.runtime import setup as environment
from jobs.runtime.session import Session
from jobs.tables.delta_query import DeltaQuery
from jobs.tasks.runner import partition
from schemas.advice import Cause, exit_code_of
from schemas.tables import TABLES
from store_io.audit.open_copy import open_copy
from store_io.audit.rounds.task_making import TaskMaker
from store_io.base.errors import UsageError
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.stores.builders import Message, Sizes, StoreBuilder

pytestmark = pytest.mark.spark


def stored(root: Path, segment: int = 4096, count: int = 120) -> StoreArgument:
    builder = StoreBuilder("5.3.3", Sizes(segment=segment, queue_file=200))
    for number in range(count):
        builder.put(Message(queue_id=number % 3, body=b"%04d" % number * 10, uniq=f"u{number}"))
    store = builder.write(root)
    return StoreArgument("a", str(store.root), "5.3.3", store.broker_conf)


def run(spark_session: Session, store: StoreArgument, out: Path, run_id: str, **more: Any) -> dict[str, Any]:
    code = audit.run_with(spark_session, AuditOptions((store,), str(out), run_id=run_id, **more))
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    assert result["exit_code"] == code
    return result


def segments(out: Path, run_id: str) -> list[dict[str, Any]]:
    names = [column.name for column in TABLES["segments"]]
    return DeltaQuery(f"{out}/tables/segments").ask(names, f"WHERE run_id = '{run_id}' ORDER BY file")


def test_one_night_after_the_other(spark_session: Session, tmp_path: Path) -> None:
    store, out = stored(tmp_path / "store"), tmp_path / "out"
    with pytest.raises(UsageError, match=r"--since-run 'one': .* has no run of this id"):
        run(spark_session, store, out, "zero", since_run="one")
    first = run(spark_session, store, out, "one", since_run="last")
    assert (first["exit_code"], first["stores"][0]["not_read"], first["complete"]) == (0, None, True)
    count = first["stores"][0]["segments"]
    path = tmp_path / "store" / "commitlog" / f"{8192:020d}"
    damage.invert_byte(path, 92)
    second = run(spark_session, store, out, "two", since_run="last")
    told = second["stores"][0]
    assert second["exit_code"] == 20 and told["not_read"]["since"] == "one" and told["unverified_bytes"] == 0
    assert told["not_read"]["reused_segments"] >= count - 3 and told["messages"] == 119
    rows = segments(out, "two")
    assert sum(row["verified_run"] == "one" for row in rows) == told["not_read"]["reused_segments"]
    assert [row["verified_run"] for row in rows if row["base_offset"] == 8192] == ["two"]
    verified = {row["file"]: row["verified_at"] for row in segments(out, "one")}
    assert all(row["verified_at"] == verified[row["file"]] for row in rows if row["verified_run"] == "one")
    third = run(spark_session, store, out, "three", since_run="two")  # the damage is looked at again, and found again
    assert third["exit_code"] == 20
    assert [row["verified_run"] for row in segments(out, "three") if row["base_offset"] == 8192] == ["three"]
    again = run(spark_session, store, out, "two", since_run="one")  # repeated under its id, as after a kill
    times = {"seconds": 0, "task_seconds": 0}
    assert {**again["stores"][0], **times} == {**told, **times}
    clock = {"verified_at": None, "run_started_at": None}
    assert [{**row, **clock} for row in segments(out, "two")] == [{**row, **clock} for row in rows]


def test_damage_that_a_later_run_has_found_is_read_whichever_run_is_named(spark_session: Session, tmp_path: Path) -> None:
    store, out = stored(tmp_path / "store", 16384, 500), tmp_path / "out"
    path = tmp_path / "store" / "commitlog" / f"{16384:020d}"
    whole, times = path.read_bytes(), path.stat()
    assert run(spark_session, store, out, "sound")["exit_code"] == 0
    damage.invert_byte(path, whole.index(b"0150" * 10))  # far from both edges
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run(spark_session, store, out, "before", since_run="last")["exit_code"] == 0  # what no run has read no run can know
    assert run(spark_session, store, out, "found")["exit_code"] == 20
    for run_id, since in (("four", "sound"), ("six", "before"), ("seven", "last")):
        told = run(spark_session, store, out, run_id, since_run=since)
        assert told["exit_code"] == 20 and told["stores"][0]["not_read"]["reused_segments"] > 0
        assert [row["verified_run"] for row in segments(out, run_id) if row["base_offset"] == 16384] == [run_id]
    path.write_bytes(whole)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    count = told["stores"][0]["not_read"]["reused_segments"]
    assert run(spark_session, store, out, "mended", since_run="last")["exit_code"] == 0
    last = run(spark_session, store, out, "last", since_run="last")
    assert last["exit_code"] == 0 and last["stores"][0]["not_read"]["reused_segments"] == count + 1


def test_no_time(spark_session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = stored(tmp_path / "store"), tmp_path / "out"
    result = run(spark_session, store, out, "none", max_seconds=0.0, progress_json=True)
    told = result["stores"][0]
    assert (result["exit_code"], told["complete"], told["level"]) == (exit_code_of(Cause.TIME_LIMIT), False, "full")
    assert told["not_read"]["segments"] == told["segments"] > 3 and told["unverified_bytes"] == told["commitlog_bytes"]
    printed = capsys.readouterr()
    assert f"Not read   {told['segments']} segments, " in printed.out and "the time limit was reached" in printed.out
    assert json.loads(printed.err.splitlines()[-1])["phase"] == "done"
    assert "Not read, as you asked" in (out / "a" / "report.html").read_text()
    assert {row["verified_run"] for row in segments(out, "none")} == {None}


def test_where_time_counts_each_core_has_a_part_and_keeps_the_order(tmp_path: Path) -> None:
    store = stored(tmp_path / "store")
    asked = AuditRequest("a", StoreLocation(store.path), "5.3.3", store.broker_conf, not_after=1e12)
    copy = open_copy(asked, Gaps())
    tasks = TaskMaker(asked, copy).segments(copy.segment_files)
    bins = partition(tasks, 2)
    assert len(bins) == 2 and sorted(bins[0] + bins[1]) == list(range(len(tasks)))
    assert bins[0] == sorted(bins[0]) and {bins[0][0], bins[1][0]} == {0, 1}


def spoil_file(tables: Path) -> None:
    path = next((tables / "runs").glob("month=*/*.parquet"))
    path.write_bytes(path.read_bytes()[:100])


def raise_protocol(tables: Path) -> None:
    newest = max((tables / "runs" / "_delta_log").glob("*.json"))
    protocol = json.dumps({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}})
    (newest.parent / f"{int(newest.stem) + 1:020d}.json").write_text(protocol + "\n")


@pytest.mark.parametrize("spoil", [pytest.param(spoil_file, marks=pytest.mark.soak), raise_protocol])
def test_tables_that_cannot_be_read_end_the_command_with_a_result(
    spoil: Callable[[Path], None], spark_session: Session, tmp_path: Path
) -> None:
    """As people run it: what Spark says of it is asked for while the JVM is still there, and is one sentence."""
    store, out = stored(tmp_path / "store"), tmp_path / "out"
    run(spark_session, store, out, "one")
    spoil(out / "tables")
    words = ["audit", store.path, "--out", str(out), "--since-run", "last", "--prometheus", str(tmp_path / "audit.prom")]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    done = subprocess.run([sys.executable, "-m", "jobs.entry", *words], env=clean, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert str(out / "tables") in done.stderr
    result = json.loads((out / "result.json").read_text())
    assert (result["exit_code"], result["complete"], len(result["problems"])) == (3, False, 1)
    assert "rocketmq_store_audit_complete" in (tmp_path / "audit.prom").read_text()
