"""runs: the runs in the tables, the newest first, with what each of them found."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime

from jobs.cli.argument_places import absolute, refuse_not_utf8
from jobs.cli.options import Command
from jobs.report.past_views import ListedRun, RunsView
from jobs.report.texts.history_text import runs_text
from jobs.report.values_as_rows import micros_of
from jobs.tables import past_runs
from jobs.tables.past_runs import History, Pages, began
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.paths import is_uri

LISTED = 50  # runs, unless --limit says otherwise

_RUNS = """SELECT run_id, max(started_at) AS started_at, array_agg(exit_code) AS exit_code, bool_and(complete) AS complete,
        count(*) AS stores, array_agg(exit_code) AS stores_by_code,
        coalesce(sum(lost_messages) FILTER (WHERE starts), 0) AS lost_messages,
        count(*) - count(lost_messages) FILTER (WHERE starts) AS stores_not_known, coalesce(sum(losses), 0) AS losses,
        coalesce(sum(rebuildable), 0) AS rebuildable, coalesce(sum(bytes_read), 0) AS bytes_read,
        min(tool_version) AS tool_version, min(rules_version) AS rules_version, min(out) AS out
    FROM runs GROUP BY run_id"""


def run(command: Command) -> int:
    """Run the command. Returns 0 once the list is written."""
    uri = _tables_of(command)
    history = History(uri)
    view = read_runs(
        history, command.options.get("--since"), command.options.get("--store"), command.options.get("--limit", LISTED)
    )
    past_runs.write_view(command, view, runs_text, ())
    return 0


def _tables_of(command: Command) -> str:
    """Return the tables of --tables, or those that the last run into an output folder wrote."""
    if not command.arguments:
        return past_runs.tables_of(command)
    if len(command.arguments) > 1 or "--tables" in command.options:
        raise UsageError("runs takes either DIR, the --out of audits, or --tables URI")
    out = absolute(command.arguments[0])
    refuse_not_utf8("DIR", out)
    result = f"{out}/result.json"
    if not is_uri(out) and os.path.isfile(result):
        try:
            with open(result, encoding="utf-8") as file:
                tables = parsed(json.loads, file.read())["tables"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise StoreError(f"{result}: cannot read which tables the run wrote: {problem}") from None
        if isinstance(tables, str) and tables:
            return tables
    return f"{out.rstrip('/')}/tables"


def read_runs(history: History, since: datetime | None = None, store: str | None = None, limit: int = LISTED) -> RunsView:
    """Read the newest runs of the tables. Raises StoreError if there is no such store."""
    store, known = history.runs_of(store)
    after = None if since is None else micros_of(since)
    times: dict[str, int] = {}
    for run in known:
        times[run.run_id] = max(began(run), times.get(run.run_id, 0))
    within = sorted((when, run_id) for run_id, when in times.items() if after is None or when >= after)
    shown = [run_id for _, run_id in reversed(within)][:limit]
    runs = {run.run_id: run for run in history.query(ListedRun, _RUNS, shown, None if store is None else [store])}
    pages = Pages()
    listed = [replace(runs[run_id], page=pages.index_of(run_id, runs[run_id].out)) for run_id in shown]
    return RunsView(history.uri, store, after, len(within), listed)
