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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructType

from jobs.runtime.faults import reason
from jobs.tables.delta_rs_log import DeltaRsLog, Raced, is_from_delta_rs
from jobs.tables.file_statistics import counted_columns, is_partial, statistics_in
from jobs.tables.table_files import DataFile, LiveFile, TablesFailed, delta_rs_misreads, hadoop_path, is_local, of_table
from schemas.rows import Row
from schemas.tables import MONTH, RUN_ID, Column, Table, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.runtime.session import Session

ENGINE_NAME = "rocketmq-store-audit"
_ATTEMPTS = 20
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
        statistics = statistics_in(pa.BufferReader(data))
        return DataFile(uri, data.size, int(time.time() * 1000), statistics, {RUN_ID.name: run_id, MONTH.name: month})

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
            rows: list[Row] = of_table(self.uri, partial(self._parquet, file, (RUN_ID.name, *columns), run_id))
            found += rows
        return found

    def _live_files(self, run_id: str | None) -> list[LiveFile]:
        """Return the files of the newest version, without those that surely hold no row of the run.

        None exist without a table.
        """
        return self._by_either(lambda log: log.files(run_id), lambda: self._files_of_kernel(run_id))

    def _files_of_kernel(self, run_id: str | None) -> list[LiveFile]:
        snapshot = self._snapshot()
        return [] if snapshot is None else [self._live_file(row) for row in self._scan_files(snapshot, self._of_run(run_id))]

    def _live_file(self, row: Any) -> LiveFile:
        """Return a row of the kernel's scan."""
        util = self._jvm.io.delta.kernel.internal.InternalScanFileUtils
        path = str(util.getAddFileStatus(row).getPath())
        statistics = self._added(row).getStatsJson()
        known = json.loads(statistics.get()) if statistics.isPresent() else {}
        low, high = (known.get(key, {}).get(RUN_ID.name) for key in ("minValues", "maxValues"))
        return LiveFile(path, dict(util.getPartitionValues(row)), low, high)

    def _parquet(self, live: LiveFile, columns: Sequence[str], run_id: str | None) -> list[Row]:
        """Return a file's rows with these columns and those of its partition; a missing column is null.

        run_id: if given, the rows of this run alone: only they become objects, as months of many runs lie in one file.
        """
        file = pq.ParquetFile(self._source(live.path))
        present = [name for name in columns if name in file.schema_arrow.names and name not in live.values]
        own = {name: live.values.get(name) for name in columns if name not in present}
        if run_id is None or RUN_ID.name not in present:
            return [{**row, **own} for row in file.read(columns=present).to_pylist()]
        groups = [number for number in range(file.num_row_groups) if _may_hold(file.metadata.row_group(number), run_id)]
        table = file.read_row_groups(groups, columns=present)
        return [{**row, **own} for row in table.filter(pc.equal(table[RUN_ID.name], run_id)).to_pylist()]

    def _source(self, path: str) -> Any:
        """Return what pyarrow opens as a file of the table. path: below the table's folder, or an address."""
        uri = path if path.startswith("/") or ":" in path else f"{self.uri}/{path}"
        return hadoop_path(uri) if is_local(uri) else pa.BufferReader(self._read(uri))

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
        snapshot, struct = self._snapshot(), self._struct()
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
            struct = self._struct_in(snapshot)
            if removed.isEmpty() and not files:
                return
            actions = self._closeable(removed)
            transaction = snapshot.buildUpdateTableTransaction(ENGINE_NAME, kernel.Operation.WRITE).build(self._engine)
        else:
            by = self._jvm.java.util.ArrayList()
            for name in names:
                by.add(kernel.expressions.Column(name))
            layout = kernel.transaction.DataLayoutSpec.partitioned(by)
            create = kernel.TableManager.buildCreateTableTransaction(self.uri, self._schema(struct), ENGINE_NAME)
            transaction = create.withDataLayoutSpec(layout).build(self._engine)
        state = transaction.getTransactionState(self._engine)
        for values in sorted({tuple(file.values[name] for name in names) for file in files}):
            chosen = self._jvm.java.util.ArrayList()
            for file in files:
                if tuple(file.values[name] for name in names) == values:
                    chosen.add(self._status(file, struct, names))
            literals = self._jvm.java.util.HashMap()
            for name, value in zip(names, values, strict=True):
                literals.put(name, kernel.expressions.Literal.ofString(value))
            context = kernel.Transaction.getWriteContext(self._engine, state, literals)
            added = kernel.Transaction.generateAppendActions(self._engine, state, self._closeable(chosen), context)
            actions = actions.combine(added)
        self._finish(transaction, actions)

    def _finish(self, transaction: Any, actions: Any) -> None:
        """Commit the actions of a transaction of the kernel."""
        utils = self._jvm.io.delta.kernel.utils
        result = transaction.commit(self._engine, utils.CloseableIterable.inMemoryIterable(actions))
        for hook in result.getPostCommitHooks():
            try:
                hook.threadSafeInvoke(self._engine)
            except Py4JJavaError:
                pass  # a checkpoint or checksum that speeds up readers; the version itself is committed

    def mend_statistics(self, most: int) -> int:
        """Give files whose statistics leave columns out whole ones, in a version of its own; return how many.

        Earlier versions of this tool wrote such, and Spark does, if it rewrites files. most: so many files are read at most.
        Raises an error of the writer if another one was quicker: there is a next time.
        """
        if self._by_rs is not None:
            newest = self._by_rs.newest()
            return 0 if newest is None else self._by_rs.mend_statistics(newest, most)
        snapshot = self._snapshot()
        return 0 if snapshot is None else self._mend_by_kernel(snapshot, most)

    def _mend_by_kernel(self, snapshot: Any, most: int) -> int:
        kernel, actions = self._jvm.io.delta.kernel, self._jvm.java.util.ArrayList()
        struct = self._struct_in(snapshot)
        columns = counted_columns(struct, snapshot.getPartitionColumnNames())
        for row in self._scan_files(snapshot, self._any_text(columns)):
            live, added = self._live_file(row), self._added(row)
            statistics = added.getStatsJson()
            if len(actions) == most:
                break
            if statistics.isPresent() and is_partial(json.loads(statistics.get()), columns):
                known = statistics_in(self._source(live.path)).in_log(columns)
                again = kernel.internal.actions.AddFile.createAddFileRow(
                    snapshot.getSchema(), added.getPath(), added.getPartitionValues(), added.getSize(),
                    added.getModificationTime(), False, added.getDeletionVector(), added.getTags(), added.getBaseRowId(),
                    added.getDefaultRowCommitVersion(), self._statistics(known, struct),
                )  # fmt: skip
                actions.add(kernel.internal.actions.SingleAction.createAddFileSingleAction(again))
        if actions:
            update = snapshot.buildUpdateTableTransaction(ENGINE_NAME, kernel.Operation.WRITE).withMaxRetries(0)
            self._finish(update.build(self._engine), self._closeable(actions))
        return len(actions)

    def _removals(self, snapshot: Any, run_id: str) -> tuple[Any, list[LiveFile]]:
        """Return (log actions that remove the run's own files, files in which other runs may have rows too)."""
        kernel = self._jvm.io.delta.kernel.internal
        now = self._jvm.java.util.Optional.of(int(time.time() * 1000))
        removals = self._jvm.java.util.ArrayList()
        shared = []
        for row in self._scan_files(snapshot, self._of_run(run_id)):
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

    def _of_run(self, run_id: str | None) -> Any:
        """Return the condition that a row is of this run, if one is named."""
        return None if run_id is None else self._condition(RUN_ID.name, "=", run_id)

    def _any_text(self, columns: Mapping[str, str]) -> Any:
        """Return a condition on a text that every file may fulfil: without one the kernel reads no statistics."""
        return next((self._condition(name, ">=", "") for name, kind in columns.items() if kind == "string"), None)

    def _condition(self, name: str, relation: str, text: str) -> Any:
        expressions = self._jvm.io.delta.kernel.expressions
        return expressions.Predicate(relation, expressions.Column(name), expressions.Literal.ofString(text))

    def _scan_files(self, snapshot: Any, condition: Any) -> Iterator[Any]:
        """Yield the kernel's rows for a version's files, without those of which their statistics show that no row fulfils the
        condition, if there is one."""
        scan = snapshot.getScanBuilder()
        scan = scan if condition is None else scan.withFilter(condition)
        batches = scan.build().getScanFiles(self._engine)
        while batches.hasNext():
            rows = batches.next().getRows()
            while rows.hasNext():
                yield rows.next()
            rows.close()
        batches.close()

    def _closeable(self, items: Any) -> Any:
        return self._jvm.io.delta.kernel.internal.util.Utils.toCloseableIterator(items.iterator())

    def _status(self, file: DataFile, struct: Row, partition: Sequence[str]) -> Any:
        known = self._statistics(file.statistics.in_log(counted_columns(struct, partition)), struct)
        return self._jvm.io.delta.kernel.utils.DataFileStatus(file.uri, file.size_bytes, file.modified_ms, known)

    def _statistics(self, known: Mapping[str, Any], struct: Row) -> Any:
        """Return a file's statistics as the kernel has them; none if they have no column: it would write empty lists of these."""
        if "nullCount" not in known:
            return self._jvm.java.util.Optional.empty()
        return self._jvm.io.delta.kernel.statistics.DataFileStatistics.deserializeFromJson(
            json.dumps(known), self._schema(struct)
        )

    def _struct(self) -> Row:
        """Return the columns of a new table as Delta's log has them."""
        return struct_of(*self._columns, *self._partition)

    def _struct_in(self, snapshot: Any) -> Row:
        """Return the columns of a version as Delta's log has them."""
        text = self._jvm.io.delta.kernel.internal.types.DataTypeJsonSerDe.serializeStructType(snapshot.getSchema())
        struct: Row = json.loads(text)
        return struct

    def _schema(self, struct: Row) -> Any:
        return self._jvm.io.delta.kernel.internal.types.DataTypeJsonSerDe.deserializeStructType(json.dumps(struct))

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


def _is_race(problem: Exception) -> bool:
    """Say whether another writer was quicker, so that a further attempt may succeed."""
    java: Any = getattr(problem, "java_exception", None)
    return isinstance(problem, Raced) or (java is not None and any(race in str(java.getClass()) for race in _RACES))


def spark_schema(columns: Iterable[Column]) -> StructType:
    """Return the columns as Spark has them."""
    return StructType.fromJson(struct_of(*columns))


def _may_hold(group: Any, run_id: str) -> bool:
    """Say whether a row group of a file may hold rows of the run, by its statistics."""
    columns = (group.column(number) for number in range(group.num_columns))
    known = next((column.statistics for column in columns if column.path_in_schema == RUN_ID.name), None)
    return known is None or not known.has_min_max or known.min <= run_id <= known.max
