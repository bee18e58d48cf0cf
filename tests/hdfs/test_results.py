"""Results and tables in HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.audit.results import remove_result
from jobs.commands import tables_command
from jobs.runtime.output import OutputFailed, OutputFolder
from jobs.runtime.uploads import UploadFailed, target_of
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.remote_log import RemoteLog
from jobs.tables.table_care import tables_under
from jobs.tables.table_files import TablesFailed
from schemas.arrow import arrow_schema
from schemas.tables import TABLES
from store_io.base.errors import UsageError
from store_io.source import hdfs_client
from tests.hdfs.small_hdfs import SmallHdfs, user
from tests.support.processes.remote_tables import NOW, check_that_old_runs_go_and_files_are_put_together, write

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


def test_whether_results_can_be_written_is_asked_without_moving_data(hdfs: SmallHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in processes that are forked later, and these could read nothing."""
    monkeypatch.setattr(hdfs_client, "_data_moved_by", None)
    remove_result(f"{hdfs.uri}/out")
    assert hdfs_client._data_moved_by is None and hdfs.client().get_file_info("/out").isdir and hdfs.names("/out") == []
    with user("stranger"), pytest.raises(OutputFailed, match=r"/out.*: cannot .*: access is denied .*user=stranger"):
        remove_result(f"{hdfs.uri}/out")


def test_four_writers_at_a_time_lose_nothing(hdfs: SmallHdfs) -> None:
    uri = f"{hdfs.uri}/tables/replica_parts"

    def write(run_id: str) -> None:
        log = RemoteLog(NO_SESSION, uri, COLUMNS)
        for _ in range(3):
            log.replace_run(run_id, [log.write_file(run_id, rows(1))])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    log = RemoteLog(NO_SESSION, uri, COLUMNS)
    assert sorted(row["run_id"] for row in DeltaQuery(uri).ask(["run_id"])) == list("abcd")
    assert log._log.newest().version() == 11, "each of the twelve commits is a version of its own"
    log.replace_run("a", [])
    assert [r["rows"] for r in DeltaQuery(uri).ask(["count(*) AS rows"])] == [3] and not log.has_run("a") and log.has_run("b")


def test_tables_that_cannot_be_reached(hdfs: SmallHdfs) -> None:
    with pytest.raises(TablesFailed, match="no NameNode answers there"):
        DeltaQuery("hdfs://127.0.0.1:1/tables/runs")
    with pytest.raises(TablesFailed, match="delta-rs would look elsewhere"):
        DeltaQuery(f"{hdfs.uri}/t%20/runs")
    assert not DeltaQuery(f"{hdfs.uri}/none/runs").exists()


def test_a_folder_is_put_in_place_in_one_step(hdfs: SmallHdfs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    for name in (".next.0123abcd.writing/commitlog/0", ".next.repair.json.89abcdef.writing", ".nexts.0123abcd.writing"):
        hdfs.put(f"/left/{name}", b"")
    target_of(f"{hdfs.uri}/left/next").check_new("next", [".repair.json"])
    said = capsys.readouterr().err
    assert "/left/.next.0123abcd.writing is left from an upload that was broken off" in said and "nexts" not in said
    assert ".next.repair.json.89abcdef.writing is left" in said
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
        tables_command.prune(tables_under(f"{hdfs.uri}/tables"), int(NOW.timestamp() * 1e6), None, NOW)
    assert hdfs.names("/tables") == before
