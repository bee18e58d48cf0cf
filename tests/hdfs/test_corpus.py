"""Every recorded store gives the same plan and findings from HDFS and from S3 as from a disk, for few requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hdfs_native import Client

from schemas.rows import Row
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source import hdfs_client
from store_io.source.byte_source import StoreLocation
from tests.hdfs.small_hdfs import SmallHdfs, forget
from tests.support.processes.s3_server import S3Server, windows
from tests.support.processes.s3_server import forget as forget_s3
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

pytestmark = [pytest.mark.hdfs, pytest.mark.usefixtures("on_disk")]

CASES = corpus_tools.cases()
MOST_BYTES = 4 << 30  # of a store with sparse files: both servers hold it whole, on a disk


class Counting:
    """The client, with the calls of its methods counted."""

    def __init__(self, client: Client, calls: Counter[str]):
        self._client, self._calls = client, calls

    def __getattr__(self, name: str) -> Any:
        self._calls[name] += 1
        return getattr(self._client, name)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    made = hdfs_client._new
    monkeypatch.setattr(hdfs_client, "_new", lambda server: Counting(made(server), counted))
    forget()
    yield counted
    forget()


def audited(case: Case, place: str) -> Any:
    return run_local(AuditRequest("store", StoreLocation(place), case.release, case.broker_conf))


def without(segments: list[Row], *names: str) -> list[Row]:
    return [{name: value for name, value in segment.items() if name not in names} for segment in segments]


def holes(files: list[Path]) -> list[str]:
    """What of segments may differ: holes of a disk's files are not read, and neither server has any."""
    sparse = any(path.stat().st_blocks * 512 < path.stat().st_size for path in files)
    return ["bytes_read"] if sparse else []


def unpacked(case: Case, tmp_path: Path) -> tuple[Path, list[Path]]:
    root = case.unpack(tmp_path)
    files = [path for path in root.rglob("*") if path.is_file()]
    if sum(path.stat().st_size for path in files) > MOST_BYTES:
        pytest.skip(f"more than the {MOST_BYTES >> 30} GiB of a disk that these servers may take")
    return root, files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_from_hdfs(case: Case, hdfs: SmallHdfs, calls: Counter[str], tmp_path: Path) -> None:
    root, files = unpacked(case, tmp_path)
    uri = hdfs.put_folder(root, "/store")
    forget()
    calls.clear()
    here, there = audited(case, str(root)), audited(case, uri)
    assert audit_plan(there) == audit_plan(here) and there.findings == here.findings
    assert without(there.segments, *holes(files)) == without(here.segments, *holes(files))
    # What it is and where its blocks lie, each once, and never more often than it has windows. The listings at the beginning and
    # at the end, a question for each folder.
    asked, folders = windows(files), 1 + sum(path.is_dir() for path in root.rglob("*"))
    assert calls["read"] <= asked and calls["get_file_info"] <= asked + 8 and calls["list_status"] <= 2 * folders + 8


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_from_s3(case: Case, server: S3Server, tmp_path: Path) -> None:
    root, files = unpacked(case, tmp_path)
    for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()  # S3 has none
    uri = server.put_folder(root, "store")
    forget_s3()
    server.requests.clear()
    here, there = audited(case, str(root)), audited(case, uri)
    assert audit_plan(there) == audit_plan(here) and there.findings == here.findings
    own = ["modified_ns", *holes(files)]  # S3 sets the times of its objects
    assert without(there.segments, *own) == without(here.segments, *own)
    assert {request.method for request in server.requests} == {"GET"}
    assert len(server.reads()) <= 1.1 * (len(files) + windows(files))
