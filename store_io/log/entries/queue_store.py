"""Opens a store's ConsumeQueues as a scan of the CommitLog asks for them: in files, or in RocksDB.

Only the scan asks through these two interfaces. What else reads queues has a form of its own for each kind: of queues in RocksDB
`kinds.rocksdb_queues` with the check `kinds.rocksdb_queues.rocksdb_queue_checks`; of queues in files `consumequeue_reader`,
`model.queue_leftovers`, `broker.queues.queue_state` and its neighbours, `repair.derived`.
Source of the files: ConsumeQueue, BatchConsumeQueue, ConsumeQueueExt (formats.md 3 to 5).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import STORED_BATCH_DTYPE, STORED_ENTRY_DTYPE
from schemas.rows import MappedFile, QueueKey
from store_io.base.packed import PackedMap
from store_io.broker.queues.combination import light_from_rocksdb
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.releases import BrokerRules
from store_io.log.entries.file_entries import FilesAt
from store_io.log.entries.stored_entries import FETCHED_ENTRIES, KeyedQueueStore
from store_io.log.scan.segment_findings import Place
from store_io.rocksdb.database import NO_DATABASE, StoredDatabase
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource

OPEN_FILES = 512
CACHED_ENTRIES = 2048  # of each queue: those of some hundred queues stay in the processor's cache
SCAN_BYTES = 1 << 20
EXT_BYTES = 1 << 16  # of a queue's ext file, kept in memory
SAMPLES = 9  # entries of a file that show which physical offsets it holds


class QueueEntries(Protocol):
    """The entries of one queue, by number. Rows: STORED_ENTRY_DTYPE, or STORED_BATCH_DTYPE of a BatchConsumeQueue."""

    def read(self, first: int, count: int) -> np.ndarray:
        """Return entries [first, first + count); a missing entry is zeros."""

    def read_into(self, first: int, data: np.ndarray) -> None:
        """Fill these bytes with the entries from `first` on; a missing entry is zeros."""

    def entries_within(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (numbers, rows) of those that lead to physical offsets in [low, high), ordered by these and then by number."""

    def place(self, number: int) -> Place:
        """Return the place of an existing entry."""


class QueueStore(Protocol):
    """The queues of one store. Reading raises StoreError."""

    @property
    def queue_count(self) -> int:
        """Return how many ConsumeQueues there are, batch ones apart."""

    @property
    def entries_at_once(self) -> int:
        """Return the number of entries of one queue to read at once.

        If a read is cheap the number is small: those of all queues are to stay in the processor's cache.
        """

    def has(self, key: QueueKey, batch: bool = False) -> bool:
        """Say whether the queue is there."""

    def entries(self, key: QueueKey, batch: bool = False) -> QueueEntries:
        """Return the entries of an existing queue."""

    def ext_units(self, key: QueueKey) -> ExtUnits | None:
        """Return the filter data of the queue's entries; None without any."""

    def close(self) -> None:
        """Give back what is open."""


@dataclass(frozen=True)
class QueuePaths:
    """The files of a store's queues. Picklable."""

    queues: Mapping[QueueKey, tuple[MappedFile, ...]]
    batch_queues: Mapping[QueueKey, tuple[MappedFile, ...]]
    ext: Mapping[QueueKey, tuple[MappedFile, ...]]
    database: StoredDatabase | None = None
    stored: frozenset[QueueKey] = frozenset()  # queues in the database


class FileQueueStore:
    """Queues in files; the last OPEN_FILES that were read stay open."""

    def __init__(self, source: ByteSource, paths: QueuePaths):
        self._source, self._paths = source, paths
        for files in (paths.queues, paths.batch_queues, paths.ext):
            if isinstance(files, PackedMap):
                files.open_all()  # messages ask at random
        self._open_files: dict[str, ByteFile] = {}

    @property
    def queue_count(self) -> int:
        return len(self._paths.queues)

    @property
    def entries_at_once(self) -> int:
        return CACHED_ENTRIES if self._source.local else FETCHED_ENTRIES

    def _files(self, key: QueueKey, batch: bool) -> Sequence[MappedFile]:
        return (self._paths.batch_queues if batch else self._paths.queues).get(key, ())

    def has(self, key: QueueKey, batch: bool = False) -> bool:
        return bool(self._files(key, batch))

    def entries(self, key: QueueKey, batch: bool = False) -> QueueFileEntries:
        return QueueFileEntries(self._files(key, batch), STORED_BATCH_DTYPE if batch else STORED_ENTRY_DTYPE, self._open)

    def ext_units(self, key: QueueKey) -> ExtUnits | None:
        files = self._paths.ext.get(key)
        return ExtUnits(files, self._open) if files else None

    def close(self) -> None:
        for file in self._open_files.values():
            file.close()
        self._open_files.clear()

    def _open(self, path: str) -> ByteFile:
        file = self._open_files.pop(path, None)
        if file is None:
            if len(self._open_files) >= OPEN_FILES:
                self._open_files.pop(next(iter(self._open_files))).close()
            file = self._source.open(path)
        self._open_files[path] = file  # now the last to be closed
        return file


class _LightQueuesApart:
    """Light queues in RocksDB, all others in files (rocksdb.md 8)."""

    def __init__(self, files: FileQueueStore, light: KeyedQueueStore):
        self._files, self._light = files, light

    @property
    def queue_count(self) -> int:
        return self._files.queue_count + self._light.queue_count

    @property
    def entries_at_once(self) -> int:
        return max(self._files.entries_at_once, self._light.entries_at_once)

    def _of(self, key: QueueKey) -> QueueStore:
        return self._light if key[0].startswith(LMQ_PREFIX) else self._files

    def has(self, key: QueueKey, batch: bool = False) -> bool:
        return self._of(key).has(key, batch)

    def entries(self, key: QueueKey, batch: bool = False) -> QueueEntries:
        return self._of(key).entries(key, batch)

    def ext_units(self, key: QueueKey) -> ExtUnits | None:
        return self._of(key).ext_units(key)

    def close(self) -> None:
        self._files.close()
        self._light.close()


def open_queue_store(rules: BrokerRules, source: ByteSource, paths: QueuePaths) -> QueueStore:
    """Open the queues as a broker with these settings keeps them. They are in files if the kind of store is not known."""
    if light_from_rocksdb(rules) and paths.database is not None:
        return _LightQueuesApart(FileQueueStore(source, paths), KeyedQueueStore(source, paths.database, paths.stored))
    if rules.rocksdb_queues or paths.database is not None:
        return KeyedQueueStore(source, paths.database or NO_DATABASE, paths.stored)
    return FileQueueStore(source, paths)


class QueueFileEntries:
    """The files of one queue as one array of entries; what no file holds reads as zeros."""

    def __init__(self, files: Sequence[MappedFile], dtype: np.dtype, opener: Callable[[str], ByteFile]):
        self._dtype, self._unit = dtype, dtype.itemsize
        self._files = [f for f in files if f.start % self._unit == 0]
        self._at = FilesAt(self._files)
        self._open = opener
        self._bounds: list[tuple[int, int]] | None = None  # per file, the physical offsets that it may lead to

    def read(self, first: int, count: int) -> np.ndarray:
        data = np.empty(count * self._unit, np.uint8)
        self.read_into(first, data)
        return data.view(self._dtype)

    def read_into(self, first: int, data: np.ndarray) -> None:
        start = first * self._unit
        end = start + len(data)
        files = self._at.holding(start, end)
        if len(files) != 1 or files[0].start > start or files[0].start + files[0].size < end:
            data[:] = 0
        for file in files:
            low, high = max(start, file.start), min(end, file.start + file.size)
            self._open(file.path).read_into(low - file.start, data[low - start : high - start])

    def place(self, number: int) -> Place:
        at = number * self._unit
        file = self._at.holding(at, at + 1)[0]
        return Place(file.path, at - file.start)

    def entries_within(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries whatever their order is, and with damaged entries among them."""
        numbers: list[np.ndarray] = [np.zeros(0, np.int64)]
        entries: list[np.ndarray] = [np.zeros(0, self._dtype)]
        step = SCAN_BYTES // self._unit
        for file in self._holding(low, high):
            at, end = file.start // self._unit, (file.start + file.size) // self._unit
            while at < end:
                data_at = self._open(file.path).next_data(at * self._unit - file.start)  # a hole has no entry that is used
                at = max(at, (file.start + data_at) // self._unit)
                part = self.read(at, min(step, end - at))
                phy = part["phy_offset"]
                kept = np.flatnonzero((phy >= low) & (phy < high) & is_used(part))
                numbers.append(at + kept)
                entries.append(part[kept])
                at += step
        number, entry = np.concatenate(numbers), np.concatenate(entries)
        order = np.lexsort((number, entry["phy_offset"].astype(np.int64)))
        return number[order], entry[order]

    def _holding(self, low: int, high: int) -> list[MappedFile]:
        """Return the files that can hold entries of that range.

        Some entries of each file and the first of the next are looked at.
        """
        if self._bounds is None:
            samples = []
            for file in self._files:
                first, count = file.start // self._unit, file.size // self._unit
                picks = np.unique(np.linspace(0, max(0, count - 1), SAMPLES).astype(np.int64))
                samples.append(np.array([self.read(first + int(k), 1)[0] for k in picks if count], self._dtype))
            self._bounds = []
            least_of_next = 1 << 62
            for sample in reversed(samples):
                known = sample["phy_offset"][is_used(sample)]
                whole = len(known) and bool(is_used(sample[-1:])[0])
                least = int(known.min()) if len(known) else 0
                self._bounds.insert(0, (least, max(int(known.max()), least_of_next) if whole else 1 << 62))
                least_of_next = least if len(known) else 1 << 62
        return [f for f, (least, most) in zip(self._files, self._bounds, strict=True) if least < high and most >= low]


def is_used(entries: np.ndarray | np.void) -> np.ndarray:
    """Say which entries lead to a message: not unwritten, no pre-blank slot."""
    size = entries["size"]
    used: np.ndarray = (size != 0) & ~((entries["phy_offset"] == 0) & (size == layout.PRE_BLANK_SIZE))
    return used


class ExtUnit(NamedTuple):
    """The facts that a unit holds about its entry's message.

    store_time: ms.
    """

    tags_code: int
    store_time: int


class ExtUnits:
    """The units of one queue's ConsumeQueueExt, by byte offset, through a read-ahead buffer: `data`, which begins at `start`."""

    def __init__(self, files: Sequence[MappedFile], opener: Callable[[str], ByteFile]):
        self._files, self._open = FilesAt(files), opener
        self.data, self.start = np.zeros(0, np.uint8), 0

    def place(self, offset: int) -> Place:
        """Return the place of an existing unit."""
        file = self._files.holding(offset, offset + 1)[0]
        return Place(file.path, offset - file.start)

    def at(self, offset: int) -> ExtUnit | None:
        """Return the unit at an offset, or None. Source: ConsumeQueueExt.get."""
        file = self._files.at(offset)
        end = offset + layout.EXT_UNIT_HEADER_BYTES
        if file is None or end > file.start + file.size:
            return None
        if not (self.start <= offset and end <= self.start + len(self.data)):
            data = np.zeros(min(EXT_BYTES, file.start + file.size - offset), np.uint8)
            self._open(file.path).read_into(offset - file.start, data)
            self.data, self.start = data, offset  # only now: compiled code still reads the last one if this read fails
        unit = self.data[offset - self.start : end - self.start].tobytes()
        size, tags_code, store_time, _ = struct.unpack(layout.EXT_UNIT_FORMAT, unit)
        return ExtUnit(tags_code, store_time) if size >= layout.EXT_UNIT_HEADER_BYTES else None
