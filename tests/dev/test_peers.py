"""A release's own load() beside the audit: which release a folder of jars is, and real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.bench_stores import BenchFailed, write_store
from dev.peers import measure_loads, release_of
from dev.sample_store import SampleStore


def test_the_jar_of_the_store_names_the_release(tmp_path: Path) -> None:
    for name in ("store-5.3.3", "common-5.3.3", "store-5.3.3-sources", "store-test"):
        (tmp_path / f"rocketmq-{name}.jar").touch()
    assert release_of(tmp_path) == "5.3.3"


@pytest.mark.parametrize("releases, found", [((), "found none"), (("5.3.3", "4.9.8"), "found those of 4.9.8 and 5.3.3")])
def test_other_folders_are_refused(tmp_path: Path, releases: tuple[str, ...], found: str) -> None:
    for release in releases:
        (tmp_path / f"rocketmq-store-{release}.jar").touch()
    with pytest.raises(BenchFailed, match=found):
        release_of(tmp_path)
    with pytest.raises(BenchFailed, match="nowhere: cannot be listed: No such file"):
        release_of(tmp_path / "nowhere")


@pytest.mark.broker
@pytest.mark.parametrize("release", ["4.8.0", "4.9.8", "5.1.4", "5.5.0"])
def test_a_real_release_loads_a_copy(tmp_path: Path, release: str) -> None:
    from tests.broker_truth.harness.real_broker import class_path

    root, jars = tmp_path / "store", class_path(release)[0].parent
    write_store(root, SampleStore([200], segment_bytes=1 << 20, index_slots=1000, index_max=9000, topics=2, queues=4))
    before = {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    times = measure_loads(root, jars, tmp_path, rounds=1)
    assert times.release == release and 0 < times.kept < 60 and 0 < times.rebuilt < 60
    assert before == {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
