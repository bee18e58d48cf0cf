"""Keeps copies of messages as Parquet or Delta; the helpers of `jobs.sources` take them instead of the store.

A copy answers a question if it was made with the same options and has all columns that are asked for, and if the segments are as
they were when it was made: names, lengths and times of modification. Otherwise the store is read. All this is written beside the
copy, last: so `keep` of another process takes a copy that is whole if the store has not changed, and else refuses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from jobs import RULES_VERSION, VERSION
from jobs.cli.argument_places import absolute, refuse_inside, refuse_not_utf8
from jobs.messages.export_files import DICTIONARY, convert_to_delta
from jobs.messages.message_arguments import open_named
from jobs.runtime.faults import reason
from jobs.runtime.output import write_local
from jobs.runtime.remote_files import remote_files
from jobs.runtime.source_notes import say
from jobs.sources.in_tasks import Fold, over_parts
from jobs.sources.message_source import MessagesSource
from schemas.sources import LOST, STORE
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.paths import is_uri
from store_io.source.byte_source import shown

FORMATS = ("parquet", "delta")
SORTED = ("topic", "store_time_ms", "store_time")
FILE_BYTES = 32 << 20  # of rows in a task's memory, which are sorted and written as one file
GROUP_BYTES = 16 << 20  # of them in a row group, each with its own statistics
MADE_OF = "_made_of.json"  # readers of Parquet and Delta pass over such names
_OF_A_QUESTION = frozenset(("columns", "since", "until", "pushdown"))  # options that choose among the rows of a copy
_MOST_BYTES = 256 << 20  # of what is written beside a copy


@dataclass(frozen=True)
class _Copy:
    """What a copy was made of.

    options: a digest of those on which rows depend, and of the store's place.  segments: path, length and time of each.
    """

    form: str
    columns: tuple[str, ...]
    options: str
    times: tuple[int | None, int | None]
    segments: frozenset[tuple[str, int, int]]


_kept: dict[str, _Copy] = {}  # by place, the latest last


def make_copy(spark: SparkSession, source: MessagesSource, place: str, form: str, sort: Sequence[str] | None) -> DataFrame:
    """Write what `source` reads, unless that was done before; questions take it from now on. Raises UsageError, StoreError.

    Only the copy of one store is taken, and only without what is lost: that hangs on more than segments.
    """
    if form not in FORMATS:
        raise UsageError(f"form={form!r}: {' or '.join(FORMATS)}")
    place = absolute(os.fspath(place))
    refuse_inside(place, "the copy", [path for store in source.stores for path in store.roots])
    if form == "delta":
        refuse_not_utf8("the copy", place)
    columns = source.columns()
    order = [name for name in SORTED if name in columns] if sort is None else list(sort)
    for name in order:
        if name not in columns:
            raise UsageError(f"sort {name!r}: the columns of the copy are {', '.join(columns)}")
    is_taken = len(source.stores) == 1 and not source.lost and LOST not in columns
    made = _Copy(form, columns, _options(source), source.times, _segments(source)) if is_taken else None
    if _is_there(spark, place):
        _check_same(place, made)
    else:
        if is_uri(place):
            _check_writable(place)
        _write(spark, source, place, form, order, made)
    if made is None:
        say([f"{place}: a copy of several stores, or with what is lost, is read by its own name alone"])
    else:
        _kept.pop(place, None)
        _kept[place] = made
    return spark.read.format(form).load(place)


def from_copy(spark: SparkSession, source: MessagesSource) -> DataFrame | None:
    """Return the rows that `source` would read, from a copy; None if no copy has them."""
    columns, options = source.columns(), _options(source)
    for place, copy in reversed(_kept.items()) if len(source.stores) == 1 else ():
        if copy.options != options or not set(columns) <= set(copy.columns) or not (is_uri(place) or os.path.isdir(place)):
            continue
        low, high = source.times
        if copy.times != source.times and (copy.times != (None, None) or "store_time_ms" not in copy.columns):
            continue
        if _segments(source) != copy.segments:
            say([f"{source.name()}: the store is not as it was when {place} was made of it, so the store is read"])
            continue
        frame = spark.read.format(copy.form).load(place)
        if copy.times != source.times:
            frame = frame if low is None else frame.where(frame["store_time_ms"] >= low)
            frame = frame if high is None else frame.where(frame["store_time_ms"] < high)
        return frame.select(*columns)
    return None


def _options(source: MessagesSource) -> str:
    """Return a digest of what rows depend on besides time and columns; the store by its place."""
    given = {name: text for name, text in source.given.items() if name not in {*_OF_A_QUESTION, "path", "paths"}}
    store = source.stores[0]
    words = [VERSION, RULES_VERSION, sorted(given.items()), store.key, store.path, store.parts, store.release, store.broker_conf]
    return hashlib.sha256(json.dumps(words, default=repr).encode()).hexdigest()


def _segments(source: MessagesSource) -> frozenset[tuple[str, int, int]]:
    opened = open_named(source.stores[0])
    return frozenset((file.path, file.size, opened.listing.by_path[file.path].mtime_ns) for file in opened.segments())


# ---- a copy's folder -------------------------------------------------------------------------------------------------


def _is_there(spark: SparkSession, place: str) -> bool:
    if not is_uri(place):
        return os.path.lexists(place)
    try:
        jvm: Any = spark.sparkContext._jvm
    except Exception:  # Spark Connect has no context
        return _made_of(place) is not None
    try:
        path = jvm.org.apache.hadoop.fs.Path(place)
        return bool(path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path))
    except Exception as problem:
        raise UsageError(f"the copy {shown(place)!r}: Spark reads nothing there: {reason(problem)}") from None


def _check_writable(place: str) -> None:
    """Raise UsageError if nothing can be written at that address. The tasks write with pyarrow and clients of S3 and HDFS."""
    above, _, name = place.rstrip("/").rpartition("/")
    try:
        remote_files(above).try_to_write(name)
    except (OSError, ValueError, StoreError, pa.ArrowException) as problem:
        said = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        why = (said.splitlines() or [type(problem).__name__])[0]
        raise UsageError(
            f"the copy {shown(place)!r}: tasks cannot write there ({why}); they write to folders of their"
            " machine, such as a mount, to s3://BUCKET/ and to hdfs://HOST:PORT/"
        ) from None


def _check_same(place: str, made: _Copy | None) -> None:
    """Raise UsageError unless the earlier copy was made of the same."""
    before = _made_of(place)
    if before is not None and before == made:
        return
    why = "is there already"
    if before is not None and made is not None:
        stale = replace(before, segments=made.segments) == made
        why = "was made before the store changed" if stale else "was made with other options or columns, or of another store"
    raise UsageError(f"the copy {place!r}: {why}; name a new folder")


def _made_of(place: str) -> _Copy | None:
    """Return what the copy there was made of; None if nothing says so."""
    try:
        if is_uri(place):
            text = remote_files(place).read(MADE_OF, _MOST_BYTES)
        else:
            with open(f"{place}/{MADE_OF}", "rb") as file:
                text = file.read(_MOST_BYTES)
        found = parsed(json.loads, text.decode())
        low, high = found["times"]
        segments = frozenset((path, size, time) for path, size, time in found["segments"])
        return _Copy(found["form"], tuple(found["columns"]), found["options"], (low, high), segments)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, StoreError, pa.ArrowException):
        return None


def _write(spark: SparkSession, source: MessagesSource, place: str, form: str, order: Sequence[str], made: _Copy | None) -> None:
    """Write the copy, what it was made of last; on this machine it is whole or not there. Raises StoreError."""
    folder = place if is_uri(place) else f"{place}.unfinished"
    schema = source.schema()
    if not is_uri(place):
        try:
            os.makedirs(folder)
        except OSError as problem:  # what lies there is not ours
            raise StoreError(f"{place}: the copy could not be written: {folder}: {problem.strerror}") from None
    try:
        files = over_parts(spark, source, _files(folder, order, schema.json()), "file string").collect()
        if not files:  # a copy without a message still says what its columns are
            empty = source.arrow_schema(source.columns()).empty_table()
            _put(folder, "empty.parquet", _encoded(empty, schema.json()))
        if form == "delta":
            convert_to_delta(spark, folder, schema.jsonValue())
        if made is not None:
            _put(folder, MADE_OF, json.dumps({**asdict(made), "segments": sorted(made.segments)}).encode())
        if not is_uri(place):
            os.rename(folder, place)
    except Exception as problem:
        if not is_uri(place):
            shutil.rmtree(folder, ignore_errors=True)
        raise StoreError(f"{place}: the copy could not be written: {reason(problem)}") from None


def _put(folder: str, name: str, content: bytes) -> None:
    if is_uri(folder):
        remote_files(folder).write(name, [content])
    else:
        write_local(f"{folder}/{name}", [content])


def _files(folder: str, order: Sequence[str], struct: str) -> Fold:
    """Return what writes each part's files, and yields their names."""

    def write(part: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, table in enumerate(_gathered(batches)):
            name = f"part-{part:05d}-{number:05d}.parquet"
            _put(folder, name, _encoded(table, struct, order))
            yield pa.RecordBatch.from_pydict({"file": [name]})

    return write


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of about FILE_BYTES."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size >= FILE_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _encoded(table: pa.Table, struct: str, order: Sequence[str] = ()) -> bytes:
    """Return a table as a Parquet file, sorted. struct: the columns as Spark's JSON has them, with their comments."""
    sink = pa.BufferOutputStream()
    few = [name for name in table.column_names if name in (*DICTIONARY, STORE.name)]
    rows = max(1, table.num_rows * GROUP_BYTES // max(1, table.nbytes))
    described = table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": struct})
    places = pc.sort_indices(table, [(column, "ascending") for column in order]) if order else None
    with pq.ParquetWriter(sink, described.schema, compression="zstd", compression_level=1, use_dictionary=few) as writer:
        for low in range(0, table.num_rows, rows):  # a sorted copy of one group at a time
            writer.write_table(described.slice(low, rows) if places is None else described.take(places.slice(low, rows)), rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
