"""The parts that report, runs, diff and coverage share: their options, rows of the Delta tables, pages of earlier runs.

A run counts once its rows are in `runs`; readers take run ids from there and ask the other tables, which are partitioned by
month, for these alone. All is asked by SQL in this process (`jobs.tables.delta_query`), so no command waits for Spark to start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from urllib.parse import quote

from jobs.cli.argument_places import absolute, refuse_inside, refuse_inside_any, refuse_not_utf8
from jobs.cli.option_values import near
from jobs.cli.options import Command
from jobs.cli.stores import INDEX, RESULT
from jobs.cli.terminal import colour_wanted
from jobs.report.texts.run_words import short_names
from jobs.runtime.output import OutputFailed, OutputFolder, write_local
from jobs.tables.delta_query import DeltaQuery, one_of
from jobs.tables.names_in_tables import COLUMNS, StoreNames
from schemas.rows import Row
from schemas.tables import TABLES
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.paths import is_uri

SCHEMA_VERSION = 1
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 and 9999, in µs
_ALL = "SELECT * FROM known"
_LONGEST = 64 << 20  # of a result.json, bytes: some hundred thousand stores


# ---- options -------------------------------------------------------------------------------------------------------


def tables_of(command: Command) -> str:
    """Return the value of --tables, absolute. Raises UsageError."""
    if not command.options.get("--tables", "").strip():
        raise UsageError(f"{command.name} needs --tables URI: the tables that audits wrote (DIR/tables of their --out DIR)")
    tables = absolute(command.options["--tables"])
    refuse_not_utf8("--tables", tables)
    return tables


def format_of(command: Command) -> str:
    """Return the value of --format; without it what the name of --out ends with, else text."""
    end = command.options.get("--out", "").rpartition(".")[2]
    return str(command.options.get("--format", end if end in ("json", "html") else "text"))


def no_arguments(command: Command) -> None:
    """Raise UsageError if the command has arguments."""
    if command.arguments:
        raise UsageError(f"{command.name} takes no argument {command.arguments[0]!r}")


def time_of(micros: int | None) -> str | None:
    """Return a time of the tables as JSON has it, which is ISO 8601 in UTC to the second.

    A time beyond all years becomes the nearest possible one.
    """
    if micros is None:
        return None
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(max(micros, _FIRST_TIME), _LAST_TIME))
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def micros_of(when: datetime) -> int:
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def write_view(command: Command, view: Row, text_of: Callable[[Row, bool], str], stores: Iterable[str]) -> None:
    """Write the view as JSON, or as text.

    text_of: makes the text of the view and of whether colours are wanted.
    stores: as `put` takes them.
    """
    text = json_text(view) if format_of(command) == "json" else text_of(view, "--out" not in command.options and colour_wanted())
    put(command, text, sorted(set(stores)))


def put(command: Command, text: str, stores: Sequence[str]) -> None:
    """Write the text to --out, whole or not at all, or to standard output.

    stores: the places of the copies that the text speaks of: nothing is written into one (UsageError). Raises OutputFailed.
    """
    if "--out" not in command.options:
        print(text, end="", flush=True)
        return
    path = absolute(command.options["--out"])
    refuse_inside(path, "--out", [store for store in stores if store.startswith("/") or is_uri(store)])
    refuse_inside_any(path, "--out")
    try:
        if is_uri(path):
            folder, _, name = path.rpartition("/")
            OutputFolder(folder).write(name, text)
        else:
            write_local(path, [text.encode("utf-8", "backslashreplace")])
    except (OSError, ValueError) as problem:
        raise OutputFailed(f"--out {path}: cannot write: {getattr(problem, 'strerror', None) or problem}") from None


def json_text(value: Row) -> str:
    """Return JSON as the commands write it: indented, ASCII."""
    return json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


# ---- tables --------------------------------------------------------------------------------------------------------


class History:
    """The tables under one address. Raises StoreError if there are no tables."""

    def __init__(self, uri: str):
        self.uri = uri.rstrip("/")
        self._opened: dict[str, DeltaQuery] = {}
        self._runs = self._table("runs")
        if not self._runs.exists():
            raise StoreError(f"--tables {self.uri!r}: no audit's tables are there (there is no Delta table {self.uri}/runs)")

    @cached_property
    def _known(self) -> list[Row]:
        """Return names, time and month of each row of `runs`. They are read once: each run is a file or more."""
        return self._runs.ask(["run_id", "store", "started_at", "month", *COLUMNS])

    @cached_property
    def names(self) -> StoreNames:
        """Return the names of the stores of all runs."""
        return StoreNames(self._known)

    def query(
        self,
        name: str,
        run_ids: Sequence[str],
        columns: Sequence[str],
        statement: str = _ALL,
        stores: Sequence[str] | None = None,
    ) -> list[Row]:
        """Return the rows of a statement of SQL on `known`.

        That is a table's rows of these runs, with run_id, store and these columns.

        columns: one that is younger than the table is null.
        run_ids: taken from `runs`.
        stores: their rows alone; None is for all stores.
        """
        table = self._table(name)
        if not table.exists():
            return []
        wanted = set(run_ids)
        months = {row["month"] for row in self._known if row["run_id"] in wanted}
        of_runs = one_of("run_id", run_ids)
        if None not in months:  # so that no file of another month is opened
            of_runs += f" AND (month IS NULL OR {one_of('month', sorted(months))})"
        listed = ", ".join(f'"{column}"' for column in columns)
        named = f"SELECT run_id, {self.names.sql(run_ids)} AS store, {listed} FROM stored WHERE {of_runs}"
        known = "SELECT * FROM named" + ("" if stores is None else f" WHERE {one_of('store', stores)}")
        statement = f"WITH named AS ({named}), known AS ({known}) ({statement})"
        return table.query(["run_id", "store", "month", *columns], statement)

    def runs(self, columns: Sequence[str], run_ids: Sequence[str] | None = None, store: str | None = None) -> list[Row]:
        """Return rows of `runs` with started_at as µs since 1970, by store and time; each store of a run once.

        run_ids: only these runs'; None is for all.
        """
        if columns or run_ids is not None:
            stored = None if store is None else self.names.as_stored(store)
            rows = self._runs.ask(["run_id", "store", "started_at", *columns], _where(run_ids, stored))
        else:
            rows = self._known
        return [row for row in one_per_run(self.names.named(rows)) if store in (None, row["store"])]

    def runs_of(self, store: str | None, columns: Sequence[str]) -> tuple[str | None, list[Row]]:
        """Return the store that --store means, and its rows as `runs` has them; without --store None, and all rows.

        Raises StoreError as `chosen_store` does.
        """
        rows = self.runs(columns)
        name = chosen_store((row["store"] for row in rows), store, self.uri)
        return name, [row for row in rows if name in (None, row["store"])]

    def _table(self, name: str) -> DeltaQuery:
        if name not in self._opened:
            self._opened[name] = DeltaQuery(f"{self.uri}/{name}", TABLES[name])
        return self._opened[name]

    def codes(self, run_ids: Sequence[str], store: str | None = None) -> list[Row]:
        """Return the findings of these runs, summed up: run_id, store, severity, code, count, findings, file (the first)."""
        key = ["run_id", "store", "severity", "code"]
        sums = ['sum("count") AS "count"', "count(*) AS findings", 'min("file") AS "file"']
        findings = self._table("findings")
        if not findings.exists():
            return []
        stored = None if store is None else self.names.as_stored(store)
        rows = findings.ask([*key, *sums], f"{_where(run_ids, stored)} GROUP BY {', '.join(key)}")
        return [row for row in self.names.named(rows) if store in (None, row["store"])]


def _where(run_ids: Sequence[str] | None, stores: Sequence[str] | None) -> str:
    conditions = [] if run_ids is None else [one_of("run_id", run_ids)]
    conditions += [] if stores is None else [one_of("store", stores)]
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def one_per_run(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with each store of a run once, by store and time. The newest row counts if writers met."""
    kept: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["started_at"] or 0):
        kept[row["run_id"], row["store"]] = row
    return sorted(kept.values(), key=lambda row: (row["store"], row["started_at"] or 0, row["run_id"]))


def chosen_store(names: Iterable[str], store: str | None, where: str) -> str | None:
    """Return the store that --store means: by its name or place, or by an end that only its place has.

    None without --store. Raises StoreError if there is none, or if it could be several.
    """
    known = sorted(set(names))
    if store is None or store in known:
        return store
    ends = [name for name in known if name == absolute(store) or name.endswith(f"/{store}")]
    if len(ends) > 1:
        raise StoreError(f"--store {store!r}: {where} has {len(ends)} stores in such a place: {', '.join(ends[:5])}")
    if ends:
        return ends[0]
    raise StoreError(f"--store {store!r}: not in {where}{near(store, [*known, *short_names(known).values()])}")


class Pages:
    """Pages of runs on this machine. Each --out is looked at once."""

    def __init__(self) -> None:
        self._runs: dict[str, str | None] = {}  # --out -> the run whose results are there

    def index_of(self, run: Row) -> str | None:
        """Return the path of the run's index.html; None if it does not exist any more, or not on this machine."""
        return self._page(run, INDEX)

    def page_of(self, run: Row) -> str | None:
        """Return the path of the page of a store in a run. run: its row of `runs`, with run_id, store, folder and out."""
        return self._page(run, f"{run.get('folder') or run['store']}/report.html")

    def _page(self, run: Row, name: str) -> str | None:
        out = run.get("out")
        if not out or not out.startswith("/") or run["run_id"] != self._run_in(out):
            return None
        path = f"{out}/{name}"
        return path if os.path.isfile(path) else None

    def _run_in(self, out: str) -> str | None:
        if out not in self._runs:
            self._runs[out] = _run_of(f"{out}/{RESULT}")
        return self._runs[out]


def _run_of(result: str) -> str | None:
    try:
        if not os.path.isfile(result) or os.path.getsize(result) > _LONGEST:
            return None
        with open(result, encoding="utf-8") as file:
            found = parsed(json.loads, file.read())
    except (OSError, ValueError):
        return None
    run_id = found.get("run_id") if isinstance(found, dict) else None
    return run_id if isinstance(run_id, str) else None


def link_to(path: str, page: str | None) -> str:
    """Return a link to a local file in a page.

    page: the future place of that page on this machine; None: nobody knows, or elsewhere.
    """
    if page is None:
        return f"file://{quote(path, errors='surrogateescape')}"
    return quote(os.path.relpath(path, os.path.dirname(page)), errors="surrogateescape")
