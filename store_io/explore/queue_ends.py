"""Where the queues of a copy end on disk, by what their files or their database hold. Nothing is judged: a start may cut them."""

from __future__ import annotations

import numpy as np

from schemas.rows import MappedFile, QueueKey
from store_io.base.errors import StoreError
from store_io.explore.open_store import OpenStore, QueueFiles
from store_io.formats.consumequeue_reader import entries_of, unit_bytes, valid_entries
from store_io.formats.rocksdb.queue_table import find_database, read_queue_table
from store_io.rules.loading import Tree
from store_io.rules.rocksdb.place import database_folder
from store_io.source.byte_source import ByteSource

WINDOW_ENTRIES = 1 << 14
LARGEST = (1 << 63) - 1  # that a column can hold; damaged entries say more


class QueueEnds:
    """The ends of a store's queues, each found when it is asked for. Raises StoreError where queues cannot be read."""

    def __init__(self, store: OpenStore):
        self._source = store.source()
        self._found: dict[QueueKey, int | None] = {}
        self._files: dict[QueueKey, QueueFiles] = {}
        if store.rules.rocksdb_queues:
            folder = database_folder(store.rules)
            table = read_queue_table(self._source, find_database(Tree(store.listing.files).children(folder), folder))
            if table.unread or table.damaged:
                path, reason = table.damaged or (folder, "")
                raise StoreError(table.unread or f"{path}: the ends of queues cannot be read: {reason}")
            self._found |= {key: min(end.queue_offset, LARGEST - 1) + 1 for key, end in table.ends.maxima.items()}
            return
        for queue in store.queues():
            self._files.setdefault(queue.key, queue)  # ordinary ones come first; a topic is of one kind

    def of(self, key: QueueKey) -> int | None:
        """The queue offset after the queue's last entry; 0 of one without entries, None where the copy has no such queue."""
        if key not in self._found:
            queue = self._files.get(key)
            self._found[key] = None if queue is None else queue_end(self._source, queue)
        return self._found[key]


def queue_end(source: ByteSource, queue: QueueFiles) -> int:
    """The same of one queue, whose files are read from the last one back to an entry that recovery would take."""
    for file in sorted(queue.files, key=lambda f: f.start, reverse=True):
        last = _last_entry(source, file, queue.batch)
        if last is not None:
            place, entry = last
            end = int(entry["base"]) + int(entry["count"]) if queue.batch else file.start // unit_bytes(False) + place + 1
            return min(end, LARGEST)
    first = min((f.start for f in queue.files), default=0)
    return 0 if queue.batch else first // unit_bytes(False)


def _last_entry(source: ByteSource, file: MappedFile, batch: bool) -> tuple[int, np.void] | None:
    """(its number in the file, the entry) of the last valid one; None without."""
    unit = unit_bytes(batch)
    with source.open(file.path) as opened:
        end = min(file.size, opened.size) // unit
        while end > 0:
            start = max(0, end - WINDOW_ENTRIES)
            rows = entries_of(opened.read(start * unit, (end - start) * unit), batch)
            valid = np.flatnonzero(valid_entries(rows))
            if len(valid):
                return start + int(valid[-1]), rows[valid[-1]]
            end = start
    return None
