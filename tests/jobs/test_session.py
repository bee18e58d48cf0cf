"""The one builder of sessions: whose settings win, how options reach the JVM, and what is said where Spark does not start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from jobs import session
from jobs.environment import packaging
from jobs.environment import setup as environment

pytestmark = pytest.mark.spark
needs_environment = pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")


def configured(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What `_configure` makes of settings that Spark has read. Needs the JVM of the session fixture."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/other-python")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    session._configure(conf)
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


def test_the_tables_follow_the_umask(tmp_path: Path) -> None:
    """Logs that the JVM writes have the mode of the files that Python writes beside them. A JVM's umask is fixed at its start."""
    code = (
        "import os, sys; os.umask(0o077)\n"
        "from jobs import session\nfrom jobs.tables import delta_tables as tables\nfrom tests.support import samples\n"
        "with session.start() as started: tables.Tables(started.spark, sys.argv[1]).write_run(samples.RUN, [samples.clean()])"
    )
    subprocess.run([sys.executable, "-c", code, f"{tmp_path}/t"], cwd=environment.ROOT, check=True, timeout=300)
    modes = {path.relative_to(tmp_path).parts[-2]: path.stat().st_mode & 0o777 for path in (tmp_path / "t").rglob("*.*")}
    assert {"_delta_log", "run_id=run-1"} <= modes.keys()
    assert {p for p in (tmp_path / "t").rglob("*") if p.stat().st_mode & 0o077} == set()


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


@needs_environment
def test_a_users_class_path_stands_beside_deltas(spark: SparkSession) -> None:
    words = session._submit_words(["--conf", "spark.driver.extraClassPath=/mine.jar", "--master", "local[3]"], [], "/scratch")
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
    line[0] = " ".join(map(session._java_quoted, wanted))
    assert list(split.invoke(None, line)) == wanted


@needs_environment
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--driver-memory=lots", "Invalid maximum heap size"),
        ("--master=nonsense", "Master must"),
        ("--master=local[x]", "local[x]"),
        ("--properties-file=nowhere", "Invalid properties file"),
    ],
)
def test_a_spark_that_does_not_start_is_one_sentence_and_a_result(word: str, said: str, tmp_path: Path) -> None:
    store = environment.ROOT / "examples" / "damaged-store" / "store"
    words = [word, "audit", str(store), "--out", str(tmp_path / "out")]
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())}
    done = subprocess.run([sys.executable, "-m", "jobs.cli", *words], env=clean, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert said in done.stderr and done.stderr.count("\n") == 1
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["exit_code"], result["complete"]) == (3, False)


@pytest.mark.big
def test_the_packed_environment_works_wherever_it_is_unpacked(tmp_path: Path) -> None:
    packaging.pack_environment(str(tmp_path / "e.tar.gz"))
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        archive.extractall(tmp_path / "some where", filter="data")
    check = "import numba, pandas, pyarrow, isal.isal_zlib, store_io.audit.loss as a; print(pyarrow.__file__); print(a.__file__)"
    done = subprocess.run(
        [tmp_path / "some where" / "bin" / "python", "-P", "-c", check],
        env={"PATH": f"{os.path.dirname(os.path.realpath(sys.executable))}:/usr/bin:/bin", "PYTHONPATH": str(environment.ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [
        f"{tmp_path}/some where/site-packages/pyarrow/__init__.py",
        f"{environment.ROOT}/store_io/audit/loss.py",
    ], done.stderr


def test_a_jvm_whose_start_is_interrupted_ends_as_well() -> None:
    class Launcher:
        Popen = subprocess.Popen

    launcher = Launcher()
    with pytest.raises(KeyboardInterrupt), session._ended_unless_it_starts(launcher):
        process = launcher.Popen(["sleep", "60"])
        raise KeyboardInterrupt
    assert process.wait(10) == -signal.SIGKILL
    with session._ended_unless_it_starts(launcher):
        going_on = launcher.Popen(["sleep", "60"])
    assert going_on.poll() is None and launcher.Popen is subprocess.Popen
    going_on.kill()
    going_on.wait()
