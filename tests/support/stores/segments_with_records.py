"""A segment whose bodies hold whole records that store their own places, damaged at random."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from tests.support.stores.builders import Message, Record, Sizes, StoreBuilder, encode, field_position

SEGMENT = 1 << 14


def write_segment_with_records(root: Path, rng: random.Random, damages: int) -> Path:
    """Write a store of one segment, damage it so many times, and return its path. Bodies are chains of records, some nested."""
    builder = StoreBuilder("5.3.3", Sizes(segment=SEGMENT))
    while builder.end < SEGMENT - 3000:
        plain = Message(body=rng.randbytes(rng.randrange(200)), topic=rng.choice("AB"), keys=f"k{builder.end}", store_time=1000)
        builder.put(_with_records(builder, rng, plain, rng.choice([0, 0, 1, 2])))
    if rng.random() < 0.5:
        builder.roll()
    written = builder.end
    (path,) = (builder.write(root).root / "commitlog").iterdir()
    data = bytearray(path.read_bytes())
    for _ in range(damages):
        record = rng.choice(builder.records)
        _damage(data, record, rng, written)
    path.write_bytes(data)
    return path


def _with_records(builder: StoreBuilder, rng: random.Random, message: Message, depth: int) -> Message:
    """The message with a body that is a chain of records, each with the physical offset at which it will lie."""
    if not depth:
        return message
    start = builder.end + field_position(builder._fill_in(message, builder.end), "body")[0]
    body = bytes(rng.choice([0, 0, 5]))
    for number in range(rng.randrange(1, 5)):
        at = start + len(body)
        inner = Message(body=rng.randbytes(rng.randrange(100)), topic="inner", keys=f"i{number}", store_time=2000)
        if depth > 1:
            deep = at + field_position(builder._fill_in(inner, at), "body")[0]
            inner = replace(inner, body=encode(builder._fill_in(Message(topic="deep", store_time=3000), deep)))
        body += encode(builder._fill_in(inner, at))
    return replace(message, body=body + rng.randbytes(rng.choice([0, 30])))


def _damage(data: bytearray, record: Record, rng: random.Random, written: int) -> None:
    at = record.at
    kind = rng.randrange(6)
    if kind == 0:  # a bit of the body, so that records in it may come to light
        data[at + 88 + rng.randrange(max(1, len(record.body)))] ^= 1 << rng.randrange(8)
    elif kind == 1:  # the size
        data[at : at + 4] = rng.choice([0, 50, record.size + 7, written - at, SEGMENT - at, 1 << 30]).to_bytes(4, "big")
    elif kind == 2:  # the head
        data[at + rng.randrange(88)] ^= 1 << rng.randrange(8)
    elif kind == 3:  # a stretch of zeros or noise
        size = rng.choice([4, 40, 700])
        end = min(len(data), at + size)
        data[at:end] = bytes(end - at) if rng.random() < 0.5 else rng.randbytes(end - at)
    elif kind == 4:  # an early filler
        data[at : at + 8] = (SEGMENT - at if rng.random() < 0.5 else 77).to_bytes(4, "big") + bytes.fromhex("cbd43194")
    else:  # a copy of another record
        other = rng.randrange(0, written - 300)
        data[at : at + 300] = data[other : other + 300]
    del data[SEGMENT:]
