"""One HDFS for all tests that want one (mark: hdfs), started when the first of them does, and empty for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hdfs.small_hdfs import SmallHdfs, forget


@pytest.fixture(scope="session")
def small_hdfs() -> Iterator[SmallHdfs]:
    started = SmallHdfs()
    yield started
    started.stop()


@pytest.fixture
def hdfs(small_hdfs: SmallHdfs, monkeypatch: pytest.MonkeyPatch) -> SmallHdfs:
    for name in ("HADOOP_USER_NAME", "HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    forget()
    small_hdfs.empty()
    return small_hdfs
