"""Spark's file systems as a second witness of the segments' lengths."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.audit.copy_at_rest import listing_problems
from schemas.gaps import Cause, Gap


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
