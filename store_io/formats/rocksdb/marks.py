"""How far the tables of rocksdbstore/ reach: one key of each (rocksdb.md 10)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from schemas.rows import StoreFile
from store_io.formats.rocksdb.database import DatabaseDamaged
from store_io.formats.rocksdb.queue_table import find_database
from store_io.rules.rocksdb.marks import FOLDER, MARK_KEY
from store_io.source.byte_source import ByteSource


def read_marks(source: ByteSource, files: Sequence[StoreFile], families: Sequence[str]) -> tuple[int | None, ...]:
    """By family, the physical offset of the newest record in it: 0 where there is none, None where that cannot be read. Raises
    StoreError where it could not be read here."""
    database = find_database(files, FOLDER)
    if database.absent:
        return (0,) * len(families)
    found: list[int | None] = []
    try:
        with database.open(source) as opened:
            for family in families:
                value = opened.get(family, MARK_KEY)
                found.append(0 if value is None else struct.unpack(">q", value[:8])[0] if len(value) >= 8 else None)
    except DatabaseDamaged:
        return (*found, *[None] * (len(families) - len(found)))
    return tuple(found)
