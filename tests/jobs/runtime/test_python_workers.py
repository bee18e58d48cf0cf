"""Workers that are ready: Spark's pipes reach the daemon in the fork, and nothing stays when the command has ended."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.runtime import python_workers
from jobs.runtime import setup as environment
from jobs.runtime.python_workers import WarmWorkers
from tests.support.processes.children import PATIENCE_SECONDS, open_files, state_of, until

COMMAND = """
import os, sys, time
from jobs.runtime.python_workers import WarmWorkers
workers = WarmWorkers(sys.argv[1])
assert workers._process
print(workers._process, flush=True)
sys.stdin.read()
os._exit(0) if sys.argv[2] == "killed" else workers.close()
"""

LOADED = """
import sys
from jobs.commands import audit
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument

audit._load_tasks(AuditOptions([StoreArgument(name, "/" + name) for name in sys.argv[1:]], "/out"))
print(*sys.modules)
"""


def daemon_of(place: str) -> subprocess.Popen[bytes]:
    """The daemon as Spark starts it."""
    variables = {**os.environ, python_workers.PLACE: place, "PYTHONPATH": str(environment.ROOT), "TOLD": "yes"}
    return subprocess.Popen(
        [sys.executable, "-m", python_workers.__name__, "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=variables,
    )


def port_of(daemon: subprocess.Popen[bytes]) -> int:
    """Where it says that it listens."""
    assert daemon.stdout is not None
    (port,) = struct.unpack(">i", daemon.stdout.read(4))
    return int(port)


def worker_of(port: int) -> tuple[socket.socket, int]:
    """A connection to a fresh worker, and its process."""
    line = socket.create_connection(("127.0.0.1", port), 30)
    (process,) = struct.unpack(">i", line.recv(4))
    # A fork says its number first, and only then ends by the signal with which the daemon takes its leave.
    until(lambda: not ignores(process, signal.SIGHUP), f"worker {process} may be ended")
    return line, process


def ignores(process: int, number: signal.Signals) -> bool:
    """Say whether the process ignores the signal."""
    with open(f"/proc/{process}/status") as file:
        (mask,) = (line.split()[1] for line in file if line.startswith("SigIgn:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def gone(process: int) -> bool:
    """Wait until the process has ended."""
    until(lambda: state_of(process) in ("", "Z"), f"process {process} ends")
    return True


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_a_daemon_is_a_fork_of_the_process_that_is_ready(tmp_path: Path, end: str) -> None:
    place = str(tmp_path / "workers")
    command = [sys.executable, "-c", COMMAND, place, end]
    with subprocess.Popen(
        command, cwd=environment.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TOLD": "no"}
    ) as owner:
        assert owner.stdin is not None and owner.stdout is not None
        ready = int(owner.stdout.readline())
        daemon = daemon_of(place)
        line, worker = worker_of(port_of(daemon))
        with open(f"/proc/{worker}/cmdline", "rb") as file:
            assert COMMAND.encode() in file.read()  # a fork of the command, not of what Spark has started
        assert os.getpgid(ready) != os.getpgid(owner.pid)  # ctrl-C at the terminal is for the command alone
        assert daemon.poll() is None  # Spark takes the daemon for ended when this ends
        owner.stdin.close()
        assert owner.wait(PATIENCE_SECONDS) == 0 and gone(ready)
        assert daemon.stdin is not None
        daemon.stdin.close()  # as Spark does, or its end
        assert gone(worker) and daemon.wait(PATIENCE_SECONDS) == 0
        line.close()


def test_without_one_it_is_sparks_own_daemon(tmp_path: Path) -> None:
    daemon = daemon_of(str(tmp_path / "none"))
    line, worker = worker_of(port_of(daemon))
    with open(f"/proc/{worker}/cmdline", "rb") as file:
        assert python_workers.__name__.encode() in file.read()
    assert daemon.stdin is not None
    daemon.stdin.close()
    line.close()
    assert daemon.wait(PATIENCE_SECONDS) is not None and gone(worker)


@pytest.mark.parametrize("place", ["", "/nowhere/at/all", "/tmp/" + "x" * 200])
def test_where_no_socket_can_be_made_there_are_none(place: str) -> None:
    workers = WarmWorkers(place)
    assert not workers._process
    workers.close()


def test_a_process_that_does_not_answer_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_workers, "ANSWER_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "workers"))
        silent.listen()
        assert not python_workers._handed_over(str(tmp_path / "workers"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts what is open there")
def test_without_a_fork_nothing_stays_open_and_signals_are_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", no_fork)
    before, masked = open_files(), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert not WarmWorkers(str(tmp_path / "workers"))._process
    assert open_files() <= before and signal.pthread_sigmask(signal.SIG_BLOCK, ()) == masked


def test_before_the_fork_only_what_tasks_need_is_loaded() -> None:
    def loaded(*stores: str) -> set[str]:
        words = [sys.executable, "-c", LOADED, *stores]
        return {*subprocess.run(words, cwd=environment.ROOT, capture_output=True, text=True, check=True).stdout.split()}

    one, many = loaded("a"), loaded("a", "b")
    assert "store_io.log.scan.segment_scan" in one and "store_io.model.queue_leftovers" in one
    judging = {"store_io.checks.all_checks", "jobs.report.pages.report_html", "store_io.repair.repair_store"}
    assert not judging & one and judging <= many, "for many stores tasks judge, too"
