"""Delta tables in S3: versions, writers at a time, younger columns; and a whole command that has everything there."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from jobs.runtime.setup import ROOT
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.remote_log import RemoteLog
from jobs.tables.table_files import TablesFailed
from schemas.arrow import arrow_schema
from schemas.tables import TABLES, Column
from store_io.source import s3_client
from tests.support.processes.s3_server import BUCKET, Refusal, S3Server, forget
from tests.support.stores import corpus_tools

# delta-rs holds the interpreter while it alters a table, so a server in a thread of this process could not answer it.
_SERVE = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
URI = f"s3://{BUCKET}/tables/replica_parts"
COLUMNS = TABLES["replica_parts"]
NO_SESSION: Any = None  # only frames need one


def rows(count: int, columns: tuple[Column, ...] = COLUMNS) -> pa.Table:
    schema = arrow_schema(columns)
    return pa.Table.from_arrays([pa.nulls(count, field.type) for field in schema], schema=schema)


def run_ids() -> list[str]:
    return sorted(row["run_id"] for row in DeltaQuery(URI).ask(["run_id"]))


@pytest.fixture
def apart(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server in a process of its own, with an empty bucket, which this process reaches by its environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", _SERVE, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)  # until it answers
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        forget()
        s3_client.client().create_bucket(Bucket=BUCKET)
        yield
    finally:
        process.kill()
        process.wait()
        forget()


def test_a_run_is_replaced_and_others_stay(server: S3Server) -> None:
    log = RemoteLog(NO_SESSION, URI, COLUMNS)
    assert not log.exists() and not log.has_run("a")
    log.replace_run("a", [log.write_file("a", rows(2))])
    log.replace_run("b", [log.write_file("b", rows(1))])
    assert log.has_run("a") and run_ids() == ["a", "a", "b"]
    log.replace_run("a", [log.write_file("a", rows(1))])
    assert run_ids() == ["a", "b"] and log.has_run("b")
    assert DeltaQuery(URI).ask(["run_id", "count(*) AS rows"], "GROUP BY run_id ORDER BY run_id") == [
        {"run_id": "a", "rows": 1}, {"run_id": "b", "rows": 1}
    ]  # fmt: skip


class Here:
    """What `frame` asks of a session; its tasks run in this process."""

    def __init__(self) -> None:
        self.spark, self.context = self, SimpleNamespace(defaultParallelism=2)

    def createDataFrame(self, table: pa.Table) -> Here:
        self.table = table
        return self

    def repartition(self, count: int) -> Here:
        assert count == 2
        return self

    def mapInArrow(self, read: Any, schema: Any) -> pa.Table:
        return pa.Table.from_batches(read(iter(self.table.to_batches())))


def test_a_frame_has_the_rows_of_all_files(apart: None) -> None:
    """Those of a file that is older than a column, too, and each with its run."""
    older = RemoteLog(NO_SESSION, URI, COLUMNS[:-1])
    older.replace_run("a", [older.write_file("a", rows(2, COLUMNS[:-1]))])
    here: Any = Here()
    log = RemoteLog(here, URI, COLUMNS)
    log.replace_run("b", [log.write_file("b", rows(1))])
    found: Any = log.frame()
    assert sorted(found["run_id"].to_pylist()) == ["a", "a", "b"]
    assert found[COLUMNS[-1].name].to_pylist() == [None, None, None]


def test_a_commit_whose_answer_was_lost_is_not_made_again(server: S3Server) -> None:
    log = RemoteLog(NO_SESSION, URI, COLUMNS)
    log.replace_run("a", [])
    file = log.write_file("b", rows(1))
    log.replace_run("b", [file])
    version = log._log.newest().version()
    log.replace_run("b", [file])
    assert log._log.newest().version() == version and run_ids() == ["b"]


def test_a_folder_that_delta_rs_would_look_for_elsewhere_is_refused(server: S3Server) -> None:
    for make in (lambda uri: RemoteLog(NO_SESSION, uri, COLUMNS), DeltaQuery):
        with pytest.raises(TablesFailed, match="delta-rs would look elsewhere"):
            make(f"s3://{BUCKET}/c%6fpy/runs")


def test_two_writers_at_a_time_lose_nothing(server: S3Server) -> None:
    def write(run_id: str) -> None:
        log = RemoteLog(NO_SESSION, URI, COLUMNS)
        log.replace_run(run_id, [log.write_file(run_id, rows(1))])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    assert run_ids() == list("abcd")


def test_a_column_that_is_younger_than_the_table_is_added(apart: None) -> None:
    older = RemoteLog(NO_SESSION, URI, COLUMNS[:-1])
    older.replace_run("a", [older.write_file("a", rows(1, COLUMNS[:-1]))])
    log = RemoteLog(NO_SESSION, URI, COLUMNS)
    log.replace_run("b", [log.write_file("b", rows(1))])
    assert {field.name for field in log._log.newest().schema().fields} >= {COLUMNS[-1].name}
    assert DeltaQuery(URI).ask([COLUMNS[-1].name]) == [{COLUMNS[-1].name: None}] * 2


def test_a_server_that_refuses_is_a_sentence(server: S3Server) -> None:
    log = RemoteLog(NO_SESSION, URI, COLUMNS)
    server.refuse = lambda request: Refusal("403 Forbidden", "AccessDenied")
    with pytest.raises(TablesFailed, match=r"part-.*cannot write: access is denied"):
        log.write_file("a", rows(1))
    with pytest.raises(TablesFailed, match=f"table {URI}: "):
        log.exists()


@pytest.mark.spark
def test_an_audit_has_its_copy_results_and_tables_there(server: S3Server, tmp_path: Path) -> None:
    (case,) = corpus_tools.cases("g14")
    copy = server.put_folder(case.unpack(tmp_path), "copy")
    out = f"s3://{BUCKET}/results"
    words = [copy, "--release", case.release, "--broker-conf", str(tmp_path / "broker.conf"), "--out", out, "--since-run", "last"]
    done = subprocess.run([ROOT / "spark-submit.sh", "audit", *words], env=server.environment(), capture_output=True, text=True)
    assert done.returncode in (0, 10, 20), done.stdout + done.stderr
    assert f"tables in {out}/tables" in done.stdout
    report = subprocess.run(
        [ROOT / "spark-submit.sh", "report", "--tables", f"{out}/tables"],
        env=server.environment(),
        capture_output=True,
        text=True,
    )
    began = json.loads(server.get("results/result.json"))["started_at"]
    lines = [line for line in report.stdout.splitlines() if line.split()[:1] == [began[:10]]]
    assert report.returncode == 0 and len(lines) == 1, report.stdout + report.stderr
