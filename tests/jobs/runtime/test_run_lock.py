"""Two runs into one --out: the second one is told, and touches nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from jobs.runtime import output
from jobs.runtime import setup as environment
from store_io.base.errors import UsageError

HOLD = """
import sys
from jobs.runtime import output
with output.hold(sys.argv[1], "first", print):
    print("held", flush=True)
    sys.stdin.read()
"""


def nothing(sentence: str) -> None:
    raise AssertionError(sentence)


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    """Another process that holds tmp_path/out."""
    words = [sys.executable, "-c", HOLD, f"{tmp_path}/out"]
    with subprocess.Popen(words, cwd=environment.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_is_a_usage_error_and_leaves_the_first_ones_files(
    holder: subprocess.Popen[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "result.json").write_text(json.dumps({"exit_code": 0}))
    (tmp_path / "s" / "commitlog").mkdir(parents=True)
    metrics = tmp_path / "m.prom"
    assert entry.main(["audit", f"{tmp_path}/s", "--out", str(out), "--run-id", "second", "--prometheus", str(metrics)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"spark-submit.sh: --out '{out}': run first, process {holder.pid} on ")
    assert said.endswith(" is writing there; wait, or name another folder\n")
    assert json.loads((out / "result.json").read_text()) == {"exit_code": 0} and not metrics.exists()
    assert sorted(os.listdir(out)) == [".lock", "result.json"]
    holder.kill()  # however it ends, the lock ends with it
    holder.wait()
    with output.hold(str(out), "third", nothing):
        assert (out / ".lock").read_text().startswith("run third, process ")
    assert os.listdir(out) == ["result.json"]


def test_runs_one_after_the_other_and_into_other_folders(tmp_path: Path) -> None:
    for _ in range(2):
        with output.hold(f"{tmp_path}/a", "1", nothing), output.hold(f"{tmp_path}/b", "2", nothing):
            with pytest.raises(UsageError, match="run 2, process"), output.hold(f"{tmp_path}/b", "3", nothing):
                raise AssertionError("held twice")


def test_a_lock_that_its_holder_removes_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened before the first run ended, locked after it: the name is gone, and a third run would make a new one."""
    path = tmp_path / ".lock"
    real: Callable[[int, int], None] = fcntl.flock
    opened: list[int] = []

    def flock(handle: int, operation: int) -> None:
        if not opened:
            path.unlink()
        opened.append(handle)
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with output.hold(str(tmp_path), "1", nothing):
        assert len(opened) == 2 and path.exists()


def test_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    said: list[str] = []
    with output.hold(str(tmp_path), "1", said.append):
        assert said == [
            f"--out '{tmp_path}': its file system has no locks; a second run into it at the same time would mix with this one"
        ]
    with output.hold("s3://bucket/out", "1", nothing):
        pass
