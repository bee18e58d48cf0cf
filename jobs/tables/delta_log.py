"""Parquet files -> versions of Delta tables. The only module that calls Delta's kernel.

Spark's own writer needs half a second per small table and rewrites what is Parquet already. On this machine's disks delta-rs
commits files where they lie (`jobs.tables.delta_rs_log`). Elsewhere, and from the first time that it cannot, Delta's kernel does,
on which delta-spark itself depends: both make the log entry, settle races with other writers, and write checkpoints. Every table
is partitioned by `run_id`; a run's files lie in the folder `run_id=<id>`. For tables in S3 see `jobs.tables.s3_log`.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructType

from jobs.faults import reason
from jobs.tables.data_file import DataFile
from jobs.tables.delta_rs_log import DeltaRsLog, Raced, is_from_delta_rs
from jobs.tables.table_address import TablesFailed, delta_rs_misreads, hadoop_path, is_local
from schemas.rows import Row
from schemas.tables import RUN_ID, Column, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.session import Session

ENGINE_NAME = "rocketmq-store-audit"
_ATTEMPTS = 20
_Found = TypeVar("_Found")
_RACES = "ConcurrentWrite TableAlreadyExists ConcurrentTransaction FileAlreadyExists MetadataChanged ProtocolChanged".split()


class DeltaLog:
    """One table's log. columns: those in the data files.  partition: the partition columns besides run_id.  uri: `file:`, another
    file system's, or a path on the one that Spark takes where none is named."""

    def __init__(self, started: Session, uri: str, columns: Sequence[Column], partition: tuple[Column, ...] = ()):
        self._started = started
        self._columns = columns
        self._partition = partition
        self._partition_names = (RUN_ID.name, *(column.name for column in partition))
        self.uri = uri
        self._by_rs = self._open()

    def _open(self) -> DeltaRsLog | None:
        """The log by delta-rs; None where the kernel has to do it. Makes the address whole."""
        if not self.uri.startswith("file:"):
            self.uri = str(self._call(lambda: self._files.makeQualified(self._path(self.uri)).toString()))
            return None
        return None if delta_rs_misreads(self.uri) else self._rs_log(hadoop_path(self.uri))

    def _rs_log(self, place: str) -> DeltaRsLog:
        return DeltaRsLog(place, (*self._columns, *self._partition, RUN_ID), self._partition_names)

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

    def run_folder(self, run_id: str) -> str:
        """Where a run's files lie."""
        return f"{self.uri}/run_id={run_id}"

    def write_file(self, run_id: str, rows: pa.Table) -> DataFile:
        """Write rows as one Parquet file of the run. It counts once it is committed. Raises TablesFailed."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        data = sink.getvalue()
        uri = f"{self.run_folder(run_id)}/part-{uuid.uuid4()}.parquet"
        try:
            self._write(uri, data)
        except (OSError, Py4JJavaError) as problem:
            raise TablesFailed(f"{uri}: cannot write: {reason(problem)}") from None
        return DataFile(uri, data.size, int(time.time() * 1000), rows.num_rows)

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
        """Rows of these columns and `run_id`, of one run alone where one is named; a column that a file lacks is null.

        For a few small files: read here, without a Spark job, which would take its first second to begin. Raises TablesFailed.
        """
        found: list[Row] = []
        files: dict[str, str | None] = self._call(lambda: self._live_files(run_id))
        for uri, own in files.items():
            table: list[Row] = self._call(partial(self._parquet, uri, columns))
            found += [{RUN_ID.name: own, **row} for row in table]
        return found

    def _live_files(self, run_id: str | None) -> dict[str, str | None]:
        """Address -> run, of the files of the newest version; none where there is no table."""
        return self._by_either(lambda log: log.files(run_id), lambda: self._files_of_kernel(run_id))

    def _files_of_kernel(self, run_id: str | None) -> dict[str, str | None]:
        snapshot = self._snapshot()
        if snapshot is None:
            return {}
        util = self._jvm.io.delta.kernel.internal.InternalScanFileUtils
        return {
            str(util.getAddFileStatus(row).getPath()): util.getPartitionValues(row).get(RUN_ID.name)
            for row in self._scan_files(snapshot, run_id)
        }

    def _parquet(self, uri: str, columns: Sequence[str]) -> list[Row]:
        file = pq.ParquetFile(hadoop_path(uri) if is_local(uri) else pa.BufferReader(self._read(uri)))
        present = [name for name in columns if name in file.schema_arrow.names]
        absent = dict.fromkeys(set(columns) - set(present))
        return [{**row, **absent} for row in file.read(columns=present).to_pylist()]

    def _read(self, uri: str) -> bytes:
        """All of a file that does not lie on this machine."""
        stream = self._files.open(self._path(uri))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def frame(self) -> DataFrame:
        """All rows of the newest version, by Spark. The table must exist."""
        return self._started.spark.read.format("delta").load(self.uri)

    # ---- the log -----------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the table has a version. Raises TablesFailed."""
        return bool(self._call(lambda: self._by_either(DeltaRsLog.exists, lambda: self._snapshot() is not None)))

    def _by_either(self, by_delta_rs: Callable[[DeltaRsLog], _Found], by_kernel: Callable[[], _Found]) -> _Found:
        """By delta-rs as long as it can; what the kernel then says counts."""
        if self._by_rs is not None:
            try:
                return by_delta_rs(self._by_rs)
            except Exception as problem:
                if isinstance(problem, Raced) or not is_from_delta_rs(problem):
                    raise
                self._by_rs = None
        return by_kernel()

    def _snapshot(self) -> Any:
        """The newest version, None where there is none yet (also where a writer has only made the folder)."""
        try:
            return self._jvm.io.delta.kernel.TableManager.loadSnapshot(self.uri).build(self._engine)
        except Py4JJavaError as problem:
            if "TableNotFound" in str(problem.java_exception.getClass()):
                return None
            raise

    def has_run(self, run_id: str) -> bool:
        """Whether a run of this id ever wrote files here."""
        if is_local(self.uri):
            return os.path.exists(hadoop_path(self.run_folder(run_id)))
        return bool(self._call(lambda: self._files.exists(self._path(self.run_folder(run_id)))))

    def replace_run(self, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's files by these, perhaps none, in one commit; other runs stay.

        The table is made where it is new. Raises TablesFailed.
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
                    time.sleep(0.02 * (attempt + 1))
        raise TablesFailed(
            f"table {self.uri}: other writers were quicker {_ATTEMPTS} times: repeat the run once fewer of them write"
        )

    def _commit_locally(self, run_id: str, files: Sequence[DataFile], log: DeltaRsLog) -> None:
        newest = log.newest()
        if newest is not None and self._add_columns({field.name for field in newest.schema().fields}):
            newest = log.newest()
        log.commit(newest, run_id, files)

    def _commit_by_kernel(self, run_id: str, files: Sequence[DataFile]) -> None:
        kernel = self._jvm.io.delta.kernel
        actions = self._closeable(self._jvm.java.util.ArrayList())
        snapshot = self._snapshot()
        if snapshot is not None:
            if self._add_columns(set(snapshot.getSchema().fieldNames())):
                snapshot = self._snapshot()
            removed = self._removals(snapshot, run_id) if self.has_run(run_id) else self._jvm.java.util.ArrayList()
            if removed.isEmpty() and not files:
                return
            actions = self._closeable(removed)
            transaction = snapshot.buildUpdateTableTransaction(ENGINE_NAME, kernel.Operation.WRITE).build(self._engine)
        else:
            by = self._jvm.java.util.ArrayList()
            for name in self._partition_names:
                by.add(kernel.expressions.Column(name))
            layout = kernel.transaction.DataLayoutSpec.partitioned(by)
            create = kernel.TableManager.buildCreateTableTransaction(self.uri, self._schema(), ENGINE_NAME)
            transaction = create.withDataLayoutSpec(layout).build(self._engine)
        state = transaction.getTransactionState(self._engine)
        for values in sorted({file.partition for file in files}):
            chosen = self._jvm.java.util.ArrayList()
            for file in files:
                if file.partition == values:
                    chosen.add(self._status(file))
            literals = self._jvm.java.util.HashMap()
            for name, value in zip(self._partition_names, (run_id, *values), strict=True):
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

    def _removals(self, snapshot: Any, run_id: str) -> Any:
        """Log actions that take the run's files out of the table."""
        kernel = self._jvm.io.delta.kernel.internal
        now = self._jvm.java.util.Optional.of(int(time.time() * 1000))
        removals = self._jvm.java.util.ArrayList()
        for row in self._scan_files(snapshot, run_id):
            added = kernel.actions.AddFile(row.getStruct(kernel.InternalScanFileUtils.ADD_FILE_ORDINAL))
            removals.add(kernel.actions.SingleAction.createRemoveFileSingleAction(added.toRemoveFileRow(True, now)))
        return removals

    def _scan_files(self, snapshot: Any, run_id: str | None) -> Iterator[Any]:
        """The kernel's rows for a version's files, of one run alone where one is named."""
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
        least, most = java.HashMap(), java.HashMap()
        for name, low, high in file.bounds:
            least.put(kernel.expressions.Column(name), kernel.expressions.Literal.ofLong(low))
            most.put(kernel.expressions.Column(name), kernel.expressions.Literal.ofLong(high))
        statistics = kernel.statistics.DataFileStatistics(file.rows, least, most, java.HashMap(), java.Optional.empty())
        return kernel.utils.DataFileStatus(file.uri, file.size_bytes, file.modified_ms, java.Optional.of(statistics))

    def _schema(self) -> Any:
        text = json.dumps(struct_of(*self._columns, *self._partition, RUN_ID))
        return self._jvm.io.delta.kernel.internal.types.DataTypeJsonSerDe.deserializeStructType(text)

    def _add_columns(self, present: set[str]) -> bool:
        """Give a table that an earlier version of this tool made the columns that it lacks."""
        absent = [column for column in self._columns if column.name not in present]
        if absent:
            self._alter(absent)
        return bool(absent)

    def _alter(self, absent: Sequence[Column]) -> None:
        for column in absent:
            simple = spark_schema([column])[0].dataType.simpleString()
            comment = column.comment.replace("\\", "\\\\").replace("'", "\\'")
            self._started.spark.sql(f"ALTER TABLE delta.`{self.uri}` ADD COLUMNS (`{column.name}` {simple} COMMENT '{comment}')")

    def _call(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as problem:
            raise TablesFailed(f"table {self.uri}: {reason(problem)}") from None


def _is_race(problem: Exception) -> bool:
    """Whether another writer was quicker, so that a further attempt may succeed."""
    java: Any = getattr(problem, "java_exception", None)
    return isinstance(problem, Raced) or (java is not None and any(race in str(java.getClass()) for race in _RACES))


def spark_schema(columns: Iterable[Column]) -> StructType:
    """The columns as Spark has them."""
    return StructType.fromJson(struct_of(*columns))
