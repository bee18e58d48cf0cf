"""Single ends of queues, asked for by key as a broker does, where bad bytes hold others (rocksdb.md 3)."""

from __future__ import annotations

import struct

from schemas import rocksdb_layout as layout
from schemas.rows import QueueKey
from store_io.kinds.rocksdb_queues.queue_keys import offset_key
from store_io.kinds.rocksdb_queues.queue_table import QueueTable
from store_io.kinds.rocksdb_queues.stored_entries import EntryReader
from store_io.kinds.rocksdb_queues.stored_queue import EntryUnreadable, QueueEnd
from store_io.rocksdb.database import DatabaseDamaged


class KnownEnds:
    """`BadEnds` of a table with gaps."""

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
