"""Results in S3: whole or not there, and what goes wrong is a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import entry
from jobs.audit import results
from jobs.runtime.output import OutputFailed, OutputFolder
from jobs.runtime.remote_files import ArrowFiles
from store_io.source import s3_client
from tests.support.processes.s3_server import BUCKET, Refusal, S3Server


def test_a_run_replaces_what_an_earlier_one_left(server: S3Server) -> None:
    folder = OutputFolder(f"s3://{BUCKET}/out/")
    server.put("out/result.json", b"old")
    server.put("out/a/plan.json", b"old")
    folder.begin(["a"])
    assert folder.read("result.json") is None and folder.read("a/plan.json") is None
    folder.write("a/plan.json", ["{", "}"])
    folder.write("result.json", "whole")
    assert server.get("out/a/plan.json") == b"{}" and folder.read("result.json") == b"whole"


def test_what_cannot_be_written_leaves_no_part(server: S3Server) -> None:
    def chunks() -> Iterator[str]:
        yield "a part"
        raise OSError("the disk of the parts is full")

    folder = OutputFolder(f"s3://{BUCKET}/out")
    with pytest.raises(OutputFailed, match=f"s3://{BUCKET}/out/a/plan.json: cannot write: the disk of the parts is full"):
        folder.write("a/plan.json", chunks())
    assert not [request for request in server.requests if request.method == "PUT"]


def test_a_file_system_of_pyarrow_keeps_no_part_either(tmp_path: Path) -> None:
    files = ArrowFiles(tmp_path.as_uri())
    files.write("a.json", [b"whole"])

    def broken() -> Iterator[bytes]:
        yield b"a part"
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        files.write("a.json", broken())
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.json", b"whole")]


def test_a_refusal_and_an_absent_bucket_are_sentences(server: S3Server) -> None:
    with pytest.raises(OutputFailed, match=r"result\.json: cannot remove the earlier one: there is no bucket"):
        OutputFolder("s3://no-such-bucket/out").begin([])
    server.refuse = lambda request: Refusal("403 Forbidden", "AccessDenied")
    with pytest.raises(OutputFailed, match=r"cannot write: access is denied .*s3:PutObject"):
        OutputFolder(f"s3://{BUCKET}/out").write("result.json", "x")
    with pytest.raises(OutputFailed, match="is s3://BUCKET/FOLDER"):
        OutputFolder("s3://")


def test_an_audit_that_could_not_write_ends_before_it_reads(
    server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("out/result.json", b"{}")
    server.refuse = lambda request: Refusal("403 Forbidden", "AccessDenied") if request.method == "PUT" else None
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    assert entry.main(["audit", str(tmp_path / "store"), "--release", "5.3.3", "--out", f"s3://{BUCKET}/out"]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"s3://{BUCKET}/out: cannot write there: access is denied" in said and "s3:PutObject" in said
    server.refuse = lambda request: None
    assert server.get("out/result.json") == b"{}"  # nothing took its place
    results.remove_result(f"s3://{BUCKET}/out")
    assert s3_client.client().list_objects_v2(Bucket=BUCKET).get("KeyCount") == 0
