"""The store times of a copy's segments, as the newest audit that counts wrote them to its tables. Read without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs import RULES_VERSION
from jobs.tables.delta_query import DeltaQuery, text
from store_io.base.errors import UsageError
from store_io.messages.choice.by_tables import EarlierTimes, KnownSegment, unchanged
from store_io.messages.open_store import OpenStore


@dataclass(frozen=True, slots=True)
class _Run:
    """A row of `runs`, of which nothing is known yet: whoever writes the tables, no column is surely of its type."""

    run_id: object
    store: object
    release: object
    rules_version: object
    settings: object

    def fits(self, release: str, settings: Mapping[str, str]) -> bool:
        """Say whether that run took the same bytes for messages."""
        if not (isinstance(self.run_id, str) and isinstance(self.store, str) and isinstance(self.settings, list)):
            return False  # not what an audit writes
        own = {one["key"]: one["value"] for one in self.settings if isinstance(one, dict) and {"key", "value"} <= one.keys()}
        return (self.release, self.rules_version, own) == (release, RULES_VERSION, settings)


@dataclass(frozen=True, slots=True)
class _Segment:
    """A row of `segments`, likewise."""

    file: object
    size_bytes: object
    modified_ns: object
    edge_digest: object
    verified_run: object
    problem: object
    first_store_time_ms: object
    last_store_time_ms: object

    def known(self) -> KnownSegment | None:
        """Return what is known of the segment if all of it was read, in that run or one before, and both times are known.

        A time of 0 is written as null. A column of another type than an audit writes says nothing: the segment is read.
        """
        size, modified, first, last = self.size_bytes, self.modified_ns, self.first_store_time_ms, self.last_store_time_ms
        if not (isinstance(size, int) and isinstance(modified, int) and isinstance(first, int) and isinstance(last, int)):
            return None
        if self.problem or not (isinstance(self.edge_digest, str) and isinstance(self.verified_run, str)):
            return None
        return KnownSegment(size, modified, self.edge_digest, first, last) if self.edge_digest and self.verified_run else None


def earlier_times(tables: str, store: OpenStore, release: str) -> EarlierTimes:
    """Return the times of segments that are still the same, from the newest run with this release and these settings.

    That run has the current rules. Raises UsageError if there are no tables, TablesFailed if they cannot be read.
    """
    runs, segments = DeltaQuery(f"{tables}/runs"), DeltaQuery(f"{tables}/segments")
    if not runs.exists() or not segments.exists():
        raise UsageError(f"{tables} holds no tables of audits: name DIR/tables of their --out DIR, or their --tables")
    root = store.location.root
    rows = runs.read(_Run, f'WHERE "location" = {text(root)} ORDER BY "started_at" DESC, "run_id" DESC')
    if not rows:
        return EarlierTimes(refused=f"the tables {tables} have no run of the store {root}")
    settings = {key: str(setting.value) for key, setting in store.rules.settings.items()}
    run = next((run for run in rows if run.fits(release, settings)), None)
    if run is None:
        alike = f"release {release}, the same settings and rules version {RULES_VERSION}"
        return EarlierTimes(refused=f"the tables {tables} have no run of the store {root} with {alike}")
    run_id, own = str(run.run_id), f'"run_id" = {text(str(run.run_id))} AND "store" = {text(str(run.store))}'
    rows_of_it = segments.read(_Segment, f"WHERE {own}")
    found = {str(row.file): known for row in rows_of_it if row.file and (known := row.known())}
    return unchanged(store, EarlierTimes(run_id, found))
