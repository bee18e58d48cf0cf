"""The Delta tables of the results.

A run has rows in small tables, and in the datasets that were asked for; whole runs are read back.

Writing a run is idempotent: what an earlier run of the same id left is taken out first, its `runs` rows before everything
else, and the new `runs` rows come last. So a reader that goes by `runs` never sees half a run, wherever a writer was stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from jobs.report.files.result_files import RunInfo, finding_row
from jobs.tables.delta_log import DeltaLog, spark_schema
from jobs.tables.delta_query import named_in
from jobs.tables.past_runs import History
from jobs.tables.remote_log import RemoteLog
from jobs.tables.table_files import DataFile, hadoop_path, is_local, is_remote
from schemas.arrow import arrow_schema
from schemas.first_day import FirstDay
from schemas.outcome import Outcome
from schemas.replicas import LackedRange
from schemas.rows import LOSS, NOTE, REBUILDABLE, Row
from schemas.table_views import VIEWS
from schemas.tables import (
    DATASETS,
    LOCATION,
    MONTH,
    NAME,
    REPLICA_PARTS,
    RUN_ID,
    RUN_STARTED,
    STORE,
    STORE_FROM,
    TABLES,
    Column,
)
from store_io.answer.answers import answer_of
from store_io.answer.headline import verdict_text
from store_io.answer.steps import steps_of
from store_io.base.exit_codes import rank
from store_io.base.packed import in_parts, weight_of_row
from store_io.base.times import timestamps
from store_io.outcome.plan_writer import step_row
from store_io.outcome.safety import decide, lacks_of
from store_io.wording.refusals import refusal_sentence

if TYPE_CHECKING:
    from jobs.runtime.session import Session

RUNS = "runs"
_ROWS_TOGETHER = 8192
_INSIDE_TOGETHER = 1 << 15  # of the lists in these rows
_FILE_BYTES = 32 << 20  # of one Parquet file's rows, as Arrow holds them
_MENDED_A_NIGHT = 32  # files of a table: a night stays short
SELDOM = ("replica_parts",)  # not made before there is a row for it


class Tables:
    """The tables under one address (a folder or a URI that Spark knows). Others may write there at the same time."""

    def __init__(self, started: Session, uri: str):
        self._started = started
        self.uri = uri.rstrip("/")
        place = self._place()
        kind = RemoteLog if is_remote(place) else DeltaLog
        self._logs = {name: kind(started, f"{place}/{name}", columns) for name, columns in TABLES.items()}
        for name, columns in DATASETS.items():
            self._logs[name] = kind(started, f"{place}/{name}", columns, (RUN_ID, STORE))

    def _place(self) -> str:
        """Return the address with its file system named. A path alone is on the one that Spark takes for such paths."""
        java_context: Any = self._started.context._jsc
        if self.uri.startswith("/"):
            if not str(java_context.hadoopConfiguration().get("fs.defaultFS", "file:///")).startswith("file:"):
                return self.uri
        elif not is_local(self.uri):
            return self.uri
        return f"file:/{'/'.join(part for part in hadoop_path(self.uri).split('/') if part)}"

    def write_run(
        self, run: RunInfo, outcomes: Sequence[Outcome], datasets: Mapping[str, Sequence[DataFile]] | None = None
    ) -> None:
        """Put one run's rows into all tables, in the place of an earlier run of its id. Raises TablesFailed.

        datasets: the files that the run's tasks wrote for record-level datasets (`jobs.tables.datasets`).
        """
        datasets = datasets or {}
        self._logs[RUNS].replace_run(run.run_id, [])
        rows, month = run_rows(run, outcomes), run.started_at.astimezone(UTC).strftime("%Y-%m")
        work = [
            name for name in TABLES if name != RUNS and (rows[name] or name not in SELDOM or self._logs[name].has_run(run.run_id))
        ]
        work += [name for name in DATASETS if datasets.get(name) or self._logs[name].has_run(run.run_id)]

        def replace(name: str) -> None:
            log = self._logs[name]
            if name in DATASETS:
                log.replace_run(run.run_id, datasets.get(name, ()))
            else:
                tables = _arrow_tables(rows[name], TABLES[name])
                log.replace_run(run.run_id, [log.write_file(run.run_id, table, month) for table in tables])

        with ThreadPoolExecutor(len(work)) as threads:
            for done in [threads.submit(replace, name) for name in work]:
                done.result()
        replace(RUNS)
        self._care({*work, RUNS}, month)

    def _care(self, written: Set[str], month: str) -> None:
        """Put the small files of a month together if they have become many, and mend statistics of some files.

        A failure of that is no fault of the audit.
        """
        from jobs.tables.table_care import TableCare

        if all(log.by_rs is not None and log.by_rs.is_new for log in map(self._logs.__getitem__, written - {RUNS})):
            return  # nobody has written here before
        for name, log in self._logs.items():  # datasets too, which this run need not have written
            with contextlib.suppress(Exception):
                if log.by_rs is not None and (log.by_rs.is_new or name not in written and not log.by_rs.exists()):
                    continue
            with contextlib.suppress(Exception):
                TableCare(log.uri, name, log.by_rs).compact_month(month)
            with contextlib.suppress(Exception):
                log.mend_statistics(_MENDED_A_NIGHT)

    def history(self) -> History | None:
        """Return what all runs have written, for SQL; None if that is nothing yet. Raises TablesFailed."""
        runs = self._logs[RUNS]
        return History(runs.uri.removesuffix(f"/{RUNS}"), runs.by_spark()) if runs.exists() else None

    def read(self, name: str) -> DataFrame:
        """Return the rows of all whole runs of a table, a dataset or a view (`schemas.table_views`). Raises TablesFailed.

        No rows if nothing was written yet.
        """
        if name in VIEWS:
            tables, views = named_in(name)
            parts = [f"{table} AS (SELECT * FROM {{{table}}})" for table in tables]
            sql = f"WITH {', '.join((*parts, *views))} SELECT * FROM {name}"
            frames: Any = {table: self.read(table) for table in tables}
            return self._started.spark.sql(sql, **frames)
        runs, frame = self._frame(RUNS), self._frame(name)
        return frame if name == RUNS else frame.join(runs.select(RUN_ID.name).distinct(), RUN_ID.name, "left_semi")

    def _frame(self, name: str) -> DataFrame:
        if self._logs[name].exists():
            return self._logs[name].frame()
        columns = (*DATASETS[name], STORE, RUN_ID) if name in DATASETS else (*TABLES[name], RUN_ID, MONTH)
        return self._started.spark.createDataFrame([], spark_schema(columns))


def _arrow_tables(rows: Iterable[Row], columns: Sequence[Column]) -> Iterator[pa.Table]:
    """Yield the `arrow_table` of the rows, in tables of bounded size: one, but for very many rows. None without a row."""
    held, size = [], 0
    for part, _ in in_parts(rows, _ROWS_TOGETHER, weight_of_row, _INSIDE_TOGETHER):
        table = arrow_table(part, columns)
        held.append(table)
        size += table.nbytes
        if size >= _FILE_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)


def arrow_table(rows: Iterable[Row], columns: Sequence[Column]) -> pa.Table:
    """Return the rows as columns of a table. A missing key is null. An unknown one raises KeyError: no value is lost unseen."""
    schema, held = arrow_schema(columns), list(rows)
    if unknown := set().union(*held) - {column.name for column in columns if not column.ms}:
        raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
    arrays: dict[str, pa.Array] = {}
    for column, field in zip(columns, schema, strict=True):
        if column.ms:
            stored = pc.fill_null(arrays[column.ms], -1).to_numpy()
            arrays[column.name] = timestamps(stored // 1_000_000 if column.ms.endswith("_ns") else stored)
        else:
            arrays[column.name] = pa.array([_clean(row.get(column.name)) for row in held], field.type)
    return pa.Table.from_arrays(list(arrays.values()), schema=schema)


def _clean(value: Any) -> Any:
    """Escape bytes of a text that are no UTF-8, as a file name may hold: Parquet's text may not."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def run_rows(run: RunInfo, outcomes: Sequence[Outcome]) -> dict[str, Rows]:
    """Return table -> its rows of this run, without run_id."""
    return {name: Rows(partial(_rows_of, name, run, outcomes)) for name in TABLES}


class Rows:
    """Rows that are made anew each time they are read: a store may have a million of them."""

    def __init__(self, make: Callable[[], Iterable[Row]]):
        self._make = make

    def __iter__(self) -> Iterator[Row]:
        return iter(self._make())

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None


def _rows_of(name: str, run: RunInfo, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    keys = {outcome.name: key_of(outcome) for outcome in outcomes}
    began = {} if name == RUNS else {RUN_STARTED.name: run.started_at}
    for outcome in outcomes:
        key = keys[outcome.name]
        head = {STORE.name: key, STORE_FROM.name: NAME if key == outcome.name else LOCATION, **began}
        for row in _ROWS[name](run, outcome):
            if "holder" in row:
                row["holder"] = keys.get(row["holder"], row["holder"])
            yield {**head, **row}


def key_of(outcome: Outcome) -> str:
    """Return the store's key in the tables."""
    return outcome.key or outcome.name


def _verified(run: RunInfo, segment: Row) -> Row:
    """Name this run as the one that has read all of a segment, if no earlier run is named."""
    if segment.get("verified_run") or not segment.get("digest") or segment.get("problem"):
        return {}
    return {"verified_run": run.run_id, "verified_at": run.started_at}


_NOTHING_FOUND = dict.fromkeys((NOTE, REBUILDABLE, LOSS), 0)


class _Lack(NamedTuple):
    """The subject of a row of `replica_parts`. part: a range that the copy lacks and the holder has."""

    holder: str
    replica_group: str
    part: LackedRange


def _lacks(outcome: Outcome) -> Iterator[_Lack]:
    for lack in outcome.replicas.lacked_by(outcome.name):
        yield from (_Lack(lack.holder, outcome.replica_group, part) for part in lack.ranges)


class _StoreRun:
    """The subject of a row of `runs`: one store in one run.

    started, effect: what a start does. loss: None also if nothing starts. group: None if it was compared with no other copy.
    listed, unread: None if the store could not even be listed; counted: None also if nothing was found. times: None without a
    message. day: None if it is not known.
    """

    def __init__(self, run: RunInfo, outcome: Outcome):
        self.run, self.outcome = run, outcome
        self.effect, self.started = outcome.effect, outcome.started
        self.refusal = None if outcome.refusal is None else str(refusal_sentence(outcome.refusal))
        self.outcome_rank, self.safety = rank(outcome.exit_code), decide(outcome).safety
        self.verdict = verdict_text(outcome)
        self.answer, self.steps = answer_of(outcome), [str(step.name) for step in steps_of(outcome)]
        self.day = _of_day(outcome.first_day) if outcome.first_day is not None else None
        self.replica_group, self.out = outcome.replica_group or None, run.out or None
        self.gaps = list(dict.fromkeys(str(gap.cause) for gap in outcome.gaps))
        self.settings = [
            {"key": key, "value": str(s.value), "from": s.origin} for key, s in sorted(outcome.plan.settings.items())
        ]
        self.loss = {"messages": outcome.loss.messages, "bytes": outcome.loss.bytes} if outcome.started is not None else None
        self.group = (
            dict(zip(("lacks_messages", "diverged"), lacks_of(outcome), strict=True)) if outcome.replicas.copies else None
        )
        self.times = outcome.holds if outcome.holds.messages else None
        self.listed = outcome.holds if outcome.complete or outcome.rows.segments else None
        self.unread = outcome.covered.not_read if self.listed is not None else None
        found = outcome.found
        dropped = {"dropped": sum(found.dropped.values())}
        self.counted = {**_NOTHING_FOUND, **found.counts, **dropped} if self.listed is not None or found.findings else None


def _of_day(day: FirstDay) -> Row:
    """Return what the columns on the first day say."""
    gone, timers = day.retention, day.timers
    return {
        "at": datetime.fromtimestamp(day.moment.at_ms / 1000, UTC),
        "segments": None if gone is None else len(gone.at_once) + len(gone.in_delete_when),
        "messages": None if gone is None else gone.messages,
        "timers_lost": None if gone is None else gone.timers_lost,
        "timers_never": None if timers is None else timers.never,
        "registers": day.registers,
    }


_ROWS: Mapping[str, Callable[[RunInfo, Outcome], Iterable[Row]]] = {
    "segments": lambda run, outcome: ({**row, **_verified(run, row)} for row in outcome.rows.segments),
    "queues": lambda run, outcome: outcome.rows.queues,
    "index_files": lambda run, outcome: outcome.rows.index_files,
    "findings": lambda run, outcome: ({"number": i, **finding_row(found)} for i, found in enumerate(outcome.found.findings)),
    "plan_steps": lambda run, outcome: ({"number": i, **step_row(step)} for i, step in enumerate(outcome.plan.steps)),
    "replica_parts": lambda run, outcome: map(REPLICA_PARTS.row, _lacks(outcome)),
    RUNS: lambda run, outcome: [TABLES[RUNS].row(_StoreRun(run, outcome))],
}
