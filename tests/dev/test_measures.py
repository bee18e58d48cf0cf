"""What is measured of scans: bytes and messages of sound segments alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dev.bench_stores import BenchFailed, write_store
from dev.measures import measure_repair, measure_scans
from dev.sample_store import SampleStore
from jobs.runtime import setup as environment


def test_scans_are_measured_over_the_bytes_of_their_segments(root: Path) -> None:
    small, large = measure_scans(root, [200, 1024], rounds=1)
    assert (small.body, large.body, small.size_bytes, large.size_bytes) == (200, 1024, 1 << 17, 1 << 17)
    assert small.messages > 2 * large.messages > 100
    assert 0 < small.floor < small.task and 0 < large.floor < large.with_index


def test_a_damaged_segment_is_not_measured(tmp_path: Path) -> None:
    write_store(tmp_path, SampleStore([200], segment_bytes=1 << 16, index_slots=1000, index_max=4000, topics=1))
    with open(tmp_path / "commitlog" / f"{0:020d}", "r+b") as file:
        file.seek(1000)
        byte = file.read(1)[0]
        file.seek(1000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(BenchFailed, match="not found sound"):
        measure_scans(tmp_path, [200], rounds=1)


def test_a_copy_that_fails_is_told_in_cp_s_words(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "is_ready", lambda: True)
    shutil.copytree(root, tmp_path / "store")
    (tmp_path / "store-copy").touch()
    with pytest.raises(BenchFailed, match=r"cp ended with 1: .*store-copy"):
        measure_repair(tmp_path / "store", 200, (), rounds=1)
