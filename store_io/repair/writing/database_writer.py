"""Writes a new database, of ConsumeQueues or of the tables in rocksdbstore/. RocksDB does it in a process of its own, in the
workshop of a new store.

    with DatabaseWriter(folder) as database:
        database.add_entries(keys, values)      # any order; a batch at a time
        written = database.finish(entries)      # read back: how many entries, and a digest over them

Memory is bounded: the process has a limit of its own, and one batch is under way.
"""

from __future__ import annotations

import json
import os
import re
import select
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from schemas.layouts import rocksdb_layout as layout
from store_io.base.errors import StoreError
from store_io.repair.writing.store_writer import WriteFailed
from store_io.rocksdb.database import Batch
from store_io.rocksdb.database_reader_child import HEADER
from store_io.rocksdb.process import Process, end_process, how_it_ended, start_process

WRITER_BYTES = 2 << 30  # address space of the process
LEAST_SECONDS, ENTRIES_PER_SECOND = 120, 10_000  # how long an answer may take at most
FILES = re.compile(r"CURRENT|MANIFEST-[0-9]{1,20}|[0-9]{1,20}\.sst")  # what a broker needs; it makes the others
_DATABASE = "database"
_FINISH = b"F"


@dataclass(frozen=True)
class Family:
    """A family of the database.

    kind: a letter for its frames.
    use: by which its options are chosen (`database_child`).
    """

    kind: bytes
    name: str
    use: str


ENTRIES, ENDS = QUEUE_FAMILIES = (
    Family(b"E", layout.ENTRY_FAMILY, "queues"),
    Family(b"O", layout.OFFSET_FAMILY, "ends"),
)
INDEX, TIMERS, TRANSACTIONS = TABLE_FAMILIES = (
    Family(b"I", layout.INDEX_FAMILY, "index"),
    Family(b"T", layout.TIMER_FAMILY, "timers"),
    Family(b"H", layout.TRANSACTION_FAMILY, "transactions"),
)
REMOVED, KEPT = b"X", b"K"
"""Kinds of frames of the last family: keys that are removed again; entries that take the place of those with the same key and the
same last four bytes."""


def frame(kind: bytes, keys: Sequence[bytes], values: Sequence[bytes]) -> bytes:
    """Return some entries as the process takes them."""
    sizes = np.array([*map(len, keys), *map(len, values)], "<u4")
    return _packed(kind, sizes, b"".join(keys), b"".join(values))


def _packed(kind: bytes, sizes: np.ndarray, keys: bytes, values: bytes) -> bytes:
    return b"".join((HEADER.pack(kind, len(sizes) // 2, len(keys), len(values)), sizes.tobytes(), keys, values))


@dataclass(frozen=True)
class WrittenDatabase:
    """A database as it was written.

    files: names, in the workshop.
    counts: entries of each family.
    sha256: over all, in the order of their keys.
    """

    files: tuple[str, ...]
    counts: Mapping[str, int]
    sha256: str


class DatabaseWriter:
    """A context manager that writes a database.

    Raises WriteFailed if the database cannot be written, StoreError if nothing can write one here.
    """

    def __init__(self, folder: str, families: Sequence[Family] = QUEUE_FAMILIES):
        self._folder, self._families = folder, families
        self._path = os.path.join(folder, _DATABASE)
        self._process: Process | None = None

    def __enter__(self) -> DatabaseWriter:
        try:
            self._process = start_process(__package__, "database_child.py", self._folder)
        except OSError as error:
            raise WriteFailed(f"the process that writes a database cannot be started: {error.strerror}") from error
        families = [(family.kind.decode(), family.name, family.use) for family in self._families]
        self._send(json.dumps({"path": self._path, "memory_bytes": WRITER_BYTES, "families": families}).encode() + b"\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            end_process(self._process)
            self._process = None

    def add_entries(self, keys: Sequence[np.ndarray], values: np.ndarray) -> None:
        """Add entries of queues.

        keys: for each stretch of keys with one length its bytes, a row for each key.
        values: the bytes of all, in order.
        """
        lengths = [np.full(len(part), part.shape[1], "<u4") for part in keys]
        count = sum(map(len, lengths))
        sizes = np.concatenate([*lengths, np.full(count, layout.ENTRY_VALUE_BYTES, "<u4")])
        self.add_frames(_packed(ENTRIES.kind, sizes, b"".join(part.tobytes() for part in keys), values.tobytes()))

    def add_pairs(self, kind: bytes, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Add keys and values as frames of that kind have them."""
        self.add_frames(frame(kind, [key for key, _ in pairs], [value for _, value in pairs]))

    def add_batch(self, kind: bytes, batch: Batch) -> None:
        """Add entries as another database gives them."""
        sizes = np.concatenate([np.diff(batch.key_ends, prepend=0), np.diff(batch.value_ends, prepend=0)]).astype("<u4")
        self.add_frames(_packed(kind, sizes, batch.keys.tobytes(), batch.values.tobytes()))

    def add_frames(self, data: bytes) -> None:
        """Add frames, as `frame` makes them; one may be in several calls."""
        self._send(data)

    def finish(self, entries: int) -> WrittenDatabase:
        """Close the database. entries: how many were added, by which the time is measured that this may take."""
        self._send(HEADER.pack(_FINISH, 0, 0, 0))
        answer = self._answer(LEAST_SECONDS + entries / ENTRIES_PER_SECOND)
        try:
            names = tuple(sorted(name for name in os.listdir(self._path) if FILES.fullmatch(name)))
        except OSError as error:
            raise WriteFailed(f"the database that was written cannot be listed: {error.strerror}") from error
        counts = {family.name: int(answer[family.name]) for family in self._families}
        return WrittenDatabase(tuple(f"{_DATABASE}/{name}" for name in names), counts, str(answer["sha256"]))

    # ---- the process -----------------------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            self._answer(LEAST_SECONDS)  # it has said why before it ended
            raise self._lost() from None

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            raise WriteFailed(f"the process that writes a database gave no answer in {seconds:.0f} seconds")
        line = self._process.stdout.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise self._lost() from None
        if "error" in answer:
            said = " ".join(str(answer["error"]).replace(self._path, "").split())[:300]
            raise StoreError(f"a database cannot be written: {said}")
        return answer

    def _lost(self) -> WriteFailed:
        """Return the error for a process that is not there any more."""
        assert self._process is not None
        self._process.kill()
        how, memory = how_it_ended(self._process), f"it had at most {WRITER_BYTES >> 20} MiB of memory"
        return WriteFailed(f"the process that writes a database was lost ({how}); {memory}")
