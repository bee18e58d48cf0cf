"""A standalone Spark cluster on this machine: a master and two workers, processes of their own, from the package pyspark.

Nothing of the project reaches the workers but what a driver sends: they start with a bare environment, in folders of their own,
and with the Python on their PATH that the environment was made with, not with the environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jobs.runtime import setup as environment
from jobs.runtime.jvm import QUICK_START, spark_home
from tests.support.processes.children import end_with_parent
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

WORKERS = 2
_START_SECONDS = 300.0
_POLL_SECONDS = 0.1
SECONDS = 900  # of one command, on a machine that is busy
CHANGING = ("run_id", "started_at", "seconds", "task_seconds", "tables")


@dataclass
class Cluster:
    """A cluster that runs. master: its address.  archive: of the environment, for --archives."""

    master: str
    archive: Path
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The options that a command needs to run here."""
        return [
            *("--master", self.master, "--archives", f"{self.archive}#environment"),
            *("--conf", "spark.pyspark.python=./environment/bin/python"),
        ]

    def run(
        self, words: Sequence[str], cwd: Path, variables: Mapping[str, str] = MappingProxyType({}), seconds: float = SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """One command line, with its driver here. variables: of the driver's environment."""
        with self.started(words, cwd, variables) as process:
            shown, said = process.communicate(timeout=seconds)
        # A machine that is busy takes long to start the application and executors, which is named.
        said = "".join(line for line in said.splitlines(keepends=True) if ": waiting for " not in line)
        return subprocess.CompletedProcess(list(words), process.returncode, shown, said)

    @contextlib.contextmanager
    def started(
        self, words: Sequence[str], cwd: Path, variables: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[subprocess.Popen[str]]:
        """The same while it runs; it is ended with the block."""
        command = [sys.executable, "-m", "jobs.entry", words[0], *self.words, *words[1:]]
        own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home()), "SPARK_LOCAL_IP": "127.0.0.1"}
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={"PATH": os.environ["PATH"], **own, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for unpacked in self.folder.glob("worker-*/work/*/*/environment*"):  # nearly a gigabyte for each executor
                shutil.rmtree(unpacked, ignore_errors=True)

    def executors(self, worker: int) -> list[int]:
        """The process ids of a worker's executors."""
        return [int(pid) for pid in _children(self.workers[worker].pid)]

    def has_python(self, executor: int) -> bool:
        """Whether an executor has started Python workers: it runs tasks. Hadoop starts other children for a moment."""
        for child in _children(executor):
            with contextlib.suppress(OSError):  # it has ended
                if b"pyspark" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
        return False

    def kill_worker(self, worker: int) -> None:
        """End a worker and its executors at once, as a machine that loses power. `restart_worker` brings it back."""
        for pid in (self.workers[worker].pid, *self.executors(worker)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.workers[worker].wait()

    def run_and_lose_a_worker(self, words: Sequence[str], cwd: Path) -> tuple[int, str]:
        """The code and the output of an audit in whose middle a worker is killed. It reads slowly, and ends within SECONDS."""
        with self.started([*words, "--max-rate", "1MB/s", "--progress", "json"], cwd) as process:
            until_it_reads(process)
            assert self.executors(0)
            self.kill_worker(0)
            shown, _ = process.communicate(timeout=SECONDS)
        self.restart_worker(0)
        return process.returncode, shown

    def start_workers(self) -> None:
        """Start all of them, and wait until they belong to the cluster."""
        self.workers = [self._start(worker) for worker in range(WORKERS)]
        for worker, process in enumerate(self.workers):
            _said(process, self.folder / f"worker-{worker}" / "log", "Successfully registered with master")

    def restart_worker(self, worker: int) -> None:
        """Have another one in the place of one that was killed."""
        (self.folder / f"worker-{worker}" / "log").unlink()
        process = self.workers[worker] = self._start(worker)
        _said(process, self.folder / f"worker-{worker}" / "log", "Successfully registered with master")

    def _start(self, worker: int) -> subprocess.Popen[bytes]:
        place = self.folder / f"worker-{worker}"
        place.mkdir(exist_ok=True)
        words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", f"{place}/work"]
        return _started("worker.Worker", [*words, self.master], place)


@contextlib.contextmanager
def cluster(folder: Path, archive: Path) -> Iterator[Cluster]:
    """A master and its workers, with all that they need in this folder; all of them are ended with the block."""
    home = folder / "master"
    home.mkdir()
    master = _started("master.Master", ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"], home)
    made: Cluster | None = None
    try:
        made = Cluster(_said(master, home / "log", r"Starting Spark master at (spark://\S+)"), archive, folder)
        made.start_workers()
        yield made
    finally:
        for worker in range(len(made.workers) if made else 0):
            made.kill_worker(worker)  # type: ignore[union-attr]
        master.kill()
        master.wait()


def _started(kind: str, words: Sequence[str], place: Path) -> subprocess.Popen[bytes]:
    """A JVM of Spark's own, in a folder of its own, with a bare environment. Its log is the file `log` there."""
    commands = place / "bin"
    if not commands.exists():
        commands.mkdir()
        # The archive's Python is a script that looks for this one. Beside it there is no package at all.
        (commands / f"python{sys.version_info.major}.{sys.version_info.minor}").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    bare = {
        "PATH": f"{commands}:/usr/bin:/bin",
        "JAVA_HOME": environment.java_runtime().home,
        "SPARK_HOME": spark_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(QUICK_START),
        "TMPDIR": str(place),
    }
    with open(place / "log", "ab") as log:
        return subprocess.Popen(
            [f"{spark_home()}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *words],
            env=bare, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0, preexec_fn=end_with_parent,
        )  # fmt: skip


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process says that begins; the pattern's first group, or all that it matched."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(pattern, log.read_text("utf-8", "replace")):
            return found[found.re.groups and 1]
        time.sleep(_POLL_SECONDS)
    raise AssertionError(f"did not start: {log.read_text('utf-8', 'replace')[-2000:]}")


def _children(pid: int) -> list[str]:
    """The processes that any thread of this one has started."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            found += thread.read_text().split()
    return found


def here(
    words: Sequence[str], cwd: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """The same command on two cores of this machine."""
    own = {"PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    return subprocess.run(
        [sys.executable, "-m", "jobs.entry", words[0], "--master", "local[2]", *words[1:]],
        env={"PATH": os.environ["PATH"], **own, **variables}, cwd=cwd, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip


def steady(value: Any) -> Any:
    """A result without what differs from run to run."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in CHANGING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def slow_store(folder: Path, messages: int) -> Store:
    """Of 100 KB each: an audit at --max-rate 1MB/s takes its time."""
    builder = StoreBuilder("5.3.3", Sizes(segment=4 << 20, queue_file=200_000))
    for message in range(messages):
        builder.put(Message(queue_id=message % 3, body=os.urandom(100_000), uniq=f"u{message}"))
    return builder.write(folder)


def until_it_reads(process: subprocess.Popen[str]) -> None:
    """Wait for the driver's word that a task has ended and others have not."""
    assert process.stderr is not None
    for line in process.stderr:
        row = json.loads(line)
        if 0 < row.get("bytes", 0) < row["bytes_expected"]:
            return
    raise AssertionError("it ended before it read anything")
