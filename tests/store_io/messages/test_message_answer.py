"""Tasks in parts that grow."""

from __future__ import annotations

import pytest

from store_io.messages.message_answer import waves


@pytest.mark.parametrize(
    ("count", "at_once", "most", "sizes"),
    [
        pytest.param(0, 2, None, [], id="no task"),
        pytest.param(1, 2, None, [1], id="fewer than can run at once"),
        pytest.param(100, 2, None, [2, 4, 8, 16, 32, 32, 6], id="up to sixteen times as many"),
        pytest.param(12, 2, 5, [2, 4, 5, 1], id="bounded"),
        pytest.param(3, 4, 1, [1, 1, 1], id="bounded below what can run at once"),
    ],
)
def test_parts_grow_up_to_their_bound(count: int, at_once: int, most: int | None, sizes: list[int]) -> None:
    parts = list(waves(range(count), at_once, most))
    assert [len(part) for part in parts] == sizes and [task for part in parts for task in part] == list(range(count))
