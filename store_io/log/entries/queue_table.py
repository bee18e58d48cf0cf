"""Reads the ends of all queues of a store from its database: the family `offset`, as a whole (rocksdb.md 2).

Two small entries for each queue; nothing here grows with the number of messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.advice import Gap, Refusal, RefusalKind
from schemas.layouts import rocksdb_layout as layout
from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree
from store_io.broker.queues.rocksdb_queue_state import EntryUnreadable, QueueEnd, StoredEnds
from store_io.broker.queues.start_databases import database_folder
from store_io.broker.releases import BrokerRules
from store_io.log.entries.queue_keys import after, mark_key, offset_key, offset_of_key, queue_of_prefix, queue_prefix
from store_io.log.entries.stored_entries import EntryReader, first_between
from store_io.rocksdb.database import Database, DatabaseDamaged, StoredDatabase, TableFile, find_database
from store_io.source.byte_source import ByteSource

MAX_GAPS = 100  # stretches of bad bytes among the ends, after which no more are read
MAX_HIDDEN = 100_000  # keys that are asked for one after the other, to learn which queues have their ends there
RANGE_ENTRIES = 1_000_000  # of a database, in one task
KEY_BYTES = 272  # of the longest key of an end: Java's topics have at most 255 bytes


class KeyRange(NamedTuple):
    """Keys [first, end) with all entries of these queues, about so many. end: None: no end."""

    first: bytes
    end: bytes | None
    queues: tuple[QueueKey, ...]
    entries: int


@dataclass(frozen=True)
class QueueTable:
    """Holds the ends of the queues in a database.

    ends: those of all queues whose ends can be read.
    damaged: (file, reason) if RocksDB calls bytes bad, at the opening or in the family.
    gaps: the gaps between ends in which bad bytes lie: (last key before them, a key from which on ends can be read).
    hidden: queues with entries whose maximum they may hold; hidden_unknown: why some of these are not known, else empty.
    mark_unreadable: bad bytes hold the mark.
    opened: whether the database opens.
    unread: why nothing can be said, else empty.
    odd_count: keys and values that no broker writes; first_odd: the first of them.
    unnamed: table files of the folder that the database does not know.
    entry_runs: the number of tables of entries that a compaction would make one of.
    end_tables: the number of tables of ends in the first level, of which two are made one.
    """

    database: StoredDatabase
    ends: StoredEnds = field(default_factory=StoredEnds)
    damaged: tuple[str, str] | None = None
    mark_unreadable: bool = False
    opened: bool = True
    unread: Gap | None = None
    odd_count: int = 0
    first_odd: str = ""
    unnamed: tuple[str, ...] = ()
    entry_runs: int = 0
    end_tables: int = 0
    gaps: tuple[tuple[bytes, bytes], ...] = ()
    hidden: frozenset[QueueKey] = frozenset()
    hidden_unknown: str = ""

    @property
    def queues(self) -> frozenset[QueueKey]:
        """Return the queues with an end, and those with entries whose end bad bytes may hold."""
        return frozenset(self.ends.maxima) | self.hidden

    def key_ranges(self) -> list[KeyRange]:
        """Return ranges that together hold every key of the entries, each for one task."""
        groups: list[list[tuple[bytes, QueueKey]]] = [[]]
        sizes = [0]
        for prefix, key in sorted((queue_prefix(key), key) for key in self.ends.maxima):
            least = self.ends.minima.get(key)
            count = max(1, self.ends.maxima[key].queue_offset + 1 - (least.queue_offset if least is not None else 0))
            if groups[-1] and sizes[-1] + count > RANGE_ENTRIES:
                groups.append([])
                sizes.append(0)
            groups[-1].append((prefix, key))
            sizes[-1] += count
        firsts = [group[0][0] if number else b"" for number, group in enumerate(groups)]
        return [
            KeyRange(first, end, tuple(key for _, key in group), size)
            for group, size, first, end in zip(groups, sizes, firsts, [*firsts[1:], None], strict=True)
        ]

    def hides(self, key: bytes) -> bool:
        """Say whether bad bytes may hold the end with this key."""
        return any(before < key < after for before, after in self.gaps)


def queue_table(source: ByteSource, tree: Tree, rules: BrokerRules) -> QueueTable:
    """Read the ends in the database that a broker with these settings has."""
    folder = database_folder(rules)
    return read_queue_table(source, find_database(tree.children(folder), folder))


def read_queue_table(source: ByteSource, database: StoredDatabase) -> QueueTable:
    """Read the ends in a database. Whatever the bytes are, the answer says what could be read."""
    if database.absent:
        return QueueTable(database)
    reading = _Reading()
    opened, live, unnamed = False, dict[str, TableFile](), tuple[str, ...]()
    damaged: tuple[str, str] | None = None
    mark_unreadable = False
    gaps: list[tuple[bytes, bytes]] = []
    hidden, hidden_unknown = frozenset[QueueKey](), ""
    try:
        with database.open(source) as entries:
            opened, live, unnamed = True, entries.live_files, entries.unnamed
            first: bytes | None = b""
            while first is not None:
                try:
                    for batch in entries.scan(layout.OFFSET_FAMILY, first):
                        for key, value in batch.pairs():
                            reading.take(key, value)
                    first = None
                except DatabaseDamaged as why:
                    damaged = damaged or (why.path, why.reason)
                    first = _next_readable(entries, reading.last) if len(gaps) < MAX_GAPS else None
                    gaps.append((reading.last, first if first is not None else b"\xff" * KEY_BYTES))
            hidden, hidden_unknown = _hidden(entries, gaps)
            if gaps:
                mark_unreadable = not _read_mark(entries, reading)
    except DatabaseDamaged as why:
        damaged = why.path, why.reason
    except StoreError as why:
        return QueueTable(database, opened=opened, unread=why.gap())
    refusal = None
    if not opened and damaged is not None:
        refusal = Refusal(RefusalKind.QUEUE_DATABASE, damaged[0], actual=damaged[1])
    return QueueTable(
        database,
        StoredEnds(reading.mark, reading.maxima, reading.minima, refusal),
        damaged,
        mark_unreadable,
        opened,
        odd_count=reading.odd_count,
        first_odd=reading.first_odd,
        unnamed=unnamed,
        entry_runs=_entry_runs(live.values()),
        end_tables=sum(not table.level and offset_of_key(table.first_key) is not None for table in live.values()),
        gaps=tuple(gaps),
        hidden=hidden,
        hidden_unknown=hidden_unknown,
    )


def _entry_runs(tables: Iterable[TableFile]) -> int:
    """Count the runs of a family: each table of the first level is one, and so is each further level with tables."""
    levels = [table.level for table in tables if offset_of_key(table.first_key) is None]
    return levels.count(0) + len({level for level in levels if level})


def _read_mark(entries: Database, reading: _Reading) -> bool:
    """Ask for the mark by its key, as a broker does, and say whether it can be read."""
    try:
        value = entries.get(layout.OFFSET_FAMILY, mark_key())
    except DatabaseDamaged:
        return False
    if value is not None:
        reading.take(mark_key(), value)
    return True


def _hidden(entries: Database, gaps: Sequence[tuple[bytes, bytes]]) -> tuple[frozenset[QueueKey], str]:
    """Return (queues with entries whose maximum lies in a gap, why some of them are not known).

    One entry of each is looked at. Entries come in the order of their topics, as ends do.
    """
    found: set[QueueKey] = set()
    asked = 0
    if len(gaps) > MAX_GAPS:
        return frozenset(), f"they are in more than {MAX_GAPS} places"
    for before, after_gap in gaps:
        at = before[: _topic_end(before)]
        while at <= after_gap:
            asked += 1
            if asked > MAX_HIDDEN:
                return frozenset(found), f"they would have to be looked for under more than {MAX_HIDDEN} keys"
            try:
                keys = [key for batch in entries.scan(layout.ENTRY_FAMILY, at, None, 1) for key, _ in batch.pairs()]
            except DatabaseDamaged as why:
                return frozenset(found), f"as {why.path} has bad bytes among the entries, too"
            prefix = keys[0][: -layout.NUMBER_BYTES] if keys else b""
            queue = queue_of_prefix(prefix)
            if queue is None:
                if not keys:
                    break
                at = keys[0] + b"\0"
                continue
            if before < offset_key(layout.MAXIMUM, queue) < after_gap:
                found.add(queue)
            elif offset_key(layout.MAXIMUM, queue) > after_gap:
                break
            at = after(prefix)
    return frozenset(found), ""


def _topic_end(key: bytes) -> int:
    """Return the position after the topic in the key of an end."""
    return layout.AFTER_TOPIC + int.from_bytes(key[: layout.LENGTH_BYTES], "big") if offset_of_key(key) is not None else 0


def _next_readable(entries: Database, last: bytes) -> bytes | None:
    """Return a key after `last` from which on ends can be read, or None. Bad bytes are a block of some hundred ends."""
    low, high = (int.from_bytes(key[:KEY_BYTES].ljust(KEY_BYTES, fill), "big") for key, fill in ((last, b"\0"), (b"", b"\xff")))
    if not entries.can_read(layout.OFFSET_FAMILY, high.to_bytes(KEY_BYTES, "big"), None):
        return None
    found = first_between(lambda n: entries.can_read(layout.OFFSET_FAMILY, n.to_bytes(KEY_BYTES, "big"), None), low, high)
    return found.to_bytes(KEY_BYTES, "big")


class _Reading:
    def __init__(self) -> None:
        self.mark = 0
        self.maxima: dict[QueueKey, QueueEnd] = {}
        self.minima: dict[QueueKey, QueueEnd] = {}
        self.odd_count, self.first_odd = 0, ""
        self.last = b""  # key taken

    def take(self, key: bytes, value: bytes) -> None:
        self.last = max(self.last, key)
        named = offset_of_key(key)
        mark = layout.MARK_TOPIC.decode(), layout.MARK_QUEUE_ID
        if named is not None and named[1] == mark and len(value) == layout.MARK_BYTES:
            if named[0] == layout.MAXIMUM:
                (self.mark,) = struct.unpack(">q", value)
        elif named is None or len(value) != layout.OFFSET_VALUE_BYTES:
            self.odd_count += 1
            self.first_odd = self.first_odd or f"{key[:80]!r}: {len(value)} bytes"
        else:
            ends = self.maxima if named[0] == layout.MAXIMUM else self.minima
            ends[named[1]] = QueueEnd(*struct.unpack(">qq", value))


class KnownEnds:
    """`BadEnds` of a table with gaps: ends are asked for by key, as a broker does (rocksdb.md 3)."""

    def __init__(self, reader: EntryReader, table: QueueTable):
        self._reader, self._table = reader, table

    def lists(self, key: QueueKey) -> bool:
        return offset_key(layout.MAXIMUM, key) <= self._table.gaps[0][0]

    def maximum(self, key: QueueKey) -> QueueEnd | None:
        return self._table.ends.maxima.get(key) or self._hidden(layout.MAXIMUM, key)

    def minimum(self, key: QueueKey) -> QueueEnd | None:
        return self._table.ends.minima.get(key) or self._hidden(layout.MINIMUM, key)

    def hidden(self) -> list[QueueKey]:
        return sorted(self._table.hidden)

    def _hidden(self, which: bytes, key: QueueKey) -> QueueEnd | None:
        wanted = offset_key(which, key)
        if not self._table.hides(wanted):
            return None
        try:
            value = self._reader.database().get(layout.OFFSET_FAMILY, wanted)
        except DatabaseDamaged as why:
            raise EntryUnreadable(str(why)) from why
        if value is None or len(value) != layout.OFFSET_VALUE_BYTES:
            return None
        return QueueEnd(*struct.unpack(">qq", value))
