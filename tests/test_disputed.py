"""Damage in what no checksum covers, of messages whose queue and index entries were written: the entries tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import product
from tests.support.stores.builders import Message, Record, Sizes, StoreBuilder, field_position

SIZES = Sizes(segment=2048, queue_file=200, slots=10, index_max=30)


def damaged(root: Path, needle: bytes | str) -> tuple[Record, product.Audited]:
    """A store of thirty messages whose fifteenth has one bit inverted: in a field, or behind that text."""
    builder = StoreBuilder("5.3.3", SIZES)
    records = [builder.put(Message(topic="TopicA", body=b"b" * 40, tags=f"t{n}", keys=f"k{n}")) for n in range(30)]
    store = builder.write(root)
    record = records[14]
    base = record.at - record.at % SIZES.segment
    path = root / "commitlog" / f"{base:020d}"
    data = bytearray(path.read_bytes())
    start = record.at - base
    if isinstance(needle, str):
        at, size = field_position(record, needle)
        place = start + at + size - 1
    else:
        place = data.index(needle, start) + len(needle)
    data[place] ^= 1
    path.write_bytes(data)
    return record, product.audit(root, "5.3.3", store.broker_conf)


@pytest.mark.parametrize("needle", [b"TAGS\x01", b"KEYS\x01", b"TopicA"[:3], "queueId", "queueOffset"], ids=str)
def test_the_message_is_named_and_no_larger_range(tmp_path: Path, needle: bytes | str) -> None:
    record, audited = damaged(tmp_path, needle)
    base = record.at - record.at % SIZES.segment
    low, high = record.at - base, record.at - base + record.size
    met = [(f.start, f.end) for f in audited.above_note if f.file == f"commitlog/{base:020d}"]
    assert [1 for start, end in met if start is not None and end is not None and low <= start and end <= high], audited.above_note
