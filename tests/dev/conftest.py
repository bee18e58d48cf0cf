"""A small sample store that the tests of the benchmark share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.bench_stores import write_store
from dev.sample_store import SampleStore


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of some hundred messages, with small index files."""
    root = tmp_path_factory.mktemp("bench") / "store"
    write_store(root, SampleStore([200, 1024], segment_bytes=1 << 17, index_slots=1000, index_max=4000, topics=2, queues=2))
    return root
