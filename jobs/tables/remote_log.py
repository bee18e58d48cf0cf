"""Delta tables in S3 and HDFS: delta-rs commits, and tasks read the files themselves, by the same clients as copies.

Spark as it is shipped cannot reach S3; HDFS it can, with a configuration of its own that would have to agree with ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.runtime.remote_files import remote_files
from jobs.tables.delta_log import DeltaLog, spark_schema
from jobs.tables.delta_rs_log import DeltaRsLog
from jobs.tables.table_files import delta_rs_options
from schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Found = TypeVar("_Found")


class RemoteLog(DeltaLog):
    """One table's log in S3 or HDFS.

    uri: an `s3://` or `hdfs://` URI.
    If two writers meet, the second one's commit finds the version taken, and is tried again: S3 creates an object only if there
    is none, HDFS renames a file only to a name that is free.
    """

    def _open(self) -> DeltaRsLog:
        delta_rs_options(self.uri)  # before anything is written: it refuses what delta-rs would look for elsewhere
        self._remote = remote_files(self.uri)
        self._log = self._rs_log(self.uri)
        return self._log

    def _write(self, uri: str, data: pa.Buffer) -> None:
        self._remote.write(uri.removeprefix(f"{self.uri}/"), [data.to_pybytes()])

    def _by_either(self, by_delta_rs: Callable[[DeltaRsLog], _Found], by_spark: Callable[[], _Found]) -> _Found:
        return by_delta_rs(self._log)

    def frame(self) -> DataFrame:
        """Return all rows of the newest version; a column that a file lacks is null. Each task reads one file after the other."""
        files = [(file.path, dict(file.values)) for file in self._log.files()]
        names = sorted({name for _, values in files for name in values})
        columns = (*self._columns, *self._partition)
        schema, uri = arrow_schema(columns), self.uri

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            remote = remote_files(uri)
            for batch in batches:
                for row in batch.to_pylist():
                    own = {name: row[name] for name in names}
                    yield from _rows(remote.read(row["path"]), schema, own)

        spark = self._started.spark
        given = pa.schema([("path", pa.string()), *((name, pa.string()) for name in names)])
        listed = pa.Table.from_pylist([{"path": path, **values} for path, values in files], given)
        frame = spark.createDataFrame(listed).repartition(max(1, min(len(files), self._started.context.defaultParallelism * 4)))
        return frame.mapInArrow(read, spark_schema(columns))


def _rows(data: bytes, schema: pa.Schema, own: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in the schema of the table. own: the values of its partition."""
    file = pq.ParquetFile(pa.BufferReader(data))
    for batch in file.iter_batches():
        arrays = [
            pa.array([own[field.name]] * batch.num_rows, field.type)
            if field.name in own
            else batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
