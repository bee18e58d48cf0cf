"""Measures a real broker's load() for the store that an audit reads, if a release's jars are at hand.

load() is the part of a start that reads the store: after a clean stop the last files of the log alone, else all from the start
file on, and it writes queue and index entries for messages that have none yet. So each run gets a copy of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.bench_stores import BenchFailed
from jobs.runtime import setup as environment
from jobs.runtime.faults import reason

_OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref", "jdk.internal.misc", "java.lang", "java.lang.reflect", "java.util")
# Java 17 closes what 4.x reaches into to unmap files. On a nearly full disk a store deletes segments.
JAVA_OPTIONS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    *(f"-Drocketmq.broker.{name}Ratio=0.99" for name in ("diskSpaceWarningLevel", "diskSpaceCleanForcibly")),
)
_STORE_JAR = re.compile(r"rocketmq-store-([0-9]+\.[0-9]+\.[0-9]+)\.jar")
_LEFT_OUT = ("consumequeue", "index")
CHECKPOINT_BYTES = 4096


@dataclass(frozen=True)
class LoadTimes:
    """Seconds of load() by one release.

    kept: after a clean stop.
    rebuilt: after a kill, with no queue, index or checkpoint.
    """

    release: str
    kept: float
    rebuilt: float


def release_of(jars: Path) -> str:
    """Return the release whose jars the folder holds (the lib/ of RocketMQ's own distribution). Raises BenchFailed."""
    try:
        found = sorted(match[1] for name in os.listdir(jars) if (match := _STORE_JAR.fullmatch(name)))
    except OSError as problem:
        raise BenchFailed(f"{jars}: cannot be listed: {problem.strerror}") from None
    if len(found) != 1:
        has = f"those of {' and '.join(found)}" if found else "none"
        raise BenchFailed(f"{jars}: one rocketmq-store-RELEASE.jar is needed, found {has}")
    return found[0]


def measure_loads(root: Path, jars: Path, folder: Path, rounds: int) -> LoadTimes:
    """Return the least of the rounds, each in a JVM of its own on a copy below `folder`. Raises BenchFailed."""
    release, copy = release_of(jars), folder / "peer"
    best = {"kept": float("inf"), "rebuilt": float("inf")}
    for _ in range(rounds):
        for what in best:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT) if what == "rebuilt" else None)
            if what == "rebuilt":
                (copy / "abort").touch()
                (copy / "checkpoint").write_bytes(bytes(CHECKPOINT_BYTES))
            best[what] = min(best[what], measure_load(copy, jars))
    shutil.rmtree(copy, ignore_errors=True)
    return LoadTimes(release, best["kept"], best["rebuilt"])


def measure_load(root: Path, jars: Path) -> float:
    """Return seconds of one load(), which changes the store. The JVM's own start does not count. Raises BenchFailed."""
    with _jvm(jars) as jvm:
        try:
            store = _message_store(jvm, root)
            began = time.perf_counter()
            loaded = store.load()
            seconds = time.perf_counter() - began
        except Exception as problem:  # whatever the release throws
            raise BenchFailed(f"{root}: load() of the jars in {jars} failed: {reason(problem)}") from None
    if not loaded:
        raise BenchFailed(f"{root}: load() of the jars in {jars} said no")
    return seconds


def _message_store(jvm: Any, root: Path) -> Any:
    """DefaultMessageStore of this release on this folder."""
    rocketmq = jvm.org.apache.rocketmq
    config, broker = rocketmq.store.config.MessageStoreConfig(), rocketmq.common.BrokerConfig()
    config.setStorePathRootDir(str(root))
    config.setStorePathCommitLog(str(root / "commitlog"))
    config.setMappedFileSizeCommitLog(next((root / "commitlog").iterdir()).stat().st_size)
    config.setHaListenPort(0)
    statistics = _made(rocketmq.store.stats.BrokerStatsManager, "bench", False)
    topics = jvm.java.util.concurrent.ConcurrentHashMap()
    return _made(rocketmq.store.DefaultMessageStore, config, statistics, None, broker, topics)


def _made(kind: Any, *arguments: Any) -> Any:
    """Return a new object, without the last argument if the release's constructor has not got that parameter yet."""
    from py4j.protocol import Py4JError

    try:
        return kind(*arguments)
    except Py4JError:
        return kind(*arguments[:-1])


@contextmanager
def _jvm(jars: Path) -> Iterator[Any]:
    """Yield a JVM with these jars, driven by Spark's own py4j."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    bridge = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
    home = Path(tempfile.mkdtemp(prefix="store-audit-peer-"))  # its logs go below the user's home unless that is another
    options = [f"-Duser.home={home}", *JAVA_OPTIONS]
    process: subprocess.Popen[bytes] | None = None
    gateway: Any = None
    try:
        with open(home / "output.log", "wb") as log:
            port, token, process = launch_gateway(
                jarpath=str(bridge),
                classpath=os.pathsep.join([str(bridge), *map(str, sorted(jars.glob("*.jar")))]),
                javaopts=options,
                java_path=f"{environment.java_runtime().home}/bin/java",
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
                redirect_stdout=log,
                redirect_stderr=log,
            )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        yield gateway.jvm
    finally:
        if gateway is not None:
            gateway.close(keep_callback_server=True)
            gateway._gateway_client.is_connected = False  # objects that the collector meets later are not given back to it
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(home, ignore_errors=True)
