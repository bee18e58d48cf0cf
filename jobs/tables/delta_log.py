"""Parquet files -> versions of Delta tables, by delta-rs or by Spark's own writer.

delta-rs commits files where they lie, without a Spark job (`jobs.tables.delta_rs_log`). It needs hard links on this machine's
disks, decodes "%" in a folder's name, takes no table with a feature that it does not know, and knows no login that only Hadoop's
settings hold (abfss, gs). There, and from the first time that it fails, Spark's own writer reads the files and writes them anew,
in a second or more for each table.

The tables of results are partitioned by the month in which a run began, so that many nights can share a file
(`jobs.tables.table_care`); datasets by run and store. Earlier versions made them all partitioned by `run_id`: such tables are
taken as they are, and a new file fits both, as it holds its run's id. For tables in S3 and HDFS see `jobs.tables.remote_log`.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from jobs.runtime.faults import reason
from jobs.tables.delta_query import BySpark, loaded
from jobs.tables.delta_rs_log import DeltaRsLog, Raced, is_from_delta_rs
from jobs.tables.file_statistics import statistics_in
from jobs.tables.table_files import DataFile, TablesFailed, delta_rs_misreads, hadoop_path, is_local, of_table
from schemas.tables import MONTH, RUN_ID, Column, Table, struct_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.runtime.session import Session

_ATTEMPTS = 20
_Found = TypeVar("_Found")
_SPARKS_RACES = re.compile("DELTA_(CONCURRENT_|METADATA_CHANGED|PROTOCOL_CHANGED)|Concurrent[A-Za-z]+Exception")


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
        self.by_rs = self._open()

    def _open(self) -> DeltaRsLog | None:
        """Open the log by delta-rs; None if Spark has to write it. Makes the address whole."""
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

    def frame(self) -> DataFrame:
        """Return all rows of the newest version, by Spark. The table must exist."""
        return self._started.spark.read.format("delta").load(self.uri)

    # ---- the log -----------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Say whether the table has a version. Raises TablesFailed."""
        return bool(
            of_table(self.uri, lambda: self._by_either(DeltaRsLog.exists, lambda: loaded(self._spark, self.uri) is not None))
        )

    def _by_either(self, by_delta_rs: Callable[[DeltaRsLog], _Found], by_spark: Callable[[], _Found]) -> _Found:
        """Ask delta-rs. If delta-rs fails, ask Spark from then on."""
        if self.by_rs is not None:
            try:
                return by_delta_rs(self.by_rs)
            except Exception as problem:
                if isinstance(problem, Raced) or not is_from_delta_rs(problem):
                    raise
                self.by_rs = None
        return by_spark()

    def has_run(self, run_id: str) -> bool:
        """Say whether a run of this id may have rows here."""
        if is_local(self.uri) and RUN_ID in self._partition:  # its tasks write there: quicker than a look into the log
            return os.path.exists(hadoop_path(f"{self.uri}/{RUN_ID.name}={run_id}"))
        return bool(
            of_table(self.uri, lambda: self._by_either(lambda log: log.files(run_id), lambda: self._has_by_spark(run_id)))
        )

    def replace_run(self, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's files by these, perhaps none, in one commit; other runs stay.

        A new table is made. Raises TablesFailed.
        """
        for attempt in range(_ATTEMPTS):
            try:
                self._by_either(partial(self._commit, run_id, files), partial(self._write_by_spark, run_id, files))
                return
            except TablesFailed:
                raise
            except Exception as problem:  # delta-rs' errors and Spark's have no common kind
                if not _is_race(problem):
                    raise TablesFailed(f"table {self.uri}: {reason(problem)}") from None
                if attempt + 1 < _ATTEMPTS:
                    time.sleep(0.02 * (attempt + 1) * random.uniform(0.5, 1))
        raise TablesFailed(
            f"table {self.uri}: other writers were quicker {_ATTEMPTS} times: repeat the run once fewer of them write"
        )

    def _commit(self, run_id: str, files: Sequence[DataFile], log: DeltaRsLog) -> None:
        newest = log.newest()
        if newest is not None:
            newest = self._as_declared(log, newest)
        log.commit(newest, run_id, files)

    def _as_declared(self, log: DeltaRsLog, newest: Any) -> Any:
        """Return the newest version, once it has the columns, comments and description of this version of the tool.

        Raises Raced.
        """
        before = newest.version()
        try:
            present = {field.name for field in newest.schema().fields}
            if absent := [column for column in self._columns if column.name not in present]:  # of an earlier version
                log.add_columns(absent)
                newest = log.newest()
            return log.newest() if log.describe(newest) else newest
        except Exception as problem:
            if is_from_delta_rs(problem) and log.newest().version() != before:  # another writer does the same
                raise Raced from problem
            raise

    def by_spark(self) -> BySpark | None:
        """Return what reads the table where delta-rs cannot; None where it can. Asked once the table is known to exist."""
        return None if self.by_rs is not None else BySpark(self._started.spark)

    @cached_property
    def _spark(self) -> SparkSession:
        """Return a session that writes no statistics: Spark has those of some columns alone (`jobs.tables.file_statistics`)."""
        session = self._started.spark.newSession()
        session.conf.set("spark.databricks.delta.stats.collect", "false")
        return session

    def _write_by_spark(self, run_id: str, files: Sequence[DataFile]) -> None:
        """Replace the run's rows by those of the files, which are removed: Spark writes the rows to files of its own."""
        table = loaded(self._spark, self.uri)
        if table is not None and not files and not self._has_by_spark(run_id):
            return
        # a table of an earlier version has another partition
        columns = (*self._columns, *(c for c in self._partition if table is None or c.name in table.columns))
        declared = spark_schema(columns).toNullable()  # which Spark takes all for that it reads in a file
        frames = [self._frame_of(file, declared) for file in files] or [self._spark.createDataFrame([], declared)]
        writer = reduce(DataFrame.union, frames).write.format("delta").option("mergeSchema", "true")
        if table is None:
            writer.mode("append").partitionBy(*(column.name for column in self._partition)).save(self.uri)
        else:
            writer.mode("overwrite").option("replaceWhere", f"`{RUN_ID.name}` = '{run_id}'").save(self.uri)
        for file in files:
            with contextlib.suppress(Py4JJavaError):
                self._files.delete(self._path(file.uri), False)

    def _has_by_spark(self, run_id: str) -> bool:
        table = loaded(self._spark, self.uri)
        return table is not None and not table.where(table[RUN_ID.name] == run_id).isEmpty()

    def _frame_of(self, file: DataFile, declared: StructType) -> DataFrame:
        """Return the rows of a file that the log does not list yet; a missing column is null."""
        from pyspark.sql import functions as F

        held = StructType([field for field in declared if field.name not in file.values])
        reader = self._spark.read.schema(held).option("__globPaths__", "false")  # "[" in a folder's name is itself
        read = reader.parquet(file.uri)
        return read.withColumns({name: F.lit(value) for name, value in file.values.items()}).to(declared)

    def mend_statistics(self, most: int) -> int:
        """Give files whose statistics leave columns out whole ones, in a version of its own; return how many.

        Earlier versions of this tool wrote such, and Spark does, if it rewrites files. most: so many files are read at most.
        Raises an error of the writer if another one was quicker: there is a next time.
        """
        newest = self.by_rs.newest() if self.by_rs is not None else None  # where Spark writes there are no statistics
        return 0 if self.by_rs is None or newest is None else self.by_rs.mend_statistics(newest, most)


def _is_race(problem: Exception) -> bool:
    """Say whether another writer was quicker, so that a further attempt may succeed."""
    return isinstance(problem, Raced) or _SPARKS_RACES.search(str(problem)) is not None


def spark_schema(columns: Iterable[Column]) -> StructType:
    """Return the columns as Spark has them."""
    return StructType.fromJson(struct_of(*columns))
