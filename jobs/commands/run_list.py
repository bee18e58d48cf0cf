"""runs: the runs in the tables, the newest first, with what each of them found."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.cli.argument_places import absolute, refuse_not_utf8
from jobs.cli.options import Command
from jobs.report.past_views import KnownRun, ListedRun, RunsView
from jobs.report.texts.history_text import runs_text
from jobs.report.values_as_rows import micros_of
from jobs.tables import past_runs
from jobs.tables.past_runs import History, Pages, began
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.exit_codes import worst
from store_io.base.paths import is_uri

LISTED = 50  # runs, unless --limit says otherwise


@dataclass(frozen=True, slots=True)
class _Row(KnownRun):
    exit_code: int
    complete: bool
    lost_messages: int | None
    starts: bool | None
    losses: int | None
    rebuildable: int | None
    bytes_read: int | None
    tool_version: str | None
    rules_version: str | None
    out: str | None


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
    store, known = history.runs_of(store, KnownRun)
    after = None if since is None else micros_of(since)
    times: dict[str, int] = {}
    for run in known:
        times[run.run_id] = max(began(run), times.get(run.run_id, 0))
    within = sorted((when, run_id) for run_id, when in times.items() if after is None or when >= after)
    shown = [run_id for _, run_id in reversed(within)][:limit]
    rows: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in history.runs(_Row, shown, store):
        rows[row.run_id].append(row)
    pages = Pages()
    return RunsView(history.uri, store, after, len(within), [_run(rows[run_id], pages) for run_id in shown])


def _run(rows: Sequence[_Row], pages: Pages) -> ListedRun:
    """Return a run by the rows of its stores."""
    first, codes = rows[0], Counter(row.exit_code for row in rows)
    known = [row.lost_messages for row in rows if row.starts and row.lost_messages is not None]
    return ListedRun(
        run_id=first.run_id,
        started_at=max(map(began, rows)),
        exit_code=worst(codes),
        complete=all(row.complete for row in rows),
        stores=len(rows),
        stores_by_code={str(code): codes[code] for code in sorted(codes)},
        lost_messages=sum(known),
        stores_not_known=len(rows) - len(known),
        losses=sum(row.losses or 0 for row in rows),
        rebuildable=sum(row.rebuildable or 0 for row in rows),
        bytes_read=sum(row.bytes_read or 0 for row in rows),
        tool_version=first.tool_version,
        rules_version=first.rules_version,
        out=first.out,
        page=pages.index_of(first.run_id, first.out),
    )
