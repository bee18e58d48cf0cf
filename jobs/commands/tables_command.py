"""tables: what the tables hold, and what keeps them small: prune, compact, vacuum, info. Reads no store; needs no Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.cli.options import Command
from jobs.report.texts.history_text import tables_text
from jobs.tables import past_runs
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.names_in_tables import COLUMNS as OF_STORES
from jobs.tables.names_in_tables import StoreNames
from jobs.tables.past_runs import micros_of, time_of
from jobs.tables.table_care import COLUMNS, LOG, Choice, StoredFile, TableCare, choose, months_gone, tables_under
from schemas.rows import Row
from store_io.base.errors import StoreError, UsageError

KEPT_HOURS = 7 * 24  # files stay so long for readers and writers that are at work
_OPTIONS = {
    "prune": {"--keep", "--keep-runs", "--dry-run"},
    "compact": {"--dry-run"},
    "vacuum": {"--older-than", "--alone", "--dry-run"},
    "info": set[str](),
}
_COMMON = {"--tables", "--format", "--out"}


def run(command: Command) -> int:
    """Run the command. Returns 0 once it is done."""
    if len(command.arguments) != 1 or command.arguments[0] not in _ACTIONS:
        given = " ".join(command.arguments) or "nothing"
        raise UsageError(f"tables takes one of {', '.join(_ACTIONS)}, not {given!r}")
    action = command.arguments[0]
    options: dict[str, Any] = {**command.options, **dict.fromkeys(command.flags, True)}
    for option in sorted(options.keys() - _OPTIONS[action] - _COMMON):
        raise UsageError(f"{option} does not go with tables {action}")
    uri = past_runs.tables_of(command).rstrip("/")
    now = datetime.now(UTC)
    act = _ACTIONS[action](options)
    cares = tables_under(uri)
    if not cares or cares[0].name != "runs":
        raise StoreError(f"--tables {uri!r}: no audit's tables are there (there is no Delta table {uri}/runs)")
    began = time.monotonic()
    found = act(cares)
    view: Row = {
        "schema_version": past_runs.SCHEMA_VERSION, "action": action, "tables": uri, "made_at": time_of(micros_of(now)),
        "dry_run": "--dry-run" in options, **found, "seconds": round(time.monotonic() - began, 3),
    }  # fmt: skip
    past_runs.write_view(command, view, tables_text, ())
    return 0


_Act = Callable[[Sequence[TableCare]], Row]


# ---- prune ---------------------------------------------------------------------------------------------------------


def _prune(options: Mapping[str, Any]) -> _Act:
    if not {"--keep", "--keep-runs"} & options.keys():
        raise UsageError("tables prune needs --keep WHEN (90d: runs that began since then stay), --keep-runs N, or both")
    since = micros_of(options["--keep"]) if "--keep" in options else None
    return lambda cares: prune(cares, since, options.get("--keep-runs"), datetime.now(UTC), "--dry-run" in options)


def prune(cares: Sequence[TableCare], since: int | None, keep_runs: int | None, now: datetime, dry_run: bool = False) -> Row:
    """Take older runs out of all tables, `runs` first: so nobody sees half a run, wherever it is stopped."""
    _refuse_links(cares)
    found = DeltaQuery(cares[0].uri).ask(["run_id", "store", "started_at", *OF_STORES, *COLUMNS])
    rows = past_runs.one_per_run(StoreNames(found).named(found))
    choice = choose(rows, since, keep_runs)
    before = now.timestamp() - KEPT_HOURS * 3600
    over = datetime.fromtimestamp(before, UTC).strftime("%Y-%m")  # months that ended before this one: nobody writes there
    months = [month for month in months_gone(rows, choice.gone) if month < over]
    whole = frozenset(row["run_id"] for row in rows)
    tables = []
    for care in cares:
        left = [] if care.name == "runs" else care.unfinished(whole, before)
        gone = [*choice.gone, *left]
        tables.append({"table": care.name, "rows": care.rows_of(gone), "unfinished_runs": left})
        if not dry_run and tables[-1]["rows"]:
            care.remove_runs(gone, months)
    return {**_chosen(rows, choice), "since": time_of(since), "keep_runs": keep_runs, "by_table": tables}


def _chosen(rows: Sequence[Row], choice: Choice) -> Row:
    began = {row["run_id"]: row["started_at"] for row in rows}

    def listed(run_ids: Sequence[str]) -> list[Row]:
        return [{"run_id": run_id, "started_at": time_of(began[run_id])} for run_id in run_ids]

    return {"runs": len(began), "gone": listed(choice.gone), "needed": listed(choice.needed)}


# ---- compact, vacuum, info -----------------------------------------------------------------------------------------


def _compact(options: Mapping[str, Any]) -> _Act:
    return lambda cares: compact(cares, "--dry-run" in options)


def compact(cares: Sequence[TableCare], dry_run: bool = False) -> Row:
    """Put small files together, month by month. dry_run: only how many files there are."""
    _refuse_links(cares)
    rows = DeltaQuery(cares[0].uri).ask(["run_id", "started_at"])
    months = {row["run_id"]: (time_of(row["started_at"]) or "1970-01")[:7] for row in rows}
    tables = []
    for care in cares:
        if not care.can_compact():
            if not dry_run:
                care.mend_statistics()
            continue
        before = care.live()
        if not dry_run:
            care.compact(months)
        after = before if dry_run else care.live()
        tables.append(
            {
                "table": care.name,
                "files": [len(before), len(after)],
                "bytes": [sum(file.size_bytes for file in files) for files in (before, after)],
            }
        )
    return {"by_table": tables}


def _vacuum(options: Mapping[str, Any]) -> _Act:
    hours = options.get("--older-than", KEPT_HOURS)
    if hours > KEPT_HOURS:
        raise UsageError(
            f"--older-than {hours}h is over 7d, after which Delta's log forgets what files earlier versions"
            " had: to keep files longer, run vacuum less often"
        )
    if hours < KEPT_HOURS and "--alone" not in options:
        raise UsageError(
            "--older-than of less than 7d would take files from audits and readers that are at work: make sure that there is"
            " none, and say so with --alone"
        )
    return lambda cares: vacuum(cares, hours, "--dry-run" in options)


def vacuum(cares: Sequence[TableCare], hours: int = KEPT_HOURS, dry_run: bool = False) -> Row:
    """Remove files that no version of the last so many hours has, and old versions of the logs."""
    _refuse_links(cares)
    tables = []
    for care in cares:
        unneeded = care.unneeded(hours)
        log = _of_log(care.stored())
        if not dry_run:
            care.vacuum(unneeded)
        after = log if dry_run else _of_log(care.stored())
        tables.append(
            {
                "table": care.name,
                "files": len(unneeded),
                "bytes": sum(file.size_bytes for file in unneeded),
                "log_files": [len(log), len(after)],
                "log_bytes": [sum(file.size_bytes for file in files) for files in (log, after)],
            }
        )
    return {"older_than_hours": hours, "by_table": tables}


def _info(_: Mapping[str, Any]) -> _Act:
    return info


def info(cares: Sequence[TableCare]) -> Row:
    """Return the content and the size of the tables, on the disk too."""
    asked = ["count(DISTINCT run_id) AS runs", "min(started_at) AS oldest", "max(started_at) AS newest"]
    (runs,) = DeltaQuery(cares[0].uri).ask(asked)
    tables = []
    for care in cares:
        live, stored = care.live(), care.stored()
        log, names = _of_log(stored), {file.path for file in live}
        rest = [file for file in stored if file.path.endswith(".parquet") and file not in log and file.path not in names]
        tables.append(
            {
                "table": care.name,
                "rows": sum(file.rows or 0 for file in live),
                "files": len(live),
                "bytes": sum(file.size_bytes for file in live),
                "old_files": len(rest),
                "old_bytes": sum(file.size_bytes for file in rest),
                "log_files": len(log),
                "log_bytes": sum(file.size_bytes for file in log),
            }
        )
    return {"runs": runs["runs"], "oldest": time_of(runs["oldest"]), "newest": time_of(runs["newest"]), "by_table": tables}


def _refuse_links(cares: Sequence[TableCare]) -> None:
    """Look at all tables before the first change, so that no table is changed if another is refused."""
    for care in cares:
        care.refuse_links()


def _of_log(files: Sequence[StoredFile]) -> list[StoredFile]:
    return [file for file in files if file.path.startswith(f"{LOG}/")]


_ACTIONS: dict[str, Callable[[Mapping[str, Any]], _Act]] = {
    "prune": _prune,
    "compact": _compact,
    "vacuum": _vacuum,
    "info": _info,
}
