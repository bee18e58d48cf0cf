"""Messages of a segment as rows: every field by an independent reading, filters, bodies, inner batches, damage."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard

from store_io.base.errors import StoreChanged, UsageError
from store_io.log.records.message_bodies import decode_body
from store_io.messages.message_filter import MessageFilter
from store_io.messages.message_rows import message_schema, scan_messages
from store_io.messages.scans import COLUMNS, DEFAULT_COLUMNS, MessageScan
from store_io.source.byte_source import StoreLocation
from tests.support.damage import invert_byte
from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, StoreBuilder
from tests.support.stores.corpus_tools import cases

Row = dict[str, Any]
V6 = bytes(range(0x20, 0x30)) + struct.pack(">i", 10911)


def rows_of(root: Path, **more: Any) -> list[Row]:
    found: list[Row] = []
    for path in sorted((root / "commitlog").iterdir()):
        scan = MessageScan(StoreLocation(str(root)), f"commitlog/{path.name}", int(path.name), path.stat().st_size, **more)
        for batch in scan_messages(scan):
            assert batch.schema.equals(message_schema(scan.columns)) and batch.num_rows
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


def host_text(data: bytes) -> str:
    (port,) = struct.unpack(">i", data[-4:])
    if len(data) == 8:
        return ".".join(map(str, data[:4])) + f":{port}"
    groups = [f"{g:x}" for g in struct.unpack(">8H", data[:16])]
    return "[" + ":".join(groups) + f"]:{port}"


def moment(ms: int) -> datetime | None:
    """Null outside of the years that every kind of timestamp holds."""
    if not 0 <= ms < datetime(2262, 1, 1, tzinfo=UTC).timestamp() * 1000:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def expected(r: Record, segment: int, release: str = "5.3.3") -> Row:
    found = r.properties
    offset_id = (r.store_host + struct.pack(">q", r.phy_offset)).hex().upper()
    flags = r.sys_flag
    inner = "INNER_BASE" in found and "INNER_NUM" in found
    return {
        "file": f"commitlog/{r.at - r.at % segment:020d}", "position": r.at % segment, "phy_offset": r.phy_offset,
        "total_size": r.size, "topic": r.topic, "queue_id": r.queue_id, "queue_offset": r.queue_offset,
        "store_time": moment(r.store_time), "store_time_ms": r.store_time, "born_time": moment(r.born_time),
        "born_time_ms": r.born_time, "msg_id": found.get("UNIQ_KEY", offset_id), "offset_msg_id": offset_id,
        "tags": found.get("TAGS"), "keys": found.get("KEYS"), "unique_key": found.get("UNIQ_KEY"), "properties": found,
        "properties_size": len(r.raw_properties), "tags_code": builders.tags_code(r), "sys_flag": flags,
        "transaction": {0: "none", 4: "prepared", 8: "commit", 12: "rollback"}[flags & 12],
        "compression": ["zlib", "lz4", "zstd", "zlib", "unknown"][min(flags >> 8 & 7, 4)] if flags & 1 else "none",
        "inner_batch": bool(flags & 0x80), "flag": r.flag, "born_host": host_text(r.born_host),
        "store_host": host_text(r.store_host), "reconsume_times": r.reconsume_times, "prepared_offset": r.prepared_offset,
        "delay_level": int(found["DELAY"]) if "DELAY" in found else None, "real_topic": found.get("REAL_TOPIC"),
        "real_queue_id": int(found["REAL_QID"]) if "REAL_QID" in found else None,
        "batch_base": int(found["INNER_BASE"]) if inner else r.queue_offset,
        "batch_count": int(found["INNER_NUM"]) if inner else 1, "inner_index": None, "status": "valid",
        "body_size": len(r.body), "body_crc": r.body_crc,
    }  # fmt: skip


def plain(rows: list[Row]) -> list[Row]:
    """Maps as dicts; the test's own order of properties is not the store's."""
    return [{**row, "properties": dict(row["properties"])} if "properties" in row else row for row in rows]


def records_of(root: Path) -> Iterator[Record]:
    for path in sorted((root / "commitlog").iterdir()):
        yield from builders.walk(path.read_bytes(), int(path.name))


@pytest.mark.parametrize("name", ["g04-533-clean-all", "g29-498-cq-wrong", "g78-514-batch-lmq", "g41-533-fresh"])
def test_real_stores(tmp_path: Path, name: str) -> None:
    (case,) = cases(name)
    root = case.unpack(tmp_path)
    segment = next((root / "commitlog").iterdir(), root).stat().st_size
    wanted = []
    for r in records_of(root):
        row = expected(r, segment)
        row["born_host"], row["store_host"] = _short(r.born_host), _short(r.store_host)
        wanted.append(row)
    for window in (1 << 14, 4 << 20):
        rows = plain(rows_of(root, window_bytes=window, columns=(*DEFAULT_COLUMNS, "body")))
        assert [row.pop("body") for row in rows] == [r.body for r in records_of(root)]
        assert rows == wanted
    assert len(wanted) > 1000 or name[:3] in ("g41", "g78")


def _short(data: bytes) -> str:
    import socket

    if len(data) == 8:
        return host_text(data)
    return f"[{socket.inet_ntop(socket.AF_INET6, data[:16])}]:{struct.unpack('>i', data[-4:])[0]}"


def odd_store(root: Path, segment: int = 1 << 16) -> builders.Store:
    """Texts of every kind, hosts of both kinds, transactions, delays, properties in every order, a record beyond the window."""
    b = StoreBuilder("5.4.0", builders.Sizes(segment=segment), lmq=True)
    for i in range(30):
        host = {
            "born_host": V6 if i % 2 else b"\x0a\x00\x00\x07\x00\x00\x00\x50",
            "store_host": V6 if i % 3 else b"\x01\x02\x03\x04\xff\xff\xff\xff",
        }
        b.put(Message("主题", i % 3, b"%d" % i, tags="标签🚀", keys=f"a  b {i} ü", uniq=f"U{i}", **host))
        b.put(Message("plain", 0, b"x" * 20_000 if i == 7 else b"y", tags="t" if i % 2 else None, keys="k" if i % 3 else None))
        b.put(
            Message("plain", 0, b"p", sys_flag=(builders.PREPARED, builders.COMMIT, builders.ROLLBACK)[i % 3], prepared_offset=i)
        )
        b.put(Message("lite", 2, b"", lmq=("%LMQ%one", "%LMQ%two"), keys=" " * (i % 3), reconsume_times=i, flag=-i))
        waiting = (("DELAY", str(1 + i % 18)), ("REAL_TOPIC", "plain"), ("REAL_QID", str(i)))
        b.put(Message(builders.SCHEDULE_TOPIC, i % 18, b"later", properties=waiting))
    b.put(Message(raw_properties=b"a\x01one\x02b\x01two\x02a\x01three\x02\x02\x01x\x02c\x01\x02d\x01e\x01f\x02"))
    b.put(Message(raw_properties=b""))
    b.put(Message("times", born_time=-(1 << 63), store_time=(1 << 63) - 1))
    b.put(Message("times", born_time=9_214_646_399_999, store_time=9_214_646_400_000))
    return b.write(root)


@pytest.mark.parametrize("window", [4096, 1 << 22])
@pytest.mark.parametrize("decoder", ["fast", "reference"])
def test_every_field(tmp_path: Path, window: int, decoder: str) -> None:
    store = odd_store(tmp_path / "store")
    rows = plain(rows_of(store.root, window_bytes=window, decoder=decoder))
    assert rows == [expected(r, 1 << 16) for r in store.records]
    assert rows[-4]["properties"] == {"a": "three", "b": "two", "d": "e\x01f"}
    assert rows[-2]["store_time"] is None and rows[-1]["born_time"] is not None


def test_columns_are_those_that_were_chosen_in_that_order(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    whole = rows_of(store.root, columns=tuple(COLUMNS))
    for names in (("topic",), ("keys", "phy_offset", "body"), ("body_status",), ("properties", "born_host")):
        assert rows_of(store.root, columns=names) == [{name: row[name] for name in names} for row in whole]
    for wrong in (("nothing",), (), ("topic", "topic")):
        with pytest.raises(UsageError):
            list(scan_messages(MessageScan(StoreLocation(str(store.root)), "commitlog/x", 0, 1, columns=wrong)))


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    b = StoreBuilder(sizes=builders.Sizes(segment=1 << 14))
    b.put(Message(raw_properties=b"TAGS\x01\xff\xfe\x02KEYS\x01a\xc3 b\x02\xff\x01one\x02\xfe\x01two\x02"))
    b.put(Message(raw_properties=b"KEYS\x01\xff\x02"))
    store = b.write(tmp_path / "store")
    first, second = rows_of(store.root)
    assert (first["tags"], first["keys"]) == ("\ufffd\ufffd", "a\ufffd b")
    assert dict(first["properties"]) == {"TAGS": "\ufffd\ufffd", "KEYS": "a\ufffd b", "\ufffd": "two"}
    assert dict(second["properties"]) == {"KEYS": "\ufffd"}


# ---- filters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted",
    [
        MessageFilter(topics=frozenset({"plain", "主题", "nowhere"})),
        MessageFilter(queue_ids=frozenset({1, 2})),
        MessageFilter(queue_offsets=(3, 9)),
        MessageFilter(phy_offsets=(20_000, 70_000)),
        MessageFilter(phy_offsets=(None, 1)),
        MessageFilter(phy_offsets=(1 << 40, None)),
        MessageFilter(store_times=(1_700_000_000_100, 1_700_000_000_500)),
        MessageFilter(frozenset({"plain"}), frozenset({0}), (2, None), (1000, None), (None, 1_700_000_000_700)),
    ],
)
def test_filters(tmp_path: Path, wanted: MessageFilter) -> None:
    store = odd_store(tmp_path / "store")

    def inside(value: int, bounds: tuple[int | None, int | None]) -> bool:
        return (bounds[0] is None or value >= bounds[0]) and (bounds[1] is None or value < bounds[1])

    chosen = [
        r.phy_offset
        for r in store.records
        if (wanted.topics is None or r.topic in wanted.topics)
        and (wanted.queue_ids is None or r.queue_id in wanted.queue_ids)
        and inside(r.queue_offset, wanted.queue_offsets)
        and inside(r.phy_offset, wanted.phy_offsets)
        and inside(r.store_time, wanted.store_times)
    ]
    for window in (4096, 1 << 22):
        assert [row["phy_offset"] for row in rows_of(store.root, wanted=wanted, window_bytes=window)] == chosen
    assert bool(chosen) == (wanted.phy_offsets[0] != 1 << 40)


def test_reads_no_further_than_the_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = odd_store(tmp_path / "store")
    read: list[int] = []
    from store_io.source.segment_window import SegmentWindow

    fill = SegmentWindow._fill

    def counted(self: SegmentWindow, position: int, target: Any) -> None:
        read.append(position + len(target))
        fill(self, position, target)

    monkeypatch.setattr(SegmentWindow, "_fill", counted)
    assert rows_of(store.root, wanted=MessageFilter(phy_offsets=(0, 2000)), window_bytes=4096)
    assert max(read) <= 8192


# ---- damage ----------------------------------------------------------------------------------------------------------


def test_messages_behind_damage_are_plausible_and_what_is_damaged_is_none(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    assert {row["status"] for row in rows_of(store.root)} == {"valid"}
    broken = store.records[20]
    path = store.segment_of(broken)
    invert_byte(path, store.position_of(broken) + 4, 0xFF)
    segment = broken.at - broken.at % store.sizes.segment
    wanted = []
    for r in store.records:
        if r.at != broken.at:
            behind = r.at > broken.at and r.at - r.at % store.sizes.segment == segment
            wanted.append({**expected(r, 1 << 16), "status": "plausible" if behind else "valid"})
    assert plain(rows_of(store.root)) == wanted


def test_a_file_that_changed_is_told(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    scan = MessageScan(StoreLocation(str(store.root)), "commitlog/00000000000000000000", 0, 5)
    with pytest.raises(StoreChanged, match="65,536 bytes, 5 when"):
        list(scan_messages(scan))


# ---- bodies ----------------------------------------------------------------------------------------------------------

BODY_ROWS = ("phy_offset", "body_size", "body", "body_status")


def test_bodies_as_stored_and_decoded(tmp_path: Path) -> None:
    text = b"what the producer sent " * 50
    b = StoreBuilder(sizes=builders.Sizes(segment=1 << 16))
    stored = []
    for kind, flag in builders.COMPRESSED.items():
        stored.append(builders.compress(text, kind.removesuffix("-old")))
        b.put(Message(body=stored[-1], sys_flag=flag))
    b.put(Message(body=text))
    b.put(Message(body=b""))
    b.put(Message(body=stored[0], sys_flag=0x401))  # a kind of compression that nobody knows
    b.put(Message(body=stored[0][:-7], sys_flag=0x1))
    b.put(Message(body=b"no compressed body", sys_flag=0x201))
    store = b.write(tmp_path / "store")
    raw = rows_of(store.root, columns=BODY_ROWS)
    assert [row["body"] for row in raw] == [r.body for r in store.records]
    assert {row["body_status"] for row in raw} == {"stored"}
    decoded = rows_of(store.root, columns=BODY_ROWS, decompress=True)
    assert [row["body"] for row in decoded] == [text] * 5 + [b"", None, None, None]
    assert [row["body_status"] for row in decoded] == ["decoded"] * 4 + ["stored"] * 2 + ["unknown", "damaged", "damaged"]
    assert [row["body_size"] for row in decoded] == [len(r.body) for r in store.records]


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_a_bomb_is_too_large(kind: str) -> None:
    flag = builders.COMPRESSED[kind]
    bomb = builders.compress(bytes(50_000_000), kind)
    assert decode_body(bomb, flag, 1 << 20) == (None, 2)
    whole = builders.compress(bytes(1 << 20), kind)
    assert decode_body(whole, flag, 1 << 20) == (bytes(1 << 20), 1)
    assert decode_body(whole, flag, (1 << 20) - 1) == (None, 2)


@pytest.mark.parametrize("pack", [lz4.frame.compress, zstandard.ZstdCompressor().compress])
def test_very_many_empty_frames_cost_no_more_than_their_bytes(pack: Any) -> None:
    """A body of them is easily written; what is behind a frame must not be copied for each."""

    def seconds(count: int) -> float:
        began = time.process_time()
        assert decode_body(pack(b"") * count + pack(b"end"), 0x101 if pack is lz4.frame.compress else 0x201, 100) == (b"end", 1)
        return time.process_time() - began

    assert seconds(160_000) < 40 * max(seconds(10_000), 0.005)  # 16 times where each byte is looked at once, else 256 times


def test_bodies_above_the_bound_are_left_out(tmp_path: Path) -> None:
    b = StoreBuilder(sizes=builders.Sizes(segment=1 << 16))
    for size in (10, 11, 5000):
        b.put(Message(body=b"z" * size))
    rows = rows_of(b.write(tmp_path / "store").root, columns=BODY_ROWS, max_body_bytes=10, window_bytes=4096)
    assert [(row["body_size"], row["body"], row["body_status"]) for row in rows] == [
        (10, b"z" * 10, "stored"),
        (11, None, "too_large"),
        (5000, None, "too_large"),
    ]


# ---- inner batches ---------------------------------------------------------------------------------------------------


def inner(bodies: list[tuple[int, bytes, bytes]]) -> bytes:
    """Small records: flag, body, properties."""
    return b"".join(
        struct.pack(">iiiii", 22 + len(body) + len(props), 0, 0, flag, len(body)) + body + struct.pack(">h", len(props)) + props
        for flag, body, props in bodies
    )


def batch_store(root: Path, body: bytes, **more: Any) -> builders.Store:
    b = StoreBuilder("5.3.3", builders.Sizes(segment=1 << 16), batch_topics=["batch"], queue_starts={("batch", 0): 40})
    b.put(Message("before", body=b"1"))
    b.put(Message("batch", body=body, uniq="OUTER", inner_count=3, **more))
    b.put(Message("after", body=b"2"))
    return b.write(root)


THREE = [(7, b"first", b"KEYS\x01k1\x02UNIQ_KEY\x01I1\x02"), (0, b"", b""), (-1, b"third", b"TAGS\x01t\x02DELAY\x012\x02")]
INNER_ROWS = ("topic", "queue_offset", "flag", "keys", "tags", "unique_key", "delay_level", "inner_index", "body", "body_size")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("window", [256, 1 << 20])
def test_inner_batches_are_unpacked(tmp_path: Path, compressed: bool, window: int) -> None:
    body = inner(THREE)
    more: dict[str, Any] = {"sys_flag": builders.COMPRESSED["zlib"]} if compressed else {}
    store = batch_store(tmp_path / "store", zlib.compress(body) if compressed else body, **more)
    rows = rows_of(store.root, columns=INNER_ROWS, unpack=True, window_bytes=window)
    assert [tuple(row.values()) for row in rows] == [
        ("before", 0, 0, None, None, None, None, None, b"1", 1),
        ("batch", 40, 7, "k1", None, "I1", None, 0, b"first", 5),
        ("batch", 41, 0, None, None, None, None, 1, b"", 0),
        ("batch", 42, -1, None, "t", None, 2, 2, b"third", 5),
        ("after", 0, 0, None, None, None, None, None, b"2", 1),
    ]
    whole = plain(rows_of(store.root, unpack=True, window_bytes=window))
    assert [row["properties"] for row in whole[1:4]] == [{"KEYS": "k1", "UNIQ_KEY": "I1"}, {}, {"TAGS": "t", "DELAY": "2"}]
    outer = expected(store.records[1], 1 << 16)
    for row in whole[1:4]:
        assert all(row[name] == outer[name] for name in ("position", "phy_offset", "store_host", "born_host", "offset_msg_id"))
    assert [row["msg_id"] for row in whole[1:4]] == ["I1", outer["offset_msg_id"], outer["offset_msg_id"]]
    assert plain(rows_of(store.root)) == [expected(r, 1 << 16) for r in store.records]
    wanted = MessageFilter(queue_offsets=(41, 43))
    assert [row["queue_offset"] for row in rows_of(store.root, unpack=True, wanted=wanted)] == [41, 42]


def test_inner_messages_without_a_byte_of_their_own_fill_batches_too(tmp_path: Path) -> None:
    """Compressed, 32,767 of them are 2 KB: a window of such batches would be a hundred million rows."""
    body = zlib.compress(inner([(0, b"", b"")] * 32_767))
    builder = StoreBuilder("5.3.3", builders.Sizes(segment=1 << 16, queue_file=400))
    for _ in range(5):
        builder.put(Message(topic="batch", body=body, inner_count=32_767, sys_flag=builders.COMPRESSED["zlib"]))
    store = builder.write(tmp_path / "store")
    columns = ("queue_offset", "inner_index")
    scan = MessageScan(StoreLocation(str(store.root)), f"commitlog/{0:020d}", 0, 1 << 16, columns, unpack=True)
    rows = [batch.num_rows for batch in scan_messages(scan)]
    assert sum(rows) == 5 * 32_767 and max(rows) <= 3 * 32_767


def test_many_hosts_and_names_made_to_meet(tmp_path: Path) -> None:
    b = StoreBuilder(sizes=builders.Sizes(segment=1 << 21))
    for i in range(6000):
        b.put(Message(born_host=struct.pack(">ii", 0x0A000000 + i, i), properties=((f"n{i}", "v"), (f"m{i % 7}", "w"))))
    store = b.write(tmp_path / "store")
    rows = plain(rows_of(store.root, columns=("born_host", "properties")))
    assert [row["born_host"] for row in rows] == [host_text(r.born_host) for r in store.records]
    assert [row["properties"] for row in rows] == [r.properties for r in store.records]
