"""A cluster whose executors read s3:// and hdfs://, and have nothing but what a driver sends: no login, no address, no Hadoop
configuration. The same results as one process, or the sentence that it would say; no secret in a log.

    ./spark-submit.sh test -m cluster tests/jobs/runtime/test_cluster_stores.py
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.runtime import setup as environment
from tests.hdfs.small_hdfs import SmallHdfs
from tests.support.processes.remote_places import Place, in_hdfs, in_s3
from tests.support.processes.s3_server import Refusal, Request, S3Server
from tests.support.processes.spark_cluster import Cluster, files, here, slow_store
from tests.support.stores.corpus_tools import Case, cases, extract

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes"),
]
SECRET, TOKEN = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEBYaDNotForAnyLog"
SETTINGS = """<configuration>
<property><name>dfs.ha.namenodes.small</name><value>one</value></property>
<property><name>dfs.namenode.rpc-address.small.one</name><value>{server}</value></property>
<property><name>fs.s3a.secret.key</name><value>{secret}</value></property>
</configuration>"""


@dataclass
class Remote:
    """A server, and the two ways in which a driver is told how to reach it."""

    place: Place
    options: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    by_variables: str = ""  # the root under the name that the variables make known


@pytest.fixture(params=["s3", "hdfs"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    if request.param == "hdfs":
        hdfs: SmallHdfs = request.getfixturevalue("hdfs")
        (tmp_path / "hadoop").mkdir()
        (tmp_path / "hadoop" / "hdfs-site.xml").write_text(SETTINGS.format(server=hdfs.server, secret=SECRET))
        named = {"HADOOP_CONF_DIR": str(tmp_path / "hadoop"), "HADOOP_USER_NAME": "root"}
        return Remote(in_hdfs(hdfs), ["--storage-option", "hadoop_user_name=root"], named, "hdfs://small")
    server: S3Server = request.getfixturevalue("server")
    login = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": SECRET, "aws_session_token": TOKEN}
    login |= {"aws_region": "us-east-1", "aws_endpoint_url": server.endpoint}
    words = [word for key, value in login.items() for word in ("--storage-option", f"{key}={value}")]
    place = in_s3(server)
    return Remote(place, words, {key.upper(): value for key, value in login.items()}, place.uri)


@pytest.fixture
def copy(tmp_path: Path) -> tuple[Case, Path, list[str]]:
    """A damaged store on this machine, and the options that it is audited with."""
    (case,) = cases("g37")
    own = case.unpack(tmp_path / "own").rename(tmp_path / "copy")
    return case, own, ["--release", case.release, "--broker-conf", str(tmp_path / "own" / "broker.conf")]


def shown(done: subprocess.CompletedProcess[str]) -> str:
    return f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def check_no_secret(*folders: Path) -> None:
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert found
    for path in found:
        content = path.read_bytes()
        assert SECRET.encode() not in content and TOKEN.encode() not in content, path


def test_everything_is_elsewhere(running: Cluster, remote: Remote, copy: tuple[Case, Path, list[str]], tmp_path: Path) -> None:
    """Audit, its tables, export, a data source, and a repair by its plan; a login of the command line is in no log or page."""
    case, own, conf = copy
    there, out = remote.place.put(own, "copy"), f"{remote.place.uri}/out"
    logs, typed = tmp_path / "logs", tmp_path / "typed"
    for folder in (logs, typed):
        folder.mkdir()
    loud = ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={logs.as_uri()}"]
    loud += ["--conf", "spark.log.level=INFO", "--conf", "spark.logConf=true", "--verbose"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        done = running.run([words[0], *loud, *remote.options, *words[1:]], tmp_path)
        (typed / f"{words[0]}.txt").write_text(shown(done))
        return done

    audited = run("audit", there, *conf, "--write", "messages", "--out", out)
    local = here(["audit", str(own), *conf, "--write", "messages", "--out", "here"], tmp_path)
    assert audited.returncode == local.returncode == 20, shown(audited)
    names = ("plan.json", "findings.jsonl", "config.json")
    assert all(remote.place.get(f"out/copy/{name}") == (tmp_path / "here" / "copy" / name).read_bytes() for name in names)
    result = json.loads(remote.place.get("out/result.json"))
    assert result["complete"] and [store["code"] for store in result["stores"]] == [20]
    for table in (f"{out}/tables", "here/tables"):
        report = here(["report", "--format", "json", "--tables", table], tmp_path, remote.variables)
        assert report.returncode == 0 and len(json.loads(report.stdout)["stores"]) == 1, shown(report)

    exported, there_rows = here(["export", str(own), *conf, "--format", "jsonl", "--to", "rows"], tmp_path), "rows-there"
    done = run("export", there, *conf, "--format", "jsonl", "--to", there_rows)
    assert exported.returncode == done.returncode == 0, shown(done)
    rows, rows_there = files(tmp_path / "rows"), files(tmp_path / there_rows)
    assert rows and rows_there.keys() == rows.keys()
    assert all(rows_there[name] == content for name, content in rows.items() if "manifest" not in name)

    (tmp_path / "count.py").write_text(f"""
import os, urllib.request
from pyspark.sql import SparkSession
from jobs import sources
spark = SparkSession.builder.getOrCreate()
counted = sources.read(spark, "messages", {there!r}, release={case.release!r}, body="decoded")
print("counted", counted.selectExpr("count(*)", "sum(total_size)", "sum(crc32(body))").first())
for page in ("environment/", "executors/", f"api/v1/applications/{{spark.sparkContext.applicationId}}/environment"):
    shown = urllib.request.urlopen(f"{{spark.sparkContext.uiWebUrl}}/{{page}}").read()
    print("page", page, len(shown) > 500, {SECRET.encode()!r} in shown, {TOKEN.encode()!r} in shown)
""")
    extract(running.archive, tmp_path / "environment")  # Spark plans a source here, with the executors' Python
    words = ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0"]
    done = run("run", *words, "count.py")
    (tmp_path / "count.py").write_text((tmp_path / "count.py").read_text().replace(there, str(own)))
    told = here(["run", *words, "count.py"], tmp_path)
    lines = [[line for line in one.stdout.splitlines() if line.startswith(("counted", "page"))] for one in (done, told)]
    assert done.returncode == told.returncode == 0 and lines[0][0] == lines[1][0], shown(done) + shown(told)
    assert [line.split()[2:] for line in lines[0][1:]] == [["True", "False", "False"]] * 3

    done = run("repair", there, "--plan", f"{out}/copy/plan.json", *conf, "--policy", "salvage", "--to", "new-there")
    plan = ["--plan", "here/copy/plan.json"]
    told = here(["repair", str(own), *plan, *conf, "--policy", "salvage", "--to", "new"], tmp_path)
    assert done.returncode == told.returncode == 0, shown(done)
    assert files(tmp_path / "new-there") == files(tmp_path / "new") != {}

    assert len(list(logs.iterdir())) == 4
    for name in remote.place.names("out"):
        path = typed / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(remote.place.get(f"out/{name}"))
    check_no_secret(logs, typed, running.folder)


def test_what_the_drivers_environment_has_is_enough(
    running: Cluster, remote: Remote, copy: tuple[Case, Path, list[str]], tmp_path: Path
) -> None:
    """Executors have no variable of it: neither login nor address, and no file of the Hadoop configuration."""
    _, own, conf = copy
    remote.place.put(own, "copy")
    there = f"{remote.by_variables}/copy"
    audited = running.run(["audit", there, *conf, "--out", f"{remote.by_variables}/out"], tmp_path, remote.variables)
    local = here(["audit", str(own), *conf, "--out", "here"], tmp_path)
    assert audited.returncode == local.returncode == 20, shown(audited)
    for name in ("plan.json", "findings.jsonl"):
        assert remote.place.get(f"out/copy/{name}") == (tmp_path / "here" / "copy" / name).read_bytes()
    check_no_secret(running.folder)


def test_a_worker_that_is_lost_in_the_middle_changes_nothing(running: Cluster, remote: Remote, tmp_path: Path) -> None:
    store = slow_store(tmp_path / "store", 240)
    (tmp_path / "broker.conf").write_text(store.broker_conf or "")
    there = remote.place.put(store.root, "store")
    conf = ["--release", "5.3.3", "--broker-conf", "broker.conf"]
    whole = here(["audit", str(store.root), *conf, "--out", "whole"], tmp_path)
    words = ["audit", there, *conf, *remote.options, "--out", f"{remote.place.uri}/out"]
    code, told = running.run_and_lose_a_worker(words, tmp_path)
    assert code == whole.returncode == 0, told
    result = json.loads(remote.place.get("out/result.json"))
    assert result["complete"] and [store["code"] for store in result["stores"]] == [0]
    for name in ("plan.json", "findings.jsonl"):
        assert remote.place.get(f"out/store/{name}") == (tmp_path / "whole" / "store" / name).read_bytes()


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "AccessDenied"])
def test_a_login_that_ends_in_the_middle(
    code: str, running: Cluster, server: S3Server, copy: tuple[Case, Path, list[str]], tmp_path: Path
) -> None:
    """The driver lists the store; then the server takes the login no more. The sentences are those of one process."""
    _, own, conf = copy
    there = server.put_folder(own, "copy")
    refused: list[Request] = []

    def refuse(request: Request) -> Refusal | None:
        if request.listing or request.method != "GET" or not request.key.startswith("copy/commitlog/"):
            return None
        refused.append(request)
        return Refusal("403 Forbidden", code, "The provided token has expired.")

    login = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
    login |= {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": server.endpoint}
    server.refuse = refuse
    told = []
    for run, out in ((running.run, "there"), (here, "here")):
        done = run(["audit", there, *conf, "--out", out], tmp_path, login)
        assert done.returncode == 3 and "Traceback" not in done.stderr, shown(done)
        result = json.loads((tmp_path / out / "result.json").read_text())
        told.append((done.stderr, result["stores"][0]["incomplete"]))
        assert result["complete"] is False
    assert told[0] == told[1] and refused
    assert any(code in sentence and "cannot be read" in sentence for sentence in told[0][1]), told
    check_no_secret(running.folder, tmp_path / "there")


def test_a_file_that_the_driver_may_list_and_tasks_may_not_read(
    running: Cluster, hdfs: SmallHdfs, copy: tuple[Case, Path, list[str]], tmp_path: Path
) -> None:
    """Tasks ask as the driver does, not as the user of their own machine, who may read everything."""
    _, own, conf = copy
    there = hdfs.put_folder(own, "/copy")
    segment = next(name for name in hdfs.names("/copy") if name.startswith("/commitlog/"))
    hdfs.client().set_permission(f"/copy{segment}", 0o600)
    told = []
    for run, out in ((running.run, "there"), (here, "here")):
        done = run(["audit", there, *conf, "--out", out], tmp_path, {"HADOOP_USER_NAME": "stranger"})
        result = json.loads((tmp_path / out / "result.json").read_text())
        told.append((done.returncode, done.stderr, result["stores"][0]["incomplete"]))
    assert told[0] == told[1] and told[0][2]
    assert any("access is denied" in sentence and "user=stranger" in sentence for sentence in told[0][2]), told
