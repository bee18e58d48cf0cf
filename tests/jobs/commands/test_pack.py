"""The packages for executors: whole, and the same bytes of the same sources."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from jobs import installation, warm_up
from jobs.commands import pack
from jobs.runtime import setup as environment
from jobs.runtime.session import zip_packages
from store_io.audit.audit_store import StoreAudit
from store_io.base.errors import StoreError
from store_io.base.tasks import run_task
from store_io.kinds.index import index_reader
from store_io.kinds.index.index_reader import IndexTask
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation


def test_the_zip_holds_every_module_and_is_repeatable(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    one, two = zip_packages(tmp_path), zip_packages(tmp_path / "again")
    assert Path(one).read_bytes() == Path(two).read_bytes()
    with zipfile.ZipFile(one) as archive:
        names = set(archive.namelist())
    wanted = {
        p.relative_to(environment.ROOT).as_posix()
        for package in installation.PACKAGES
        for p in (environment.ROOT / package).rglob("*")
        if p.suffix in (".py", ".html", ".css", ".js", ".java")
    }
    assert names == wanted
    assert {
        "store_io/broker/recovery.py",
        "jobs/report/pages/templates/report.html",
        "jobs/report/pages/templates/tools.js",
    } <= names


def test_the_archive_holds_a_python_and_nobodys_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(pack, "_package_files", lambda: iter([("pkg/module.py", tmp_path / "module.py")]))
    (tmp_path / "decode-1-2.object").write_bytes(b"code")
    monkeypatch.setattr(pack, "object_files", lambda folder: [tmp_path / "decode-1-2.object"])
    target = tmp_path / "environment.tar.gz"
    assert pack.pack_environment(str(target)) == target.stat().st_size
    with tarfile.open(fileobj=io.BytesIO(target.read_bytes())) as archive:
        members = {member.name: member for member in archive}
        assert set(members) == {"bin/python", "bin/python3", "site-packages/pkg/module.py", "compiled/decode-1-2.object"}
        assert members["bin/python"].mode == 0o755
        assert {(m.uid, m.gid, m.uname, m.gname) for m in members.values()} == {(0, 0, "", "")}
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        pack.pack_environment(str(tmp_path / "none" / "x.tar.gz"))


def test_executors_are_brought_what_a_damaged_index_file_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[int] = []
    follow_back = index_reader.follow_back
    monkeypatch.setattr(index_reader, "follow_back", lambda *of: (followed.append(1), follow_back(*of))[1])
    store = StoreLocation(str(warm_up.EXAMPLE / "store"))
    conf = (warm_up.EXAMPLE / "broker.conf").read_text("latin-1")
    tasks = StoreAudit(AuditRequest("store", store, warm_up.RELEASES[0], conf)).first_tasks()
    index = [task for task in tasks if isinstance(task, IndexTask)]
    assert index and not any(run_task(task).findings for task in index) and not followed
    summaries = [run_task(warm_up._cut_in_half(task, str(tmp_path))) for task in index]
    assert followed and all(summary.findings and not summary.problem for summary in summaries)
