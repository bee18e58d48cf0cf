"""One segment's messages -> one file of an export: whole or not there. Runs in the tasks."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.messages.message_arguments import RESEND
from jobs.report.files.json_text import row_line
from jobs.runtime.output import write_local
from jobs.tables.file_statistics import property_for_spark
from schemas.arrow import arrow_schema
from schemas.tables import struct_of
from store_io.base.errors import StoreError
from store_io.messages.lost.segment_loss import NONE_SPARED
from store_io.messages.lost.sendable import sendable_messages
from store_io.messages.message_rows import scan_messages
from store_io.messages.redaction import Redaction
from store_io.messages.scans import COLUMNS, MessageScan

PARQUET, DELTA, JSONL = "parquet", "delta", "jsonl"
ROW_GROUP_BYTES = 64 << 20
ROW_GROUP_ROWS = 1 << 18
JSON_ROWS = 256  # made lines together
WRITING = ".writing"
DICTIONARY = [
    "file", "topic", "queue_id", "tags", "transaction", "compression", "born_host", "store_host", "real_topic", "status",
    "body_status", "inner_batch", "sys_flag",
]  # fmt: skip


@dataclass(frozen=True)
class SegmentFiles:
    """The folders of an export's files, and the form of their content. Picklable."""

    folder: str  # of the files, a path
    state: str  # folder of the notes that say what is done
    form: str
    redaction: Redaction


@dataclass(frozen=True)
class NamedSegment:
    """One segment to export. name: that of its file, without the suffix."""

    scan: MessageScan
    name: str


def export_segment(files: SegmentFiles, part: NamedSegment) -> dict[str, Any]:
    """Write the segment's file, then the note that it is done; return the note.

    The note has file (null without a message), segment, rows, bytes, sha256. Raises StoreError; a part that was written until
    then is removed.
    """
    suffix = JSONL if files.form in (JSONL, RESEND) else PARQUET
    path = f"{files.folder}/{part.name}.{suffix}"
    temporary = f"{files.folder}/.{part.name}.{suffix}{WRITING}"
    try:
        digest = hashlib.sha256()
        with _Sink(temporary, digest) as sink:
            rows = _write(sink, files, part.scan)
        note: dict[str, Any] = {"segment": part.scan.path, "file": None, "rows": rows, "bytes": 0, "sha256": None}
        if rows:
            note |= {"file": f"{part.name}.{suffix}", "bytes": sink.size, "sha256": digest.hexdigest()}
            os.rename(temporary, path)
        else:
            os.unlink(temporary)
        write_local(f"{files.state}/{part.name}.json", [json.dumps(note).encode()])
        return note
    except BaseException as problem:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(problem, OSError):
            raise StoreError(f"{path}: cannot write: {problem.strerror or problem}") from None
        raise


def write_empty(folder: str, columns: tuple[str, ...]) -> None:
    """Write a Parquet file without rows, so that an export without a message still says what its columns are."""
    pq.write_table(schema_with_comments(columns).empty_table(), f"{folder}/empty.{PARQUET}")


def schema_with_comments(columns: tuple[str, ...]) -> pa.Schema:
    """Return the columns as Parquet files hold them; Spark finds types and comments in the metadata."""
    chosen = [COLUMNS[name] for name in columns]
    return arrow_schema(chosen).with_metadata({"org.apache.spark.sql.parquet.row.metadata": json.dumps(struct_of(*chosen))})


def convert_to_delta(spark: Any, folder: str, struct: Mapping[str, Any]) -> None:
    """Turn a folder of Parquet files into a Delta table, in one version. Raises Spark's errors.

    struct: the columns as Delta's log has them.
    """
    name, value = property_for_spark(struct)
    default = f"spark.databricks.delta.properties.defaults.{name}"
    before = spark.conf.get(default, None)
    spark.conf.set(default, value)
    try:
        spark.sql(f"CONVERT TO DELTA parquet.`{folder.replace('`', '``')}`")
    finally:
        if before is None:
            spark.conf.unset(default)
        else:
            spark.conf.set(default, before)


class _Sink:
    """A file that is written once, with its digest."""

    closed = False

    def __init__(self, path: str, digest: Any):
        self._digest = digest
        self.size = 0
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        self._file = os.fdopen(handle, "wb")

    def write(self, data: Any) -> int:
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Arrow closes what it has written to; the file is closed by the context."""

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())


def _write(sink: _Sink, files: SegmentFiles, scan: MessageScan) -> int:
    """Write the messages in the export's form; how many."""
    if files.form == RESEND:
        rows = 0
        spared = NONE_SPARED if scan.loss is None else scan.loss.spared
        for batch in scan_messages(scan):
            for message in sendable_messages(batch, files.redaction, spared):
                sink.write(row_line(vars(message)).encode("ascii"))
            rows += batch.num_rows
        return rows
    batches = (files.redaction.batch(batch) for batch in scan_messages(scan))
    return _write_jsonl(sink, batches) if files.form == JSONL else _write_parquet(sink, batches, scan)


def _write_parquet(sink: _Sink, batches: Iterator[pa.RecordBatch], scan: MessageScan) -> int:
    schema = schema_with_comments(scan.columns)
    dictionary = [name for name in scan.columns if name in DICTIONARY]
    rows = 0
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"), schema, compression="zstd", compression_level=1, use_dictionary=dictionary
    ) as writer:
        for table in _groups(batches, schema):
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            rows += table.num_rows
    return rows


def _groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the batches gathered to what is worth a row group."""
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        waiting.append(batch.replace_schema_metadata(schema.metadata))
        size += batch.nbytes
        rows += batch.num_rows
        if size >= ROW_GROUP_BYTES or rows >= ROW_GROUP_ROWS:
            yield pa.Table.from_batches(waiting, schema)
            waiting, size, rows = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _write_jsonl(sink: _Sink, batches: Iterator[pa.RecordBatch]) -> int:
    rows = 0
    for batch in batches:
        for low in range(0, batch.num_rows, JSON_ROWS):  # as text a body takes six times as much at worst: never all at once
            lines = [row_line(row) for row in json_rows(batch.slice(low, JSON_ROWS))]
            sink.write("".join(lines).encode("ascii"))
        rows += batch.num_rows
    return rows


def json_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as JSON has them: times as ISO-8601 in UTC, maps as objects, a body as text.

    A body that is no text is in base64, as `body_base64`.
    """
    columns: dict[str, list[Any]] = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(column.cast(pa.timestamp("ms", "UTC")), format="%Y-%m-%dT%H:%M:%SZ")
            columns[field.name] = text.to_pylist()
        elif pa.types.is_map(field.type):
            columns[field.name] = [None if pairs is None else dict(pairs) for pairs in column.to_pylist()]
        else:
            columns[field.name] = column.to_pylist()
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [_with_body(row) for row in rows] if "body" in columns else rows


def _with_body(row: dict[str, Any]) -> dict[str, Any]:
    if row["body"] is None:
        return row
    try:
        return {**row, "body": row["body"].decode("utf-8")}
    except UnicodeDecodeError:
        coded = base64.b64encode(row["body"]).decode("ascii")
        return {("body_base64" if name == "body" else name): (coded if name == "body" else v) for name, v in row.items()}
