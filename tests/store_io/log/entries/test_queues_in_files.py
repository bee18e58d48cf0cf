"""Reading a few entries of queue files for a fold, and the places of queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from store_io.log.entries import queues_in_files
from store_io.log.entries.queues_in_files import entries_on_disk


def test_entries_that_a_fold_asks_for_again_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def read(*asked: Any) -> np.ndarray:
        calls.append(asked[1:])
        return np.zeros(1)

    monkeypatch.setattr(queues_in_files, "read_file_entries", read)
    monkeypatch.setattr(queues_in_files, "MAX_REMEMBERED", 1)
    disk = entries_on_disk(None)  # type: ignore[arg-type]
    for path in ("consumequeue/T/0/0", "consumequeue/T/0/0", "batchconsumequeue/B/0/0", "batchconsumequeue/B/0/0"):
        disk(path, 0, 1)
    assert [(path, batch) for path, _, _, batch in calls] == [
        ("consumequeue/T/0/0", False), ("batchconsumequeue/B/0/0", True), ("batchconsumequeue/B/0/0", True),
    ]  # fmt: skip
