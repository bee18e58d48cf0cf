"""Findings of other runs in the tables since a run verified the segments that may be left out.

The run that is named may be older than damage that a later one found, and a run between may have taken over a segment that it
did not read. So a segment counts as damaged if any run found anything above a note in it, or could not read it, at or after the
reading that the named run relies on. It does so too where the rows do not show that. If a later run found it sound, it is read
once more all the same.

Runs that found nothing cost no query. Of the others only their months and stores are read, and Spark sums them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemas.rows import NOTE, EarlierRun, EarlierSegment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from jobs.tables.delta_tables import Tables
    from jobs.tables.store_names import StoreNames

DERIVED_FILES = "^(consumequeue|batchconsumequeue|consumequeue_ext|index)(/|$)"
RUN_COLUMNS = ("month", "level", "complete", "losses", "rebuildable", "damaged_extents")
_EVER, _NEVER = float("inf"), float("-inf")


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


Derived = tuple[str, int | None, int]  # file, physical offset, count: as in EarlierRun.derived


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
        """When the last of these runs that count for the store began."""
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
    """When the run that read it began, µs since 1970."""
    return _time(known.row.get("verified_at"), _NEVER)


def _time(micros: int | None, otherwise: float) -> float:
    return otherwise if micros is None else float(micros)
