"""Hadoop's servers on loopback, each in a JVM of its own, which end with the process that started them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyspark

from jobs.runtime import setup as environment
from tests.support.processes.children import end_with_parent

START_SECONDS = 180  # each; some seconds on a machine that has nothing else to do
_PINS = Path(__file__).with_name("hadoop.toml")
_SPARKS = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "jcl-over-slf4j",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-1.2-api",
    "log4j-slf4j2-impl",
)
_LOGGING = """rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1}: %m%n%ex
"""


def class_path(*tables: str) -> str:
    """The jars of these tables of hadoop.toml, fetched where they are not there yet, and Spark's own. Raises SetupFailed."""
    pins = tomllib.loads(_PINS.read_text("utf-8"))
    found = []
    for table in tables:
        folder = environment.state() / table
        environment.fetch_jars(pins[table], folder, "Hadoop's servers", f"tests/support/processes/{_PINS.name}")
        found += sorted(folder.glob("*.jar"))
    sparks = Path(pyspark.__file__).parent / "jars"
    own = [next(sparks.glob(f"{name}-[0-9]*.jar")) for name in _SPARKS]
    version = next(iter(pins["hadoop"])).rpartition(":")[2]
    assert own[0].name == f"hadoop-client-api-{version}.jar", f"{_PINS.name} names another Hadoop than Spark ships"
    return os.pathsep.join(map(str, [*found, *own]))


def free_port() -> int:
    """One of loopback that nobody listens on: some servers must know their own before they start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class HadoopServers:
    """Servers that share settings and a folder, `home`, until `stop`. variables: their environment; this process's without it."""

    def __init__(self, name: str, tables: tuple[str, ...], variables: Mapping[str, str] | None = None):
        self.home = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self._path = class_path(*tables)
        self._java = f"{environment.java_runtime().home}/bin/java"
        self._variables = dict(os.environ if variables is None else variables)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def configure(self, settings: Mapping[str, Any], *files: str) -> None:
        """Write all settings into each of these files."""
        rows = "".join(f"<property><name>{n}</name><value>{escape(str(v))}</value></property>" for n, v in settings.items())
        for name in files:
            (self.home / name).write_text(f"<configuration>{rows}</configuration>", "utf-8")
        (self.home / "log4j2.properties").write_text(_LOGGING, "utf-8")

    def run(self, main: str, *words: str) -> str:
        """What a command of Hadoop's says."""
        done = subprocess.run(self._command(main, *words), capture_output=True, text=True, timeout=START_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, main: str, ready: str) -> None:
        """Start one, and wait until its log says so."""
        log = self.log_of(main)
        with open(log, "wb") as output:
            process = subprocess.Popen(
                self._command(main),
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self.home,
                env=self._variables,
                preexec_fn=end_with_parent,
            )
        self._running[main] = process
        deadline = time.monotonic() + START_SECONDS
        while not re.search(ready, text := log.read_text("utf-8", "replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{main} does not start: {text[-2000:]}")
            time.sleep(0.1)

    def log_of(self, main: str) -> Path:
        """Where a server's log lies."""
        return self.home / f"{main.rpartition('.')[2]}.log"

    def end(self, main: str) -> None:
        """kill -9, if it runs."""
        process = self._running.pop(main, None)
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Kill all, the last one first, and remove what they kept."""
        for main in list(reversed(self._running)):
            self.end(main)
        shutil.rmtree(self.home, ignore_errors=True)

    def _command(self, main: str, *words: str) -> list[str]:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Duser.home={self.home}"]
        return [self._java, *options, "-cp", f"{self.home}{os.pathsep}{self._path}", main, *words]
