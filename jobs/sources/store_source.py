"""The parts that all sources share: options, columns, conditions, and one store or several in one load."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jobs.cli.argument_places import absolute
from jobs.cli.command_table import STORE_OPTIONS
from jobs.cli.stores import StoreArgument, named_stores, read_fleet_file, with_unique_names
from jobs.messages.message_arguments import open_named
from jobs.runtime.source_notes import PLACE, say
from jobs.sources.conditions import Condition, as_message_filter, from_text, of_spark, wanted_texts
from schemas.rows import NAMED, MappedFile
from schemas.sources import SOURCES, STORE
from schemas.tables import Column, field_json
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.failed_reads import every_read, with_every_read
from store_io.base.paths import is_uri
from store_io.messages.message_filter import EVERY_MESSAGE
from store_io.messages.open_store import OpenStore, check_store, most_rows
from store_io.model.premises import assumed_sentence
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_T = TypeVar("_T")
_STORE_OPTIONS = {option.name.removeprefix("--").replace("-", "_"): option.name for option in STORE_OPTIONS}
CONDITIONS = "conditions"  # the option by which `sources.read` passes what a question asks
_COMMON_OPTIONS = _STORE_OPTIONS.keys() | {"path", "paths", "fleet", "columns", "pushdown", CONDITIONS}
# Spark reads a table of its catalog without the options that CREATE TABLE had: they are kept in the schema's first field.
_OPTIONS_KEY = "rocketmq.options"
_NOT_READ_HERE = (
    "Spark makes the table and cannot read it in a session with Delta's catalog, as this one: take CREATE TEMPORARY VIEW name"
    " USING ... OPTIONS (...), or a session without Delta"
)
_NOT_NAMED = {"path", "paths", CONDITIONS}  # Spark's own way to pass what load() is given, and that of `sources.read`
# PySpark 4.0 takes no time zone here: it means UTC.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


class StoreSource(DataSource):
    """Stores, as one of the sources. Raises UsageError or another StoreError, in a sentence, for what cannot be read."""

    source = ""
    own_options: frozenset[str] = frozenset()
    by_release = False  # whether its rows depend on the release
    cores: int | None = None  # on which tasks of the session run; None: not known
    finds_notes = False  # whether its readers find more to say in the store
    # The releases of PySpark to which a reader with `pushFilters` may be shown. 4.2 is not among them: all scans of a
    # frame or view share what one scan's conditions made of the reader (PythonScanBuilder.pushFilters calls
    # PythonDataSourceV2.setReadInfo), so that later questions, or the other side of a join, get rows for those conditions alone.
    # A release may be added once test_spark_hands_over_conditions_only_if_it_keeps_questions_apart finds it right.
    right_with_pushed: frozenset[str] = frozenset()

    @classmethod
    def name(cls) -> str:
        return f"rocketmq.{cls.source}"

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self.of_table = given.get("provider", "").lower() == self.name()
        if self.of_table:
            given = _of_table(given)
        if "storage_option" in given:  # without its value: that may be a secret
            raise UsageError(
                f"option 'storage_option': {self.name()} takes none; give --storage-option to the command run,"
                " or set variables of the environment, such as AWS_PROFILE, before Spark starts"
            )
        unknown = sorted(given.keys() - _COMMON_OPTIONS - self.own_options)
        if unknown:
            known = ", ".join(sorted((_COMMON_OPTIONS | self.own_options) - _NOT_NAMED))
            raise UsageError(f"option {unknown[0]!r}: {self.name()} knows {known}")
        self.given = given
        self.conditions = from_text(given.get(CONDITIONS, "[]"))
        self.several, self.stores = self._named() if given else (False, [])  # `reader` may know them by its schema

    def _named(self) -> tuple[bool, list[StoreArgument]]:
        """Return (whether rows name their store, the stores). Paths are absolute: executors have working folders of their own."""
        words = {option: self.given[name] for name, option in _STORE_OPTIONS.items() if name in self.given}
        if self.given.get("fleet"):
            if {"path", "paths"} & self.given.keys():
                raise UsageError("name either a store or the option fleet, not both")
            for name in ("broker_conf", "commitlog", "consumequeue", "index"):
                if name in self.given:
                    raise UsageError(f"option {name} does not go with fleet: set it in the store's own table")
            return True, with_unique_names(read_fleet_file(absolute(self.given["fleet"]), words))
        several = "paths" in self.given
        paths = _listed(self.given["paths"]) if several else [self.given.get("path", "")]
        if not all(paths) or not paths:
            raise UsageError(f"{self.name()} wants a store: load(PATH)")
        found = [path for pattern in paths for path in _folders(pattern)]
        return several or found != paths, with_unique_names(named_stores(found, words))

    @property
    def known(self) -> dict[str, Column]:
        """Return every column by name."""
        return {column.name: column for column in (STORE, *SOURCES[self.source])}

    def columns(self) -> tuple[str, ...]:
        """Return the chosen columns, in the order in which they were named."""
        if "columns" not in self.given:
            return ((STORE.name,) if self.several else ()) + self.default_columns()
        names = tuple(name.strip() for name in self.given["columns"].split(","))
        self.check_columns(names)
        return names

    def default_columns(self) -> tuple[str, ...]:
        """Return the columns that a frame has if none are chosen."""
        return tuple(column.name for column in SOURCES[self.source])

    def check_columns(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.known:
                raise UsageError(f"column {name!r}: the columns of {self.name()} are {', '.join(self.known)}")
        if len(set(names)) != len(names):
            raise UsageError(f"a column twice: {', '.join(names)}")

    def schema(self) -> StructType:
        if not self.stores:
            self._named()
        names = self.columns()
        if self.of_table and PLACE in os.environ:
            say([f"{self.name()}: {_NOT_READ_HERE}"])
        self._of_each(self._checked)
        return self.types(names)

    @every_read()
    def _checked(self, store: StoreArgument) -> None:
        self.check(store)

    def check(self, store: StoreArgument) -> None:
        """Raise StoreError for what load() is to say, before anything is planned."""
        check_store(StoreLocation(store.path, store.parts))

    def _of_each(self, find: Callable[[StoreArgument], _T]) -> list[_T]:
        """Return what `find` gives for each store. Unreadable stores of a fleet are left out and named on the terminal."""
        found, failed = [], []
        for store in self.stores:
            try:
                if store.problem:
                    raise UsageError(store.problem)
                found.append(find(store))
            except StoreError as problem:
                if "fleet" not in self.given:
                    raise
                failed.append((store.key, problem))
        if failed and not found:
            raise failed[0][1]
        say(f"{self.name()}: {name} cannot be read, and gives no row: {problem}" for name, problem in failed)
        return found

    def types(self, names: Sequence[str]) -> StructType:
        fields = [field_json(self.known[name]) for name in names]
        if self.of_table:
            fields[0]["metadata"][_OPTIONS_KEY] = json.dumps(self.given)
        return StructType.fromJson({"type": "struct", "fields": fields})

    def arrow_schema(self, names: Sequence[str]) -> pa.Schema:
        """Return these columns as the batches of a reader have them."""
        return to_arrow_schema(self.types(names), **_UTC)

    def reader(self, schema: StructType) -> DataSourceReader:
        kept = [field.metadata[_OPTIONS_KEY] for field in schema if _OPTIONS_KEY in field.metadata]
        if kept and not self.given:
            return type(self)(json.loads(kept[0])).reader(StructType.fromJson({"type": "struct", "fields": _plain(schema)}))
        if not self.stores:
            self._named()
        names = schema.fieldNames()
        self.check_columns(names)
        if [f.dataType for f in schema] != [f.dataType for f in self.types(names)]:
            raise UsageError(f"{self.name()}: a schema can choose columns, not change their types")
        own = [name for name in names if name != STORE.name] or [self.default_columns()[0]]  # a batch without columns has no rows
        arrow = self.arrow_schema(own)
        readers = self._of_each(lambda store: (store.key, self._open(store, arrow)))
        marked = self.several or STORE.name in names
        reader = StoresReader(readers, to_arrow_schema(schema, **_UTC)) if marked else readers[0][1]
        for condition in self.conditions:
            reader.take_over(condition)
        return _Pushed(reader) if self.flag("pushdown") and pyspark.__version__ in self.right_with_pushed else reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader that raises UsageError: a copy does not grow."""
        return _NoStream(self.name())

    @every_read()
    def _open(self, store: StoreArgument, arrow: pa.Schema) -> StoreReader:
        reader = self.make_reader(open_named(store), store, arrow)
        reader.assumed = self._assumed(store)
        return reader

    def _assumed(self, store: StoreArgument) -> list[str]:
        """Return a note that the store's release is assumed, if nobody named it and it matters."""
        if not self.by_release or store.release_from == NAMED:
            return []
        return [f"{self.name()}: {assumed_sentence(store.release, store.release_from)}"]

    @every_read()
    def notes(self) -> list[str]:
        """Return what the readers have to say before Spark plans anything. Raises as `schema`."""
        if not self.finds_notes:  # nothing is opened: that may take long
            return [note for store in self.stores if not store.problem for note in self._assumed(store)]
        arrow = to_arrow_schema(self.schema(), **_UTC)
        return [note for own in self._of_each(lambda store: self._open(store, arrow).notes()) for note in own]

    def most_rows(self) -> int | None:
        """Return how many rows all stores can hold, by the lengths of their files; None if one does not say."""
        stores = [store for store in self.stores if not store.problem]
        found = [most_rows(StoreLocation(store.path, store.parts), self.source) for store in stores]
        return None if None in found else sum(filter(None, found))

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        """Return the reader of one store.

        argument: as it was named.
        arrow: the columns to give, without the store's.
        """
        raise NotImplementedError

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is true or false."""
        text = self.given.get(name, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise UsageError(f"option {name}={self.given[name]!r}: true or false")
        return text == "true"


def _of_table(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of CREATE TABLE among all that Spark's catalog says of the table: its owner, its place, its
    properties."""
    own = {name.removeprefix("option."): value for name, value in given.items() if name.startswith("option.")}
    return {**own, "path": given["location"]} if "location" in given else own


def _plain(schema: StructType) -> list[dict[str, Any]]:
    """Return the fields without what `schema` has kept in them."""
    fields: list[dict[str, Any]] = schema.jsonValue()["fields"]
    return [{**field, "metadata": {k: v for k, v in field["metadata"].items() if k != _OPTIONS_KEY}} for field in fields]


def _listed(text: str) -> list[str]:
    """Return the paths that Spark passes for a list. Raises UsageError."""
    try:
        paths = parsed(json.loads, text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise UsageError(f"option paths={text[:100]!r}: not a JSON list of texts; give several stores as load([PATH, PATH])")
    return paths


def _folders(path: str) -> list[str]:
    """Return the folders that a pattern of this machine matches, by name; any other path as it is."""
    if is_uri(path) or not glob.has_magic(path) or os.path.lexists(path):
        return [path]
    found = sorted(match for match in glob.glob(path) if os.path.isdir(match))
    if not found:
        raise UsageError(f"{path!r}: no folder has such a name")
    return found


class StoreReader(DataSourceReader):
    """Reads one source of one store; it is sent to every task, so files are named by the partitions alone."""

    def __init__(self, arrow: pa.Schema) -> None:
        self.arrow = arrow
        self.wanted = EVERY_MESSAGE
        self.listed: list[Any] = []
        self.assumed: list[str] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "listed": []}

    def take_over(self, condition: Condition) -> None:
        """Read no row from now on that the condition surely leaves out. More rows than it keeps may be read."""
        self.wanted = self.wanted.narrowed(as_message_filter(condition))

    @every_read()
    def partitions(self) -> list[InputPartition]:
        """Return the parts to read. Asked once for a reading, in the driver, so that notes are said once."""
        say(self.notes())
        return self.parts()

    def notes(self) -> list[str]:
        """Return sentences, each with its source's name, about what was assumed and what is not read."""
        return self.assumed

    def parts(self) -> list[InputPartition]:
        raise NotImplementedError

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own, where there are none
            return
        from store_io.base.crc import checksum  # only tasks need what reads bytes: planners start faster without it

        checksum.trust()
        for batch in with_every_read(self.batches(partition.value)):
            columns = [batch.column(name).cast(field.type) for name, field in zip(self.arrow.names, self.arrow, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.arrow)

    def batches(self, part: Any) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class StoresReader(DataSourceReader):
    """Several readers as one, each row with its store's name. A task gets the reader of its own store alone."""

    def __init__(self, readers: list[tuple[str, StoreReader]], arrow: pa.Schema) -> None:
        self.readers, self.arrow = readers, arrow

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "readers": []}

    def take_over(self, condition: Condition) -> None:
        """Leave out the stores that are not asked for; the rest as each of them takes it."""
        names = wanted_texts(condition, STORE.name)
        if names is not None:
            self.readers = [(name, reader) for name, reader in self.readers if name in names]
            return
        for _, reader in self.readers:
            reader.take_over(condition)

    @every_read()
    def partitions(self) -> list[InputPartition]:
        """Return the parts of all stores in turn, so that the longest of each come first."""
        say(note for _, reader in self.readers for note in reader.notes())
        own = [[InputPartition((name, reader, part.value)) for part in reader.parts()] for name, reader in self.readers]
        return [part for part in chain.from_iterable(zip_longest(*own)) if part is not None]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        store, reader, value = partition.value
        for batch in reader.read(InputPartition(value)):
            named = pa.repeat(pa.scalar(store, pa.string()), batch.num_rows)
            columns = [named.cast(f.type) if f.name == STORE.name else batch.column(f.name) for f in self.arrow]
            yield pa.RecordBatch.from_arrays(columns, schema=self.arrow)


class _Pushed(DataSourceReader):
    """A reader to which Spark hands conditions; it asks all of them again."""

    def __init__(self, reader: StoreReader | StoresReader) -> None:
        self.reader = reader

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for condition in of_spark(filters):
            self.reader.take_over(condition)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return self.reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self.reader.read(partition)


class _NoStream(DataSourceStreamReader):
    """Refuses a stream when it starts: Spark replaces what `streamReader` itself raises by an error of its own."""

    def __init__(self, name: str) -> None:
        self.refusal = f"{name} is no stream, as a copy of a store does not grow: take spark.read instead of spark.readStream"

    def initialOffset(self) -> dict[str, Any]:
        raise UsageError(self.refusal)

    def getDefaultReadLimit(self) -> Any:
        raise UsageError(self.refusal)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        raise UsageError(self.refusal)


def longest_first(files: Iterable[MappedFile]) -> list[InputPartition]:
    """Return a partition for each file."""
    return [InputPartition(file) for file in sorted(files, key=lambda f: (-f.size, f.start, f.path))]
