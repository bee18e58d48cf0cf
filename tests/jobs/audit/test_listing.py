"""Spark's listing as a second witness of the segments' lengths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.audit.listing import escaped, listing_problems


class Spark:
    """Answers a listing with these rows, and remembers what it was asked for."""

    def __init__(self, rows: list[dict[str, Any]] | None):
        self.rows, self.asked = rows, []
        self.read = self

    def format(self, name: str) -> Spark:
        assert name == "binaryFile"
        return self

    def load(self, paths: list[str]) -> Spark:
        self.asked += paths
        return self

    def select(self, *names: str) -> Spark:
        assert "content" not in names
        return self

    def collect(self) -> list[dict[str, Any]]:
        if self.rows is None:
            raise RuntimeError("no such file system")
        return self.rows


def audit(*segments: tuple[str, str, int]) -> Any:
    return SimpleNamespace(segment_addresses=lambda: segments)


def test_another_length_is_a_sentence_of_its_own_store() -> None:
    audits = [audit(("commitlog/0", "/a/commitlog/0", 5)), audit(("commitlog/0", "/b b/commitlog/0", 7))]
    spark = Spark([{"path": "file:/a/commitlog/0", "length": 5}, {"path": "file:/b%20b/commitlog/0", "length": 8}])
    found = listing_problems(spark, audits)  # type: ignore[arg-type]
    assert found == [[], ["commitlog/0: 8 bytes by Spark's listing, 7 by ours"]]


def test_nothing_to_list_asks_nothing_and_a_failure_says_nothing() -> None:
    spark = Spark([])
    assert listing_problems(spark, [audit()]) == [[]] and spark.asked == []  # type: ignore[arg-type]
    assert listing_problems(Spark(None), [audit(("n", "/n", 1))]) == [[]]  # type: ignore[arg-type]


@pytest.mark.parametrize("plain", ["/a/b", "s3://bucket/a"])
def test_wildcards_are_escaped_and_nothing_else(plain: str) -> None:
    assert escaped(plain) == plain
    assert escaped("a*[b]{c}?^\\") == "a\\*\\[b\\]\\{c\\}\\?\\^\\\\"
