"""Reads from the Delta tables what earlier runs say of the stores.

It shows what need not be read again, what is read first, and how far each log has reached. Spark reads them, which such an audit
has started anyway, and which reaches every place that tables are written to; delta-rs, which answers `runs`, does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jobs.cli.option_values import LAST_RUN
from jobs.cli.stores import StoreArgument
from jobs.runtime.faults import reason
from jobs.tables.names_in_tables import COLUMNS, StoreNames
from schemas.rows import NOTE, EarlierRun, EarlierSegment, FurthestRun, Row
from store_io.base.errors import StoreError, UsageError
from store_io.checks.changed_bytes import COLUMNS as COLUMNS_SEEN
from store_io.checks.changed_bytes import Seen, seen_segments
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from jobs.tables.delta_tables import Tables
    from jobs.tables.names_in_tables import StoreNames

_FURTHEST = ("store", *COLUMNS, "started_at", "level", "messages", "log_end")
DERIVED_FILES = "^(consumequeue|batchconsumequeue|consumequeue_ext|index)(/|$)"
RUN_COLUMNS = ("month", "level", "complete", "losses", "rebuildable", "damaged_extents")
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
        return _earlier_runs(tables, stores, since_run, run_id, rules_version)
    except StoreError:
        raise
    except Exception as problem:  # a damaged file, a protocol that this Delta does not know: Spark's errors have no common kind
        raise StoreError(f"earlier runs cannot be read from the tables {tables.uri}: {reason(problem)}") from None


def _earlier_runs(
    tables: Tables, stores: Sequence[StoreArgument], since_run: str | None, run_id: str, rules_version: str
) -> dict[str, EarlierRun]:
    from pyspark.sql import functions as sql

    keys = {store.key for store in stores}
    named = since_run if since_run != LAST_RUN else None
    if "level" not in tables.read("runs").columns:  # tables of a version that did not say what was verified
        return {}
    runs = tables.rows_of("runs")
    if "month" not in runs.columns:  # made by a version that put each run in a folder of its own
        runs = runs.withColumn("month", sql.lit(None).cast("string"))
    columns = ("store", "run_id", *COLUMNS, "release", "rules_version", "settings", *RUN_COLUMNS)
    asked = runs.select(*columns, sql.unix_micros("started_at").alias("began")).collect()
    names = StoreNames(asked)
    every = [row for row in names.named(row.asDict(True) for row in asked) if row["store"] in keys and row["run_id"] != run_id]
    rows = [row for row in every if row["level"] != "quick" and named in (None, row["run_id"])]
    chosen = {row["store"]: row for row in sorted(rows, key=lambda row: (row["began"], row["run_id"]))}  # the latest stays
    if named is not None and not chosen:
        raise UsageError(f"--since-run {named!r}: {tables.uri} has no run of this id with a store of this audit")
    found: dict[str, EarlierRun] = {}
    derived: dict[str, list[tuple[str, int | None, int]]] = {store: [] for store in chosen}
    for store, row in chosen.items():
        if row["rules_version"] == rules_version:
            settings = {setting["key"]: setting["value"] for setting in row["settings"] or ()}
            found[store] = EarlierRun(row["run_id"], row["release"], settings, {}, derived=derived[store])
    if not found:
        return {}

    of_these = sql.col("run_id").isin(sorted({earlier.run_id for earlier in found.values()}))

    def rows_of(frame: DataFrame) -> Iterator[tuple[EarlierRun, Any]]:
        for row in names.named(row.asDict(True) for row in frame.collect()):
            earlier = found.get(row["store"])
            if earlier is not None and earlier.run_id == row["run_id"]:
                yield earlier, row

    segments = tables.read("segments").where(of_these)
    for earlier, row in rows_of(segments.withColumn("verified_at", sql.unix_micros("verified_at"))):
        earlier.segments[row["file"]] = _segment(row)
    mark_found_since(tables, found, every, names)
    if since_run is None:
        return found
    queues = tables.read("queues").where(of_these)
    for earlier, row in rows_of(queues.select("store", "run_id", "topic", "queue_id", "compared", "file_count")):
        if row["compared"] is None and row["file_count"]:  # not read in time: nothing is known of them
            derived[row["store"]].append(("consumequeue", None, 1))
        files = tuple((file["file"], file["entries"], file["digest"]) for file in row["compared"] or ())
        earlier.queues[row["topic"], row["queue_id"]] = files
    for earlier, row in rows_of(tables.read("index_files").where(of_these).select("store", "run_id", "file", "digest")):
        earlier.index[row["file"]] = row["digest"]
    findings = tables.read("findings").where(of_these & (sql.col("severity") != NOTE))
    findings = findings.where(sql.col("file").rlike(DERIVED_FILES))
    for _, row in rows_of(findings.select("store", "run_id", "file", "phy_offset", "count")):
        derived[row["store"]].append((row["file"], row["phy_offset"], row["count"]))
    for store, finding in derived_since(tables, found, every, names):
        derived[store].append(finding)
    return found


class Furthest:
    """The earlier run of each store that saw its log reach furthest, and what the last one says of its segments. Read once.

    A run that is repeated under its id counts neither its own rows nor those of runs that began after it.
    stores: those whose segments are read.
    """

    def __init__(self, tables: Callable[[], Tables], run_id: str, stores: Sequence[StoreArgument] = ()):
        self._tables, self._run_id, self._stores = tables, run_id, stores
        self._seen: dict[str, Seen] = {}
        self._by_store: dict[str, list[Row]] = {}
        self._names = StoreNames(())
        self.problem = ""  # why not all is known, a sentence

    def read(self) -> Furthest:
        """Read the runs."""
        found = self._rows("runs", _FURTHEST)
        self._names = StoreNames(found)
        rows = [row for row in self._names.named(found) if row["started_at"] is not None]
        own = min((row["started_at"] for row in rows if row["run_id"] == self._run_id), default=datetime.now(UTC))
        for row in rows:
            if row["started_at"] < own and row["messages"]:
                self._by_store.setdefault(row["store"], []).append(row)
        self._read_segments()
        return self

    def _read_segments(self) -> None:
        """Read what the last run with messages of each store says of its segments: each such run once, and no other."""
        last: dict[str, set[str]] = {}
        for key in {store.key for store in self._stores} & self._by_store.keys():
            newest = max(self._by_store[key], key=lambda row: (row["started_at"], row["run_id"]))
            last.setdefault(newest["run_id"], set()).add(key)
        for run_id, keys in last.items():
            of_store: dict[str, list[Row]] = {key: [] for key in keys}
            for row in self._names.named(self._rows("segments", COLUMNS_SEEN, run_id)):
                if row["store"] in keys:
                    of_store[row["store"]].append(row)
            self._seen |= {key: seen_segments(rows) for key, rows in of_store.items()}

    def _rows(self, table: str, columns: Sequence[str], run_id: str | None = None) -> list[Row]:
        """Return rows as `Tables.few` does; none if they cannot be read: the audit itself needs no table."""
        try:
            return self._tables().few(table, columns, run_id)
        except Exception as problem:  # the JVM's own kinds of errors have no common one
            self.problem = f"what earlier runs saw of the stores is not known: {problem}"
            return []

    def of(self, store: StoreArgument) -> FurthestRun | None:
        """Return the run that saw most of this store; None if no run saw a message of it."""
        rows = self._by_store.get(store.key)
        if not rows:
            return None
        row = max(rows, key=_reach)
        when = row["started_at"].astimezone(UTC).strftime("%Y-%m-%d %H:%M")
        return FurthestRun(row["run_id"], when, row["messages"], row["log_end"], row["location"] or "")

    def seen(self, store: StoreArgument) -> Seen:
        """Return what the last run with messages of this store says of its segments."""
        return self._seen.get(store.key, {})

    def segments(self, store: StoreArgument, run: FurthestRun) -> list[Row]:
        """Return that run's rows of this store's segments."""
        rows = self._rows("segments", ("store", "file", "messages", "first_store_time_ms"), run.run_id)
        return [row for row in self._names.named(rows) if row["store"] == store.key]


def _reach(row: Row) -> tuple[int, bool, datetime, str]:
    """Return the sort key for how much a run saw: the log's end first.

    If the ends are equal it is the one that read all of it, then the newest.
    """
    end = row["log_end"] if row["log_end"] is not None else -1
    return end, row["level"] != "quick", row["started_at"], row["run_id"]


def _segment(row: dict[str, Any]) -> EarlierSegment:
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


def mark_found_since(tables: Tables, found: dict[str, EarlierRun], runs: Sequence[Any], names: StoreNames) -> None:
    """Mark the segments as damaged in which another run has found damage since.

    found: store -> the run that is named, whose segments are replaced.
    runs: rows of `runs` with store, run_id, `began` (µs since 1970) and RUN_COLUMNS.
    names: of all stores.
    """
    since = _Since(found, runs, names)
    if not since.runs:
        return
    from pyspark.sql import functions as F

    unknown = F.coalesce(F.col("digest"), F.lit("")) != ""  # it was read, and by no version that says what it found there
    bad = F.col("problem").isNotNull() | (F.col("damaged_bytes") > 0) | (F.col("findings") > 0)
    bad |= unknown & (F.col("damaged_bytes").isNull() | F.col("findings").isNull())
    rows = since.rows_of(tables, "segments", bad).groupBy("store", "file")
    read = F.unix_micros("verified_at")  # in a row that was taken over: the earlier reading
    own = F.collect_set(F.when(read.isNull(), F.col("run_id"))).alias("run_ids")
    for row in rows.agg(F.max(read).alias("read"), own).collect():
        segments = found[row["store"]].segments
        known = segments.get(row["file"])
        if known is not None and max(since.newest(row["store"], row["run_ids"]), _time(row["read"], _NEVER)) >= _read(known):
            segments[row["file"]] = replace(known, damaged=True)


def derived_since(
    tables: Tables, found: dict[str, EarlierRun], runs: Sequence[Any], names: StoreNames
) -> list[tuple[str, Derived]]:
    """Return (store, finding) of findings above a note that other runs have made since on queues and index files.

    Findings about a segment that was read later are left out. Arguments as for `mark_found_since`, after which it is called.
    """
    since = _Since(found, runs, names)
    if not since.runs:
        return []
    from pyspark.sql import functions as F

    wanted = (F.col("severity") != NOTE) & F.col("file").rlike(DERIVED_FILES)
    rows = since.rows_of(tables, "findings", wanted).groupBy("store", "file", "phy_offset", "count")
    told: list[tuple[str, Derived]] = []
    for row in rows.agg(F.collect_set("run_id").alias("run_ids")).collect():
        concerned = list(_left_out(found[row["store"]].segments.values()))
        if row["phy_offset"] is not None and row["count"] == 1:
            concerned = [one for one in concerned if _holds(one, row["phy_offset"])] or concerned
        when = since.newest(row["store"], row["run_ids"])
        if any(when >= _read(known) for known in concerned):
            told.append((row["store"], (row["file"], row["phy_offset"], row["count"])))
    return told


class _Since:
    """Runs with findings that began no earlier than the reading of a segment that may be left out."""

    def __init__(self, found: dict[str, EarlierRun], every: Sequence[Any], names: StoreNames):
        self._names = names
        first = {
            store: min((_read(known) for known in _left_out(earlier.segments.values())), default=None)
            for store, earlier in found.items()
        }
        self.runs = {
            (row["store"], row["run_id"]): row
            for row in every
            if (least := first.get(row["store"])) is not None
            and row["run_id"] != found[row["store"]].run_id
            and _time(row["began"], _EVER) >= least
            and _found_something(row)
        }

    def rows_of(self, tables: Tables, name: str, wanted: Column) -> DataFrame:
        """Return the wanted rows of a table, of these runs and stores. Other stores of these runs may be among them."""
        months = {row["month"] for row in self.runs.values()}
        run_ids = sorted({run_id for _, run_id in self.runs})
        frame = self._names.frame(tables.rows_of(name, run_ids, sorted(months) if None not in months else None), run_ids)
        return frame.where(frame["store"].isin(sorted({store for store, _ in self.runs})) & wanted)

    def newest(self, store: str, run_ids: Iterable[str]) -> float:
        """Return when the last of these runs that count for the store began."""
        known = [self.runs[store, run_id] for run_id in run_ids if (store, run_id) in self.runs]
        return max((_time(row["began"], _EVER) for row in known), default=_NEVER)


def _found_something(row: Any) -> bool:
    """Say whether a run found anything above a note, or did not read all. True if an old row does not say.

    A quick run never reads all, so its findings alone count.
    """
    counts = [row[name] for name in ("losses", "rebuildable", "damaged_extents")]
    return any(count is None or count > 0 for count in counts) or not row["complete"] and row["level"] != "quick"


def _left_out(segments: Iterable[EarlierSegment]) -> Iterable[EarlierSegment]:
    """Return the segments that the named run alone would have left out."""
    return (known for known in segments if known.verified_run and not known.damaged)


def _holds(known: EarlierSegment, phy_offset: int) -> bool:
    start = known.row["base_offset"]
    return bool(start <= phy_offset < start + known.size)


def _read(known: EarlierSegment) -> float:
    """Return when the run began that read the segment, µs since 1970."""
    return _time(known.row.get("verified_at"), _NEVER)


def _time(micros: int | None, otherwise: float) -> float:
    return otherwise if micros is None else float(micros)
