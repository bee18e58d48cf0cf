"""The benchmark at a tiny size: every part runs, the table has a line for each figure, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dev import bench_stores as bench_store
from dev import run_bench as bench
from dev.bench_stores import BODIES, BenchFailed, write_store
from dev.figures import PEAK_LIMIT, question_figures
from dev.measures import measure_audits, measure_kind, measure_peak
from dev.questions import measure_questions
from dev.sample_kinds import TIMERS
from jobs.cli import options
from jobs.runtime import session
from jobs.runtime import setup as environment
from store_io.base.errors import UsageError
from tests.support.processes.children import PATIENCE_SECONDS, until

SMALL = ["--size", "0.002", "--audit-size", "0.001", "--large", "0.008", "--rounds", "1"]


@pytest.mark.spark
def test_audits_and_memory_are_measured_in_a_session(spark_session: session.Session, root: Path, tmp_path: Path) -> None:
    times = measure_audits(spark_session, root, tmp_path / "out", rounds=1, datasets=True)
    assert times.audit > 0 and times.tables > 0 and times.first > 0 and times.datasets is not None
    assert (tmp_path / "out" / "store" / "plan.json").exists()
    assert list((tmp_path / "out" / "tables" / "messages").rglob("*.parquet"))
    peak = measure_peak(spark_session, root)
    assert peak is None or 50_000_000 < peak < PEAK_LIMIT


@pytest.mark.spark
def test_questions_about_messages_are_measured_in_a_session(spark_session: session.Session, root: Path) -> None:
    times = measure_questions(spark_session, root, rounds=1)
    lines = question_figures(times)
    assert times.size_bytes == 2 << 17 and len(lines) >= 7 and lines[1].ratio == "1.00"
    assert all(0 < seconds < 600 for seconds in (times.first, *times.wall.values()))
    assert not times.processors or times.processors.keys() == times.wall.keys()


def test_a_kind_is_measured_on_its_own_store(tmp_path: Path) -> None:
    store = replace(bench.kind_store(1 << 20, TIMERS), index_slots=1000, index_max=9000)
    write_store(tmp_path, store)
    conf = "maxHashSlotNum=1000\nmaxIndexNum=9000\n"
    times = measure_kind(tmp_path, TIMERS, f"mappedFileSizeCommitLog={store.segment_bytes}\n{conf}", 1)
    assert times.size_bytes == 2 << 20 and times.entries > 500 and 0 < times.floor < times.audit
    (tmp_path / "timerwheel").unlink()
    with pytest.raises(BenchFailed, match="not found sound"):
        measure_kind(tmp_path, TIMERS, f"mappedFileSizeCommitLog={store.segment_bytes}\n{conf}", 1)


def test_a_folder_of_peers_holds_one_release() -> None:
    with pytest.raises(BenchFailed, match=r"one rocketmq-store-RELEASE\.jar is needed"):
        bench.asked_of(options.parse(["bench", "--peers", "/"]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "x"], "invalid float"),
        (["--size", "0"], "at least"),
        (["--rounds", "0"], "at least"),
        (["--only", "scan,nothing"], "the parts are"),
        (["store"], "unrecognized"),
        (["--size", "1", "--compare", "kept.json"], "--size does not go with"),
        (["--part", "0.1", "--write", "kept.json"], "--part does not go with"),
    ],
)
def test_faults_of_the_command_line(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        bench.asked_of(options.parse(["bench", *words]))


@pytest.mark.parametrize(
    ("size", "segments", "segment_bytes"), [(3 << 30, 3, 1 << 30), (6 << 30, 6, 1 << 30), (3 << 20, 3, 1 << 20)]
)
def test_the_store_to_scan_has_equal_parts_of_each_body_size(size: int, segments: int, segment_bytes: int) -> None:
    store = bench.scan_store(size)
    assert (len(store.bodies), store.segment_bytes) == (segments, segment_bytes)
    assert [list(store.bodies).count(body) for body in BODIES] == [segments // 3] * 3


def test_the_store_to_audit_ends_in_its_last_segment() -> None:
    store = bench.audit_store(3 << 29)
    assert (len(store.bodies), store.segment_bytes, store.last_bytes) == (2, 1 << 30, 1 << 29)
    assert bench.audit_store(1 << 20).last_bytes == 1 << 20


def test_the_command_prints_one_table_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.run(options.parse(["bench", *SMALL, "--only", "scan", "--dir", str(tmp_path)])) == 0
    shown = capsys.readouterr()
    assert shown.out.count("floor: read and CRC-32") == 3 and "GB/s" in shown.out
    assert not list(tmp_path.iterdir())


def test_no_room_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BenchFailed, match="are needed"):
        bench.run(options.parse(["bench", "--size", "1000000", "--dir", str(tmp_path), "--only", "scan"]))
    with pytest.raises(BenchFailed, match="cannot make a folder"):
        bench.run(options.parse(["bench", "--dir", str(tmp_path / "none")]))
    assert not list(tmp_path.iterdir())


def test_a_failing_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench_store, "open", full, raising=False)
    with pytest.raises(BenchFailed, match="No space left"):
        bench.run(options.parse(["bench", *SMALL, "--only", "scan", "--dir", str(tmp_path)]))
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "jobs.entry", "bench", "--size", "3", "--only", "scan", "--dir", str(tmp_path)]
    run = subprocess.Popen(words, cwd=environment.ROOT, env={**os.environ, "PYTHONPATH": str(environment.ROOT)})
    try:
        until(lambda: list(tmp_path.glob("*/scan/commitlog/*")) or run.poll() is not None, "it has begun to write")
        run.send_signal(signal.SIGTERM)
        assert run.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    finally:
        run.kill()
        run.wait()
    assert not list(tmp_path.iterdir())
