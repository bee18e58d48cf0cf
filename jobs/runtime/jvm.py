"""The driver's JVM: started before this process loads what it needs itself, so that both start side by side.

Spark's own script starts it, which becomes the JVM: it alone knows what all of Spark's options, variables and files mean.
Standard library only, until `connect`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from jobs.cli import parser
from jobs.installation import folder_of, python_path
from jobs.runtime import setup as environment
from jobs.runtime.compiled_code import numba_cache
from jobs.runtime.faults import reason
from jobs.runtime.python_workers import PLACE
from jobs.runtime.source_notes import PLACE as NOTES_PLACE
from store_io.base.errors import StoreError
from store_io.base.scratch import Scratch, remove_left
from store_io.source import disk_cache, storage_options

# The JVM only plans small jobs here: the first compiler is enough and starts at once, one thread collects its garbage, and
# the JVM's messages about its class archive help no user.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable")

# Of the script's own short JVM, whose heap has 128 MB, and whose words the script reads: a heap or a log that JAVA_TOOL_OPTIONS
# and the like ask for would end the start.
_LAUNCHER = "-Xms8m -Xmx1g -Xlog:disable"
_SHELLS = ("BASH_ENV", "SPARK_PREPEND_CLASSES", "SPARK_TESTING", "SPARK_PRINT_LAUNCH_COMMAND")
_FOREIGN = ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_DRIVER_PYTHON", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
S3A_KEYS = "spark.storeAudit.keysForS3a"  # the setting with which Spark's own file systems get the login of S3
_SOCKET_PATH = 100  # bytes: the path of a Unix socket has 103 or 107 at most, by system
_SOCKET_NAME = 42  # what Spark names a socket: a UUID with ".sock" after it and "/." before
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_POLL_SECONDS = 0.005


class SparkFailed(StoreError):
    """Spark did not start; the sentence holds what the JVM said."""


class Jvm:
    """A JVM that is starting. Call `.connect()` once this process is ready for it; `.end()` in any case.

    process: None if Spark has started it, and this driver in it.
    workers_place: the place at which Spark's daemon looks for workers that are ready (`jobs.runtime.python_workers`); empty for
    other masters.
    sockets_place: the folder of Spark's Unix sockets, which this user alone may enter; empty for other masters.
    notes_place: the place to which data sources send their notes (`jobs.runtime.source_notes`); empty if the JVM's standard error
    is this process's.
    """

    def __init__(self, spark_words: Sequence[str] = (), java_options: Sequence[str] = ()):
        """Start it with these of Spark's options. Raises SparkFailed; SetupFailed if there is no Java."""
        self.process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._scratch: Scratch | None = None
        self._folder = -1  # the scratch folder, kept open while its path is too long for a socket
        self._ended = False
        self.workers_place, self.sockets_place, self.notes_place = "", "", ""
        if sparks_own():
            return
        _prepare_process()
        remove_left()
        try:
            self._scratch = Scratch()
        except OSError as problem:
            raise SparkFailed(
                f"no folder for temporary files can be made in {tempfile.gettempdir()}: {reason(problem)}"
            ) from None
        try:
            self._start(spark_words, java_options, self._scratch.path)
        except BaseException as problem:
            self.end()
            if not isinstance(problem, OSError):
                raise
            raise SparkFailed(f"Spark's JVM did not start: {reason(problem)}") from None

    def _start(self, spark_words: Sequence[str], java_options: Sequence[str], scratch: str) -> None:
        # Spark's own log and the JVM's warnings stay off the terminal; an error shows them.
        if "--verbose" not in spark_words:
            self._log = tempfile.TemporaryFile(prefix="store-audit-jvm-")
            self.notes_place = f"{scratch}/notes"
        self._told = f"{scratch}/gateway"
        os.environ[disk_cache.PLACE] = scratch  # what this process fetches of a store is there for tasks of this machine
        if is_local(parser.master_of(spark_words)):
            self.workers_place, self.sockets_place = f"{scratch}/workers", self._short(scratch)
        keys = parser.spark_setting(spark_words, S3A_KEYS) == "true"
        self.process = subprocess.Popen(
            command(spark_words, java_options, scratch),
            stdin=subprocess.PIPE,  # the JVM ends when this process does, however that ends
            stdout=self._log,
            stderr=self._log,
            env={
                **_without_shells_own(os.environ if keys else storage_options.for_jvm(os.environ)),
                "SPARK_LAUNCHER_OPTS": _LAUNCHER,
                "SPARK_HOME": spark_home(),  # else the script looks for it with a Python
                "SPARK_CONNECT_MODE": "0",  # as PySpark starts it
                PLACE: self.workers_place,
                NOTES_PLACE: self.notes_place,
                "_PYSPARK_DRIVER_CONN_INFO_PATH": self._told,
            },
            process_group=0,  # ctrl-C is for this process, which ends the JVM
        )

    def _short(self, folder: str) -> str:
        """Return the folder by a path that leaves room for a socket's name; empty if the system has none."""
        if len(os.fsencode(folder)) + _SOCKET_NAME <= _SOCKET_PATH:
            return folder
        if not os.path.isdir("/proc/self/fd"):
            return ""
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/{os.getpid()}/fd/{self._folder}"

    def connect(self) -> Any:
        """Return PySpark's gateway to the JVM, once that listens. Raises SparkFailed."""
        from pyspark.java_gateway import launch_gateway
        from pyspark.serializers import UTF8Deserializer, read_int

        if self.process is None:
            return launch_gateway()  # type: ignore[no-untyped-call]
        while not os.path.exists(self._told):  # which the JVM renames to this, once it is whole
            if self.process.poll() is not None:
                raise SparkFailed(f"Spark's JVM did not start: {self.said('it ended at once')}")
            time.sleep(_POLL_SECONDS)
        with open(self._told, "rb") as file:
            port = read_int(file)  # type: ignore[no-untyped-call]
            os.environ.update({_PORT: str(port), _SECRET: UTF8Deserializer().loads(file)})  # type: ignore[no-untyped-call]
        try:
            return launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ[_PORT], os.environ[_SECRET]

    def said(self, otherwise: str) -> str:
        """Return the most useful of the JVM's last words: Spark's logged error, or its own first words."""
        return last_words(_tail(self._log)) or otherwise

    def logged(self) -> list[str]:
        """Return Spark's logged errors."""
        return [line.partition(" ERROR ")[2] for line in _tail(self._log).splitlines() if " ERROR " in line]

    def end(self, at_once: bool = True, wait: bool = False) -> None:
        """End the JVM and remove its temporary files; the first call alone does.

        at_once: kill it, which leaves what it keeps elsewhere; else it ends by itself as soon as it likes.
        wait: until then.
        """
        if self._ended:
            return
        self._ended = True
        if self.process is not None:
            if self.process.stdin is not None:
                with contextlib.suppress(OSError):
                    self.process.stdin.close()
            if at_once:
                self.process.kill()
            if at_once or wait:
                self.process.wait(120)
        if self._log is not None:
            self._log.close()
        if self._scratch is not None:
            os.environ.pop(disk_cache.PLACE, None)
            self._scratch.remove()
        if self._folder >= 0:
            os.close(self._folder)


def sparks_own() -> bool:
    """Say whether Spark has started this process, from a JVM of its own (cluster deploy mode)."""
    return _PORT in os.environ


def _prepare_process() -> None:
    """Set variables of this process that PySpark, its JVM and numba go by. A foreign Spark's would mix two releases."""
    for name in _FOREIGN:
        os.environ.pop(name, None)
    # The JVM looks for data sources with the driver's Python: else the first python3 on the PATH, whatever that is.
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = environment.java_runtime().home
    # For the workers on this machine, also where pytest or a notebook started this process.
    os.environ["PYTHONPATH"] = python_path(os.environ.get("PYTHONPATH", ""))
    os.environ["NUMBA_CACHE_DIR"] = numba_cache()


def _without_shells_own(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out variables by which bash would run other code first, or Spark's script would start Spark's own tests."""
    return {name: text for name, text in variables.items() if name not in _SHELLS and not name.startswith("BASH_FUNC_")}


def spark_home() -> str:
    """Return the folder of the package pyspark, without loading it."""
    found = folder_of("pyspark")
    assert found is not None
    return str(found)


def command(spark_words: Sequence[str], java_options: Sequence[str], scratch: str) -> list[str]:
    """Return the command line of Spark's script, with what the JVM needs at its start. `jobs.runtime.session` sets all else.

    scratch: the folder for the JVM's temporary files, and for Spark's own by default.
    """
    options = " ".join(map(_java_quoted, _jvm_options(java_options, scratch)))
    own_path = parser.spark_setting(spark_words, "spark.driver.extraClassPath", "--driver-class-path")
    class_path = [*environment.jars(), *([own_path] if own_path else [])]
    path = ["--driver-class-path", os.pathsep.join(class_path)] if class_path else []
    script = [f"{spark_home()}/bin/spark-submit", "--conf", f"spark.driver.defaultJavaOptions={options}"]
    return [*script, *spark_words, *path, "pyspark-shell"]


def is_local(master: str) -> bool:
    """Say whether tasks run within the driver's JVM and its workers."""
    return master == "local" or master.startswith("local[")


def _jvm_options(java_options: Sequence[str], scratch: str) -> list[str]:
    options = [*QUICK_START, f"-Djava.io.tmpdir={scratch}", *java_options]
    if not any(option.startswith("-XX:ArchiveClassesAtExit") for option in java_options):
        if archive := environment.class_archive(environment.java_runtime(), make=False):
            options.append(f"-XX:SharedArchiveFile={archive}")
    return options


def _java_quoted(option: str) -> str:
    """Quote one option for Spark's launcher, which splits a line of them: double quotes, with backslashes."""
    if not any(c in option for c in " \"'\\"):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def last_words(log: str) -> str:
    """Return the most useful of the lines that a JVM left: Spark's logged errors, or its own first words.

    Empty if it said nothing.
    """
    said = [line.strip() for line in log.splitlines() if line.strip()]
    logged = [line.partition(" ERROR ")[2] for line in said if " ERROR " in line]
    quiet = ("WARNING:", "Picked up ", "NOTE: Picked up ", "Using Spark's", "at ", "...", "Usage:", "Options:")
    said = [line for line in said if not line.startswith(quiet) and " WARN " not in line]
    return "; ".join((logged or said)[:2])[:500]


def _tail(log: IO[bytes] | None, size: int = 20_000) -> str:
    if log is None:
        return ""
    with contextlib.suppress(OSError, ValueError):
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - size))
        return log.read().decode("utf-8", "replace")
    return ""
