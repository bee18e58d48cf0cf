"""What earlier runs say of the stores' segments, out of the Delta tables: what need not be read again, and what comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jobs.options import LAST_RUN, StoreArgument
from schemas.rows import NOTE, EarlierRun, EarlierSegment, QueueKey
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
    if "level" not in runs.columns:  # tables of a version that did not say what was verified
        return {}
    runs = runs.where(sql.coalesce("level", sql.lit("")) != "quick")
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
    chosen_runs = sql.col("run_id").isin(sorted({run for _, run in wanted}))
    if wanted:
        frame = tables.read("segments").where(chosen_runs)
        for row in frame.withColumn("verified_at", sql.unix_micros("verified_at")).collect():
            key = (row["store"], row["run_id"])
            if key in segments:
                segments[key][row["file"]] = _segment(row.asDict(True))
    derived: dict[tuple[str, str], list[tuple[str, int | None, int]]] = {key: [] for key in wanted}
    queues: dict[tuple[str, str], dict[QueueKey, tuple[tuple[str, int, str], ...]]] = {key: {} for key in wanted}
    index: dict[tuple[str, str], dict[str, str]] = {key: {} for key in wanted}
    if wanted and since_run is not None:
        for row in (
            tables.read("queues")
            .where(chosen_runs)
            .select("store", "run_id", "topic", "queue_id", "compared", "file_count")
            .collect()
        ):
            if (row["store"], row["run_id"]) in queues:
                if row["compared"] is None and row["file_count"]:  # not read in time: nothing is known of them
                    derived[row["store"], row["run_id"]].append(("consumequeue", None, 1))
                files = tuple((file["file"], file["entries"], file["digest"]) for file in row["compared"] or ())
                queues[row["store"], row["run_id"]][row["topic"], row["queue_id"]] = files
        for row in tables.read("index_files").where(chosen_runs).select("store", "run_id", "file", "digest").collect():
            if (row["store"], row["run_id"]) in index:
                index[row["store"], row["run_id"]][row["file"]] = row["digest"]
        frame = tables.read("findings").where(chosen_runs & (sql.col("severity") != NOTE))
        frame = frame.where(sql.col("file").rlike("^(consumequeue|batchconsumequeue|consumequeue_ext|index)(/|$)"))
        for row in frame.select("store", "run_id", "file", "phy_offset", "count").collect():
            if (row["store"], row["run_id"]) in derived:
                derived[row["store"], row["run_id"]].append((row["file"], row["phy_offset"], row["count"]))
    found = {}
    for (store, run), row in wanted.items():
        settings = {setting["key"]: setting["value"] for setting in row["settings"] or ()}
        found[store] = EarlierRun(
            run, row["release"], settings, segments[store, run], queues[store, run], index[store, run], tuple(derived[store, run])
        )
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
