"""Databases as RocksDB itself writes them, with the keys and values of a ConsumeQueue packed here byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

Pairs = Iterable[tuple[bytes, bytes]]


def write_database(folder: Path, families: Mapping[str, Pairs], flush: bool = True) -> None:
    """A database with these column families; `default` is always there. Not flushed: everything is in the WAL alone."""
    rocksdict = pytest.importorskip("rocksdict")
    folder.mkdir(parents=True, exist_ok=True)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_log_dir(str(folder.parent))
    options.set_compression_type(rocksdict.DBCompressionType.zstd())
    names = dict.fromkeys(("default", *families), options)
    database = rocksdict.Rdict(str(folder), options, names)
    for name, pairs in families.items():
        family = database.get_column_family(name)
        for key, value in pairs:
            family[key] = value
        if flush:
            family.flush()
    database.close()
    for rest in (*folder.parent.glob("*LOG*"), folder / "rocksdict-config.json"):
        rest.unlink(missing_ok=True)


def entry_key(topic: str, queue_id: int, queue_offset: int) -> bytes:
    name = topic.encode()
    return (
        struct.pack(">i", len(name))
        + b"\1"
        + name
        + b"\1"
        + struct.pack(">i", queue_id)
        + b"\1"
        + struct.pack(">q", queue_offset)
    )


def entry_value(phy_offset: int, size: int, tags_code: int, store_time: int) -> bytes:
    return struct.pack(">qiqq", phy_offset, size, tags_code, store_time)


def offset_key(topic: str, queue_id: int, which: bytes) -> bytes:
    """which: b"max" or b"min"."""
    name = topic.encode()
    return struct.pack(">i", len(name)) + b"\1" + name + b"\1" + which + b"\1" + struct.pack(">i", queue_id)


def offset_value(phy_offset: int, queue_offset: int) -> bytes:
    return struct.pack(">qq", phy_offset, queue_offset)
