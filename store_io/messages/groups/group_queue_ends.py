"""The ends of a copy's queues on disk, as recovery finds them or a database says. Nothing is judged: a start may cut them."""

from __future__ import annotations

from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree
from store_io.broker.queues.place import database_folder
from store_io.kinds.queues.consumequeue_reader import QueueTask, read_entries, scan_queue, unit_bytes
from store_io.kinds.rocksdb_queues.queue_table import find_database, read_queue_table
from store_io.messages.open_store import OpenStore, QueueFiles
from store_io.source.byte_source import ByteSource
from store_io.wording.gaps import gap_text

LARGEST = (1 << 63) - 1  # that a column can hold; damaged entries say more


class QueueEnds:
    """The ends of a store's queues, each found when it is asked for. Raises StoreError if queues cannot be read."""

    def __init__(self, store: OpenStore):
        self._source = store.source()
        self._found: dict[QueueKey, int | None] = {}
        self._files: dict[QueueKey, QueueFiles] = {}
        if store.rules.rocksdb_queues:
            folder = database_folder(store.rules)
            table = read_queue_table(self._source, find_database(Tree(store.listing.files).children(folder), folder))
            if table.unread:
                raise StoreError(gap_text(table.unread))
            if table.damaged:
                path, reason = table.damaged
                raise StoreError(f"{path}: the ends of queues cannot be read: {reason}")
            self._found |= {key: min(end.queue_offset, LARGEST - 1) + 1 for key, end in table.ends.maxima.items()}
            return
        for queue in store.queues():
            self._files.setdefault(queue.key, queue)  # ordinary ones come first; a topic is of one kind

    def of(self, key: QueueKey) -> int | None:
        """Return the queue offset after the queue's last entry. 0 without entries, None if the copy has no such queue."""
        if key not in self._found:
            queue = self._files.get(key)
            self._found[key] = None if queue is None else queue_end(self._source, queue)
        return self._found[key]


def queue_end(source: ByteSource, queue: QueueFiles) -> int:
    """Return the end of one queue at which recovery stops.

    It walks forward through the last three files to the first invalid entry. A broker writes over everything after that entry.
    """
    files = tuple(sorted(queue.files, key=lambda f: f.start))
    summary = scan_queue(QueueTask(0, queue.key, source.location, files, batch=queue.batch, digest=False, last_only=True), source)
    if summary.problem:
        raise StoreError(gap_text(summary.problem))
    end = summary.wrote // unit_bytes(queue.batch)
    if queue.batch:
        (last,) = read_entries(source, files, end - 1, end, batch=True)
        end = int(last["base"]) + int(last["count"])
    return min(end, LARGEST)
