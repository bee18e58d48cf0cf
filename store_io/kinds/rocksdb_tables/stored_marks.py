"""The reach of the tables of rocksdbstore/, and which have entries: a few keys of each (rocksdb.md 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.layouts import rocksdb_layout as layout
from schemas.rows import StoreFile
from store_io.base.errors import StoreError
from store_io.broker.queues.start_databases import FOLDER, MARK_KEY
from store_io.rocksdb.database import DatabaseDamaged, StoredDatabase, find_database, stored_number
from store_io.source.byte_source import ByteSource


@dataclass(frozen=True)
class StoredMarks:
    """The marks of a database.

    marks: by family, the physical offset of the newest record in it: 0 without one, None if that cannot be read.
    unnamed: table files of the folder that the database does not know.
    """

    marks: tuple[int | None, ...] = ()
    unnamed: tuple[str, ...] = ()


def read_marks(source: ByteSource, files: Sequence[StoreFile], families: Sequence[str]) -> StoredMarks:
    """Read the marks of these families. Raises StoreError if they could not be read here."""
    database = find_database(files, FOLDER)
    if database.absent:
        return StoredMarks((0,) * len(families))
    found: list[int | None] = []
    unnamed = tuple[str, ...]()
    try:
        with database.open(source) as opened:
            unnamed = opened.unnamed
            for family in families:
                value = opened.get(family, MARK_KEY)
                found.append(0 if value is None else stored_number(value))
    except DatabaseDamaged:
        return StoredMarks((*found, *[None] * (len(families) - len(found))), unnamed)
    return StoredMarks(tuple(found), unnamed)


def filled_families(source: ByteSource, database: StoredDatabase, families: Sequence[str]) -> tuple[str, ...] | None:
    """Return the families that have an entry besides their marks; None if that cannot be read."""
    if database.absent:
        return ()
    marks = {layout.TABLE_MARK, layout.TABLE_TIME_MARK}
    found = []
    try:
        with database.open(source) as opened:
            for family in families:
                keys = [key for batch in opened.scan(family, limit=len(marks) + 1) for key, _ in batch.pairs()]
                if not marks.issuperset(keys):
                    found.append(family)
    except StoreError:
        return None
    return tuple(found)
