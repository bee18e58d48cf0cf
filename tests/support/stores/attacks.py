"""Small stores made to cost much: each from a weakness that a reader of a damaged store can have, in a size that is asked for.

What one costs may grow with its size, not with its square: the tests that use these count work, and hold it against the bytes.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder

TOPIC = "T"
_HEADER = struct.Struct(">iIiiiqqiqqqqiqi")  # a V1 record up to its body, with hosts of 8 bytes
_LEAST = _HEADER.size + 3  # bytes of a record without body, topic and properties


def frame(total: int, at: int, queue_offset: int, store_time: int, body_length: int, crc: int = 0) -> bytes:
    """The header of a record that lies at `at` and says so."""
    host = int.from_bytes(b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", "big")
    return _HEADER.pack(total, builders.V1, crc, 0, 0, queue_offset, at, 0, store_time, host, store_time, host, 0, 0, body_length)


def segment_for(size: int) -> int:
    """A segment's length with room for so many bytes and a filler."""
    return max(1 << 16, 1 << (size + 1024).bit_length())


def nested_frames(root: Path, size: int, step: int = 96) -> Store:
    """A damaged record in whose body, each `step` bytes, a frame begins that fits all checks but the body's CRC; all of their
    bodies reach to one end."""
    builder = StoreBuilder("5.3.3", Sizes(segment=segment_for(size), index_max=1000))
    builder.put(Message(TOPIC, body=b"before"))
    start, clock = builder.end, builder.clock
    end = start + size
    data = bytearray(size)
    for at in range(start, end - 200, step):
        body = end - at - _LEAST - len(TOPIC)
        data[at - start : at - start + _HEADER.size] = frame(end - at, at, 1, clock, body)
    data[-4:] = bytes([len(TOPIC)]) + TOPIC.encode() + bytes(2)
    data[:8] = b"\x00\x00\x00\x01damage"[:8]  # the first tells neither what it is nor where it ends
    builder.put_bytes(bytes(data))
    builder.put(Message(TOPIC, body=b"after"))
    return builder.write(root)


def nested_properties(root: Path, size: int, last: bytes, topic: str = TOPIC, step: int = 96, block: int = 32_000) -> Store:
    """A damaged record, then frames without a body, one each `step` bytes; their properties, short pairs, reach to the end of
    their block, where `last` makes all of them invalid."""
    builder = StoreBuilder("5.3.3", Sizes(segment=segment_for(size), index_max=1000))
    builder.put(Message(TOPIC, body=b"before"))
    start, clock = builder.end, builder.clock
    pairs, name = b"\x02" + b"a\x01b\x02" * (step // 4), bytes([len(topic)]) + topic.encode()
    data = bytearray()
    while len(data) < size:
        end = min(size, len(data) + block)
        while len(data) < end - 2 * step - len(last):
            at = start + len(data)
            total = start + end - at
            head = frame(total, at, 1, clock, 0) + name + struct.pack(">h", total - _LEAST - len(name) + 1)
            data += head + pairs[: max(0, step - len(head))]
        data += b"a\x01b\x02" * size
        data[end - len(last) - 1 :] = b"\x02" + last
    data[:8] = b"\x00\x00\x00\x01dama"  # the first tells neither what it is nor where it ends
    builder.put_bytes(bytes(data))
    builder.put(Message(TOPIC, body=b"after"))
    return builder.write(root)


def claiming_frames(root: Path, size: int) -> Store:
    """Sound small messages; before each a broken frame that fits all checks but the CRC of a body that reaches to the end."""
    builder = StoreBuilder("5.3.3", Sizes(segment=segment_for(size), index_max=1000))
    clock, end = builder.clock, size - size % 8
    while builder.end < end - 400:
        at = builder.end
        total = end - at
        builder.put_bytes(frame(total, at, 0, clock, total - _LEAST - len(TOPIC)))
        builder.put(Message(TOPIC, body=b"sound"))
    builder.put_bytes(bytes(end - builder.end - 4) + bytes([len(TOPIC)]) + TOPIC.encode() + bytes(2) + b"no message" * 20)
    return builder.write(root)


def damage_every_second(root: Path, size: int, what: str, body: int = 60) -> Store:
    """Every second message with a wrong "body" or a wrong "address"."""
    builder = StoreBuilder("5.3.3", Sizes(segment=segment_for(size), index_max=1000))
    records: list[Record] = []
    while builder.end < size:
        records.append(builder.put(Message(TOPIC, body=b"%06d" % len(records) + bytes(body))))
    for record in records[1::2]:
        segment = builder.segments[record.at - record.at % builder.sizes.segment]
        at, _ = builders.field_position(record, "physOffset" if what == "address" else "body")
        segment[record.at % builder.sizes.segment + at + 1] ^= 0xFF
    return builder.write(root)


def entries_of_one_message(root: Path, entries: int, keys: int, spread: int = 0) -> Store:
    """A message with so many keys and, in the index, so many further entries that lead to it under hashes of none; or each
    `spread` bytes further into it."""
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 17, slots=10, index_max=entries + keys + 100))
    one = builder.put(Message(TOPIC, body=bytes(60_000), keys=" ".join(f"k{n}" for n in range(keys))))
    builder.put(Message(TOPIC, body=b"after", keys="last"))
    store = builder.write(root)
    path = next((root / "index").iterdir())
    data = bytearray(path.read_bytes())
    (count,) = struct.unpack_from(">i", data, 36)
    for number in range(count, count + entries):
        struct.pack_into(">iqii", data, 40 + 4 * 10 + 20 * number, number, one.at + (number - count) * spread, 0, 0)
    struct.pack_into(">i", data, 36, count + entries)
    path.write_bytes(data)
    return store


def many_queues(root: Path, count: int) -> Store:
    """As many queue ids as messages, none with a file."""
    builder = StoreBuilder("5.3.3", Sizes(segment=segment_for(count * 98), index_max=1000), index=False)
    for number in range(count):
        builder.put(Message(TOPIC, number, body=b"body"))
    store = builder.write(root)
    shutil.rmtree(root / "consumequeue")
    return store


def large_config(root: Path, groups: int) -> None:
    """A consumerOffset.json of so many groups and a topics.json of so many topics, written into config/."""
    table = {f"topic{number % 1000}@group{number}": {str(queue): number for queue in range(4)} for number in range(groups)}
    topics = {
        f"topic{number}": {
            "attributes": {}, "order": False, "perm": 6, "readQueueNums": 8, "topicFilterType": "SINGLE_TAG",
            "topicName": f"topic{number}", "topicSysFlag": 0, "writeQueueNums": 8,
        }
        for number in range(groups)
    }  # fmt: skip
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}), encoding="utf-8")
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}), encoding="utf-8")
