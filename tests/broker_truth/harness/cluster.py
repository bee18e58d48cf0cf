"""A name server and a whole broker of a release, as two processes in a network of their own, for what clients do.

Everything here runs in there (`own_network.run`); the class path is fetched before.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from dev.peers import JAVA_OPTIONS

NAMESRV = "127.0.0.1:9876"
SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "autoCreateTopicEnable": "false",
    "fileReservedTime": 1_000_000,  # hours
}


@dataclass
class Cluster:
    """home: an empty folder; the broker's store is `store` in it.  java: a Java's home.  topics: name -> queues.  more: settings
    of the broker besides."""

    home: Path
    java: str
    jars: Sequence[Path]
    topics: dict[str, int]
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.home / "store"

    def __enter__(self) -> Self:
        (self.store / "config").mkdir(parents=True)
        table = {
            name: {
                "topicName": name,
                "readQueueNums": queues,
                "writeQueueNums": queues,
                "perm": 6,
                "topicFilterType": "SINGLE_TAG",
            }
            for name, queues in self.topics.items()
        }
        if table:
            (self.store / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}), "utf-8")
        own = {
            "brokerClusterName": "cluster", "brokerName": "broker-a", "brokerId": 0, "namesrvAddr": NAMESRV,
            "brokerIP1": "127.0.0.1", "storePathRootDir": self.store, "storePathCommitLog": self.store / "commitlog", **SETTINGS,
            **self.more,
        }  # fmt: skip
        (self.home / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in own.items()), "utf-8")
        (self.home / "conf").mkdir()
        for name in ("broker", "namesrv"):  # without them a 4.x does not start
            (self.home / "conf" / f"logback_{name}.xml").write_text("<configuration/>", "utf-8")
        self._log = open(self.home / "cluster.log", "wb")
        self._running = [
            self._start("org.apache.rocketmq.namesrv.NamesrvStartup"),
            self._start("org.apache.rocketmq.broker.BrokerStartup", "-c", str(self.home / "broker.conf")),
        ]
        return self

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Duser.home={self.home}"]
        options += JAVA_OPTIONS
        command = [f"{self.java}/bin/java", *options, "-cp", self.class_path(), *words]
        environment = {**os.environ, "ROCKETMQ_HOME": str(self.home)}
        return subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log, cwd=self.home)

    def class_path(self, *more: str) -> str:
        return os.pathsep.join([*map(str, self.jars), *more])

    def client(self, *words: str, classes: str = "") -> list[str]:
        """The command of a Java program with the release's client. classes: a further place of classes."""
        options = ["-XX:TieredStopAtLevel=1", f"-Duser.home={self.home}", *JAVA_OPTIONS]
        return [f"{self.java}/bin/java", *options, "-cp", self.class_path(*filter(None, [classes])), *words]

    def wait(self, command: Sequence[str], seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """The first run of the command that ends with 0: both processes are up. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while True:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if done.returncode == 0:
                return done
            if time.monotonic() > end or any(process.poll() is not None for process in self._running):
                raise TimeoutError(f"no cluster: {done.stderr[-500:]} {(self.home / 'cluster.log').read_text('utf-8')[-2000:]}")
            time.sleep(0.5)

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """Stop the broker cleanly, then the name server."""
        for process in reversed(self._running):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()
        self._log.close()
