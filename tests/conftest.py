"""What tests in many folders want: a Spark session (mark: spark), an S3 server, an HDFS. Each starts when one wants it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from jobs.runtime import interrupts, session
from jobs.runtime.jvm import Jvm
from store_io.source import disk_cache
from tests.support.processes.s3_server import S3Server, emptied, served
from tests.support.stores.corpus_tools import Case

if TYPE_CHECKING:
    from tests.hdfs.small_hdfs import SmallHdfs
    from tests.support.answers.product import Audited


# Nothing depends on how busy the machine is, nor on chance; `--hypothesis-profile=search` looks for examples that are new.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def signals_end_with_their_test() -> Iterator[None]:
    """Forget a signal that a test sent to its own process: a command's process ends after one, this process goes on."""
    yield
    if interrupts.came():
        with interrupts.heard():
            pass


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The mark decides in which half of the tests one runs (dev/run_tests.py): only one of them starts a JVM."""
    for item in items:
        if "spark_session" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


def pytest_collection_finish() -> None:
    """What lives as long as the tests, modules and the tests themselves, is not searched for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[session.Session]:
    """The project's own session on two cores, as `jobs.audit.run_audit.run_with` takes it."""
    with session.on(Jvm(["--master", "local[2]"])) as started:
        yield started


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Path]:
    """The store of a case of the corpus, unpacked once: no test that takes it from here changes it."""
    return cache(lambda case: case.unpack(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session")
def audited(unpacked: Callable[[Case], Path]) -> Callable[[Case], Audited]:
    """The audit of a case of the corpus under its own release, made once for all tests that read it."""
    from tests.support.answers import product

    return cache(lambda case: product.audit(unpacked(case), case.release, case.broker_conf))


@pytest.fixture(scope="module")
def serving() -> Iterator[S3Server]:
    """An S3 server of this machine, for the tests of one module."""
    with served() as server:
        yield server


@pytest.fixture
def server(serving: S3Server) -> S3Server:
    """It with an empty bucket."""
    return emptied(serving)


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which this process keeps what it fetches of stores, as the tasks of a run do."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv(disk_cache.PLACE, str(folder))
    return folder


@pytest.fixture(scope="session")
def small_hdfs() -> Iterator[SmallHdfs]:
    """One HDFS for all tests that want one (marks: hdfs, cluster), started when the first of them does."""
    from tests.hdfs.small_hdfs import SmallHdfs

    started = SmallHdfs()
    yield started
    started.stop()


@pytest.fixture
def hdfs(small_hdfs: SmallHdfs, monkeypatch: pytest.MonkeyPatch) -> SmallHdfs:
    """It, empty."""
    from tests.hdfs.small_hdfs import forget

    for name in ("HADOOP_USER_NAME", "HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    forget()
    small_hdfs.empty()
    return small_hdfs


@pytest.fixture
def spark(spark_session: session.Session) -> Iterator[SparkSession]:
    """Spark itself; temporary views and cached tables of a test do not reach the next one."""
    yield spark_session.spark
    spark_session.spark.catalog.clearCache()
    for table in spark_session.spark.catalog.listTables():
        if table.isTemporary:
            spark_session.spark.catalog.dropTempView(table.name)
