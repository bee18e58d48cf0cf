"""What is measured of scans: bytes and messages of sound segments alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.bench.measures import measure_scans
from jobs.bench.store import BenchFailed, write_store
from store_io.sample_store import SampleStore


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
