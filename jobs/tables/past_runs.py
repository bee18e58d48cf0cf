"""The parts that report, runs, diff and coverage share: their options, rows of the Delta tables, pages of earlier runs.

A run counts once its rows are in `runs`; readers take run ids from there and ask the other tables, which are partitioned by
month, for these alone. All is asked by SQL in this process (`jobs.tables.delta_query`), so no command waits for Spark to start.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from jobs.cli.argument_places import absolute, refuse_inside, refuse_inside_any, refuse_not_utf8
from jobs.cli.option_values import near
from jobs.cli.options import Command
from jobs.cli.stores import INDEX, RESULT
from jobs.cli.terminal import colour_wanted
from jobs.report.past_views import KnownRun, TrendRun, View
from jobs.report.texts.run_words import short_names
from jobs.report.values_as_rows import columns_of, json_text, values
from jobs.runtime.output import OutputFailed, OutputFolder, write_local
from jobs.tables.delta_query import BySpark, DeltaQuery, SparkTable, answer, named_in, one_of
from jobs.tables.names_in_tables import StoredRun, StoreNames
from jobs.tables.table_files import of_table
from schemas.rows import Row
from schemas.tables import MONTH, RUN_ID, TABLES
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.paths import is_uri

_LONGEST = 64 << 20  # of a result.json, bytes: some hundred thousand stores


class OfStore(Protocol):
    """What has the name of its store."""

    @property
    def store(self) -> str: ...


_NEWEST = """SELECT * EXCEPT (place) FROM (
    SELECT *, row_number() OVER (PARTITION BY run_id, store ORDER BY started_at DESC NULLS LAST) AS place FROM ({})
) WHERE place = 1"""
T = TypeVar("T")
S = TypeVar("S", bound=OfStore)
R = TypeVar("R", bound=KnownRun)
V = TypeVar("V", bound=View)


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


def write_view(command: Command, view: V, text_of: Callable[[V, bool], str], stores: Iterable[str | None]) -> None:
    """Write the view as JSON, or as text.

    text_of: makes the text of the view and of whether colours are wanted.
    stores: as `put` takes them.
    """
    text = json_text(view) if format_of(command) == "json" else text_of(view, "--out" not in command.options and colour_wanted())
    put(command, text, sorted({store or "" for store in stores}))


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


# ---- tables --------------------------------------------------------------------------------------------------------


class History:
    """The tables under one address. Raises StoreError if there are no tables.

    spark: reads them in place of delta-rs.
    """

    def __init__(self, uri: str, spark: BySpark | None = None):
        self.uri, self._spark = uri.rstrip("/"), spark
        self._opened: dict[str, DeltaQuery | SparkTable] = {}
        if not self._table("runs").exists():
            raise StoreError(f"--tables {self.uri!r}: no audit's tables are there (there is no Delta table {self.uri}/runs)")

    @cached_property
    def _known(self) -> list[StoredRun]:
        """Return names, time and month of each row of `runs`. They are read once: each run is a file or more."""
        columns = ", ".join(columns_of(StoredRun))
        stored = f"SELECT {self._table('runs').stored()} FROM runs_stored"
        return values(StoredRun, self._answer(f"SELECT {columns} FROM ({stored})", ["runs"]))

    @cached_property
    def names(self) -> StoreNames:
        """Return the names of the stores of all runs."""
        return StoreNames(self._known)

    @cached_property
    def known(self) -> Sequence[KnownRun]:
        """Return all runs by store and time, each store of a run once."""
        kept = {(run.run_id, run.store): run for run in sorted(self.names.named(self._known), key=began)}
        return sorted(kept.values(), key=lambda run: (run.store, began(run), run.run_id))

    def query(
        self, shape: type[T], statement: str, run_ids: Sequence[str] | None = None, stores: Sequence[str] | None = None
    ) -> list[T]:
        """Return the answer of `rows` as values of a dataclass."""
        return of_table(self.uri, lambda: values(shape, self.rows(statement, run_ids, stores)))

    def rows(self, statement: str, run_ids: Sequence[str] | None = None, stores: Sequence[str] | None = None) -> list[Row]:
        """Return the answer of SQL on the tables, and the views (`schemas.table_views`), that the statement names.

        A table has the rows of these runs alone, with the stores' names and all columns of this version; `runs` has each store of
        a run once, by its newest row if writers met. No rows if there is no such table yet.

        run_ids: taken from `runs`; None is for all runs.
        stores: their rows alone; None is for all stores.
        """
        names, views = named_in(statement)
        if not all(self._table(name).exists() for name in names):
            return []
        of_runs, of_stores = self._of_runs(run_ids), "TRUE" if stores is None else one_of("store", stores)
        parts: list[str] = []
        for name in names:
            stored = f"SELECT {self._table(name).stored()} FROM {name}_stored"
            named = f"SELECT * FROM ({self.names.sql(f'SELECT * FROM ({stored}) WHERE {of_runs}', run_ids)}) WHERE {of_stores}"
            parts.append(f"{name} AS ({_NEWEST.format(named) if name == 'runs' else named})")
        sql = f"WITH {', '.join((*parts, *views))} ({statement})"
        return self._answer(sql, names)

    def _of_runs(self, run_ids: Sequence[str] | None) -> str:
        if run_ids is None:
            return "TRUE"
        wanted = set(run_ids)
        months = {run.month for run in self._known if run.run_id in wanted}
        of_runs = one_of("run_id", run_ids)
        if None not in months:  # so that no file of another month is opened
            of_runs += f" AND (month IS NULL OR {one_of('month', sorted(filter(None, months)))})"
        return of_runs

    def runs(self, shape: type[R], run_ids: Sequence[str] | None = None, store: str | None = None) -> list[R]:
        """Return rows of `runs` by store and time, each store of a run once.

        run_ids: only these runs'; None is for all.
        """
        columns = ", ".join(columns_of(shape))
        statement = f"SELECT {columns} FROM runs ORDER BY store, started_at NULLS FIRST, run_id"
        return self.query(shape, statement, run_ids, None if store is None else [store])

    def runs_of(self, store: str | None) -> tuple[str | None, list[KnownRun]]:
        """Return the store that --store means, and its runs by time; without --store None, and all runs.

        Raises StoreError as `chosen_store` does.
        """
        name = chosen_store((run.store for run in self.known), store, self.uri)
        return name, [run for run in self.known if name in (None, run.store)]

    def _answer(self, sql: str, names: Iterable[str]) -> list[Row]:
        tables = {f"{name}_stored": self._table(name) for name in names}
        by: Callable[[Mapping[str, Any], str], list[Row]] = answer if self._spark is None else self._spark.answer
        return of_table(self.uri, lambda: by(tables, sql))

    def _table(self, name: str) -> DeltaQuery | SparkTable:
        if name not in self._opened:
            opens = DeltaQuery if self._spark is None else self._spark.open
            self._opened[name] = opens(f"{self.uri}/{name}", (RUN_ID, MONTH, *TABLES[name]))
        return self._opened[name]


def began(run: KnownRun) -> int:
    return run.started_at or 0


def by_store(rows: Iterable[S]) -> defaultdict[str, list[S]]:
    """Return the rows of each store, in their order."""
    found: defaultdict[str, list[S]] = defaultdict(list)
    for row in rows:
        found[row.store].append(row)
    return found


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

    def index_of(self, run_id: str, out: str | None) -> str | None:
        """Return the path of the run's index.html; None if it does not exist any more, or not on this machine."""
        return self._page(run_id, out, INDEX)

    def page_of(self, run: TrendRun) -> str | None:
        """Return the path of the page of a store in a run."""
        return self._page(run.run_id, run.out, f"{run.folder or run.store}/report.html")

    def _page(self, run_id: str, out: str | None, name: str) -> str | None:
        if not out or not out.startswith("/") or run_id != self._run_in(out):
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
