"""Parquet files -> versions of Delta tables. The only module that calls Delta's kernel.

Spark's own writer needs half a second per small table and rewrites what is Parquet already. On this machine's disks delta-rs
commits files where they lie (`jobs.tables.delta_rs_log`). Elsewhere, and from the first time that it cannot, Delta's kernel does,
on which delta-spark itself depends: both make the log entry, settle races with other writers, and write checkpoints.
Both are kept, as neither reaches all places: delta-rs needs hard links, decodes "%" in a folder's name, takes no table with a
feature that it does not know, and knows no login that only Hadoop's settings hold (abfss, gs); the kernel needs a JVM, which
`report`, `runs` and `tables` do without, and reaches no S3.

The tables of results are partitioned by the month in which a run began, so that many nights can share a file
(`jobs.tables.table_care`); datasets by run and store. Earlier versions made them all partitioned by `run_id`: such tables are
taken as they are, and a new file fits both, as it holds its run's id. For tables in S3 and HDFS see `jobs.tables.remote_log`.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructType

from jobs.runtime.faults import reason
from jobs.tables.delta_rs_log import DeltaRsLog, Raced, is_from_delta_rs
from jobs.tables.table_files import Bounds, DataFile, LiveFile, TablesFailed, delta_rs_misreads, hadoop_path, is_local, of_table
from schemas.rows import Row
from schemas.tables import MONTH, RUN_ID, RUN_STARTED, Column, Table, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.runtime.session import Session

ENGINE_NAME = "rocketmq-store-audit"
_ATTEMPTS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Found = TypeVar("_Found")
_RACES = "ConcurrentWrite TableAlreadyExists ConcurrentTransaction FileAlreadyExists MetadataChanged ProtocolChanged".split()


class DeltaLog:
    """One table's log.

    columns: those in the data files besides run_id.
    partition: the partition columns of a table that is made new.
    uri: `file:`, another file system's, or a path on the file system that Spark takes if none is named.
    """

    def __init__(self, started: Session, uri: str, columns: Sequence[Column], partition: tuple[Column, ...] = (MONTH,)):
        self._started = started
        # first: Delta's writers keep bounds of the first 32 columns alone, and a reader of one run needs those of its id
        self._columns = (*(() if RUN_ID in partition else (RUN_ID,)), *columns)
        self._partition = partition
        self._about = columns.about if isinstance(columns, Table) else ""
        self.uri = uri
        self._by_rs = self._open()

    def _open(self) -> DeltaRsLog | None:
        """Open the log by delta-rs; None if the kernel has to do it. Makes the address whole."""
        if not self.uri.startswith("file:"):
            self.uri = str(of_table(self.uri, lambda: self._files.makeQualified(self._path(self.uri)).toString()))
            return None
        return None if delta_rs_misreads(self.uri) else self._rs_log(hadoop_path(self.uri))

    def _rs_log(self, place: str) -> DeltaRsLog:
        columns = (*self._columns, *self._partition)
        return DeltaRsLog(place, columns, [column.name for column in self._partition], self._about)

    @property
    def _jvm(self) -> Any:
        return self._started.context._jvm

    @cached_property
    def _conf(self) -> Any:
        java_context: Any = self._started.context._jsc
        return java_context.hadoopConfiguration()

    @cached_property
    def _files(self) -> Any:
        return self._path(self.uri).getFileSystem(self._conf)

    @cached_property
    def _engine(self) -> Any:
        return self._jvm.io.delta.kernel.defaults.engine.DefaultEngine.create(self._conf)

    def _path(self, uri: Any) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    # ---- data files --------------------------------------------------------------------------------------------

    def write_file(self, run_id: str, rows: pa.Table, month: str | None = None) -> DataFile:
        """Write a run's rows as one Parquet file. It counts once it is committed. month: in which the run began; None: this one.

        Raises TablesFailed.
        """
        month = month or datetime.now(UTC).strftime("%Y-%m")
        sink = pa.BufferOutputStream()
        own = pa.array([run_id] * rows.num_rows, pa.string())
        pq.write_table(rows.add_column(0, RUN_ID.name, own), sink, compression="zstd")
        data = sink.getvalue()
        uri = f"{self.uri}/{MONTH.name}={month}/part-{uuid.uuid4()}.parquet"
        try:
            self._write(uri, data)
        except (OSError, Py4JJavaError) as problem:
            raise TablesFailed(f"{uri}: cannot write: {reason(problem)}") from None
        values, bounds = {RUN_ID.name: run_id, MONTH.name: month}, ((RUN_ID.name, run_id, run_id), *_times_of(rows))
        return DataFile(uri, data.size, int(time.time() * 1000), rows.num_rows, values, bounds)

    def _write(self, uri: str, data: pa.Buffer) -> None:
        if is_local(self.uri):
            path = hadoop_path(uri)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            return
        out = self._files.create(self._path(uri))
        try:
            out.write(data.to_pybytes())
        finally:
            out.close()

    def rows(self, columns: Sequence[str], run_id: str | None = None) -> list[Row]:
        """Return rows of these columns and `run_id`. If a run is named, they are that run's alone; a column that a file lacks is
        null.

        For a few small files: they are read here, without a Spark job, which would take its first second to begin. Raises
        TablesFailed.
        """
        found: list[Row] = []
        for file in of_table(self.uri, lambda: self._live_files(run_id)):
            rows: list[Row] = of_table(self.uri, partial(self._parquet, file, (RUN_ID.name, *columns)))
            found += [row for row in rows if run_id in (None, row[RUN_ID.name])]
        return found

    def _live_files(self, run_id: str | None) -> list[LiveFile]:
        """Return the files of the newest version, without those that surely hold no row of the run.

        None exist without a table.
        """
        return self._by_either(lambda log: log.files(run_id), lambda: self._files_of_kernel(run_id))

    def _files_of_kernel(self, run_id: str | None) -> list[LiveFile]:
        snapshot = self._snapshot()
        return [] if snapshot is None else [self._live_file(row) for row in self._scan_files(snapshot, run_id)]

    def _live_file(self, row: Any) -> LiveFile:
        """Return a row of the kernel's scan."""
        util = self._jvm.io.delta.kernel.internal.InternalScanFileUtils
        path = str(util.getAddFileStatus(row).getPath())
        statistics = self._added(row).getStatsJson()
        known = json.loads(statistics.get()) if statistics.isPresent() else {}
        low, high = (known.get(key, {}).get(RUN_ID.name) for key in ("minValues", "maxValues"))
        return LiveFile(path, dict(util.getPartitionValues(row)), low, high)

    def _parquet(self, live: LiveFile, columns: Sequence[str]) -> list[Row]:
        """Return a file's rows with these columns and those of its partition; a missing column is null."""
        uri = live.path if live.path.startswith("/") or ":" in live.path else f"{self.uri}/{live.path}"
        file = pq.ParquetFile(hadoop_path(uri) if is_local(uri) else pa.BufferReader(self._read(uri)))
        present = [name for name in columns if name in file.schema_arrow.names and name not in live.values]
        own = {name: live.values.get(name) for name in columns if name not in present}
        return [{**row, **own} for row in file.read(columns=present).to_pylist()]

    def _read(self, uri: str) -> bytes:
        """Return all of a file that does not lie on this machine."""
        stream = self._files.open(self._path(uri))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def frame(self) -> DataFrame:
        """Return all rows of the newest version, by Spark. The table must exist."""
        return self._started.spark.read.format("delta").load(self.uri)

    # ---- the log -----------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Say whether the table has a version. Raises TablesFailed."""
        return bool(of_table(self.uri, lambda: self._by_either(DeltaRsLog.exists, lambda: self._snapshot() is not None)))

    def _by_either(self, by_delta_rs: Callable[[DeltaRsLog], _Found], by_kernel: Callable[[], _Found]) -> _Found:
        """Ask delta-rs. If delta-rs fails, ask Delta's kernel from then on."""
        if self._by_rs is not None:
            try:
                return by_delta_rs(self._by_rs)
            except Exception as problem:
                if isinstance(problem, Raced) or not is_from_delta_rs(problem):
                    raise
                self._by_rs = None
        return by_kernel()

    def _snapshot(self) -> Any:
        """Return the newest version, or None if there is none yet, also if a writer has only made the folder."""
        try:
            return self._jvm.io.delta.kernel.TableManager.loadSnapshot(self.uri).build(self._engine)
        except Py4JJavaError as problem:
            if "TableNotFound" in str(problem.java_exception.getClass()):
                return None
            raise

    def has_run(self, run_id: str) -> bool:
        """Say whether a run of this id may have rows here."""
        if is_local(self.uri) and RUN_ID in self._partition:  # its tasks write there: quicker than a look into the log
            return os.path.exists(hadoop_path(f"{self.uri}/{RUN_ID.name}={run_id}"))
        return bool(of_table(self.uri, lambda: self._live_files(run_id)))

    def replace_run(self, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's files by these, perhaps none, in one commit; other runs stay.

        A new table is made. Raises TablesFailed.
        """
        for attempt in range(_ATTEMPTS):
            try:
                self._by_either(partial(self._commit_locally, run_id, files), partial(self._commit_by_kernel, run_id, files))
                return
            except TablesFailed:
                raise
            except Exception as problem:  # delta-rs' errors and the JVM's have no common kind
                if not _is_race(problem):
                    raise TablesFailed(f"table {self.uri}: {reason(problem)}") from None
                if attempt + 1 < _ATTEMPTS:
                    time.sleep(0.02 * (attempt + 1) * random.uniform(0.5, 1))
        raise TablesFailed(
            f"table {self.uri}: other writers were quicker {_ATTEMPTS} times: repeat the run once fewer of them write"
        )

    def _commit_locally(self, run_id: str, files: Sequence[DataFile], log: DeltaRsLog) -> None:
        newest = log.newest()
        if newest is not None:
            newest = self._as_declared(log, newest)
        log.commit(newest, run_id, files)

    def _as_declared(self, log: DeltaRsLog, newest: Any) -> Any:
        """Return the newest version, once it has the columns, comments and description of this version of the tool.

        Raises Raced.
        """
        try:
            if self._add_columns({field.name for field in newest.schema().fields}):
                newest = log.newest()
            return log.newest() if log.describe(newest) else newest
        except Exception as problem:
            if is_from_delta_rs(problem) and log.newest().version() != newest.version():  # another writer does the same
                raise Raced from problem
            raise

    def _commit_by_kernel(self, run_id: str, files: Sequence[DataFile]) -> None:
        kernel = self._jvm.io.delta.kernel
        actions = self._closeable(self._jvm.java.util.ArrayList())
        snapshot = self._snapshot()
        names = [column.name for column in self._partition]
        if snapshot is not None:
            if self._add_columns(set(snapshot.getSchema().fieldNames())):
                snapshot = self._snapshot()
            names = list(snapshot.getPartitionColumnNames())
            removed, shared = self._removals(snapshot, run_id)
            if shared:  # with other runs' rows: by a version of its own
                self._started.spark.sql(f"DELETE FROM delta.`{self.uri}` WHERE `{RUN_ID.name}` = '{run_id}'")
                snapshot = self._snapshot()
                removed, _ = self._removals(snapshot, run_id)
            if removed.isEmpty() and not files:
                return
            actions = self._closeable(removed)
            transaction = snapshot.buildUpdateTableTransaction(ENGINE_NAME, kernel.Operation.WRITE).build(self._engine)
        else:
            by = self._jvm.java.util.ArrayList()
            for name in names:
                by.add(kernel.expressions.Column(name))
            layout = kernel.transaction.DataLayoutSpec.partitioned(by)
            create = kernel.TableManager.buildCreateTableTransaction(self.uri, self._schema(), ENGINE_NAME)
            transaction = create.withDataLayoutSpec(layout).build(self._engine)
        state = transaction.getTransactionState(self._engine)
        for values in sorted({tuple(file.values[name] for name in names) for file in files}):
            chosen = self._jvm.java.util.ArrayList()
            for file in files:
                if tuple(file.values[name] for name in names) == values:
                    chosen.add(self._status(file))
            literals = self._jvm.java.util.HashMap()
            for name, value in zip(names, values, strict=True):
                literals.put(name, kernel.expressions.Literal.ofString(value))
            context = kernel.Transaction.getWriteContext(self._engine, state, literals)
            added = kernel.Transaction.generateAppendActions(self._engine, state, self._closeable(chosen), context)
            actions = actions.combine(added)
        result = transaction.commit(self._engine, kernel.utils.CloseableIterable.inMemoryIterable(actions))
        for hook in result.getPostCommitHooks():
            try:
                hook.threadSafeInvoke(self._engine)
            except Py4JJavaError:
                pass  # a checkpoint or checksum that speeds up readers; the version itself is committed

    def _removals(self, snapshot: Any, run_id: str) -> tuple[Any, list[LiveFile]]:
        """Return (log actions that remove the run's own files, files in which other runs may have rows too)."""
        kernel = self._jvm.io.delta.kernel.internal
        now = self._jvm.java.util.Optional.of(int(time.time() * 1000))
        removals = self._jvm.java.util.ArrayList()
        shared = []
        for row in self._scan_files(snapshot, run_id):
            file = self._live_file(row)
            if file.run_id() == run_id:
                removed = self._added(row).toRemoveFileRow(True, now)
                removals.add(kernel.actions.SingleAction.createRemoveFileSingleAction(removed))
            elif file.may_hold(run_id):
                shared.append(file)
        return removals, shared

    def _added(self, row: Any) -> Any:
        kernel = self._jvm.io.delta.kernel.internal
        return kernel.actions.AddFile(row.getStruct(kernel.InternalScanFileUtils.ADD_FILE_ORDINAL))

    def _scan_files(self, snapshot: Any, run_id: str | None) -> Iterator[Any]:
        """Yield the kernel's rows for a version's files; if a run is named, for that run's files alone."""
        scan = snapshot.getScanBuilder()
        if run_id is not None:
            expressions = self._jvm.io.delta.kernel.expressions
            run = expressions.Literal.ofString(run_id)
            scan = scan.withFilter(expressions.Predicate("=", expressions.Column(RUN_ID.name), run))
        batches = scan.build().getScanFiles(self._engine)
        while batches.hasNext():
            rows = batches.next().getRows()
            while rows.hasNext():
                yield rows.next()
            rows.close()
        batches.close()

    def _closeable(self, items: Any) -> Any:
        return self._jvm.io.delta.kernel.internal.util.Utils.toCloseableIterator(items.iterator())

    def _status(self, file: DataFile) -> Any:
        kernel, java = self._jvm.io.delta.kernel, self._jvm.java.util
        least, most, literal = java.HashMap(), java.HashMap(), kernel.expressions.Literal
        for name, low, high in file.bounds:
            for side, value in ((least, low), (most, high)):
                side.put(kernel.expressions.Column(name), _literal(literal, value))
        statistics = kernel.statistics.DataFileStatistics(file.rows, least, most, java.HashMap(), java.Optional.empty())
        return kernel.utils.DataFileStatus(file.uri, file.size_bytes, file.modified_ms, java.Optional.of(statistics))

    def _schema(self) -> Any:
        text = json.dumps(struct_of(*self._columns, *self._partition))
        return self._jvm.io.delta.kernel.internal.types.DataTypeJsonSerDe.deserializeStructType(text)

    def _add_columns(self, present: set[str]) -> bool:
        """Give a table that an earlier version of this tool made the columns that it lacks."""
        absent = [column for column in self._columns if column.name not in present]
        if absent:
            self._alter(absent)
        return bool(absent)

    def _alter(self, absent: Sequence[Column]) -> None:
        if self._by_rs is not None:
            self._by_rs.add_columns(absent)
            return
        listed = []
        for column in absent:
            simple = spark_schema([column])[0].dataType.simpleString()
            listed.append(f"`{column.name}` {simple} COMMENT '{_quoted(column.comment)}'")
        self._started.spark.sql(f"ALTER TABLE delta.`{self.uri}` ADD COLUMNS ({', '.join(listed)})")


def _quoted(text: str) -> str:
    """Return a text to put between quotes in Spark's SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _times_of(rows: pa.Table) -> Bounds:
    """Return the bounds of the times at which runs began, in whole milliseconds. A filter on them then opens few files."""
    name = RUN_STARTED.name
    if name not in rows.column_names or rows.column(name).null_count == rows.num_rows:
        return ()
    low, high = pc.min_max(rows.column(name)).as_py().values()
    up = timedelta(milliseconds=1) if high.microsecond % 1000 else timedelta()
    return ((name, low, high + up),)


def _literal(make: Any, value: int | str | datetime) -> Any:
    """Return a bound as the kernel has it; times in whole milliseconds."""
    if isinstance(value, datetime):
        return make.ofTimestamp((value - _EPOCH) // timedelta(milliseconds=1) * 1000)
    return make.ofString(value) if isinstance(value, str) else make.ofLong(value)


def _is_race(problem: Exception) -> bool:
    """Say whether another writer was quicker, so that a further attempt may succeed."""
    java: Any = getattr(problem, "java_exception", None)
    return isinstance(problem, Raced) or (java is not None and any(race in str(java.getClass()) for race in _RACES))


def spark_schema(columns: Iterable[Column]) -> StructType:
    """Return the columns as Spark has them."""
    return StructType.fromJson(struct_of(*columns))
