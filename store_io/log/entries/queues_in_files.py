"""Where the ConsumeQueues in files lie: the folder of each and its files, and the reader of a few of their entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schemas.layouts.store_names import BATCH_QUEUES
from schemas.rows import MappedFile, QueueKey
from store_io.base.packed import PackedMap
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.queue_state import CHUNK_ENTRIES, DiskEntries
from store_io.log.entries.file_entries import read_file_entries
from store_io.source.byte_source import ByteSource

MAX_REMEMBERED = 100_000  # reads of queue entries

Folders = Mapping[QueueKey, str]
Files = Mapping[QueueKey, tuple[MappedFile, ...]]


@dataclass(frozen=True)
class QueuePlaces:
    """Queues in files: the folder of each, and its files by name."""

    folders: Folders = field(default_factory=PackedMap)
    files: Files = field(default_factory=PackedMap)

    def without_light(self) -> QueuePlaces:
        """Return the places of all but light queues."""
        folders = PackedMap.of((key, folder) for key, folder in self.folders.items() if not key[0].startswith(LMQ_PREFIX))
        return QueuePlaces(folders, PackedMap.of(((key, self.files[key]) for key in folders), weigh=len))


@dataclass(frozen=True)
class QueuesInFiles:
    """The queues in files of a copy.

    served: those from which consumers are served. written: all of them.
    double_write: a broker writes them in RocksDB as well.
    serves: whether consumers are served from files at all.
    """

    served: QueuePlaces = field(default_factory=QueuePlaces)
    written: QueuePlaces = field(default_factory=QueuePlaces)
    double_write: bool = False
    serves: bool = True


def entries_on_disk(source: ByteSource) -> DiskEntries:
    """Return the reader by which a fold reads a few entries of queue files.

    Entries that it asks for again in a later round are remembered.
    """
    seen: dict[tuple[str, int, int], np.ndarray] = {}

    def read(path: str, first: int, count: int) -> np.ndarray:
        rows = seen.get((path, first, count))
        if rows is None:
            rows = read_file_entries(source, path, first, count, path.startswith(BATCH_QUEUES + "/"))
            if len(seen) < MAX_REMEMBERED and count <= CHUNK_ENTRIES:
                seen[path, first, count] = rows
        return rows

    return read
