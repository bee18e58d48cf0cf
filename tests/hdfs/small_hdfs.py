"""A NameNode and a DataNode on loopback, each in a JVM of its own, which end with the process that started them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyspark
import pytest
from hdfs_native import Client

from jobs.environment import setup as environment
from store_io.source import hdfs_client, remote_file
from tests.support.processes.children import end_with_parent

HERE = Path(__file__).resolve().parent
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
START_SECONDS = 180  # each; three on a machine that has nothing else to do
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
_SETTINGS = {
    "dfs.replication": 1,
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.datanode.hostname": "127.0.0.1",
    "dfs.namenode.safemode.extension": 0,
    "dfs.heartbeat.interval": 1,  # s; blocks of files that are deleted go with one
    "hadoop.http.authentication.simple.anonymous.allowed": "true",
}


def class_path() -> str:
    """The jar of Hadoop's servers, fetched where it is not there yet, and Spark's own. Raises environment.SetupFailed."""
    pins, folder = tomllib.loads((HERE / "hadoop.toml").read_text("utf-8")), environment.state() / "hadoop"
    environment.fetch_jars(pins, folder, "Hadoop's servers", "tests/hdfs/hadoop.toml")
    sparks = Path(pyspark.__file__).parent / "jars"
    found = [next(sparks.glob(f"{name}-[0-9]*.jar")) for name in _SPARKS]
    version = next(iter(pins)).rpartition(":")[2]
    assert found[0].name == f"hadoop-client-api-{version}.jar", "hadoop.toml names another Hadoop than Spark ships"
    return os.pathsep.join(map(str, [*sorted(folder.glob("*.jar")), *found]))


class SmallHdfs:
    """Serves until `stop`. server: HOST:PORT of the NameNode."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="small-hdfs-"))
        self._path = class_path()
        self._java = f"{environment.java_runtime().home}/bin/java"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            with socket.socket() as free:  # a NameNode must know its own port when it is formatted
                free.bind(("127.0.0.1", 0))
                self.server = f"127.0.0.1:{free.getsockname()[1]}"
            self._configure()
            subprocess.run(
                self._command(NAME_NODE, "-format", "-nonInteractive"), check=True, capture_output=True, timeout=START_SECONDS
            )
            self._start(NAME_NODE, r"NameNode RPC up at")
            self.start_data_node()
        except BaseException:
            self.stop()
            raise

    @property
    def uri(self) -> str:
        return f"hdfs://{self.server}"

    def _configure(self) -> None:
        settings: Mapping[str, Any] = {**_SETTINGS, "fs.defaultFS": self.uri, "hadoop.tmp.dir": self._home / "data"}
        rows = "".join(f"<property><name>{n}</name><value>{escape(str(v))}</value></property>" for n, v in settings.items())
        for name in ("core-site.xml", "hdfs-site.xml"):
            (self._home / name).write_text(f"<configuration>{rows}</configuration>", "utf-8")
        (self._home / "log4j2.properties").write_text(_LOGGING, "utf-8")

    def _command(self, main: str, *words: str) -> list[str]:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Duser.home={self._home}"]
        return [self._java, *options, "-cp", f"{self._home}{os.pathsep}{self._path}", main, *words]

    def _start(self, main: str, ready: str) -> None:
        log = self._home / f"{main.rpartition('.')[2]}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                self._command(main),
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self._home,
                preexec_fn=end_with_parent,
            )
        self._running[main] = process
        deadline = time.monotonic() + START_SECONDS
        while not re.search(ready, text := log.read_text("utf-8", "replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{main} does not start: {text[-2000:]}")
            time.sleep(0.1)

    def start_data_node(self) -> None:
        self._start(DATA_NODE, r"successfully registered with NN")

    def kill_data_node(self) -> None:
        """kill -9."""
        self._end(DATA_NODE)

    def admin(self, *words: str) -> str:
        """What `hdfs dfsadmin` answers."""
        done = subprocess.run(self._command(ADMIN, *words), capture_output=True, text=True, timeout=START_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def client(self) -> Client:
        return hdfs_client.data_client(self.server)

    def put(self, path: str, data: bytes) -> None:
        with self.client().create(path) as writer:
            writer.write(data)

    def get(self, path: str) -> bytes:
        reader = self.client().read(path)
        return bytes(reader.read_range(0, len(reader))) if len(reader) else b""

    def put_folder(self, folder: Path, path: str) -> str:
        """All files and folders of it, with the times of the files; the URI of the path."""
        self.client().mkdirs(path, create_parent=True)
        for own in sorted(folder.rglob("*")):
            there = f"{path}/{own.relative_to(folder)}"
            if own.is_dir():
                self.client().mkdirs(there)
                continue
            self.put(there, own.read_bytes())
            changed = own.stat().st_mtime_ns // 1_000_000
            self.client().set_times(there, changed, changed)
        return f"{self.uri}{path}"

    def names(self, path: str) -> list[str]:
        """All files below the folder."""
        return sorted(entry.path.removeprefix(path) for entry in self.client().list_status(path, True) if not entry.isdir)

    def empty(self) -> None:
        for entry in list(self.client().list_status("/")):
            self.client().delete(entry.path, recursive=True)

    def _end(self, main: str) -> None:
        process = self._running.pop(main, None)
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Kill both and remove what they kept."""
        for main in (DATA_NODE, NAME_NODE):
            self._end(main)
        shutil.rmtree(self._home, ignore_errors=True)


def forget() -> None:
    """What this process keeps: its clients, and of files."""
    hdfs_client._clients.clear()
    remote_file._kept_of.cache_clear()


@contextlib.contextmanager
def user(name: str) -> Iterator[None]:
    """This process asks as another user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", name)
        forget()
        yield
    forget()
