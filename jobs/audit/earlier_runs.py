"""Reads from the Delta tables what earlier runs say of the stores.

It shows what need not be read again, what is read first, and how far each log has reached. All is asked by SQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from jobs.cli.option_values import LAST_RUN
from jobs.cli.stores import StoreArgument
from jobs.report.values_as_rows import SETTINGS, columns_of, micros_of, time_of
from jobs.runtime.faults import reason
from jobs.tables.names_in_tables import StoredRun
from jobs.tables.past_runs import History, began, by_store
from schemas.rows import NOTE, EarlierRun, EarlierSegment, FurthestRun, Row
from store_io.base.errors import StoreError, UsageError
from store_io.checks.changed_bytes import Seen, SegmentRow, seen_segments
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:
    from jobs.tables.delta_tables import Tables

_DERIVED = ("consumequeue", "batchconsumequeue", "consumequeue_ext", "index")
_OF_DERIVED = f"severity <> '{NOTE}' AND split_part(file, '/', 1) IN {_DERIVED}"
_NO_RUN = "--since-run {!r}: {} has no run of this id with a store of this audit"
T = TypeVar("T")
_EVER, _NEVER = float("inf"), float("-inf")
Derived = tuple[str, int | None, int]  # file, physical offset, count: as in EarlierRun.derived


@dataclass(frozen=True)
class Reading:
    """How much of the stores is read.

    earlier: store -> the run before.
    past: how far logs reached in earlier runs, once that is read.
    max_rate: bytes per second that are read on each machine; 0: any number.
    since: as in `StoreLocation`, the same for all that a run reads of its stores.

    The other fields are those of `AuditRequest`.
    """

    level: str = "full"
    not_after: float = 0
    earlier: dict[str, EarlierRun] = field(default_factory=dict)
    reuse: bool = False
    past: Future[Furthest] | None = None
    max_rate: int = 0
    since: int = field(default_factory=time.time_ns)

    def location(self, store: StoreArgument) -> StoreLocation:
        """Return the place of the store, with how it is read."""
        return StoreLocation(store.path, store.parts, max_rate=self.max_rate, since=self.since)


def earlier_runs(
    tables: Tables, stores: Sequence[StoreArgument], since_run: str | None, run_id: str, rules_version: str
) -> dict[str, EarlierRun]:
    """Return store, as the tables call it -> its row of `since_run`, or of the latest run with one. Stores without one are left
    out.

    A finding that other runs have made since a segment was verified counts as its own. A run of the id that is being repeated
    does not count, nor does one of other rules verify anything. Raises UsageError if there is no run of the id that was asked
    for; TablesFailed.
    """
    try:
        history = tables.history()
        if history is None and since_run not in (None, LAST_RUN):
            raise UsageError(_NO_RUN.format(since_run, tables.uri))
        return {} if history is None else _earlier_runs(history, stores, since_run, run_id, rules_version)
    except StoreError:
        raise
    except Exception as problem:  # a damaged file, a protocol that this Delta does not know: delta-rs' errors have no common kind
        raise StoreError(f"earlier runs cannot be read from the tables {tables.uri}: {reason(problem)}") from None


# ---- rows of the tables --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run(StoredRun):
    """What a run says of a store, as columns of `runs` have it."""

    release: str
    rules_version: str
    settings: dict[str, str] = field(metadata=SETTINGS)
    level: str | None
    complete: bool
    losses: int | None
    rebuildable: int | None
    damaged_extents: int | None

    @property
    def found_something(self) -> bool:
        """Say whether it found anything above a note, or did not read all. True if an old row does not say.

        A quick run never reads all, so its findings alone count.
        """
        counts = (self.losses, self.rebuildable, self.damaged_extents)
        return any(count is None or count > 0 for count in counts) or not self.complete and self.level != "quick"


@dataclass(frozen=True, slots=True)
class _Reached(StoredRun):
    level: str | None
    messages: int | None
    log_end: int | None


# ---- what need not be read again -----------------------------------------------------------------------------------


def _earlier_runs(
    history: History, stores: Sequence[StoreArgument], since_run: str | None, run_id: str, rules_version: str
) -> dict[str, EarlierRun]:
    named = since_run if since_run != LAST_RUN else None
    runs = history.query(Run, f"SELECT {', '.join(columns_of(Run))} FROM runs", stores=[store.key for store in stores])
    every = [run for run in runs if run.run_id != run_id]
    if every and all(run.level is None for run in every):  # of a version that did not say what was verified
        return {}
    full = [run for run in every if run.level != "quick" and named in (None, run.run_id)]
    chosen = {run.store: run for run in sorted(full, key=lambda run: (_time(run.started_at, _NEVER), run.run_id))}  # the latest
    if named is not None and not chosen:
        raise UsageError(_NO_RUN.format(named, history.uri))
    derived: dict[str, list[Derived]] = {store: [] for store in chosen}
    found = {
        store: EarlierRun(run.run_id, run.release, run.settings, {}, derived=derived[store])
        for store, run in chosen.items()
        if run.rules_version == rules_version
    }
    if not found:
        return {}

    run_ids = sorted({earlier.run_id for earlier in found.values()})

    def rows_of(columns: str, table: str, wanted: str = "TRUE") -> Iterator[tuple[EarlierRun, Row]]:
        """Yield the run that is named for its store, and the row, of each wanted row of a table."""
        statement = f"SELECT {columns} FROM {table} WHERE {wanted}"
        for row in history.rows(statement, run_ids, list(found)):
            if found[row["store"]].run_id == row["run_id"]:
                yield found[row["store"]], row

    for earlier, row in rows_of("*", "segments"):
        earlier.segments[row["file"]] = _segment(row)
    since = _Since(history, found, every)
    since.mark_segments()
    if since_run is None:
        return found
    for earlier, row in rows_of("run_id, store, topic, queue_id, file_count, compared", "queues"):
        compared = row["compared"]
        if compared is None and row["file_count"]:  # not read in time: nothing is known of them
            derived[row["store"]].append(("consumequeue", None, 1))
        of_queue = tuple((file["file"], file["entries"], file["digest"]) for file in compared or ())
        earlier.queues[row["topic"], row["queue_id"]] = of_queue
    for earlier, row in rows_of("run_id, store, file, digest", "index_files"):
        earlier.index[row["file"]] = row["digest"]
    for _, row in rows_of("run_id, store, file, phy_offset, count", "findings", _OF_DERIVED):
        derived[row["store"]].append((row["file"], row["phy_offset"], row["count"]))
    for store, told in since.derived():
        derived[store].append(told)
    return found


class Furthest:
    """The earlier run of each store that saw its log reach furthest, and what the last one says of its segments. Read once.

    A run that is repeated under its id counts neither its own rows nor those of runs that began after it.
    stores: those whose segments are read.
    """

    def __init__(self, tables: Callable[[], Tables], run_id: str, stores: Sequence[StoreArgument] = ()):
        self._tables, self._run_id, self._stores = tables, run_id, stores
        self._seen: dict[str, Seen] = {}
        self._by_store: dict[str, list[_Reached]] = {}
        self.problem = ""  # why not all is known, a sentence

    def read(self) -> Furthest:
        """Read the runs."""
        runs = [run for run in self._rows("runs", _Reached) if run.started_at is not None]
        own = min((began(run) for run in runs if run.run_id == self._run_id), default=micros_of(datetime.now(UTC)))
        self._by_store = by_store(run for run in runs if began(run) < own and run.messages)
        self._read_segments()
        return self

    def _read_segments(self) -> None:
        """Read what the last run with messages of each store says of its segments: each such run once, and no other."""
        last: dict[str, set[str]] = {}
        for key in {store.key for store in self._stores} & self._by_store.keys():
            newest = max(self._by_store[key], key=lambda run: (began(run), run.run_id))
            last.setdefault(newest.run_id, set()).add(key)
        for run_id, keys in last.items():
            of_store: dict[str, list[SegmentRow]] = {key: [] for key in keys}
            for row in self._rows("segments", SegmentRow, run_id, keys):
                of_store[row.store].append(row)
            self._seen |= {key: seen_segments(rows) for key, rows in of_store.items()}

    @cached_property
    def _history(self) -> History | None:
        return self._tables().history()

    def _rows(self, table: str, shape: type[T], run_id: str | None = None, stores: Collection[str] | None = None) -> list[T]:
        """Return rows of one run, or of all; none if they cannot be read: the audit itself needs no table."""
        statement = f"SELECT {', '.join(columns_of(shape))} FROM {table}"
        try:
            run_ids, of_stores = None if run_id is None else [run_id], None if stores is None else sorted(stores)
            return [] if self._history is None else self._history.query(shape, statement, run_ids, of_stores)
        except Exception as problem:  # delta-rs' errors have no common kind
            self.problem = f"what earlier runs saw of the stores is not known: {problem}"
            return []

    def of(self, store: StoreArgument) -> FurthestRun | None:
        """Return the run that saw most of this store; None if no run saw a message of it."""
        runs = self._by_store.get(store.key)
        if not runs:
            return None
        run = max(runs, key=_reach)
        when = str(time_of(run.started_at))[:16].replace("T", " ")
        return FurthestRun(run.run_id, when, run.messages or 0, run.log_end, run.location or "")

    def seen(self, store: StoreArgument) -> Seen:
        """Return what the last run with messages of this store says of its segments."""
        return self._seen.get(store.key, {})

    def begins(self, store: StoreArgument, run: FurthestRun) -> dict[str, int | None]:
        """Return the earliest store time of each of this store's segments in that run, by path; those with messages alone."""
        rows = self._rows("segments", SegmentRow, run.run_id, [store.key])
        return {row.file: row.first_store_time_ms for row in rows if row.messages}


def _reach(run: _Reached) -> tuple[int, bool, int, str]:
    """Return the sort key for how much a run saw: the log's end first.

    If the ends are equal it is the one that read all of it, then the newest.
    """
    return -1 if run.log_end is None else run.log_end, run.level != "quick", began(run), run.run_id


def _segment(row: Row) -> EarlierSegment:
    verified = row["verified_at"]
    return EarlierSegment(
        row["size_bytes"],
        row["modified_ns"],
        row["edge_digest"] or "",
        bool(row["problem"] or row["damaged_bytes"] or row["findings"]),
        row["verified_run"] or "",
        datetime.fromtimestamp(verified / 1e6, UTC) if verified is not None else None,
        row,
    )


@dataclass(frozen=True, slots=True)
class _Since:
    """Runs with findings that began no earlier than the reading of a segment that may be left out.

    found: store -> the run that is named, whose segments are replaced.
    every: all runs of these stores.
    """

    history: History
    found: dict[str, EarlierRun]
    every: Sequence[Run]

    def mark_segments(self) -> None:
        """Mark the segments as damaged in which another run has found damage since."""
        if not (runs := self._runs()):
            return
        # With a digest it was read, and by no version that says what it found there. Without a time a run has read it itself;
        # else the row was taken over, and that is the earlier reading.
        statement = """
SELECT store, file, max(verified_at) AS verified, array_agg(DISTINCT CASE WHEN verified_at IS NULL THEN run_id END) AS run_ids
FROM segments WHERE problem IS NOT NULL OR damaged_bytes > 0 OR findings > 0
    OR coalesce(digest, '') <> '' AND (damaged_bytes IS NULL OR findings IS NULL)
GROUP BY store, file"""
        for row in self._rows(statement, runs):
            store, file = row["store"], row["file"]
            segments = self.found[store].segments
            known = segments.get(file)
            own, earlier = _newest(runs, store, row["run_ids"]), _time(row["verified"], _NEVER)
            if known is not None and max(own, earlier) >= _was_read(known):
                segments[file] = replace(known, damaged=True)

    def derived(self) -> Iterator[tuple[str, Derived]]:
        """Yield (store, finding) of findings above a note that other runs have made since on queues and index files.

        Findings about a segment that was read later are left out. Called once segments are marked.
        """
        if not (runs := self._runs()):
            return
        columns = "store, file, phy_offset, count"
        statement = f"""
SELECT {columns}, array_agg(DISTINCT run_id) AS run_ids FROM findings WHERE {_OF_DERIVED} GROUP BY {columns}"""
        for row in self._rows(statement, runs):
            store, phy_offset, count = row["store"], row["phy_offset"], row["count"]
            concerned = list(_left_out(self.found[store].segments.values()))
            if phy_offset is not None and count == 1:
                concerned = [one for one in concerned if _holds(one, phy_offset)] or concerned
            when = _newest(runs, store, row["run_ids"])
            if any(when >= _was_read(known) for known in concerned):
                yield store, (row["file"], phy_offset, count)

    def _runs(self) -> dict[tuple[str, str], Run]:
        first = {
            store: min((_was_read(known) for known in _left_out(earlier.segments.values())), default=None)
            for store, earlier in self.found.items()
        }
        return {
            (run.store, run.run_id): run
            for run in self.every
            if (least := first.get(run.store)) is not None
            and run.run_id != self.found[run.store].run_id
            and _time(run.started_at, _EVER) >= least
            and run.found_something
        }

    def _rows(self, statement: str, runs: dict[tuple[str, str], Run]) -> list[Row]:
        """Return the answer on the rows of these runs and stores. Other stores of these runs may be among them."""
        stores, run_ids = ({key[at] for key in runs} for at in (0, 1))
        return self.history.rows(statement, sorted(run_ids), sorted(stores))


def _newest(runs: dict[tuple[str, str], Run], store: str, run_ids: Iterable[str | None]) -> float:
    """Return when the last of these runs that count for the store began."""
    known = (runs.get((store, run_id)) for run_id in run_ids if run_id)
    return max((_time(run.started_at, _EVER) for run in known if run), default=_NEVER)


def _left_out(segments: Iterable[EarlierSegment]) -> Iterable[EarlierSegment]:
    """Return the segments that the named run alone would have left out."""
    return (known for known in segments if known.verified_run and not known.damaged)


def _holds(known: EarlierSegment, phy_offset: int) -> bool:
    start = known.row["base_offset"]
    return bool(start <= phy_offset < start + known.size)


def _was_read(known: EarlierSegment) -> float:
    """Return when the run began that read the segment, µs since 1970."""
    return _time(known.row.get("verified_at"), _NEVER)


def _time(micros: int | None, otherwise: float) -> float:
    return otherwise if micros is None else float(micros)
