"""Record-level datasets: Parquet files written by the tasks that read the segments, committed to Delta tables by the driver.

A file counts only once `jobs.tables.delta_tables` has committed it, so what a task that died has left is never read.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from jobs.runtime.faults import is_no_room
from jobs.runtime.output import Unwritten
from jobs.runtime.remote_files import HdfsFiles
from jobs.tables.file_statistics import LongTexts, statistics_of
from jobs.tables.table_files import DataFile, hadoop_path, is_local
from schemas.arrow import DATASET_SCHEMAS
from schemas.rows import SegmentSummary
from schemas.tables import RUN_ID, STORE
from store_io.base.errors import StoreError
from store_io.base.paths import bucket_and_key, is_hdfs, is_s3
from store_io.log.scan import dataset_rows
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.s3_client import arrow_file_system

ROW_GROUP_ROWS = 1 << 18
_DICTIONARY = ["topic", "tags", "kind", "queue_id", "segment", "sys_flag", "batch_count", "message_count", "plausible"]
_HADOOP_ONLY = {"abfss": "abfs"}  # names that Spark has for file systems of pyarrow


class DatasetFailed(StoreError):
    """A dataset's file cannot be written."""


@dataclass(frozen=True)
class DatasetPlan:
    """The datasets that the tasks of one run write, and their place. Picklable.

    names: of `messages`, `consumequeue`, `index`.
    """

    uri: str  # of the tables
    run_id: str
    names: tuple[str, ...]


@dataclass
class SegmentOutput:
    """The result of one segment's scan.

    files: dataset -> its file, not committed yet.
    problem: a sentence on why there are none.
    """

    summary: SegmentSummary
    files: dict[str, DataFile]
    problem: Unwritten | None = None


def scan_and_write(task: SegmentTask, plan: DatasetPlan, store: str) -> SegmentOutput:
    """Scan a segment as usual, and write its datasets on the way. A dataset that cannot be written does not harm the scan."""
    with _SegmentFiles(task, plan, store) as files:
        summary = scan_segment(task, sink=files)
        return SegmentOutput(summary, {} if summary.problem else files.finish(), files.problem)


class _SegmentFiles:
    """The sink of one segment's scan: a Parquet file for each dataset."""

    def __init__(self, task: SegmentTask, plan: DatasetPlan, store: str):
        self.want_keys = "index" in plan.names
        self.problem: Unwritten | None = None
        self._task = task
        self._files = {name: _File(plan, name, store, task.base_offset) for name in plan.names}

    def __enter__(self) -> _SegmentFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.abandon()

    def add(self, scanned: dataset_rows.ScannedRows) -> None:
        """See `DatasetSink`."""
        task = self._task
        for name, file in self._files.items():
            if self.problem:
                return
            if name == "messages":
                batch = dataset_rows.messages_batch(task.base_offset, scanned)
            elif name == "consumequeue":
                batch = dataset_rows.consumequeue_batch(scanned, task.lmq)
            else:
                batch = dataset_rows.index_batch(scanned, task.rules.tag_index)
            self._try(partial(file.add, batch))

    def finish(self) -> dict[str, DataFile]:
        """Return dataset -> its file, for those with rows; {} if a file could not be written."""
        finished = {name: self._try(file.finish) for name, file in self._files.items()}
        return {} if self.problem else {name: file for name, file in finished.items() if file is not None}

    def _try(self, action: Callable[[], DataFile | None]) -> DataFile | None:
        try:
            return None if self.problem else action()
        except DatasetFailed as problem:
            self.problem = Unwritten(str(problem), is_no_room(problem))
            return None


class _File:
    """One Parquet file that grows by batches. Nothing is created before the first row."""

    def __init__(self, plan: DatasetPlan, name: str, store: str, base_offset: int):
        self._name, self._values = name, {RUN_ID.name: plan.run_id, STORE.name: store}
        self.uri = f"{plan.uri.rstrip('/')}/{name}/run_id={plan.run_id}/part-{base_offset:020}-{uuid.uuid4()}.parquet"
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._writer: Any = None
        self._stream: Any = None
        self._size: Callable[[], int]
        self._remove: Callable[[], None]
        self._footer: list[pq.FileMetaData] = []
        self._long = LongTexts()
        self._done = False

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._waiting.append(batch)
            self._waiting_rows += batch.num_rows
            if self._waiting_rows >= ROW_GROUP_ROWS:
                self._flush()

    def finish(self) -> DataFile | None:
        """Close the file; return None if it got no row."""
        self._flush()
        if self._writer is None:
            return None
        with self._writing():
            self._writer.close()
            self._stream.close()
            size = self._size()
        self._done = True
        statistics = statistics_of(self._footer[0], self._long.read)
        return DataFile(self.uri, size, int(time.time() * 1000), statistics, self._values)

    def abandon(self) -> None:
        """Remove what was written, unless it is finished."""
        if self._writer is not None and not self._done:
            with contextlib.suppress(Exception):
                self._writer.close()
                self._stream.close()
            with contextlib.suppress(Exception):
                self._remove()

    def _flush(self) -> None:
        if not self._waiting:
            return
        # Dictionaries of several batches do not agree; as plain texts they do.
        table = pa.Table.from_batches([batch.cast(DATASET_SCHEMAS[self._name]) for batch in self._waiting])
        self._waiting, self._waiting_rows = [], 0
        with self._writing():
            if self._writer is None:
                self._open(table.schema)
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self._long.add(table)

    def _open(self, schema: pa.Schema) -> None:
        if is_hdfs(self.uri):
            folder, _, name = self.uri.rpartition("/")
            files = HdfsFiles(folder)
            self._size, self._remove = partial(files.size, name), partial(files.remove, name)
            self._stream = files.open_output_stream(files.path(name))
        else:
            system, path = self._place()
            self._size, self._remove = lambda: int(system.get_file_info(path).size), partial(system.delete_file, path)
            self._stream = system.open_output_stream(path)
        columns = [name for name in _DICTIONARY if name in schema.names]
        self._writer = pq.ParquetWriter(
            self._stream, schema, compression="zstd", compression_level=1, use_dictionary=columns,
            metadata_collector=self._footer,
        )  # fmt: skip

    def _place(self) -> tuple[Any, str]:
        """Return pyarrow's file system, and the path there."""
        if is_local(self.uri):
            path = hadoop_path(self.uri)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return fs.LocalFileSystem(), path
        if is_s3(self.uri):
            return arrow_file_system(), "/".join(bucket_and_key(self.uri))
        scheme, _, rest = self.uri.partition("://")
        system, path = fs.FileSystem.from_uri(f"{_HADOOP_ONLY.get(scheme, scheme)}://{rest}")
        return system, path

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as problem:
            raise DatasetFailed(f"{self.uri}: cannot write: {getattr(problem, 'strerror', None) or problem}") from None


def by_dataset(files: Sequence[Mapping[str, DataFile]]) -> dict[str, list[DataFile]]:
    """Return the files that the tasks wrote, by dataset."""
    found: dict[str, list[DataFile]] = {}
    for of_task in files:
        for name, file in of_task.items():
            found.setdefault(name, []).append(file)
    return found
