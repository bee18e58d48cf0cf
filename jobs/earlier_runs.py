"""What earlier runs say of the stores' segments, out of the Delta tables: what need not be read again, and what comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jobs.options import LAST_RUN, StoreArgument
from schemas.rows import EarlierRun, EarlierSegment
from store_io.errors import UsageError

if TYPE_CHECKING:
    from jobs.tables import Tables


@dataclass(frozen=True)
class Reading:
    """How much of the stores is read. earlier: store -> the run before.  The other fields are those of `AuditRequest`."""

    level: str = "full"
    not_after: float = 0
    earlier: dict[str, EarlierRun] = field(default_factory=dict)
    reuse: bool = False


def earlier_runs(
    tables: Tables, stores: Sequence[StoreArgument], since_run: str | None, run_id: str, rules_version: str
) -> dict[str, EarlierRun]:
    """Store -> its row of `since_run`, or of the latest run that it has one of; without those that have none.

    A run of the id that is being repeated, and runs of other rules, do not count. Raises UsageError where there is no run of the
    id that was asked for; TablesFailed.
    """
    from pyspark.sql import functions as sql

    names = {store.name for store in stores}
    chosen: dict[str, Any] = {}
    named = since_run if since_run != LAST_RUN else None
    runs = tables.read("runs").where(sql.col("run_id") != run_id)
    columns = [*(sql.col(name) for name in ("store", "run_id", "release", "rules_version", "settings"))]
    for row in runs.select(*columns, sql.unix_micros("started_at").alias("began")).collect():
        if named is not None and row["run_id"] != named:
            continue
        if row["store"] in names and (row["store"] not in chosen or (row["began"], row["run_id"]) > chosen[row["store"]][:2]):
            chosen[row["store"]] = (row["began"], row["run_id"], row)
    if named is not None and not chosen:
        raise UsageError(f"--since-run {named!r}: {tables.uri} has no run of this id with a store of this audit")
    wanted = {(store, row["run_id"]): row for store, (_, _, row) in chosen.items() if row["rules_version"] == rules_version}
    segments: dict[tuple[str, str], dict[str, EarlierSegment]] = {key: {} for key in wanted}
    if wanted:
        frame = tables.read("segments").where(sql.col("run_id").isin(sorted({run for _, run in wanted})))
        for row in frame.withColumn("verified_at", sql.unix_micros("verified_at")).collect():
            key = (row["store"], row["run_id"])
            if key in segments:
                segments[key][row["file"]] = _segment(row.asDict(True))
    found = {}
    for (store, run), row in wanted.items():
        settings = {setting["key"]: setting["value"] for setting in row["settings"] or ()}
        found[store] = EarlierRun(run, row["release"], settings, segments[store, run])
    return found


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
