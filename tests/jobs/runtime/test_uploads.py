"""A new store or an export in S3: whole, or nothing that could be taken for whole. For HDFS see tests/hdfs."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from jobs import entry
from jobs.repair import repair_request
from jobs.runtime import uploads
from jobs.runtime.uploads import UploadFailed, target_of
from schemas.layouts.store_names import UPLOAD_MARK
from schemas.rows import Row
from store_io.audit.audit_store import run_local
from store_io.base.errors import NotAStore, StoreError, UsageError
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source import s3_client
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_store
from tests.support.processes.s3_server import BUCKET, Refusal, Request, S3Server
from tests.support.stores.small_repairs import small_store

URI = f"s3://{BUCKET}/new"
SLOW_DOWN = Refusal("503 Slow Down", "SlowDown")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("commitlog/0", "config/topics.json", "a b/%20", "empty"):
        path = tmp_path / "made" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == "empty" else os.urandom(100))
    return tmp_path / "made"


def keys(server: S3Server) -> list[str]:
    return sorted(entry["Key"] for entry in s3_client.client().list_objects_v2(Bucket=BUCKET).get("Contents", ()))


def test_all_files_and_the_mark_before_and_after_them(server: S3Server, folder: Path) -> None:
    target_of(URI).put(str(folder), last=["config/topics.json"])
    written = [(r.method, r.key) for r in server.requests if r.method in ("PUT", "DELETE")]
    assert written[0] == ("PUT", f"new/{UPLOAD_MARK}") and written[-1] == ("DELETE", f"new/{UPLOAD_MARK}")
    assert written[-2] == ("PUT", "new/config/topics.json") and len(written) == 6
    for key in keys(server):
        assert server.get(key) == (folder / key.removeprefix("new/")).read_bytes()
    assert len(keys(server)) == 4


def test_a_long_file_goes_in_parts(server: S3Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "PART_BYTES", 5 << 20)
    (folder / "commitlog/0").write_bytes(data := os.urandom(11 << 20))
    target_of(URI).put(str(folder))
    assert hashlib.sha256(server.get("new/commitlog/0")).digest() == hashlib.sha256(data).digest()
    assert len([r for r in server.requests if r.key == "new/commitlog/0" and r.method == "PUT"]) == 3


def refusing(method: str, end: str) -> object:
    return lambda request: (
        Refusal("403 Forbidden", "AccessDenied") if request.method == method and request.key.endswith(end) else None
    )


def meanwhile(server: S3Server, key: str, content: bytes) -> None:
    """Have another run put an object there while a file of the folder is put."""

    def meddle(request: Request) -> None:
        if request.method == "PUT" and request.key.endswith("/empty"):
            server.refuse = lambda request: None
            server.put(key, content)

    server.refuse = meddle


def test_what_is_broken_off_is_taken_back(server: S3Server, folder: Path) -> None:
    server.refuse = refusing("PUT", "topics.json")  # type: ignore[assignment]
    with pytest.raises(UploadFailed, match=f"{URI}: cannot be written: access is denied .*s3:PutObject"):
        target_of(URI).put(str(folder))
    assert keys(server) == []


def test_what_cannot_be_taken_back_is_marked_and_refused(server: S3Server, folder: Path) -> None:
    def refuse(request: Request) -> Refusal | None:
        broken = request.method == "DELETE" or request.method == "PUT" and request.key.endswith("topics.json")
        return Refusal("403 Forbidden", "AccessDenied") if broken else None

    server.refuse = refuse
    with pytest.raises(UploadFailed):
        target_of(URI).put(str(folder))
    assert f"new/{UPLOAD_MARK}" in keys(server) and "new/commitlog/0" in keys(server)
    with pytest.raises(NotAStore, match="the upload of this store has not ended"):
        list_store(StoreLocation(URI))
    server.refuse = lambda request: None
    with pytest.raises(UsageError, match="holds an upload that was not finished; nothing is replaced"):
        target_of(URI).check_new(URI)
    with pytest.raises(UploadFailed, match="another upload to it is under way"):
        target_of(URI).put(str(folder))
    assert "new/commitlog/0" in keys(server), "the other upload's files stay"


def test_what_another_one_puts_there_is_noticed(server: S3Server, folder: Path) -> None:
    meanwhile(server, "new/strange", b"x")
    with pytest.raises(UploadFailed, match=r"new/strange: .* after the upload, nothing was sent"):
        target_of(URI).put(str(folder))
    assert keys(server) == ["new/strange"]


def test_a_store_that_another_run_has_finished_stays(server: S3Server, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "empty").write_bytes(b"another store's")
    first, second = target_of(URI), target_of(URI)
    for target in (first, second):
        target.check_new(URI, [".repair.json"])
    first.put_beside(f"{folder}/a b/%20", ".repair.json")
    first.put(str(folder))
    there = {key: server.get(key) for key in keys(server)}
    with pytest.raises(UploadFailed, match=r"new/.*: another run has put it there meanwhile; nothing is replaced"):
        second.put(str(other))
    with pytest.raises(UploadFailed, match=r"new\.repair\.json: another run has put it there meanwhile"):
        second.put_beside(f"{other}/empty", ".repair.json")
    second.remove_beside(".repair.json")
    assert {key: server.get(key) for key in keys(server)} == there and len(there) == 5
    first.remove_beside(".repair.json")
    assert len(keys(server)) == 4


@pytest.mark.parametrize("size", [3, 5 << 20])
def test_an_object_that_is_put_there_meanwhile_stays(
    server: S3Server, folder: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(uploads, "PART_BYTES", 1 << 20)
    (folder / "config/topics.json").write_bytes(bytes(size))

    meanwhile(server, "new/config/topics.json", b"another's")
    with pytest.raises(UploadFailed, match=r"topics\.json: another run has put it there meanwhile"):
        target_of(URI).put(str(folder), last=["config/topics.json"])
    assert keys(server) == ["new/config/topics.json"] and server.get("new/config/topics.json") == b"another's"


def test_a_request_whose_answer_was_lost_is_known_as_its_own(server: S3Server, folder: Path) -> None:
    lost: set[str] = set()

    def lose(request: Request) -> Refusal | None:
        if request.method != "PUT" or request.key in lost:
            return None
        lost.add(request.key)
        content = folder / request.key.removeprefix("new/")
        body = content.read_bytes() if content.exists() else b""
        s3_client.client().put_object(Bucket=BUCKET, Key=request.key, Body=body, Metadata=target._run)
        return SLOW_DOWN

    target = uploads._S3Target(URI)
    server.refuse = lose
    target.put(str(folder))
    assert len(keys(server)) == 4 and len(lost) == 5


def test_throttling_is_tried_again(server: S3Server, folder: Path) -> None:
    met: set[str] = set()

    def once(request: Request) -> Refusal | None:
        refused = request.method == "PUT" and request.key not in met
        met.add(request.key)
        return SLOW_DOWN if refused else None

    server.refuse = once
    target_of(URI).put(str(folder))
    assert len(keys(server)) == 4


def test_places_that_are_refused(server: S3Server) -> None:
    server.put("new/x", b"x")
    server.put("other.repair.json", b"x")
    server.put("other.handover.html.old", b"x")
    with pytest.raises(UsageError, match=f"--to '{URI}': holds 'new/x'; nothing is replaced"):
        target_of(URI).check_new(URI)
    other = target_of(f"s3://{BUCKET}/other")
    with pytest.raises(UsageError, match=r"holds 'other\.repair\.json'"):
        other.check_new("given", [".repair.json"])
    server.put("other.resend.jsonl", b"x")
    with pytest.raises(UsageError, match=r"holds 'other\.repair\.json' and 'other\.resend\.jsonl'; .* keep that elsewhere"):
        other.check_new("given", [".repair.json", ".handover.html", ".resend.jsonl"])
    other.check_new("given", [".handover.html"])
    for uri, said in ((f"s3://{BUCKET}", "a bucket alone"), ("gs://bucket/x", "a folder of this machine")):
        with pytest.raises(UsageError, match=said):
            target_of(uri)
    uploads.refuse_elsewhere(["--master", "local[2]", "--conf", "a=b"])
    for words in (["--master", "spark://m:7077"], ["--conf", "spark.master=spark://m:7077"]):
        with pytest.raises(UsageError, match="with master spark://m:7077: it is made in a folder of this machine"):
            uploads.refuse_elsewhere(words)


def plan(root: Path, conf: str) -> Row:
    return audit_plan(run_local(AuditRequest("store", StoreLocation(str(root)), "5.3.3", conf)))


def test_a_repair_into_s3(server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, conf = small_store(tmp_path)
    (tmp_path / "broker.conf").write_text(conf)
    (tmp_path / "plan.json").write_text(json.dumps(plan(root, conf)))
    words = ["repair", str(root), "--plan", f"{tmp_path}/plan.json", "--release", "5.3.3"]
    words += ["--broker-conf", f"{tmp_path}/broker.conf"]
    assert entry.main([*words, "--to", f"{tmp_path}/here"]) == 0
    assert entry.main([*words, "--to", URI, "--dry-run"]) == 0 and keys(server) == []
    capsys.readouterr()
    assert entry.main([*words, "--to", URI]) == 0
    said = capsys.readouterr().out
    assert URI in said and f"{URI}.handover.html" in said and "store-audit-new-" not in said
    local = {str(p.relative_to(tmp_path / "here")): p.read_bytes() for p in (tmp_path / "here").rglob("*") if p.is_file()}
    assert {k.removeprefix("new/"): server.get(k) for k in keys(server) if k.startswith("new/")} == local
    assert [k for k in keys(server) if not k.startswith("new/")] == ["new.handover.html", "new.plan.json", "new.repair.json"]
    assert not any(b"store-audit-new-" in server.get(k) for k in keys(server))
    assert entry.main([*words, "--to", URI]) == 2 and "nothing is replaced" in capsys.readouterr().err


def test_a_plan_lies_where_its_audit_wrote_it(server: S3Server, tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    (tmp_path / "plan.json").write_text(json.dumps(plan(root, conf)))
    place = f"s3://{BUCKET}/results/store/plan.json"
    with pytest.raises(UsageError, match=f"--plan '{place}': no such file"):
        repair_request.plan_at(place)
    server.put("results/store/plan.json", (tmp_path / "plan.json").read_bytes())
    assert repair_request.plan_at(place) == repair_request.plan_at(f"{tmp_path}/plan.json")
    server.refuse = refusing("GET", "plan.json")  # type: ignore[assignment]
    with pytest.raises(StoreError, match=f"--plan {place}: cannot read: access is denied"):
        repair_request.plan_at(place)


def test_a_repair_whose_upload_fails_leaves_nothing(server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, conf = small_store(tmp_path)
    (tmp_path / "plan.json").write_text(json.dumps(plan(root, conf)))
    server.refuse = refusing("PUT", "checkpoint")  # type: ignore[assignment]
    assert entry.main(["repair", str(root), "--plan", f"{tmp_path}/plan.json", "--release", "5.3.3", "--to", URI]) == 3
    assert "cannot be written: access is denied" in capsys.readouterr().err and keys(server) == []
