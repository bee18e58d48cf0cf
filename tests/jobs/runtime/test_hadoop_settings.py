"""Of the driver's Hadoop configuration, tasks on other machines get addresses and no secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.runtime.session import hadoop_settings

SETTINGS = {
    "dfs.ha.namenodes.a": "one",
    "dfs.namenode.rpc-address.a.one": "h:8020",
    "hadoop.security.authentication": "kerberos",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return tmp_path


def test_addresses_and_no_secrets(folder: Path) -> None:
    rows = {**SETTINGS, "fs.s3a.secret.key": "secret", "fs.defaultFS": "hdfs://a"}.items()
    text = "".join(f"<property><name>{name}</name><value> {value}\n</value></property>" for name, value in rows)
    (folder / "core-site.xml").write_text(f"<configuration>{text}</configuration>")
    assert hadoop_settings() == SETTINGS
    (folder / "hdfs-site.xml").write_text("no XML")
    assert hadoop_settings() == SETTINGS, "whoever opens a store says that it is wrong"


def test_without_a_configuration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hadoop_settings() == {}
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.setenv("HADOOP_HOME", str(folder / "none"))
    assert hadoop_settings() == {}
