"""Signs that a broker runs on a copy, and lengths that Spark sees otherwise."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import entry
from jobs.audit import copy_at_rest
from jobs.audit.copy_at_rest import broker_signs, listing_problems
from schemas.advice import Cause, Gap
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_store
from tests.support import damage
from tests.support.stores.small_repairs import small_store

OLD = time.time() - 3600


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An old copy with a lock file that nobody holds, and its broker.conf beside it."""
    root, conf = small_store(tmp_path)
    (tmp_path / "broker.conf").write_text(conf)
    (root / "lock").write_bytes(b"lock")
    for path in root.rglob("*"):
        os.utime(path, (OLD, OLD))
    return root


@pytest.fixture
def held(store: Path) -> Iterator[Path]:
    with (store / "lock").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        if not copy_at_rest._holder_of(str(store / "lock")):
            pytest.skip("this system does not say who holds a lock")
        yield store


def said(store: Path) -> list[str]:
    return broker_signs(str(store), list_store(StoreLocation(str(store))).files).sentences()


def test_an_old_copy_shows_no_broker(store: Path) -> None:
    assert said(store) == [] and not copy_at_rest._holder_of(str(store / "none"))
    assert not broker_signs("s3://bucket/store", ())


def test_a_lock_that_a_process_holds_is_seen(held: Path) -> None:
    assert said(held) == [
        f"{held}: process {os.getpid()} holds the file lock in it, so a broker runs on this directory and changes it"
    ]


def test_a_lock_of_an_open_file_names_no_process(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, locks = (store / "lock").stat(), tmp_path / "locks"
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    locks.write_text(f"1: OFDLCK  ADVISORY  WRITE -1 {device}:{status.st_ino} 0 EOF\n")
    monkeypatch.setattr(copy_at_rest, "_LOCKS", str(locks))
    assert said(store) == [f"{store}: a process holds the file lock in it, so a broker runs on this directory and changes it"]


def test_fresh_files_beside_old_ones_are_seen(store: Path) -> None:
    os.utime(store / "checkpoint")
    (sentence,) = said(store)
    assert "1 file of " in sentence and " was written just now, the newest " in sentence and "still being copied" in sentence
    (store / "abort").touch()
    assert "perhaps a broker still runs on this directory" in said(store)[0]
    Path(f"{store}.repair.json").touch()
    assert said(store) == [], "a repair wrote them"


def test_files_of_one_moment_are_a_copy_without_times_where_abort_is_there(store: Path) -> None:
    for path in store.rglob("*"):
        os.utime(path)
    assert said(store) == []
    (store / "abort").touch()
    assert "or it was copied without its times" in said(store)[0]


def test_a_file_of_the_future_shows_nothing(store: Path) -> None:
    os.utime(store / "checkpoint", (time.time() + 9999,) * 2)
    assert said(store) == []


@pytest.mark.parametrize("command", ["repair", "rescue"])
def test_a_held_lock_ends_what_would_make_a_store(held: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (held.parent / "plan.json").write_text("{}")
    words = [command, str(held), "--release", "5.3.3", "--broker-conf", str(held.parent / "broker.conf")]
    if command == "repair":
        damage.zero_range(held / "commitlog" / f"{0:020d}", 60, 160)
        plan = held.parent / "o" / "store" / "plan.json"
        audit = [sys.executable, "-m", "jobs.entry", "audit", *words[1:], "--out", str(held.parent / "o")]
        done = subprocess.run(audit, capture_output=True, text=True, check=False)
        assert done.returncode == 20, done.stderr
        assert f"process {os.getpid()} holds the file lock" in done.stderr, "an audit says it and goes on"
        shown = " ".join(done.stdout.split())
        assert "1. stop: A repair refuses a directory that a broker uses. " in shown and "and audit and repair the copy." in shown
        assert "spark-submit.sh repair" not in shown and "Repair line" not in shown
        words += ["--plan", str(plan), "--to", str(held.parent / "new")]
    assert entry.main(words) == 3
    assert (
        "holds the file lock in it, so a broker runs on this directory and changes it; stop the broker, copy the directory"
        in (capsys.readouterr().err)
    )


def audit(*segments: tuple[str, str, int]) -> Any:
    return SimpleNamespace(segment_addresses=lambda: segments)


def context_of(path_of: Any) -> Any:
    """A context whose JVM makes its paths by this."""
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(Path=path_of)))))
    return SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))


@pytest.mark.spark
def test_another_length_is_a_sentence_of_its_own_store(spark: SparkSession, tmp_path: Path) -> None:
    odd = tmp_path / "a*[b]{c}?^ %20\\:é"
    odd.mkdir()
    segments = [odd / "0", odd / "_hidden", tmp_path / "gone"]
    for path in segments[:2]:
        path.write_bytes(b"12345")
    sound = audit(*((path.name, str(path), 5) for path in segments))
    found = listing_problems(spark.sparkContext, [sound, audit(("0", str(odd / "0"), 7))])
    assert found == [[], [Gap(Cause.LISTED_OTHERWISE, "0", (5, 7))]]


def test_nothing_to_list_asks_nothing_and_a_failure_says_nothing() -> None:
    asked: list[str] = []

    def fail(address: str) -> None:
        asked.append(address)
        raise RuntimeError("no such file system")

    assert listing_problems(context_of(fail), [audit()]) == [[]] and asked == []
    assert listing_problems(context_of(fail), [audit(("n", "/n", 1), ("m", "odd://m", 1))]) == [[]]
    assert asked == ["file:/n", "odd://m"]
