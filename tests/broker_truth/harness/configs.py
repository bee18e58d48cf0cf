"""config/ of a whole broker, filled by clients of its release that push, pull, pop, filter and consume in order.

    python -m tests.broker_truth.harness.configs DEST RELEASE ...

makes DEST/RELEASE/store.tar.xz, broker.conf and case.json: a case of tests/corpus/kinds/config.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.runtime import setup as environment
from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.cluster import NAMESRV, Cluster
from tests.broker_truth.harness.real_broker import class_path

PROGRAM = Path(__file__).with_name("Consumers.java")
RELEASES = (
    "4.8.0",
    "4.9.7",
    "5.1.4",
    "5.3.3",
    "5.4.0",
    "5.5.0",
)  # 4.9.8's broker is in no registry; its files are those of 4.9.7
SETTINGS = {
    "autoCreateTopicEnable": "true",
    "enablePropertyFilter": "true",
    "enableCalcFilterBitMap": "true",
    "enableConsumeQueueExt": "true",
}
LIGHT = {"enableLmq": "true", "enableMultiDispatch": "true"}
Consumed = dict[str, dict[str, dict[str, int]]]  # group -> topic -> queue -> the offset behind the last message seen


def settings_of(release: str) -> dict[str, str]:
    return {**SETTINGS, **LIGHT} if release.startswith("4.9.") else SETTINGS


def made(release: str, home: Path) -> Consumed:
    """What the clients consumed; the broker's store is in home/cluster/store, as a clean stop left it."""
    jars = class_path(release, cluster=True)
    return own_network.run(_made, release, home, str(environment.java_runtime().home), jars)


def _made(release: str, home: Path, java: str, jars: Sequence[Path]) -> Consumed:
    classes, settings = home / "classes", settings_of(release)
    compiler = [f"{java}/bin/javac", "-nowarn", "-d", str(classes), "-cp", ":".join(map(str, jars))]
    subprocess.run([*compiler, str(PROGRAM)], check=True)
    (home / "cluster").mkdir()
    with Cluster(home / "cluster", java, jars, {}, settings) as cluster:
        words = [NAMESRV, "pop" if release.startswith("5.") else "", "lmq" if "enableLmq" in settings else ""]
        client = cluster.client("Consumers", *words, classes=str(classes))
        done = subprocess.run(client, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-500:]} {done.stderr[-1500:]}")
    return dict(json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{"))))  # some log there, too


def keep(config: Path, release: str, consumed: Consumed, folder: Path, **more: Any) -> None:
    """Write the case of the corpus."""
    folder.mkdir(parents=True)
    with tarfile.open(folder / "store.tar.xz", "w:xz") as tar:
        for path in sorted(config.iterdir()):
            tar.add(path, f"store/config/{path.name}", filter=_nobody)
    (folder / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in settings_of(release).items()), "utf-8")
    case = {"version": release, "writeVersion": release, "consumed": consumed, **more}
    (folder / "case.json").write_text(json.dumps(case, indent=1, sort_keys=True) + "\n", "utf-8")


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as temporary:
            seen = made(name, Path(temporary))
            keep(Path(temporary) / "cluster" / "store" / "config", name, seen, Path(sys.argv[1]) / name)
