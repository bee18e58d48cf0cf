"""A whole broker of a release, alone, on a store of its own: BrokerStartup, without a name server or a client.

Everything here runs in a network of its own (`own_network.run`); the class path is fetched before.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dev.peers import JAVA_OPTIONS

PORT = 10911
_RUNTIME_INFO, _TOPIC_STATS = 28, 202  # RequestCode
_NEW_MOUNTS, _PRIVATE, _RECURSIVE = 0x20000, 1 << 18, 1 << 14  # CLONE_NEWNS, MS_PRIVATE, MS_REC
_LOG = """<configuration><appender name="all" class="ch.qos.logback.core.FileAppender"><file>{file}</file><encoder>
<pattern>%msg%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="all"/></root></configuration>"""


def own_disk(folder: Path, size: int) -> None:
    """Lay a disk of this size over the folder, for this process and those that it starts."""
    library = ctypes.CDLL(None, use_errno=True)
    steps = (
        lambda: library.unshare(_NEW_MOUNTS),
        lambda: library.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None),
        lambda: library.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=%d" % size),
    )
    for step in steps:
        if step():
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class WholeBroker:
    """home: a folder for broker.conf and logs.  store: on which it starts.  properties: of its JVM, besides."""

    def __init__(
        self, home: Path, java: str, jars: Sequence[Path], store: Path, conf: str = "", properties: Mapping[str, str] = {}
    ):
        self.home, self.store = home, store
        self._java, self._jars, self._conf, self._properties = java, jars, conf, properties

    def __enter__(self) -> Self:
        (self.home / "conf").mkdir(parents=True)
        own = {
            "brokerClusterName": "cluster", "brokerName": "broker-a", "brokerId": 0, "brokerIP1": "127.0.0.1", "listenPort": PORT,
            "storePathRootDir": self.store, "storePathCommitLog": self.store / "commitlog", "autoCreateTopicEnable": "false",
        }  # fmt: skip
        text = "".join(f"{name}={value}\n" for name, value in own.items() if f"{name}=" not in self._conf)
        (self.home / "broker.conf").write_text(f"{self._conf}\n{text}", "utf-8")
        (self.home / "conf" / "logback_broker.xml").write_text(_LOG.format(file=self.home / "all.log"), "utf-8")  # of 4.x
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Duser.home={self.home}"]
        options += [option for option in JAVA_OPTIONS if "Ratio" not in option]
        options += [f"-D{name}={value}" for name, value in self._properties.items()]
        path = os.pathsep.join(map(str, self._jars))
        command = [f"{self._java}/bin/java", *options, "-cp", path, "org.apache.rocketmq.broker.BrokerStartup"]
        self._output = open(self.home / "output.log", "wb")
        self.process = subprocess.Popen(
            [*command, "-c", str(self.home / "broker.conf")],
            env={**os.environ, "ROCKETMQ_HOME": str(self.home)},
            stdout=self._output,
            stderr=self._output,
            cwd=self.home,
        )
        self._wait()
        return self

    def _wait(self, seconds: float = 60) -> None:
        """Wait until the port answers. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while True:
            try:
                socket.create_connection(("127.0.0.1", PORT), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise TimeoutError(f"no broker: {(self.home / 'output.log').read_text('utf-8')[-3000:]}") from None
                time.sleep(0.1)

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        self._output.close()

    def ask(self, code: int, **fields: str) -> tuple[int, bytes]:
        """What the broker answers to a request, as mqadmin sends it: (its code, the body)."""
        head = {"code": code, "language": "OTHER", "version": 0, "opaque": 1, "flag": 0, "extFields": fields}
        header = json.dumps({**head, "serializeTypeCurrentRPC": "JSON"}).encode()
        with socket.create_connection(("127.0.0.1", PORT), 10) as connection:
            connection.sendall(struct.pack(">ii", 4 + len(header), len(header)) + header)
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            frame = _exactly(connection, size)
        (length,) = struct.unpack(">i", frame[:4])
        length &= 0xFFFFFF
        return json.loads(frame[4 : 4 + length])["code"], frame[4 + length :]

    def status(self) -> dict[str, str]:
        """The table of mqadmin brokerStatus; none if the broker fails over it (a first message that came over IPv6)."""
        body = self.ask(_RUNTIME_INFO)[1]
        table: dict[str, str] = json.loads(body)["table"] if body else {}
        return table

    def ends(self, topic: str) -> dict[int, tuple[int, int]]:
        """Queue id -> (minimum, maximum), as mqadmin topicStatus prints them. It is no JSON: keys are objects."""
        text = self.ask(_TOPIC_STATS, topic=topic)[1].decode()
        found = {}
        for key, values in re.findall(r"(\{[^{}]*\}):(\{[^{}]*\})", text):
            row: dict[str, Any] = json.loads(values)
            found[int(json.loads(key)["queueId"])] = int(row["minOffset"]), int(row["maxOffset"])
        return found

    def log_lines(self) -> list[str]:
        """All that the broker has logged."""
        files = [*sorted((self.home / "logs").rglob("*.log")), *self.home.glob("all.log")]
        return [line for file in files for line in file.read_text("utf-8", "replace").splitlines()]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker has closed the connection")
        data += more
    return data
