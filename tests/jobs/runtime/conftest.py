"""An environment's folder for tests of the set-up, and the archive of this one for clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.commands import pack
from jobs.runtime import setup as environment
from tests.support.processes.spark_cluster import Cluster, cluster


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment's folder that is not there yet; neither are JAVA_HOME and a java on the PATH."""
    folder = tmp_path / "the environment"
    monkeypatch.setenv("STORE_AUDIT_HOME", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return folder


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Iterator[Cluster]:
    """A Spark cluster for all tests that want one (mark: cluster)."""
    with cluster(tmp_path_factory.mktemp("cluster"), archive) as started:
        yield started


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pack` makes."""
    path = tmp_path_factory.mktemp("archive") / "environment.tar.gz"
    pack.pack_environment(str(path))
    return path


def make(place: Path) -> None:
    """What a finished set-up leaves, without its contents."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text("#!/bin/sh\n")
    (place / "bin" / "python").chmod(0o755)
    (place / "store-audit").mkdir()
    environment._stamp(place / "store-audit" / "ready")
