"""tables: what the tables hold, and what keeps them small: prune, compact, vacuum, info, views. Without a store or Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.cli.options import Command
from jobs.report.past_views import (
    Compacted,
    CompactedTable,
    NamedRun,
    Pruned,
    PrunedTable,
    TableSize,
    TableSizes,
    TablesView,
    TableViews,
    Vacuumed,
    VacuumedTable,
)  # fmt: skip
from jobs.report.texts.history_text import tables_text
from jobs.report.values_as_rows import micros_of, time_of
from jobs.tables import past_runs
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.past_runs import History
from jobs.tables.table_care import LOG, KeptRun, StoredFile, TableCare, choose, months_gone, tables_under
from jobs.tables.table_files import LiveFile
from schemas.table_views import VIEWS
from store_io.base.errors import StoreError, UsageError

KEPT_HOURS = 7 * 24  # files stay so long for readers and writers that are at work
_OPTIONS = {
    "prune": {"--keep", "--keep-runs", "--dry-run"},
    "compact": {"--dry-run"},
    "vacuum": {"--older-than", "--alone", "--dry-run"},
    "info": set[str](),
    "views": set[str](),
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
    seconds = round(time.monotonic() - began, 3)
    view = TablesView(action, uri, micros_of(now), "--dry-run" in options, found, seconds)
    past_runs.write_view(command, view, tables_text, ())
    return 0


_Act = Callable[[Sequence[TableCare]], Pruned | Compacted | Vacuumed | TableSizes | TableViews]


# ---- prune ---------------------------------------------------------------------------------------------------------


def _prune(options: Mapping[str, Any]) -> _Act:
    if not {"--keep", "--keep-runs"} & options.keys():
        raise UsageError("tables prune needs --keep WHEN (90d: runs that began since then stay), --keep-runs N, or both")
    since = micros_of(options["--keep"]) if "--keep" in options else None
    return lambda cares: prune(cares, since, options.get("--keep-runs"), datetime.now(UTC), "--dry-run" in options)


def prune(cares: Sequence[TableCare], since: int | None, keep_runs: int | None, now: datetime, dry_run: bool = False) -> Pruned:
    """Take older runs out of all tables, `runs` first: so nobody sees half a run, wherever it is stopped."""
    _refuse_links(cares)
    runs = History(cares[0].uri.removesuffix("/runs")).runs(KeptRun)
    choice = choose(runs, since, keep_runs)
    before = now.timestamp() - KEPT_HOURS * 3600
    over = datetime.fromtimestamp(before, UTC).strftime("%Y-%m")  # months that ended before this one: nobody writes there
    months = [month for month in months_gone(runs, choice.gone) if month < over]
    times = {run.run_id: run.started_at for run in runs}
    tables = []
    for care in cares:
        left = [] if care.name == "runs" else care.unfinished(frozenset(times), before)
        gone = [*choice.gone, *left]
        tables.append(PrunedTable(care.name, care.rows_of(gone), left))
        if not dry_run and tables[-1].rows:
            care.remove_runs(gone, months)
    goes, needed = ([NamedRun(run_id, times[run_id]) for run_id in chosen] for chosen in (choice.gone, choice.needed))
    return Pruned(len(times), goes, needed, since, keep_runs, tables)


# ---- compact, vacuum, info -----------------------------------------------------------------------------------------


def _compact(options: Mapping[str, Any]) -> _Act:
    return lambda cares: compact(cares, "--dry-run" in options)


def compact(cares: Sequence[TableCare], dry_run: bool = False) -> Compacted:
    """Put small files together, month by month. dry_run: only how many files there are."""
    _refuse_links(cares)
    months = {run.run_id: (time_of(run.started_at) or "1970-01")[:7] for run in DeltaQuery(cares[0].uri).read(NamedRun)}
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
        tables.append(CompactedTable(care.name, (len(before), len(after)), (_bytes(before), _bytes(after))))
    return Compacted(tables)


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


def vacuum(cares: Sequence[TableCare], hours: int = KEPT_HOURS, dry_run: bool = False) -> Vacuumed:
    """Remove files that no version of the last so many hours has, and old versions of the logs."""
    _refuse_links(cares)
    tables = []
    for care in cares:
        unneeded = care.unneeded(hours)
        log = _of_log(care.stored())
        if not dry_run:
            care.vacuum(unneeded)
        after = log if dry_run else _of_log(care.stored())
        of_log = (len(log), len(after)), (_bytes(log), _bytes(after))
        tables.append(VacuumedTable(care.name, len(unneeded), _bytes(unneeded), *of_log))
    return Vacuumed(hours, tables)


def _info(_: Mapping[str, Any]) -> _Act:
    return info


def info(cares: Sequence[TableCare]) -> TableSizes:
    """Return the content and the size of the tables, on the disk too."""
    runs = DeltaQuery(cares[0].uri).read(NamedRun)
    times = [run.started_at for run in runs if run.started_at is not None]
    tables = []
    for care in cares:
        live, stored = care.live(), care.stored()
        log, names = _of_log(stored), {file.path for file in live}
        rest = [file for file in stored if file.path.endswith(".parquet") and file not in log and file.path not in names]
        rows = sum(file.rows or 0 for file in live)
        files = (len(live), _bytes(live), len(rest), _bytes(rest), len(log), _bytes(log))
        tables.append(TableSize(care.name, rows, *files))
    number = len({run.run_id for run in runs})
    return TableSizes(number, min(times, default=None), max(times, default=None), tables)


def _views(_: Mapping[str, Any]) -> _Act:
    return lambda cares: TableViews(VIEWS)


def _refuse_links(cares: Sequence[TableCare]) -> None:
    """Look at all tables before the first change, so that no table is changed if another is refused."""
    for care in cares:
        care.refuse_links()


def _bytes(files: Iterable[StoredFile | LiveFile]) -> int:
    return sum(file.size_bytes for file in files)


def _of_log(files: Sequence[StoredFile]) -> list[StoredFile]:
    return [file for file in files if file.path.startswith(f"{LOG}/")]


_ACTIONS: dict[str, Callable[[Mapping[str, Any]], _Act]] = {
    "prune": _prune,
    "compact": _compact,
    "vacuum": _vacuum,
    "info": _info,
    "views": _views,
}
