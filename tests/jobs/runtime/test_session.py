"""The one builder of sessions: whose settings win, how options reach the JVM, and what is said where Spark does not start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from jobs.commands import pack
from jobs.runtime import jvm as jvm_module
from jobs.runtime import session
from jobs.runtime import setup as environment
from jobs.runtime.jvm import SparkFailed
from store_io.source import storage_options
from tests.support.stores.corpus_tools import extract

pytestmark = pytest.mark.spark
needs_environment = pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")


def configured(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, defaults: Mapping[str, str] = session.COMMANDS_DEFAULTS
) -> dict[str, str]:
    """What `_configure` makes of settings that Spark has read. Needs the JVM of the session fixture."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/other-python")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    session._configure(conf, "", defaults)
    return {**dict(conf.getAll()), "PYSPARK_PYTHON": os.environ["PYSPARK_PYTHON"]}


def test_a_users_settings_win_but_for_what_results_depend_on(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {
        "spark.sql.shuffle.partitions": "7",
        "spark.ui.enabled": "true",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.extensions": "a.B",
    }
    made = configured(own, monkeypatch)
    assert (made["spark.sql.shuffle.partitions"], made["spark.ui.enabled"]) == ("7", "true")
    assert made["spark.sql.session.timeZone"] == "UTC"
    assert made["spark.sql.extensions"] == "a.B,io.delta.sql.DeltaSparkSessionExtension"
    assert made["spark.databricks.delta.snapshotPartitions"] == "2"


def test_what_people_ask_is_planned_as_it_runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    adaptive = "spark.sql.adaptive.enabled"
    made = configured({}, monkeypatch, session.PEOPLES_DEFAULTS)
    assert made[adaptive] == "true" and "spark.sql.shuffle.partitions" not in made  # by cores, once the JVM has counted them
    assert configured({adaptive: "false"}, monkeypatch, session.PEOPLES_DEFAULTS)[adaptive] == "false"
    assert configured({}, monkeypatch)[adaptive] == "false"


def test_no_storage_option_becomes_a_setting(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's pages and logs show settings. How tasks elsewhere get them: test_cluster_stores.py (-m cluster)."""
    monkeypatch.setattr(storage_options, "_used", {"AWS_REGION"})
    monkeypatch.setenv("AWS_REGION", "somewhere-1")
    for master in ("spark://m:7077", "local[2]"):
        assert "somewhere-1" not in str(configured({"spark.master": master}, monkeypatch))


def test_the_tables_follow_the_umask(tmp_path: Path) -> None:
    """Logs that the JVM writes have the mode of the files that Python writes beside them. A JVM's umask is fixed at its start."""
    code = (
        "import os, sys; os.umask(0o077)\n"
        "from jobs.runtime import session\nfrom jobs.tables import delta_tables as tables\n"
        "from tests.support.handmade import samples\n"
        "with session.start() as started: tables.Tables(started, sys.argv[1]).write_run(samples.RUN, [samples.clean()])"
    )
    subprocess.run([sys.executable, "-c", code, f"{tmp_path}/t"], cwd=environment.ROOT, check=True, timeout=300)
    modes = {path.relative_to(tmp_path).parts[-2]: path.stat().st_mode & 0o777 for path in (tmp_path / "t").rglob("*.*")}
    assert "_delta_log" in modes and any(name.startswith("month=") for name in modes)
    assert {p for p in (tmp_path / "t").rglob("*") if p.stat().st_mode & 0o077} == set()


def test_pyspark_lets_go_of_the_jvm_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What py4j cannot send to a JVM that is gone, it logs: pages in a notebook."""
    done: list[str] = []
    monkeypatch.setattr(session, "_forget", lambda context: done.append("forgotten"))
    jvm = SimpleNamespace(process=object(), end=lambda at_once, wait: done.append("ended"))
    context = SimpleNamespace(applicationId="a", master="local[2]", _conf={}, _accumulatorServer=SimpleNamespace())
    context._jsc = SimpleNamespace(stop=lambda: done.append("stopped"))
    session.Session(cast(Any, context), cast(Any, jvm), None).stop()
    assert done == ["stopped", "forgotten", "ended"]


def test_the_server_of_tasks_counts_ends_with_the_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed one whose thread still polls takes a whole core."""
    for kind, name in (
        *((SparkContext, name) for name in ("_gateway", "_jvm", "_active_spark_context")),
        *((SparkSession, name) for name in ("_instantiatedSession", "_activeSession")),
    ):
        monkeypatch.setattr(kind, name, None)
    ended = Event()
    session._forget(SimpleNamespace(_accumulatorServer=SimpleNamespace(shutdown=ended.set)))
    assert ended.wait(10)


def test_a_users_own_umask_of_hadoop_wins(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "spark.hadoop.fs.permissions.umask-mode"
    assert configured({"spark.master": "local[2]", key: "007"}, monkeypatch)[key] == "007"
    assert key not in configured({"spark.master": "yarn"}, monkeypatch)


@pytest.mark.parametrize(
    ("master", "python", "sends_jars", "binds"),
    [
        ("local[2]", sys.executable, False, True),
        ("local-cluster[2,1,1024]", sys.executable, True, True),
        ("spark://host:7077", "/usr/bin/other-python", True, False),
        ("yarn", "/usr/bin/other-python", True, False),
    ],
)
@needs_environment
def test_what_a_master_needs(
    master: str, python: str, sends_jars: bool, binds: bool, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = configured({"spark.master": master, "spark.jars": "/mine.jar"}, monkeypatch)
    assert made["PYSPARK_PYTHON"] == python
    assert ("delta-spark" in made["spark.jars"]) is sends_jars
    assert made["spark.jars"].startswith("/mine.jar")
    assert ("spark.driver.host" in made) is binds
    assert configured({"spark.master": "yarn", "spark.pyspark.python": "./e/bin/python"}, monkeypatch)["PYSPARK_PYTHON"] == (
        "./e/bin/python"
    )


@pytest.mark.parametrize(
    "settings, closed, coded, module",
    [
        ({"spark.master": "local[2,4]"}, "true", "true", "jobs.runtime.python_workers"),
        ({"spark.master": "local", "spark.python.daemon.module": "own"}, "true", "true", "own"),
        ({"spark.master": "local", "spark.authenticate": " TRUE "}, " TRUE ", "true", "jobs.runtime.python_workers"),
        ({"spark.master": "local", "spark.network.crypto.enabled": "false"}, "true", "false", "jobs.runtime.python_workers"),
        ({"spark.master": "local[2]", "spark.authenticate": "false"}, "false", None, "jobs.runtime.python_workers"),
        ({"spark.master": "spark://a:7077"}, None, None, None),
        ({"spark.master": "local-cluster[2,1,1024]"}, None, None, None),
    ],
)
def test_a_jvm_that_runs_tasks_itself_is_closed_to_strangers(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    closed: str | None,
    coded: str | None,
    module: str | None,
) -> None:
    made = configured(settings, monkeypatch)
    found = tuple(made.get(f"spark.{name}") for name in ("authenticate", "network.crypto.enabled", "python.daemon.module"))
    assert found == (closed, coded, module)


def test_a_users_class_path_stands_beside_deltas(spark: SparkSession) -> None:
    own = ["--conf", "spark.driver.extraClassPath=/mine.jar", "--master", "local[3]"]
    words = jvm_module.command(own, [], "/scratch")
    path = words[words.index("--driver-class-path") + 1].split(os.pathsep)
    assert path == [*environment.jars(), "/mine.jar"] and len(path) > 1
    assert words[-1] == "pyspark-shell" and "local[3]" in words


def test_java_options_with_spaces_and_quotes_stay_one(spark: SparkSession) -> None:
    """As Spark's own launcher splits them."""
    wanted = ["-Da=b", "-Dpath=/a folder/x", '-Dq="', "-Db=\\", "-Ds='"]
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    assert jvm is not None and gateway is not None
    kinds = gateway.new_array(jvm.java.lang.Class, 1)
    kinds[0] = jvm.java.lang.Class.forName("java.lang.String")
    split = jvm.java.lang.Class.forName("org.apache.spark.launcher.CommandBuilderUtils").getDeclaredMethod(
        "parseOptionString", kinds
    )
    split.setAccessible(True)
    line = gateway.new_array(jvm.java.lang.Object, 1)
    line[0] = " ".join(map(jvm_module._java_quoted, wanted))
    assert list(split.invoke(None, line)) == wanted


@needs_environment
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--driver-memory=lots", "Invalid maximum heap size"),
        ("--master=nonsense", "Master must"),
        pytest.param("--master=local[x]", "local[x]", marks=pytest.mark.soak),
        ("--properties-file=nowhere", "Invalid properties file"),
    ],
)
def test_a_spark_that_does_not_start_is_one_sentence_and_a_result(word: str, said: str, tmp_path: Path) -> None:
    store = environment.ROOT / "examples" / "damaged-store" / "store"
    words = [word, "audit", str(store), "--out", str(tmp_path / "out")]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    done = subprocess.run([sys.executable, "-m", "jobs.entry", *words], env=clean, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert said in done.stderr and done.stderr.count("\n") == 1
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["exit_code"], result["complete"]) == (3, False)


@pytest.mark.big
def test_the_packed_environment_works_wherever_it_is_unpacked(tmp_path: Path) -> None:
    pack.pack_environment(str(tmp_path / "e.tar.gz"))
    extract(tmp_path / "e.tar.gz", tmp_path / "some where")
    check = "import numba, pandas, pyarrow, isal.isal_zlib, store_io.model.loss as a; print(pyarrow.__file__); print(a.__file__)"
    done = subprocess.run(
        [tmp_path / "some where" / "bin" / "python", "-P", "-c", check],
        env={"PATH": f"{os.path.dirname(os.path.realpath(sys.executable))}:/usr/bin:/bin", "PYTHONPATH": str(environment.ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [
        f"{tmp_path}/some where/site-packages/pyarrow/__init__.py",
        f"{environment.ROOT}/store_io/model/loss.py",
    ], done.stderr


def test_a_jvm_that_is_not_wanted_any_more_ends_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_module, "command", lambda *_: ["sleep", "60"])
    monkeypatch.setattr(jvm_module, "_prepare_process", lambda: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    starting = jvm_module.Jvm()
    assert starting.process is not None and starting.process.poll() is None
    starting.end()
    assert starting.process.returncode == -signal.SIGKILL and not list(tmp_path.iterdir())
    monkeypatch.setattr(jvm_module, "command", lambda *_: [str(tmp_path / "none")])
    with pytest.raises(SparkFailed, match="did not start: No such file"):
        jvm_module.Jvm()
    monkeypatch.setattr(jvm_module, "command", lambda *_: ["sh", "-c", "echo why it failed >&2"])
    with pytest.raises(SparkFailed, match="did not start: why it failed"):
        session.on(jvm_module.Jvm())
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_what_the_environment_asks_of_java_and_of_bash_stops_no_start(tmp_path: Path) -> None:
    """Spark's script runs a short JVM of its own, with a small heap, and reads its words; bash runs what BASH_ENV names."""
    own = tmp_path / "own.sh"
    own.write_text("export SPARK_HOME=/nowhere\n")
    start = "from jobs.runtime.jvm import Jvm; jvm = Jvm(['--master', 'local[1]']); jvm.connect(); jvm.end()"
    asked = {"BASH_ENV": str(own), "JAVA_TOOL_OPTIONS": "-Xms512m -Xlog:gc*", "SPARK_LAUNCHER_OPTS": "-XX:Nope"}
    subprocess.run([sys.executable, "-c", start], cwd=environment.ROOT, env={**os.environ, **asked}, check=True, timeout=120)
