"""What a rebuild keeps of decoded messages."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.rows import RUN_LMQ, RUN_QUEUE, RUN_UNQUEUED
from store_io.log.records.message_columns import ROW_DTYPE
from store_io.log.records.segment_items import KIND_BATCH
from store_io.repair.derived import kept_rows
from store_io.repair.derived.kept_rows import QueuedRows

KEYS = [("A", 0), ("B", 0), ("C", 0), ("A", 1)]


def messages(count: int, seed: int) -> np.ndarray:
    """Rows whose every byte is drawn, but for their queue."""
    draw = np.random.default_rng(seed)
    rows = np.frombuffer(draw.bytes(count * ROW_DTYPE.itemsize), ROW_DTYPE).copy()
    rows["topic_ref"] = draw.integers(0, len(KEYS) - 1, count)  # of the last queue there is none
    return rows


@pytest.mark.parametrize("room", [1, 64, 1 << 18])
def test_rows_in_the_order_of_their_queues(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "WAITING_ROWS", room)
    waiting, draw = QueuedRows(), np.random.default_rng(1)
    for again in range(3):
        batches = [messages(count, 10 * again + count) for count in (40, 0, 1, 90)]
        kinds = [draw.choice([RUN_QUEUE, RUN_UNQUEUED, RUN_LMQ, KIND_BATCH], len(rows)).astype(np.uint8) for rows in batches]
        for rows, kind in zip(batches, kinds, strict=True):
            waiting.add(rows[::-1][::-1] if again else np.repeat(rows, 2)[::2], kind)
        every, kind = np.concatenate(batches), np.concatenate(kinds)
        every, kind = every[kind != RUN_UNQUEUED], kind[kind != RUN_UNQUEUED]
        order = np.argsort(every["topic_ref"], kind="stable")
        found, ends = waiting.in_order(KEYS)
        assert ends == np.searchsorted(every["topic_ref"][order], range(len(KEYS)), "right").tolist()
        for name in found.dtype.names or ():
            assert found[name].tolist() == (kind if name == "kind" else every[name])[order].tolist()
        assert waiting.count == 0 and len(waiting.in_order(KEYS)[0]) == 0
