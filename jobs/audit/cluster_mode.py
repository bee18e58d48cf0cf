"""Cluster deploy mode: the driver runs somewhere in the cluster, and this process waits for its result.json.

Everything that names a local file is read here (fleet file, broker.conf), packed into one word, and handed to the driver.
`--out` and the stores must be where the driver sees them: a URI, or a folder that all machines share.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jobs import installation
from jobs.audit import results
from jobs.cli import options, parser
from jobs.cli.options import AuditOptions
from jobs.runtime import setup as environment
from jobs.runtime.session import zip_packages
from store_io.base.errors import StoreError, UsageError
from store_io.source import storage_options

_WORD_BYTES = 100_000  # the system's limit for one argument is 128 KiB
_WAIT_SECONDS = 60.0  # after Spark has said that the driver ended; object stores may show a file late


def submit(asked: AuditOptions, spark_words: Sequence[str]) -> int:
    """Submit the audit, wait for it, and return the code that its result.json holds. Raises StoreError without one."""
    if login := [key for key in storage_options.LOGIN if key in asked.storage]:
        raise UsageError(
            f"--storage-option {login[0]} does not go with cluster deploy mode: the command line of the driver would show"
            " a secret; give driver and executors a login by the cluster's own means"
        )
    word = options.to_word(replace(asked, prometheus=None, summary_markdown=None, junit=None))  # files of this machine
    if len(word) > _WORD_BYTES:
        raise UsageError("this fleet is too large for one command line of cluster deploy mode; split it")
    os.environ["JAVA_HOME"] = environment.java_runtime().home
    with tempfile.TemporaryDirectory(prefix="store-audit-") as folder:
        command = _command(spark_words, word, zip_packages(folder))
        try:
            code = subprocess.run(command).returncode
        except OSError as problem:
            raise StoreError(f"spark-submit does not start: {problem}") from None
    end = time.monotonic() + (_WAIT_SECONDS if code == 0 else 0.0)
    while (result := results.read_result(asked.out, asked.run_id)) is None:
        if time.monotonic() >= end:
            raise StoreError(f"the driver left no result.json in {asked.out!r} (spark-submit ended with {code})")
        time.sleep(1.0)
    return int(result["exit_code"])


def _command(spark_words: Sequence[str], word: str, packages: str) -> list[str]:
    import pyspark

    lists = {"--py-files": ("spark.submit.pyFiles", [packages]), "--jars": ("spark.jars", environment.jars())}
    rest: list[str] = []
    pairs = iter(spark_words)
    for name in pairs:
        if name in parser.SPARK_FLAGS:
            rest.append(name)
        elif name == "--deploy-mode" or name in lists:
            next(pairs)
        else:
            rest += [name, next(pairs)]
    for name, (key, values) in lists.items():  # the option replaces the setting, so what the setting names goes with it
        rest += [name, ",".join([*values, *filter(None, [parser.spark_setting(spark_words, key, name)])])]
    script = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    driver = [str(installation.ROOT / "jobs" / "entry.py"), "--submitted", word]
    # A driver that fails must not be started again: its result would come late, under an answer already given.
    once = ["--conf", "spark.yarn.maxAppAttempts=1"]
    return [str(script), "--deploy-mode", "cluster", *once, *rest, *driver]
