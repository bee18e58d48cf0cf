"""Conditions on contents: over a batch of rows and over one message alike."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.layouts import commitlog_layout as layout
from store_io.messages import message_search
from store_io.messages.message_filter import Contents
from store_io.messages.message_search import mask, search
from store_io.messages.open_store import open_store
from store_io.messages.scans import MessageScan
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder
from tests.support.stores.corpus_tools import cases

ROWS = [
    ("u1", "a b", 0, b"plain needle"),
    ("u2", "ab", layout.SYS_COMPRESSED, zlib.compress(b"packed needle " * 9)),
    ("a", None, 0, b"none"),
    (None, "a", 0, b""),
]


def batch() -> pa.RecordBatch:
    unique, keys, flags, bodies = (list(column) for column in zip(*ROWS, strict=True))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(unique, pa.string()),
            pa.array(["OFFSET-ID" if one is None else one for one in unique], pa.string()),
            pa.array(keys, pa.string()),
            pa.array(flags, pa.int32()),
            pa.array(bodies, pa.binary()),
        ],
        names=["unique_key", "msg_id", "keys", "sys_flag", "body"],
    )


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Contents(), [True, True, True, True]),
        (Contents(key="a"), [True, False, True, True]),
        (Contents(key="ab"), [False, True, False, False]),
        (Contents(unique_keys=frozenset({"a", "u3"})), [False, False, True, False]),
        (Contents(body=b"needle"), [True, True, False, False]),
        (Contents(key="a", body=b"needle"), [True, False, False, False]),
        (Contents(msg_ids=frozenset({"u2", "OFFSET-ID"})), [False, True, False, True]),
        (Contents(in_keys=("a", "b")), [True, True, False, False]),
    ],
)
def test_which_rows_meet_a_condition(wanted: Contents, expected: list[bool]) -> None:
    assert mask(wanted, batch(), 1 << 20).to_pylist() == expected
    assert mask(wanted.narrowed(Contents(unique_keys=frozenset({"u1"}))), batch(), 1 << 20).to_pylist() == [
        expected[0],
        *3 * [False],
    ]


def test_only_columns_that_are_needed_are_read() -> None:
    assert Contents().columns == ()
    assert Contents(key="a", unique_keys=frozenset("b"), body=b"c").columns == ("keys", "unique_key", "sys_flag", "body")
    assert Contents(unique_keys=frozenset("b")).columns == ("unique_key",)


def found(root: Path, release: str, conf: str, contents: Contents) -> list[dict[str, Any]]:
    """All rows that a search of the whole store gives, segment by segment."""
    location = StoreLocation(str(root))
    store = open_store(location, release, conf)
    scans = [MessageScan(location, f.path, f.start, f.size, rules=store.rules) for f in store.segments()]
    rows = [row for scan in scans for batch in search(scan, contents) for row in batch.to_pylist()]
    assert rows == [row for scan in scans for batch in search(scan, contents, look_first=False) for row in batch.to_pylist()]
    return rows


@pytest.mark.parametrize("name", ["g11-533-zero-tail", "g19-514-size-mid", "g103-514-dledger-tail", "g60-533-first-magic"])
def test_a_search_by_key_finds_what_reading_everything_finds(name: str, tmp_path: Path) -> None:
    case = next(c for c in cases(name) if c.name == name)
    root = case.unpack(tmp_path)
    rows = found(root, case.release, case.broker_conf, Contents())
    keys = list(dict.fromkeys(key for row in rows for key in (*(row["keys"] or "").split(" "), row["unique_key"]) if key))
    assert len(keys) > 20 and {row["status"] for row in rows} <= {"valid", "plausible"}
    for key in [*keys[:: len(keys) // 12], keys[-1], keys[0][:-1], "no such key"]:
        by_key = [row for row in rows if key == row["unique_key"] or key in (row["keys"] or "").split(" ")]
        by_unique = [row for row in rows if key == row["unique_key"]]
        assert found(root, case.release, case.broker_conf, Contents(key=key)) == by_key
        assert found(root, case.release, case.broker_conf, Contents(unique_keys=frozenset({key}))) == by_unique


def test_a_key_of_bytes_that_are_no_utf_8_is_found_as_it_is_shown(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096))
    for key in (b"plain", b"bad\xff", b"bad\xef\xbf\xbd", b"\x00"):
        builder.put(Message("TopicA", 0, b"body", raw_properties=b"KEYS\x01" + key + b"\x02"))
    store = builder.write(tmp_path / "store")
    for key, count in (("plain", 1), ("bad\ufffd", 2), ("\0", 1), ("", 0), ("absent", 0)):
        rows = found(store.root, "5.3.3", store.broker_conf, Contents(key=key))
        assert (len(rows), {row["keys"] for row in rows}) == (count, {key} if count else set())


def test_segments_without_the_key_s_bytes_are_not_decoded(small: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int | None]] = []
    real = message_search.scan_messages

    def scan_messages(scan: MessageScan, source: Any, contents: Any) -> Any:
        read.append((scan.path, scan.wanted.phy_offsets[1]))
        return real(scan, source, contents)

    def first(contents: Contents) -> list[dict[str, Any]]:
        store = open_store(StoreLocation(str(small.root)), "5.3.3", small.broker_conf)
        scans = [MessageScan(store.location, f.path, f.start, f.size, rules=store.rules) for f in store.segments()]
        return [row for scan in scans for batch in search(scan, contents) for row in batch.to_pylist()]

    monkeypatch.setattr(message_search, "scan_messages", scan_messages)
    rows = first(Contents(key="special"))
    assert [row["keys"] for row in rows] == ["special"] and len(read) == 1
    start, end = rows[0]["phy_offset"], read[0][1]
    assert end is not None and start < end <= start + rows[0]["total_size"]
    assert first(Contents(key="k1 k2")) == [] and len(read) == 1


def test_ids_of_both_kinds_and_parts_of_keys_are_found_by_their_bytes(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096))
    for number in range(60):
        unique = None if number % 3 == 0 else f"U{number:03}"
        builder.put(Message("TopicA", 0, b"body U017 of another", keys=f"order-{number} k", uniq=unique))
    store = builder.write(tmp_path / "store")
    rows = found(store.root, "5.3.3", store.broker_conf, Contents())
    assert len(rows) == 60
    for wanted in (
        [rows[3]["msg_id"]],
        [rows[4]["msg_id"]],
        [rows[4]["offset_msg_id"]],
        [rows[0]["msg_id"], rows[17]["msg_id"], "U99"],
    ):
        asked = Contents(msg_ids=frozenset(wanted))
        assert asked.sought[1] and found(store.root, "5.3.3", store.broker_conf, asked) == [
            r for r in rows if r["msg_id"] in wanted
        ]
    many = frozenset(row["unique_key"] for row in rows if row["unique_key"])
    assert Contents(unique_keys=many).sought == ((), ())
    assert found(store.root, "5.3.3", store.broker_conf, Contents(unique_keys=many)) == [r for r in rows if r["unique_key"]]
    assert found(store.root, "5.3.3", store.broker_conf, Contents(in_keys=("k", "er-5"))) == [
        r for r in rows if "er-5" in r["keys"]
    ]
