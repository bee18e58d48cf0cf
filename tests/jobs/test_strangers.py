"""Another user of this machine gets nothing of a local Spark: no block, no answer, no login of S3, no place on a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs import installation
from jobs.runtime import setup as environment

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes"),
]
SECRET = "wJalrXUtnFEMI-of-this-test"
SCRIPT = """
import json, os, sys
from jobs.runtime import session
from tests.support.processes import stranger

def listening(process):  # ports, by the sockets that the process has open
    own = set()
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            own.add(os.readlink(f"/proc/{process}/fd/{name}"))
        except OSError:  # closed meanwhile
            pass
    rows = [line.split() for kind in ("tcp", "tcp6") for line in open(f"/proc/net/{kind}").read().splitlines()[1:]]
    return sorted(int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own)

with session.start(json.loads(sys.argv[1])) as started:
    frame = started.spark.read.text(sys.argv[2])  # whose Hadoop configuration is broadcast
    assert [row.value for row in frame.collect()] == ["a line"]
    context = started.context
    java = context._jsc.sc()
    login = context.parallelize([0], 1).map(lambda _: [os.environ.get("AWS_SECRET_ACCESS_KEY"), os.getppid()]).collect()[0]
    blocks = java.env().blockManager().blockManagerId().port()
    rpc = int(context.getConf().get("spark.driver.port"))
    print(json.dumps({
        "block": max((stranger.block_of(blocks, f"broadcast_{n}_piece0") for n in range(3)), key=len).decode("latin-1"),
        "refusals": [stranger.refusal(port) for port in (rpc, blocks)],
        "hadoop": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
        "settings": str(context.getConf().getAll()),
        "login": login[0],
        "ports": [len(listening(process)) for process in (started._jvm.process.pid, os.getpid(), login[1])],
        "again": context.parallelize(range(3), 1).collect(),
    }))
"""
SETTINGS = [
    *("--master", "local[1,9]"),  # on a busy machine a worker may need longer than the 10 s that Spark waits for it: nine tries
    *("--conf", "spark.broadcast.compress=false"),  # a packed block would hide the secret
]
OPEN = [
    *("--conf", "spark.authenticate=false", "--conf", "spark.network.crypto.enabled=false"),
    *("--conf", "spark.python.unix.domain.socket.enabled=false", "--conf", "spark.storeAudit.keysForS3a=true"),
]


def asked(tmp_path: Path, *words: str, folder: str = "") -> dict[str, Any]:
    """What a session says of itself, and strangers of it."""
    (tmp_path / "file").write_text("a line\n")
    variables = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AKIA1",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "PYTHONPATH": str(installation.ROOT),
    }
    if folder:
        variables["TMPDIR"] = folder
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([*SETTINGS, *words]), (tmp_path / "file").as_uri()],
        cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_stranger_gets_nothing(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)  # longer than the path of a socket may be
    long.mkdir()
    said = asked(tmp_path, folder=str(long))
    assert said["block"] == "" and all("SaslMessage" in refusal for refusal in said["refusals"])
    assert said["hadoop"] is None and SECRET not in said["settings"]
    assert said["login"] == SECRET, "a user's own code in tasks still has it"
    assert said["ports"] == [3, 0, 0], "RPC, blocks and py4j, which has a secret of its own; else Unix sockets"
    assert said["again"] == [0, 1, 2] and not list(long.iterdir())


def test_what_a_user_asks_for_stays(tmp_path: Path) -> None:
    said = asked(tmp_path, *OPEN)
    assert SECRET in said["block"] and SECRET == said["hadoop"] == said["login"]
    assert not any("SaslMessage" in refusal for refusal in said["refusals"])
    assert said["ports"][0] >= 3 and said["ports"][1:] == [1, 1], "the driver's server of accumulators, the workers' daemon"


def test_a_users_own_workers_have_the_login_and_a_session_that_is_open_shows_none(tmp_path: Path) -> None:
    """Who turns authentication off asks for no keys in the configuration."""
    said = asked(tmp_path, "--conf", "spark.python.daemon.module=pyspark.daemon", "--conf", "spark.authenticate=false")
    assert said["login"] == SECRET and said["hadoop"] is None and SECRET not in said["settings"] + said["block"]


@pytest.mark.soak
def test_workers_without_a_daemon_have_the_login(tmp_path: Path) -> None:
    said = asked(tmp_path, "--conf", "spark.python.use.daemon=false")
    assert said["login"] == SECRET and said["hadoop"] is None and SECRET not in said["settings"]
