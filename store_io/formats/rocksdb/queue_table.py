"""The ends of all queues of a store, as its database has them: the family `offset`, read whole (rocksdb.md 2).

Two small entries for each queue; nothing here grows with the number of messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from schemas import rocksdb_layout as layout
from schemas.rows import QueueKey, StoreFile
from store_io.base.errors import StoreError
from store_io.formats.rocksdb.database import Database, DatabaseDamaged, TableFile
from store_io.formats.rocksdb.queue_keys import mark_key, offset_of_key
from store_io.rules.rocksdb.stored import QueueEnd, StoredEnds
from store_io.source.byte_source import ByteSource, name_of

MAX_ODD_KEYS = 1000


@dataclass(frozen=True)
class QueueDatabase:
    """Where a store's queues are. Picklable. files: the database's; absent: none is there, a broker makes a new one."""

    folder: str
    files: tuple[StoreFile, ...]
    absent: bool = False

    @property
    def size_bytes(self) -> int:
        """Of all its files."""
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all its files."""
        return tuple(file.path for file in self.files)

    def open(self, source: ByteSource, skips_bad_log: bool = False) -> Database:
        """To be entered; raises as `Database` does. In rocksdbstore/ a broker opens these families alone (rocksdb.md 10)."""
        known = layout.TABLE_FAMILIES if self.folder == layout.TABLES_FOLDER else ()
        return Database(source, self.folder, self.files, skips_bad_log, known)


NO_DATABASE = QueueDatabase("", (), absent=True)


@dataclass(frozen=True)
class QueueTable:
    """ends: of all queues.  damaged: (file, reason) where RocksDB calls bytes bad, of opening or of the family; then what follows
    the bad bytes is not in `ends`.  mark_unreadable: they hold the mark.  opened: whether the database opens.
    unread: why nothing can be said, else empty.  odd_keys: keys that no broker writes.  unnamed: table files of the folder of
    which the database knows nothing.  entry_runs: so many tables of entries there are that a compaction would make one of.
    """

    database: QueueDatabase
    ends: StoredEnds = field(default_factory=StoredEnds)
    damaged: tuple[str, str] | None = None
    mark_unreadable: bool = False
    opened: bool = True
    unread: str = ""
    odd_keys: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    entry_runs: int = 0

    @property
    def queues(self) -> frozenset[QueueKey]:
        """Those with an end."""
        return frozenset(self.ends.maxima)


def find_database(files: Sequence[StoreFile], folder: str) -> QueueDatabase:
    """The database in that folder of a store. With neither CURRENT nor a log of its own a broker makes a new, empty one, whatever
    else lies there (rocksdb.md 3)."""
    own = tuple(f for f in files if f.path.rpartition("/")[0] == folder)
    names = {name_of(f.path) for f in own}
    absent = layout.CURRENT not in names and not any(name.endswith(".log") for name in names)
    return QueueDatabase(folder, own, absent)


def read_queue_table(source: ByteSource, database: QueueDatabase) -> QueueTable:
    """All of it; whatever the bytes are, the answer says what could be read."""
    if database.absent:
        return QueueTable(database)
    reading = _Reading()
    opened, live, unnamed = False, dict[str, TableFile](), tuple[str, ...]()
    damaged: tuple[str, str] | None = None
    mark_unreadable = False
    try:
        with database.open(source) as entries:
            opened, live, unnamed = True, entries.live_files, entries.unnamed
            try:
                for batch in entries.scan(layout.OFFSET_FAMILY):
                    for key, value in batch.pairs():
                        reading.take(key, value)
            except DatabaseDamaged as why:
                damaged, mark_unreadable = (why.path, why.reason), not _can_read_mark(entries)
    except DatabaseDamaged as why:
        damaged = why.path, why.reason
    except StoreError as why:
        return QueueTable(database, opened=opened, unread=str(why))
    refusal = "" if opened or damaged is None else f"{damaged[0]}: RocksDB does not open the queues' database: {damaged[1]}"
    return QueueTable(
        database,
        StoredEnds(reading.mark, reading.maxima, reading.minima, refusal),
        damaged,
        mark_unreadable,
        opened,
        odd_keys=tuple(reading.odd),
        unnamed=unnamed,
        entry_runs=_entry_runs(live.values()),
    )


def _entry_runs(tables: Iterable[TableFile]) -> int:
    """Each table of the first level is one, and each further level with tables."""
    levels = [table.level for table in tables if offset_of_key(table.first_key) is None]
    return levels.count(0) + len({level for level in levels if level})


def _can_read_mark(entries: Database) -> bool:
    try:
        entries.get(layout.OFFSET_FAMILY, mark_key())
    except DatabaseDamaged:
        return False
    return True


class _Reading:
    def __init__(self) -> None:
        self.mark = 0
        self.maxima: dict[QueueKey, QueueEnd] = {}
        self.minima: dict[QueueKey, QueueEnd] = {}
        self.odd: list[str] = []

    def take(self, key: bytes, value: bytes) -> None:
        named = offset_of_key(key)
        mark = layout.MARK_TOPIC.decode(), layout.MARK_QUEUE_ID
        if named is not None and named[1] == mark and len(value) == layout.MARK_BYTES:
            if named[0] == layout.MAXIMUM:
                (self.mark,) = struct.unpack(">q", value)
        elif named is None or len(value) != layout.OFFSET_VALUE_BYTES:
            if len(self.odd) < MAX_ODD_KEYS:
                self.odd.append(f"{key[:80]!r}: {len(value)} bytes")
        else:
            ends = self.maxima if named[0] == layout.MAXIMUM else self.minima
            ends[named[1]] = QueueEnd(*struct.unpack(">qq", value))
