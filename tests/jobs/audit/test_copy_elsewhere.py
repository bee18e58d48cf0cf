"""An audit of a copy in S3, as a command with tasks in several processes: each byte is fetched once, and nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.runtime import setup as environment
from tests.support.processes.s3_server import Refusal, Request, S3Server
from tests.support.stores import corpus_tools

pytestmark = pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")


def begun(server: S3Server, tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    """The audit of a damaged store, and its folder for temporary files."""
    (case,) = corpus_tools.cases("g14")
    uri = server.put_folder(case.unpack(tmp_path / "case"), "store")
    server.requests.clear()
    temporary, conf = tmp_path / "tmp", tmp_path / "broker.conf"
    temporary.mkdir()
    conf.write_text(case.broker_conf or "")
    words = ["audit", uri, "--release", case.release, "--broker-conf", str(conf), "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "jobs.entry", "--master", "local[2]", *words]
    env = {**server.environment(), "TMPDIR": str(temporary), "AWS_CONFIG_FILE": "/dev/null"}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True), temporary


def left(temporary: Path) -> list[str]:
    return [path.name for path in temporary.iterdir() if path.name.startswith("store-audit-scratch-")]


def test_each_byte_of_a_damaged_copy_is_fetched_once(server: S3Server, tmp_path: Path) -> None:
    audit, temporary = begun(server, tmp_path)
    said, _ = audit.communicate(timeout=300)
    assert audit.returncode == 20, said
    files = [path for path in (tmp_path / "case").rglob("*") if path.is_file()]
    reads = [request.key for request in server.reads() if not request.key.endswith(".repair.json") and request.method == "GET"]
    assert len(reads) == len(set(reads)) <= len(files), "a small file by one request"
    assert len(server.requests) - len(reads) <= 20
    assert " fetched" in said and not left(temporary)


def test_nothing_stays_after_a_signal(server: S3Server, tmp_path: Path) -> None:
    reading, ended = threading.Event(), threading.Event()

    def hold(request: Request) -> Refusal | None:
        if request.method == "GET" and "commitlog/" in request.key:
            reading.set()
            ended.wait(60)
        return None

    server.refuse = hold
    audit, temporary = begun(server, tmp_path)
    try:
        assert reading.wait(120) and left(temporary)
        audit.terminate()
        audit.communicate(timeout=60)
    finally:
        ended.set()
        audit.kill()
    assert audit.returncode not in (0, 10, 20) and not left(temporary)
