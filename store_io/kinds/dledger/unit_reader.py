"""Reads the units of DLedger's index files, and its two texts, checkpoint and currterm (dledger.md 1, 3).

Units are read by their numbers, or a whole file as runs. A file is 160 MiB, of which little is written: holes are not read, and
memory is a window. Both texts are java.util.Properties of two lines, read as a start reads them; the `.bak` beside each is not.
Source: DLedgerEntryCoder.encodeIndex, DLedgerMmapFileStore.loadCheckPoint and recover, MemberState.loadTerm, IOUtils.file2String,
string2Properties.
"""

from __future__ import annotations

import hashlib
import reprlib
from dataclasses import dataclass, replace

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.layouts import dledger_layout as layout
from schemas.rows import MappedFile
from store_io.base.errors import StoreChanged, StoreError, UsageError
from store_io.base.java.java_compat import parse_number
from store_io.base.java.java_properties import parse_properties
from store_io.kinds.dledger.ledger_walks import MAX_STRETCHES, LedgerTexts, UnitRun, UnitWalk
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, OpenFiles, StoreLocation, open_source
from store_io.source.store_dir import StoreListing

WINDOW_UNITS = 1 << 15
LARGEST_INDEX = np.iinfo(np.int64).max // layout.UNIT_BYTES  # units of larger ones would lie beyond any file
MAX_TEXT_BYTES = 1 << 16


class UnitReader:
    """Reads units by number. Raises StoreError as opening and reading do. close() when done."""

    def __init__(self, source: ByteSource, files: tuple[MappedFile, ...]):
        self._files, self._open = files, OpenFiles(source)
        self.bytes_read = 0

    def close(self) -> None:
        """Close the files."""
        self._open.close()

    def read(self, first: int, count: int) -> np.ndarray:
        """Return units [first, first + count) as UNIT_DTYPE; zeros for units that no file holds."""
        rows = np.zeros(count, layout.UNIT_DTYPE)
        for file in self._files:
            low, high = -(-file.start // layout.UNIT_BYTES), (file.start + file.size) // layout.UNIT_BYTES
            low, high = max(low, first), min(high, first + count)
            if low < high:
                data = self._open.open(file.path).read(low * layout.UNIT_BYTES - file.start, (high - low) * layout.UNIT_BYTES)
                found = np.frombuffer(data[: len(data) // layout.UNIT_BYTES * layout.UNIT_BYTES], layout.UNIT_DTYPE)
                rows[low - first : low - first + len(found)] = found
                self.bytes_read += len(data)
        return rows


def unit_of(source: ByteSource, files: tuple[MappedFile, ...], index: int) -> np.void | None:
    """Return the unit of the entry with that index; None if no file could hold it. Raises as `UnitReader`.

    If no file holds the unit, it is zeros.
    """
    if not 0 <= index <= LARGEST_INDEX:
        return None
    units = UnitReader(source, files)
    try:
        unit: np.void = units.read(index, 1)[0]
    finally:
        units.close()
    return unit


@dataclass(frozen=True)
class UnitTask:
    """One index file to read. Picklable. segment_bytes: of a data file."""

    store: int
    location: StoreLocation
    file: MappedFile
    segment_bytes: int
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return 1 << 20  # of what is written

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.file.path,)

    def run(self) -> UnitWalk:
        """Return the file's runs. Never raises over bytes; a file that cannot be read gives `problem`."""
        walk = UnitWalk(self.file.path, self.file.start, self.file.size)
        try:
            with open_source(self.location).open(self.file.path) as opened:
                if opened.size != self.file.size:
                    raise StoreChanged.in_size(self.file.path, opened.size, self.file.size)
                _Runs(walk, self.segment_bytes).read(opened)
        except StoreError as why:
            walk.problem = why.gap(self.file.path)
        return walk


class _Runs:
    """Gathers runs of one file."""

    def __init__(self, walk: UnitWalk, segment_bytes: int):
        self.walk, self.size = walk, segment_bytes
        self.open: UnitRun | None = None

    def read(self, file: ByteFile) -> None:
        step = WINDOW_UNITS * layout.UNIT_BYTES
        at, digest = 0, hashlib.blake2b(file.size.to_bytes(8, "big"), digest_size=16)
        while at < file.size:
            at = file.next_data(at) // layout.UNIT_BYTES * layout.UNIT_BYTES
            if at >= file.size:
                break
            data = file.read(at, step)
            self.walk.bytes_read += len(data)
            rows = np.frombuffer(data[: len(data) // layout.UNIT_BYTES * layout.UNIT_BYTES], layout.UNIT_DTYPE)
            written = np.flatnonzero(rows.view(np.uint8).reshape(-1, layout.UNIT_BYTES).any(1))
            if len(written):
                digest.update((written + at // layout.UNIT_BYTES).astype(">i8").tobytes() + rows[written].tobytes())
            self._add(rows, self.walk.start + at)
            at += step
        self._close()
        self.walk.digest = f"blake2b-128:{digest.hexdigest()}"

    def _add(self, rows: np.ndarray, position: int) -> None:
        index, pos, size = (rows[name].astype(np.int64) for name in ("index", "pos", "size"))
        term = rows["term"].astype(np.int64)
        own = (rows["magic"] == layout.MAGIC) & (size > layout.HEADER_BYTES) & (size <= self.size) & (pos >= 0)
        own &= (index * layout.UNIT_BYTES == position + np.arange(len(rows)) * layout.UNIT_BYTES) & (term >= 0)
        own &= pos <= np.iinfo(np.int64).max - 2 * self.size
        places = np.flatnonzero(own)
        if not len(places):
            return
        ends = pos + size
        follows = (np.diff(places) == 1) & (np.diff(term[places]) >= 0)
        follows &= self._follows(ends[places[:-1]], pos[places[1:]])
        cuts = np.flatnonzero(~follows) + 1
        for part in np.split(places, cuts):
            first, last = int(part[0]), int(part[-1])
            self._take(
                UnitRun(int(index[first]), int(index[last]), int(pos[first]), int(ends[last]), int(term[first]), int(term[last]))
            )

    def _follows(self, end: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Say whether an entry can begin there after one that ends there: side by side, or at the next file's start."""
        rolled = (start % self.size == 0) & (start > end) & (start - end < self.size)
        followed: np.ndarray = (start == end) | rolled
        return followed

    def _take(self, run: UnitRun) -> None:
        last = self.open
        if (
            last is not None
            and run.first_index == last.last_index + 1
            and run.first_term >= last.last_term
            and bool(self._follows(np.array(last.end), np.array(run.start)))
        ):
            self.open = UnitRun(last.first_index, run.last_index, last.start, run.end, last.first_term, run.last_term)
            return
        self._close()
        self.open = run

    def _close(self) -> None:
        if self.open is not None:
            if len(self.walk.runs) < MAX_STRETCHES:
                self.walk.runs.append(self.open)
            else:
                self.walk.runs_dropped += 1
        self.open = None


def read_texts(source: ByteSource, listing: StoreListing, folder: str, index: tuple[MappedFile, ...]) -> LedgerTexts:
    """Read the group's checkpoint and currterm. Raises StoreError if a file cannot be read or is larger than MAX_TEXT_BYTES."""
    path = f"{folder}/{layout.CHECKPOINT}"
    checkpoint = _properties(source, listing, path)
    committed = checkpoint.get(layout.COMMITTED_INDEX, "").strip()
    number = parse_number(committed, 64)
    refusal = None
    if committed and number is None:
        refusal = Refusal(RefusalKind.LEDGER_COMMITTED_INDEX, path, actual=reprlib.repr(committed))
    term = parse_number(_properties(source, listing, f"{folder}/{layout.TERM}").get(layout.CURRENT_TERM, ""), 64)
    texts = LedgerTexts(number, parse_number(checkpoint.get(layout.END_INDEX, "").strip(), 64), term, refusal)
    unit = unit_of(source, index, number) if number is not None else None
    return texts if unit is None else replace(texts, committed_unit=(int(unit["pos"]), int(unit["size"])))


def _properties(source: ByteSource, listing: StoreListing, path: str) -> dict[str, str]:
    """Return the keys and values of a properties file; none without such a file, or if it holds no Properties."""
    if not listing.is_file(path):
        return {}
    try:
        return parse_properties(source.read_small(path, MAX_TEXT_BYTES).decode("latin-1"))
    except UsageError:  # an escape that java.util.Properties refuses
        return {}
