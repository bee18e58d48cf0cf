"""Keeps the stores that a run has finished in --out until the run ends.

A run that was killed and is started again under its id takes them over.

A store's outcome is taken over only if it was written whole, is complete, and was made by the same versions with the same
options and in the same group of copies, and if every name, length and time in the store is as it was. Nothing of the store is
opened for that: it is listed. What was kept is JSON, read by the types of `Outcome`: no code of a file in --out runs, and
whatever else is found in its place means that the store is read again. Who can write to --out is believed.
A run of another id, and the end of a run, remove what was kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs import RULES_VERSION, VERSION
from jobs.audit.results import put_away
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.runtime import interrupts
from jobs.runtime.output import KEPT, OutputFailed, OutputFolder
from schemas.outcome import Outcome
from schemas.rows import EarlierRun
from schemas.tables import TABLES
from store_io.base.documents import value_of, whole_form
from store_io.base.errors import StoreError, parsed
from store_io.base.exit_codes import CONSISTENT, DERIVED, LOST
from store_io.base.packed import packed
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import StoreListing, every_file, list_folder

if TYPE_CHECKING:
    from jobs.audit.one_store import WholeStore

_THREADS = 2  # each holds one kept file
_FORMAT = 9
_MOST_BYTES = 16 << 20  # of a file; an outcome that needs more is not kept
_MOST_ROWS = 60_000  # of an outcome that is written at all


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

    def take(self, earlier: Mapping[str, EarlierRun]) -> dict[int, Outcome]:
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

    def keep(self, store: StoreArgument, outcome: Outcome, listing: StoreListing | None) -> None:
        """Keep it. An incomplete one is not kept: what kept it from being read may be over."""
        if not self._keeps or listing is None or not outcome.complete:
            return
        if sum(map(len, (outcome.rows.queues, outcome.plan.inputs, outcome.found.findings, outcome.plan.steps))) > _MOST_ROWS:
            return
        try:
            content, names = json.dumps(outcome, default=_form), _digest(listing)
        except (StoreError, OSError, TypeError):
            return  # the store is read again: no more than that depends on it
        if len(content) > _MOST_BYTES:
            return
        head = json.dumps({**self._made_by(store), "listing": names, "sha256": hashlib.sha256(content.encode()).hexdigest()})
        with contextlib.suppress(OutputFailed):  # a disk that is full: the results themselves will say so
            self._output.write(f"{store.name}/{KEPT}", (head, "\n", content))

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

    def _kept(self, store: StoreArgument) -> Outcome | None:
        if store.problem:
            return None
        try:
            text = self._output.read(f"{store.name}/{KEPT}", _MOST_BYTES + (1 << 20))
            if text is None:
                return None
            first, _, content = text.partition(b"\n")
            head, made_by = parsed(json.loads, first), self._made_by(store)
            if {name: head.get(name) for name in made_by} != made_by or head["sha256"] != hashlib.sha256(content).hexdigest():
                return None
            if head["listing"] != _digest(list_folder(StoreLocation(store.path, store.parts))):
                return None
            outcome = value_of(Outcome, parsed(json.loads, content))
            for row in outcome.rows.segments:
                row.update({name: datetime.fromisoformat(row[name]) for name in _TIMES & row.keys() if row[name] is not None})
            if any(not row.keys() <= known for name, known in _COLUMNS.items() for row in getattr(outcome.rows, name)):
                return None
            outcome = put_away(replace(outcome, rows=replace(outcome.rows, queues=packed(outcome.rows.queues))))
        except Exception:
            return None  # whatever is wrong with what lies there, the store is read again
        if not outcome.complete or outcome.exit_code not in (CONSISTENT, DERIVED, LOST):
            return None
        said = (outcome.name, outcome.release, outcome.location_text, outcome.key, outcome.replica_group)
        return outcome if said == (store.name, store.release, store.path, store.key, store.replica_group or "") else None


_COLUMNS = {name: {column.name for column in TABLES[name]} for name in ("segments", "queues", "index_files")}
_TIMES = {column.name for column in TABLES["segments"] if column.type == "timestamp"}  # a row holds those that an earlier run has


def _form(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else whole_form(value)


def _digest(listing: StoreListing) -> str:
    """Return a digest of every name with its kind, length and time."""
    known = [(file.path, file.kind, file.size, file.mtime_ns) for file in every_file(listing)]
    return hashlib.sha256(json.dumps(known).encode("utf-8", "surrogatepass")).hexdigest()
