"""Results and tables in HDFS, and whole commands that have everything there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.environment.setup import ROOT
from jobs.output import OutputFailed, OutputFolder
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.remote_log import RemoteLog
from jobs.tables.table_address import TablesFailed
from jobs.tables.upkeep import command
from jobs.tables.upkeep.table_care import tables_under
from jobs.uploads import UploadFailed, target_of
from schemas.arrow import arrow_schema
from schemas.tables import TABLES
from store_io.base.errors import UsageError
from tests.hdfs.small_hdfs import SmallHdfs, user
from tests.support.processes.remote_tables import NOW, check_that_old_runs_go_and_files_are_put_together, write
from tests.support.stores import corpus_tools

pytestmark = pytest.mark.hdfs

COLUMNS = TABLES["replica_parts"]
NO_SESSION: Any = None  # only frames need one


def rows(count: int) -> pa.Table:
    schema = arrow_schema(COLUMNS)
    return pa.Table.from_arrays([pa.nulls(count, field.type) for field in schema], schema=schema)


def test_a_run_replaces_what_an_earlier_one_left(hdfs: SmallHdfs) -> None:
    folder = OutputFolder(f"{hdfs.uri}/out/")
    hdfs.put("/out/result.json", b"old")
    hdfs.put("/out/a/plan.json", b"old")
    folder.begin(["a", "b"])
    assert folder.read("result.json") is None and folder.read("a/plan.json") is None
    folder.write("a/plan.json", ["{", "}"])
    folder.write("a/plan.json", ["{", " }"])
    folder.write("result.json", "")
    assert hdfs.get("/out/a/plan.json") == b"{ }" and folder.read("result.json") == b""
    assert hdfs.names("/out") == ["/a/plan.json", "/result.json"]


def test_what_cannot_be_written_leaves_no_part(hdfs: SmallHdfs) -> None:
    def chunks() -> Iterator[str]:
        yield "a part"
        raise OSError("the disk of the parts is full")

    with pytest.raises(OutputFailed, match=r"/out/a/plan.json: cannot write: the disk of the parts is full"):
        OutputFolder(f"{hdfs.uri}/out").write("a/plan.json", chunks())
    assert hdfs.names("/out") == []
    with user("stranger"), pytest.raises(OutputFailed, match=r"cannot .*: access is denied .*user=stranger, access=WRITE"):
        OutputFolder(f"{hdfs.uri}/out").write("result.json", "x")


def test_four_writers_at_a_time_lose_nothing(hdfs: SmallHdfs) -> None:
    uri = f"{hdfs.uri}/tables/replica_parts"

    def write(run_id: str) -> None:
        log = RemoteLog(NO_SESSION, uri, COLUMNS)
        for _ in range(3):
            log.replace_run(run_id, [log.write_file(run_id, rows(1))])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    log = RemoteLog(NO_SESSION, uri, COLUMNS)
    assert sorted(row["run_id"] for row in log.rows(["store"])) == list("abcd")
    assert log._log.newest().version() == 11, "each of the twelve commits is a version of its own"
    log.replace_run("a", [])
    assert [r["rows"] for r in DeltaQuery(uri).ask(["count(*) AS rows"])] == [3] and not log.has_run("a") and log.has_run("b")


def test_tables_that_cannot_be_reached(hdfs: SmallHdfs) -> None:
    with pytest.raises(TablesFailed, match="no NameNode answers there"):
        DeltaQuery("hdfs://127.0.0.1:1/tables/runs")
    with pytest.raises(TablesFailed, match="delta-rs would look elsewhere"):
        DeltaQuery(f"{hdfs.uri}/t%20/runs")
    assert not DeltaQuery(f"{hdfs.uri}/none/runs").exists()


def submit(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "spark-submit.sh", *map(str, words)], env=dict(os.environ), capture_output=True, text=True)


def test_commands(hdfs: SmallHdfs, tmp_path: Path) -> None:
    """Audit, history, questions, export, repair and rescue: the copy there, and what of theirs may lie there, too."""
    (case,) = corpus_tools.cases("g14")
    own = case.unpack(tmp_path / "own").rename(tmp_path / "copy")
    copy, out = hdfs.put_folder(own, "/copy"), f"{hdfs.uri}/results"
    conf = ["--release", case.release, "--broker-conf", tmp_path / "own" / "broker.conf"]
    for more in (["--write", "messages"], ["--since-run", "last"]):
        done = submit("audit", copy, *conf, "--out", out, *more)
        assert done.returncode in (0, 10, 20) and f"tables in {out}/tables" in done.stdout, done.stdout + done.stderr
    local = submit("audit", own, *conf, "--out", tmp_path / "out")
    assert local.returncode == done.returncode
    for name in ("plan.json", "findings.jsonl"):
        assert hdfs.get(f"/results/copy/{name}") == (tmp_path / "out" / "copy" / name).read_bytes()
    report = submit("report", "--tables", f"{out}/tables", "--out", f"{hdfs.uri}/report.json", "--format", "json")
    assert report.returncode == 0, report.stderr
    assert json.loads(hdfs.get("/report.json"))["runs"] == 2
    asked = submit("query", copy, *conf[:2], "--limit", "5", "--format", "jsonl")
    assert asked.returncode == 0 and asked.stdout == submit("query", own, *conf[:2], "--limit", "5", "--format", "jsonl").stdout
    exported = submit("export", copy, *conf, "--format", "jsonl", "--to", tmp_path / "there")
    assert exported.returncode == 0, exported.stderr
    (tmp_path / "plan.json").write_bytes(hdfs.get("/results/copy/plan.json"))
    for source, new in ((copy, "new"), (own, "new-local")):
        plan = tmp_path / "plan.json" if source == copy else tmp_path / "out" / own.name / "plan.json"
        done = submit("repair", source, "--plan", plan, "--to", tmp_path / new, *conf[2:])
        assert done.returncode == 0, done.stdout + done.stderr
    files = {p.relative_to(tmp_path / "new"): p.read_bytes() for p in (tmp_path / "new").rglob("*") if p.is_file()}
    assert files and files == {
        p.relative_to(tmp_path / "new-local"): p.read_bytes() for p in (tmp_path / "new-local").rglob("*") if p.is_file()
    }
    done = submit("repair", copy, "--plan", tmp_path / "plan.json", "--to", f"{hdfs.uri}/new", *conf[2:])
    assert done.returncode == 0 and f"{hdfs.uri}/new.handover.html" in done.stdout, done.stdout + done.stderr
    assert set(hdfs.names("/new")) == {f"/{path}" for path in files}
    audited = submit("audit", f"{hdfs.uri}/new", *conf, "--out", tmp_path / "again")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    exported = submit("export", copy, *conf, "--format", "parquet", "--to", f"{hdfs.uri}/export")
    assert exported.returncode == 0 and "/manifest.json" in hdfs.names("/export"), exported.stderr
    rescued = submit("rescue", copy, *conf, "--to", tmp_path / "rescued", "--yes")
    assert rescued.returncode == 0, rescued.stdout + rescued.stderr


def test_a_folder_is_put_in_place_in_one_step(hdfs: SmallHdfs, tmp_path: Path) -> None:
    (tmp_path / "new/commitlog").mkdir(parents=True)
    (tmp_path / "new/consumequeue/T/0").mkdir(parents=True)
    (tmp_path / "new/commitlog/0").write_bytes(b"x" * 3_000_000)
    (tmp_path / "new/abort").write_bytes(b"")
    target = target_of(f"{hdfs.uri}/deep/new")
    target.check_new("new", [".repair.json"])
    target.put(str(tmp_path / "new"))
    assert hdfs.names("/deep") == ["/new/abort", "/new/commitlog/0"] and hdfs.get("/deep/new/commitlog/0") == b"x" * 3_000_000
    assert hdfs.client().get_file_info("/deep/new/consumequeue/T/0").isdir, "folders without files, too"
    with pytest.raises(UsageError, match="'/deep/new' is there; nothing is replaced"):
        target.check_new("new")
    with pytest.raises(UploadFailed, match=r"cannot be put in place: .* already exists"):
        target.put(str(tmp_path / "new"))
    hdfs.put("/deep/other.repair.json", b"")
    with pytest.raises(UsageError, match=r"other\.repair\.json' is there"):
        target_of(f"{hdfs.uri}/deep/other").check_new("other", [".repair.json"])
    with pytest.raises(UploadFailed, match=r"other\.repair\.json: cannot be written: .* already exists"):
        target_of(f"{hdfs.uri}/deep/other").put_beside(f"{tmp_path}/new/commitlog/0", ".repair.json")
    assert hdfs.get("/deep/other.repair.json") == b""
    hdfs.client().set_permission("/deep", 0o755)
    with user("stranger"), pytest.raises(UploadFailed, match="access is denied"):
        target_of(f"{hdfs.uri}/deep/third").put(str(tmp_path / "new"))
    assert hdfs.names("/deep") == ["/new/abort", "/new/commitlog/0", "/other.repair.json"]


def test_tables_are_kept_small(hdfs: SmallHdfs) -> None:
    check_that_old_runs_go_and_files_are_put_together(f"{hdfs.uri}/nights/tables")
    folders = {name.split("/")[2] for name in hdfs.names("/nights/tables") if name.endswith(".parquet")}
    assert {entry.path.rpartition("/")[2] for entry in hdfs.client().list_status("/nights/tables/segments")} == {
        "_delta_log",
        *folders,
    }, "folders of months that are gone"


def test_a_table_that_another_user_owns_is_not_changed(hdfs: SmallHdfs) -> None:
    write(f"{hdfs.uri}/tables", "a", 100)
    write(f"{hdfs.uri}/tables", "b", 0)
    before = hdfs.names("/tables")
    with user("stranger"), pytest.raises(TablesFailed, match=r"/tables/runs: .*user=stranger, access=WRITE"):
        command.prune(tables_under(f"{hdfs.uri}/tables"), int(NOW.timestamp() * 1e6), None, NOW)
    assert hdfs.names("/tables") == before
