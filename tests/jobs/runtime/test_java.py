"""A wheel's Java behind a wrapper, and the authorities that a Java trusts."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from jobs.runtime import java


def test_the_java_wrapper_drops_one_argument(tmp_path: Path) -> None:
    runtime = tmp_path / "it's a 'wheel'"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    (runtime / "bin" / "java").chmod(0o755)
    java.write_java_wrapper(tmp_path / "java" / "bin" / "java", str(runtime))
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", '"$HOME"']
    said = subprocess.run([tmp_path / "java" / "bin" / "java", *words], capture_output=True, text=True).stdout
    assert said == '<-cp><a b><><--add-modules=other><"$HOME">'


@pytest.mark.spark
def test_java_can_read_the_authorities_that_python_trusts(spark: object, tmp_path: Path) -> None:
    wanted = ssl.create_default_context().get_ca_certs(binary_form=True)
    path = java.write_trust_store(tmp_path / "authorities.jks")
    if not wanted:
        assert path is None
        return
    jvm = spark._jvm  # type: ignore[attr-defined]
    store = jvm.java.security.KeyStore.getInstance(jvm.java.security.KeyStore.getDefaultType())
    stream = jvm.java.io.FileInputStream(str(path))
    store.load(stream, None)
    stream.close()
    assert store.size() == len(wanted)
    assert bytes(store.getCertificate("authority-0").getEncoded()) == wanted[0]
