"""What a rebuild keeps of decoded messages."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.commitlog_layout import SYS_ROLLBACK
from schemas.rows import RUN_LMQ, RUN_QUEUE, RUN_UNQUEUED
from store_io.log.records.message_columns import HAS_TAGS, ROW_DTYPE, Columns, entries_in_order
from store_io.log.records.segment_items import KIND_BATCH
from store_io.repair.derived import kept_rows
from store_io.repair.derived.kept_rows import QueuedRows, raw_index_entries

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


@pytest.mark.parametrize("tag_index", [False, True])
def test_index_entries_are_those_that_the_audit_expects(tag_index: bool) -> None:
    columns = Columns(64, want_keys=True)
    columns.rows[:] = messages(64, 5)
    draw = np.random.default_rng(6)
    columns.count = 60
    for row in columns.rows[:60]:
        row["flags"], row["sys_flag"] = draw.choice([0, HAS_TAGS]), draw.choice([0, SYS_ROLLBACK])
        row["key_count"] = 0 if row["sys_flag"] else draw.integers(0, 4)
        row["key_start"] = columns.key_hash_count
        columns.key_hash_count += int(row["key_count"]) + int(row["flags"] != 0 and not row["sys_flag"])
    columns.key_hash[: columns.key_hash_count] = draw.integers(0, 1 << 31, columns.key_hash_count)
    of, hashes = entries_in_order(columns.rows[:60], tag_index)
    raw = raw_index_entries(columns, tag_index)
    assert len(of) > 40 and raw["key_hash"].tolist() == columns.key_hash[hashes].tolist()
    for name in ("phy_offset", "store_time"):
        assert raw[name].tolist() == columns.rows[name][of].tolist()
