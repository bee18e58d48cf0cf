"""Texts out of a window's bytes, as Arrow arrays."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.log.records.message_columns import ROW_DTYPE
from store_io.log.scan.row_texts import LONG_BYTES, gather_bytes, gather_texts, queue_ids, topic_texts

KEYS = [("T", 3), ("主题", 0)]


def pieces(*texts: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(buffer, starts, sizes): the texts with a byte between them, the last one first."""
    starts, data = [], b""
    for text in texts:
        starts.append(len(data) + 1)
        data += b"|" + text
    return np.frombuffer(data, np.uint8), np.array(starts, np.int64), np.array([len(t) for t in texts], np.int64)


def test_topics_and_queue_ids_by_reference() -> None:
    rows = np.zeros(3, ROW_DTYPE)
    rows["topic_ref"] = [1, 0, 1]
    assert topic_texts(rows["topic_ref"], KEYS).to_pylist() == ["主题", "T", "主题"]
    assert queue_ids(rows, KEYS).to_pylist() == [0, 3, 0]


@pytest.mark.parametrize("long", [1, LONG_BYTES, LONG_BYTES + 1, 5000])
def test_pieces_are_copied_whatever_their_length(long: int) -> None:
    texts = (b"a", b"", b"x" * long, "é".encode())
    buffer, start, size = pieces(*texts)
    assert gather_bytes(buffer, start, size, np.ones(4, bool)).to_pylist() == list(texts)


def test_what_is_not_valid_is_null() -> None:
    buffer, start, size = pieces(b"a", b"", b"c")
    assert gather_texts(buffer, start, size, np.array([True, False, True])).to_pylist() == ["a", None, "c"]
    assert gather_texts(buffer[:0], start[:0], size[:0], np.zeros(0, bool)).to_pylist() == []


def test_malformed_bytes_become_replacement_characters() -> None:
    buffer, start, size = pieces(b"good", b"\xffbad", b"")
    found = gather_texts(buffer, start, size, np.array([True, True, False])).to_pylist()
    assert found == ["good", "\ufffdbad", None]
