"""A database of a copy, read as ranges of its keys in batches of columns. A separate process reads it, as bad bytes may end
that process.

One process per `Database`, one answer at a time; the next reader of an audit takes it over (`kept_open`). Memory is bounded on
both sides: the process has a limit of its own, and a batch ends at BATCH_ROWS entries or BATCH_BYTES. Whatever the bytes are, the
answer is entries, or one sentence.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from schemas.layouts import rocksdb_layout as layout
from schemas.rows import StoreFile
from store_io.base.errors import StoreError, Unreadable
from store_io.base.failed_reads import note, noting
from store_io.rocksdb.database_reader_child import HEADER
from store_io.rocksdb.kept_open import OpenDatabase, give_back, take_open
from store_io.rocksdb.private_folder import PrivateFolder
from store_io.rocksdb.process import Process, end_process, how_it_ended, start_process
from store_io.source.byte_source import ByteSource, name_of

CHILD_BYTES = 2 << 30  # address space of the process
BATCH_ROWS = 1 << 16
BATCH_BYTES = 4 << 20
ENTRY_BYTES = 16 << 20  # of one key with its value
SILENT_SECONDS = 120  # without a byte from the process
GROWTH, GROWTH_BYTES = 1000, 64 << 20  # a range gives at most so many times the database's bytes, and so many more

_EMPTY_WORDS = re.compile(r"^((Corruption|IO error|Invalid argument): )+| The file [\w-]+ may be corrupted\.$")
# What the system says of names and bytes that lie there; all else it says of the medium, or of this process.
_OF_BYTES = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG, errno.EFBIG)
_FAILURES = sorted(re.escape(os.strerror(number)) for number in errno.errorcode if number not in _OF_BYTES)
_OF_MEDIUM = re.compile(rf"\bIO error: (?:.*[ :])?(?:{'|'.join(_FAILURES)})$")
_PLACE = re.compile(r"\b([0-9]{6,20}\.(?:sst|log)|MANIFEST-[0-9]+|CURRENT)\b")


class DatabaseDamaged(StoreError):
    """RocksDB calls the bytes bad. path: the file in the store, or the folder; reason: RocksDB's words."""

    def __init__(self, path: str, reason: str):
        super().__init__(f"{path}: RocksDB cannot read it: {reason}")
        self.path, self.reason = path, reason


class DatabaseUnread(Unreadable):
    """A database that could not be read here: no reader, a limit, or a lost process. It says nothing of the bytes."""


@dataclass(frozen=True)
class Batch:
    """Consecutive entries in key order.

    key_ends, value_ends: the end of each key and value in `keys` and `values`.
    """

    key_ends: np.ndarray
    value_ends: np.ndarray
    keys: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.key_ends)

    def key(self, at: int) -> bytes:
        """Return the key of one entry."""
        return self.keys[int(self.key_ends[at - 1]) if at else 0 : int(self.key_ends[at])].tobytes()

    def value(self, at: int) -> bytes:
        """Return the value of one entry."""
        return self.values[int(self.value_ends[at - 1]) if at else 0 : int(self.value_ends[at])].tobytes()

    def part(self, low: int, high: int) -> Batch:
        """Return the entries [low, high)."""
        if low == 0 and high == len(self):
            return self
        key, value = (int(ends[low - 1]) if low else 0 for ends in (self.key_ends, self.value_ends))
        return Batch(
            self.key_ends[low:high] - key,
            self.value_ends[low:high] - value,
            self.keys[key : int(self.key_ends[high - 1])],
            self.values[value : int(self.value_ends[high - 1])],
        )

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield entry by entry: for few."""
        keys, values = self.keys.tobytes(), self.values.tobytes()
        k = v = 0
        for key_end, value_end in zip(self.key_ends.tolist(), self.value_ends.tolist(), strict=True):
            yield keys[k:key_end], values[v:value_end]
            k, v = key_end, value_end


def stored_number(value: bytes | None) -> int | None:
    """Return the int64 at the start of a value; None if the value is shorter or missing."""
    return int.from_bytes(value[:8], "big", signed=True) if value is not None and len(value) >= 8 else None


class TableFile(NamedTuple):
    """A table file: at which level of its family it is, and its first key."""

    level: int
    first_key: bytes


class Database:
    """An open database, as a context manager.

    families: the names of its column families.
    live_files: the table files of which it consists, by name.
    skips_bad_log: bad records of the write-ahead log are left out, as a broker does for config/; else the log ends there.
    known: the families with which a broker opens it, if others are to count as damage: RocksDB refuses to open without them.

    Entering raises DatabaseDamaged, NotAFile or Unreadable.
    """

    def __init__(
        self,
        source: ByteSource,
        folder: str,
        files: Sequence[StoreFile],
        skips_bad_log: bool = False,
        known: Sequence[str] = (),
    ):
        self.folder, self._known = folder, frozenset(known)
        self._source, self._files = source, [f for f in files if f.path.rpartition("/")[0] == folder]
        self.families: tuple[str, ...] = ()
        self.live_files: dict[str, TableFile] = {}
        self._private: PrivateFolder | None = None
        self._process: Process | None = None
        self._busy, self._skips_bad_log = False, skips_bad_log
        self._failed: Unreadable | None = None  # why nothing can be asked any more
        self._said_first: dict[str, Any] = {}

    def __enter__(self) -> Database:
        with noting(f"{self.folder}/"):
            return self._begin()

    def _begin(self) -> Database:
        kept = take_open(self._key)
        if kept is not None:
            self._private, self._process, self._said_first = kept.private, kept.process, kept.said
        else:
            self._private = PrivateFolder(self._source, self._files)
        try:
            if kept is None:
                self._start(self._private.path)
            self._take_in()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        process, private = self._process, self._private
        if process is None or private is None or self._busy or self._failed is not None or process.poll() is not None:
            self._end()
            return
        self._process = self._private = None
        give_back(self._key, OpenDatabase(private, process, self._said_first))

    @property
    def _key(self) -> Hashable:
        return self._source.location, self.folder, tuple(self._files), self._skips_bad_log

    def _start(self, path: str) -> None:
        try:
            # Where packages are we say ourselves, so that Python's site is not needed (-S).
            self._process = start_process(__package__, "database_reader_child.py", path, "-S")
        except OSError as error:
            raise DatabaseUnread(f"{self.folder}/: the process that reads it cannot be started: {error.strerror}") from error
        self._ask({"path": path, "memory_bytes": CHILD_BYTES, "skips_bad_log": self._skips_bad_log})
        kind, _, keys, _ = self._frame()
        said = self._said(kind, keys)
        if kind != b"O":
            raise self._error(kind, said)
        self._said_first = said

    def _take_in(self) -> None:
        """Take in the process's answer to the opening of the database."""
        said = self._said_first
        self.families = tuple(str(name) for name in said["families"])
        others = sorted(set(self.families) - self._known) if self._known else []
        if others:
            raise DatabaseDamaged(self.folder, f"Column families not opened: {', '.join(others)}"[:300])
        self.live_files = {
            str(file["name"]): TableFile(int(file["level"]), bytes.fromhex(file["first"])) for file in said["files"]
        }

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Return the folder's table files that the database does not know. Its MANIFEST may be cut short, or an older one."""
        return tuple(f.path for f in self._files if f.path.endswith(".sst") and name_of(f.path) not in self.live_files)

    def _end(self) -> None:
        if self._process is not None:
            end_process(self._process)
            self._process = None
        if self._private is not None:
            self._private.__exit__(None, None, None)
            self._private = None

    # ---- asking ----------------------------------------------------------------------------------------------------

    def scan(self, family: str, first: bytes = b"", end: bytes | None = None, limit: int = -1) -> Iterator[Batch]:
        """Yield the entries with keys in [first, end), in key order; at most `limit`. To be read to its end before the next one.

        Raises DatabaseDamaged if bad bytes end the range early, after the entries before them; Unreadable.
        """
        ends = {"first": first.hex(), "end": None if end is None else end.hex(), "limit": limit}
        yield from self._answer(family, {**ends, "rows": BATCH_ROWS, "batch_bytes": BATCH_BYTES})

    def can_read(self, family: str, first: bytes, end: bytes | None) -> bool:
        """Say whether the entries with keys in [first, end) can be read from the first one on: that one is tried. Raises
        Unreadable."""
        try:
            for _ in self.scan(family, first, end, 1):
                pass
        except DatabaseDamaged:
            return False
        return True

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value at that key, as a broker looks it up. Bad bytes in a table older than the value's do not matter.

        Raises DatabaseDamaged, Unreadable.
        """
        found = [value for batch in self._answer(family, {"get": key.hex()}) for _, value in batch.pairs()]
        return found[0] if found else None

    def _answer(self, family: str, request: dict[str, Any]) -> Iterator[Batch]:
        if family not in self.families:
            return
        if self._failed is not None:
            raise self._failed
        try:
            yield from self._batches(family, request)
        except Unreadable as why:
            self._failed = why
            note(f"{self.folder}/", why)
            raise

    def _batches(self, family: str, request: dict[str, Any]) -> Iterator[Batch]:
        if self._busy:
            raise RuntimeError("the range asked for before was not read to its end")
        assert self._private is not None
        left = self._private.size * GROWTH + GROWTH_BYTES
        self._busy = True
        self._ask({"family": family, "entry_bytes": ENTRY_BYTES, **request})
        while True:
            kind, lengths, keys, values = self._frame()
            if kind != b"E":
                break
            count = len(lengths) // 2
            key_ends, value_ends = np.cumsum(lengths[:count], dtype=np.int64), np.cumsum(lengths[count:], dtype=np.int64)
            left -= len(keys) + len(values)
            if not count or key_ends[-1] != len(keys) or value_ends[-1] != len(values):
                raise self._lost("it answered nonsense")
            if left < 0:
                raise DatabaseUnread(
                    f"{self.folder}/: {self._private.size:,} bytes of files give more than {GROWTH:,} times as much: not read on"
                )
            yield Batch(key_ends, value_ends, keys, values)
        self._busy = False
        if kind != b"D":
            raise self._error(kind, self._said(kind, keys))

    def _ask(self, request: dict[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost() from error

    # ---- answers ---------------------------------------------------------------------------------------------------

    def _frame(self) -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
        """Return (kind, lengths, keys, values)."""
        kind, count, key_bytes, value_bytes = HEADER.unpack(self._bytes(HEADER.size).tobytes())
        if count > BATCH_ROWS or key_bytes + value_bytes > BATCH_BYTES + ENTRY_BYTES:
            raise self._lost("it answered nonsense")
        data = self._bytes(8 * count + key_bytes + value_bytes)
        lengths, rest = data[: 8 * count].view("<u4"), data[8 * count :]
        return kind, lengths, rest[:key_bytes], rest[key_bytes:]

    def _bytes(self, size: int) -> np.ndarray:
        assert self._process is not None and self._process.stdout is not None
        data, done, pipe = np.empty(size, np.uint8), 0, self._process.stdout.fileno()
        until = time.monotonic() + SILENT_SECONDS
        while done < size:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                self._process.kill()
                raise DatabaseUnread(f"{self.folder}/: the process that reads it gave no answer in {SILENT_SECONDS} seconds")
            count = os.readv(pipe, [data[done:].data])
            if not count:
                raise self._lost()
            done += count
            until = time.monotonic() + SILENT_SECONDS
        return data

    def _said(self, kind: bytes, text: np.ndarray) -> Any:
        try:
            return json.loads(text.tobytes()) if kind in (b"O", b"B", b"N") else None
        except ValueError as error:
            raise self._lost("it answered nonsense") from error

    def _lost(self, how: str = "") -> DatabaseUnread:
        """Return the error for a process that is gone. The data that it reads may have cost it its memory, or its life."""
        assert self._process is not None
        if how:
            self._process.kill()
        ended, memory = how_it_ended(self._process), f"it had at most {CHILD_BYTES >> 20} MiB of memory"
        return DatabaseUnread(f"{self.folder}/: the process that reads it with RocksDB was lost ({how or ended}); {memory}")

    def _error(self, kind: bytes, said: Any) -> StoreError:
        assert self._private is not None
        text = " ".join(str(said).replace(self._private.path + "/", "").replace(self._private.path, self.folder).split())[:300]
        if _OF_MEDIUM.search(text):
            return Unreadable(f"{self.folder}/: {text}")
        if kind != b"B":
            return DatabaseUnread(f"{self.folder}/: {text}")
        names = {name_of(f.path) for f in self._files}
        places = _PLACE.findall(text)
        place = next((name for name in places if name not in names), next(iter(places), "")) or _culprit(names)
        reason = _EMPTY_WORDS.sub("", text)
        return DatabaseDamaged(f"{self.folder}/{place}".rstrip("/"), reason)


def _culprit(names: set[str]) -> str:
    """Return the file that an error without a name is about: the one with which opening begins."""
    return "CURRENT" if "CURRENT" not in names else ""


@dataclass(frozen=True)
class StoredDatabase:
    """A database in a store: its folder and its files. Picklable.

    files: the database's.
    absent: there is none, a broker makes a new one.
    """

    folder: str
    files: tuple[StoreFile, ...]
    absent: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the size of all its files."""
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of all its files."""
        return tuple(file.path for file in self.files)

    def open(self, source: ByteSource, skips_bad_log: bool = False) -> Database:
        """To be entered; raises as `Database` does. In rocksdbstore/ a broker opens these families alone (rocksdb.md 10)."""
        known = layout.TABLE_FAMILIES if self.folder == layout.TABLES_FOLDER else ()
        return Database(source, self.folder, self.files, skips_bad_log, known)


NO_DATABASE = StoredDatabase("", (), absent=True)


def find_database(files: Sequence[StoreFile], folder: str) -> StoredDatabase:
    """Return the database in a folder of a store. With neither CURRENT nor a log of its own a broker makes a new, empty one,
    whatever else lies there (rocksdb.md 3)."""
    own = tuple(f for f in files if f.path.rpartition("/")[0] == folder)
    names = {name_of(f.path) for f in own}
    absent = layout.CURRENT not in names and not any(name.endswith(".log") for name in names)
    return StoredDatabase(folder, own, absent)
