"""Keeps the stores that a run has finished in --out until the run ends.

A run that was killed and is started again under its id takes them over.

A store's outcome is taken over only if it was written whole, is complete, and was made by the same versions with the same
options and in the same group of copies, and if every name, length and time in the store is as it was. Nothing of the store is
opened for that: it is listed. Whatever else is found in its place means that the store is read again.
A run of another id, and the end of a run, remove what was kept.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import pickle
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from jobs import RULES_VERSION, VERSION
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.runtime import interrupts
from jobs.runtime.output import KEPT, OutputFailed, OutputFolder
from schemas import advice, finding_codes, first_day, losses, repair, replicas, rows, start_effect
from schemas.rows import AuditOutcome, EarlierRun
from store_io.base.errors import StoreError
from store_io.base.exit_codes import CONSISTENT, DERIVED, LOST
from store_io.base.packed import PackedList, packed, weight_of_row
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import StoreListing, every_file, list_folder

if TYPE_CHECKING:
    from jobs.audit.one_store import WholeStore

_THREADS = 8
_FORMAT = 8
_PACKED_BYTES = 64 << 20  # of a file; an outcome that needs more is not kept
_CONTENT_BYTES = 256 << 20
_ROWS_BYTES = 1 << 30  # of the pickles of all rows that lie packed in it; one part is open at a time
_PART_BYTES = 16 << 20


class FinishedStores:
    """The kept outcomes of one run. Without a --run-id nobody can start it again: then nothing is kept."""

    def __init__(self, output: OutputFolder, asked: AuditOptions):
        self._output, self._asked = output, asked
        # Datasets are written while a store is read, and a run of one store has nothing to take over.
        self._keeps = asked.run_id_named and not asked.write and len(asked.stores) > 1
        self._earlier: Mapping[str, EarlierRun] = {}
        self._groups: dict[str, list[StoreArgument]] = {}
        for store in asked.stores:
            if store.replica_group:
                self._groups.setdefault(store.replica_group, []).append(store)
        self.taken_over = 0  # stores

    def take(self, earlier: Mapping[str, EarlierRun]) -> dict[int, AuditOutcome]:
        """Return a store's number -> its outcome, for stores that need not be read again. earlier: as `Reading` has it.

        The copies of one log are compared with each other: all of a group are taken over, or none.
        """
        self._earlier = earlier
        if not self._keeps:
            return {}
        with interrupts.threads(_THREADS) as threads:
            found = dict(enumerate(threads.map(self._kept, self._asked.stores)))
        missing = {self._asked.stores[n].replica_group for n, outcome in found.items() if outcome is None}
        taken = {
            n: outcome
            for n, outcome in found.items()
            if outcome is not None and (not outcome.replica_group or outcome.replica_group not in missing)
        }
        self.taken_over = len(taken)
        return taken

    def keep_whole(self, store: StoreArgument, one: WholeStore) -> None:
        """Keep a store that one task has audited."""
        self.keep(store, one.outcome, one.listing)

    def keep(self, store: StoreArgument, outcome: AuditOutcome, listing: StoreListing | None) -> None:
        """Keep it. An incomplete one is not kept: what kept it from being read may be over."""
        if not self._keeps or listing is None or not outcome.complete:
            return
        stream = io.BytesIO()
        try:
            _WithParts(stream, protocol=5).dump(outcome)
            content, names = stream.getvalue(), _digest(listing)
        except (StoreError, OSError, TypeError, AttributeError, pickle.PicklingError):
            return  # the store is read again: no more than that depends on it
        small = base64.b64encode(zlib.compress(content, 1))
        if len(content) > _CONTENT_BYTES or len(small) > _PACKED_BYTES:
            return
        sums = {"listing": names, "packed": hashlib.sha256(small).hexdigest(), "bytes": len(content)}
        head = json.dumps({**self._made_by(store), **sums})
        with contextlib.suppress(OutputFailed):  # a disk that is full: the results themselves will say so
            self._output.write(f"{store.name}/{KEPT}", (head, "\n", small.decode("ascii")))

    def forget(self) -> None:
        """Remove what was kept, of any run: this one has ended."""
        for store in self._asked.stores:
            with contextlib.suppress(OutputFailed):
                self._output.remove(f"{store.name}/{KEPT}")

    def _made_by(self, store: StoreArgument) -> dict[str, Any]:
        """Return all that an outcome depends on but the bytes of the store."""
        asked, earlier = self._asked, self._earlier.get(store.key)
        found = sorted(path for path, known in earlier.segments.items() if known.damaged) if earlier else []
        found += sorted(str(finding) for finding in earlier.derived) if earlier else []
        how = (asked.level, asked.tables, asked.since_run is not None, earlier and earlier.run_id, found, self._together(store))
        options = hashlib.sha256(json.dumps(how).encode("utf-8", "surrogatepass")).hexdigest()
        return {
            "format": _FORMAT,
            "run_id": asked.run_id,
            "tool_version": VERSION,
            "rules_version": RULES_VERSION,
            "options": options,
        }

    def _together(self, store: StoreArgument) -> list[dict[str, Any]]:
        """Return the store itself, then all copies of its group, with which it was compared."""
        group = self._groups.get(store.replica_group or "", [])
        return [asdict(each) for each in (store, *group)]

    def _kept(self, store: StoreArgument) -> AuditOutcome | None:
        if store.problem:
            return None
        try:
            text = self._output.read(f"{store.name}/{KEPT}", _PACKED_BYTES + (1 << 20))
            if text is None:
                return None
            first, _, small = text.partition(b"\n")
            head, made_by = json.loads(first), self._made_by(store)
            if {name: head.get(name) for name in made_by} != made_by or head["packed"] != hashlib.sha256(small).hexdigest():
                return None
            if head["listing"] != _digest(list_folder(StoreLocation(store.path, store.parts))):
                return None
            outcome = _PlainWithParts(io.BytesIO(_unpacked(small, head["bytes"]))).load()
            return outcome if _is_of(outcome, store) else None
        except Exception:
            return None  # cut off, changed, or of another version, which can raise anything while it is read


def _unpacked(small: bytes, size: int) -> bytes:
    """Unpack a content. Raises ValueError if it has another length."""
    if not 0 < size <= _CONTENT_BYTES:
        raise ValueError(f"{size} bytes")
    content = zlib.decompressobj().decompress(base64.b64decode(small, validate=True), size + 1)
    if len(content) != size:
        raise ValueError(f"{len(content)} bytes of {size}")
    return content


def _is_of(outcome: Any, store: StoreArgument) -> bool:
    """Say whether this is a whole outcome of the store. Raises AttributeError if it lacks a field."""
    if type(outcome) is not AuditOutcome:
        return False
    for part in fields(AuditOutcome):
        getattr(outcome, part.name)
    mine = (outcome.name, outcome.release, outcome.complete) == (store.name, store.release, True)
    return mine and outcome.exit_code in (CONSISTENT, DERIVED, LOST)


class _Plain(pickle.Unpickler):
    """Reads rows and the plain values in them. --out may be a folder that others write to: nothing else is ever called."""

    def find_class(self, module: str, name: str) -> Any:
        for known in (rows, advice, finding_codes, first_day, losses, repair, replicas, start_effect):
            if module == known.__name__ and isinstance(kind := vars(known).get(name), type) and kind.__module__ == module:
                return kind
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        if (module, name) == ("builtins", "getattr"):  # with which Python up to 3.11.3 writes a member of an enumeration
            return _member
        raise pickle.UnpicklingError(f"{module}.{name}: no kind of row")


def _member(kind: Any, name: str) -> Enum:
    """Return a member of an enumeration by its name. Raises UnpicklingError for anything else."""
    if not (isinstance(kind, type) and issubclass(kind, Enum) and name in kind.__members__):
        raise pickle.UnpicklingError(f"{name}: no member of an enumeration")
    return kind.__members__[name]


_PLAIN = {
    ("datetime", "datetime"),
    ("datetime", "timezone"),
    ("datetime", "timedelta"),
    ("builtins", "set"),
    ("builtins", "frozenset"),
}


class _WithParts(pickle.Pickler):
    """Writes of a packed list its parts as they are: its rows are never in memory together."""

    def persistent_id(self, value: Any) -> tuple[bytes, ...] | None:
        return value.parts if isinstance(value, PackedList) else None


class _PlainWithParts(_Plain):
    """Reads the form of `_WithParts`; raises ValueError if the rows are too many."""

    _left = _ROWS_BYTES

    def persistent_load(self, parts: Any) -> Sequence[Any]:
        return packed((row for part in parts for row in self._rows(part)), weight_of_row)

    def _rows(self, part: bytes) -> list[Any]:
        content = zlib.decompressobj().decompress(part, _PART_BYTES + 1)
        self._left -= len(content)
        if len(content) > _PART_BYTES or self._left < 0:
            raise ValueError("too many rows")
        rows: list[Any] = _Plain(io.BytesIO(content)).load()
        return rows


def _digest(listing: StoreListing) -> str:
    """Return a digest of every name with its kind, length and time."""
    known = [(file.path, file.kind, file.size, file.mtime_ns) for file in every_file(listing)]
    return hashlib.sha256(json.dumps(known).encode("utf-8", "surrogatepass")).hexdigest()
