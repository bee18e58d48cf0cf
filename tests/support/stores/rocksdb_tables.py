"""Index and transactions as a broker keeps them in rocksdbstore/: keys and values packed here byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder
from tests.support.stores.rocksdb_stores import write_database

HALF, DONE = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
CONF = "indexRocksDBEnable=true\ntransRocksDBEnable=true\n"
MARK = b"lastOffsetPy"


def index_pairs(record: Record) -> Iterable[tuple[bytes, bytes]]:
    """All entries of a message."""
    properties = record.properties
    unique, tags = properties.get("UNIQ_KEY", ""), properties.get("TAGS", "")
    if not unique or record.transaction == builders.ROLLBACK:
        return
    texts = [f"K@{key}@{unique}" for key in {*properties.get("KEYS", "").split(" ")} if key]
    texts += [f"T@{tags}@{unique}"] if tags else []
    hour = record.store_time // 3_600_000 * 3_600_000
    for text in (*texts, f"U@{unique}"):
        middle = f"@{record.topic}@{text}@".encode()
        yield struct.pack(">q", hour) + middle + struct.pack(">q", record.at), struct.pack(">q", record.store_time)


def half_pair(record: Record, asked: int = 0) -> tuple[bytes, bytes]:
    """The entry of a half message."""
    properties = record.properties
    suffix = f"@{properties['REAL_TOPIC']}@{properties['__transactionId__']}".encode()
    return struct.pack(">q", record.at) + suffix, struct.pack(">ii", asked, record.size)


@dataclass
class TableStore:
    """`write` makes it, after its parts were changed at will. index, halves: keys and values; their marks: None is not stored."""

    plain: Store
    records: list[Record]
    index: dict[bytes, bytes] = field(default_factory=dict)
    halves: dict[bytes, bytes] = field(default_factory=dict)
    index_mark: int | None = None
    half_mark: int | None = None

    @property
    def root(self) -> Path:
        return self.plain.root

    @property
    def conf(self) -> str:
        return self.plain.broker_conf + CONF

    def write(self) -> TableStore:
        marks = [{} if mark is None else {MARK: struct.pack(">q", mark)} for mark in (self.index_mark, self.half_mark)]
        families = {"default": {**self.index, **marks[0]}, "timer": {}, "trans": {**self.halves, **marks[1]}}
        write_database(self.root / "rocksdbstore", {name: pairs.items() for name, pairs in families.items()})
        return self


def table_store(root: Path, release: str = "5.4.0", clean: bool = True) -> TableStore:
    """Messages with keys and tags, with text that is no ASCII, without any, rolled back; five half messages, two of them done."""
    builder = StoreBuilder(release, Sizes(segment=1 << 14))
    records = []
    for n in range(60):
        transaction = builders.ROLLBACK if n == 7 else 0
        message = Message(
            f"Topic{n % 2}", n % 2, b"body %d" % n, tags="tägs" if n % 4 else None, uniq=f"U{n:031d}" if n % 5 else None,
            keys=f"k{n} k{n + 1}  k{n} schlüssel" if n % 3 else None, sys_flag=transaction,
        )  # fmt: skip
        records.append(builder.put(message))
    halves = []
    for n in range(5):
        unique = f"H{n:031d}"
        more = (("REAL_TOPIC", "pay"), ("REAL_QID", "0"), ("__transactionId__", unique))
        halves.append(builder.put(Message(HALF, body=b"half", uniq=unique, properties=more)))
        if n < 2:
            more = (("REAL_TOPIC", "pay"), ("TRANS_OFFSET", str(halves[-1].at)), ("__transactionId__", unique))
            records.append(builder.put(Message(DONE, body=b"\0", tags="d", uniq=f"D{n:031d}", properties=more)))
    records += halves
    made = TableStore(builder.write(root, clean=clean), records)
    for record in records:
        made.index.update(index_pairs(record))
    made.halves.update(half_pair(record) for record in halves[2:])
    made.index_mark = made.half_mark = halves[-1].at
    return made
