"""A copied store as Spark data sources, read where it lies: no audit, no tables.

    from jobs.sources import register

    register(spark)
    spark.read.format("rocketmq.messages").load("copies/broker-a").where("topic = 'orders'")

Sources: rocketmq.messages, rocketmq.consumequeue, rocketmq.index, rocketmq.extents; their columns are in schemas/sources.py.
A task reads one segment, one index file or a group of queues, the longest first. Conditions on topic, queue id, offsets and store
time are pushed down: whole segments are skipped by the physical offsets in their names, messages before they become rows. No
segment is skipped by store times unless `trust_clock` says so: a clock that was set back, or a damaged time, could hide messages.

Options of all: release, broker_conf (a file), commitlog, consumequeue, index (where a store keeps these parts elsewhere), columns
(names, separated by commas; Spark does not pass to a source which ones a query needs), pushdown (false: for a session in which
Spark's own spark.sql.python.filterPushdown.enabled is off).
Options of messages: body (none, raw, decoded), decompress (true: the same as body = decoded), unpack (true: the messages of inner
batches instead of the batches), max_body_bytes, since and until (as on the command line), trust_clock (true: skip segments by
their first messages' store times), tables (those that audits of this copy wrote: skips segments that hold no message of the store
times asked for, as an earlier audit with the same release and settings saw them, and says on standard error how many), lost
(true: only what a start would lose), redact (hide, or hash: keyed tokens, the same ones within one load), redact_salt_file. The
option lost and the column `lost` want `release`, and have the whole store audited first, where the query is planned, by one
process: for a large store take export --lost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jobs.command_line import options as command_line
from jobs.command_line import places
from jobs.command_line.command_table import STORE_OPTIONS
from jobs.command_line.message_filters import read_time
from jobs.report.texts.text import printable
from schemas.rows import DEFAULT, MappedFile
from schemas.sources import BODY_COLUMNS, LOST, SOURCES
from schemas.tables import field_json
from store_io.audit.audit_request import AuditRequest
from store_io.base.errors import UsageError
from store_io.explore.choice.by_tables import EarlierTimes, needed, skipped_sentence
from store_io.explore.message_filter import ALL, EVERY_MESSAGE, MessageFilter, Range
from store_io.explore.open_store import OpenStore, QueueFiles, SegmentTimes, check_store, open_store, segment_times
from store_io.explore.redaction import Redaction, read_redaction
from store_io.explore.scans import DEFAULT_COLUMNS, MAX_BODY_BYTES, EntryScan, MessageScan
from store_io.source.byte_source import StoreLocation

with suppress(ImportError):  # PySpark 4.0 passes no conditions to a source
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        LessThan,
        LessThanOrEqual,
    )

if TYPE_CHECKING:
    from store_io.explore.lost.lost_places import LostPlaces
    from store_io.explore.lost.segment_loss import SegmentLoss

PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"
GROUP_BYTES = 64 << 20  # of ConsumeQueue files that one task reads
GROUP_QUEUES = 256

_STORE_OPTIONS = {option.name.removeprefix("--").replace("-", "_"): option.name for option in STORE_OPTIONS}
_COMMON_OPTIONS = _STORE_OPTIONS.keys() | {"path", "columns", "pushdown"}
_MESSAGE_OPTIONS = frozenset(
    "body decompress unpack max_body_bytes since until trust_clock tables lost redact redact_salt_file".split()
)
# PySpark 4.0 takes no time zone here: it means UTC.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def register(spark: SparkSession) -> None:
    """Make the sources known to this session, and have Spark hand conditions to them."""
    spark.conf.set(PUSHDOWN_CONF, "true")  # off by default, and then Spark refuses a reader that could take conditions
    for source in _BY_NAME.values():
        spark.dataSource.register(source)


def read(spark: SparkSession, source: str, store: str, **options: object) -> DataFrame:
    """One source of a store, registered if it was not; options as above, Python's True and False are understood.

    Raises UsageError or another StoreError here, in one sentence, where `load` would show Spark's own error around it.
    """
    if source not in _BY_NAME:
        raise UsageError(f"source {source!r}: {', '.join(_BY_NAME)}")
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    _BY_NAME[source]({**texts, "path": store}).schema()
    register(spark)
    return spark.read.format(f"rocketmq.{source}").options(**texts).load(store)


# ---- what all sources share ------------------------------------------------------------------------------------------


class StoreSource(DataSource):
    """One store, as one of the sources. Raises UsageError or another StoreError, in a sentence, for what cannot be read."""

    source = ""
    own_options: frozenset[str] = frozenset()

    @classmethod
    def name(cls) -> str:
        return f"rocketmq.{cls.source}"

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(given.keys() - _COMMON_OPTIONS - self.own_options)
        if unknown:
            known = ", ".join(sorted((_COMMON_OPTIONS | self.own_options) - {"path"}))
            raise UsageError(f"option {unknown[0]!r}: {self.name()} knows {known}")
        if not given.get("path"):
            raise UsageError(f"{self.name()} wants a store: load(PATH)")
        self.given = given
        # Absolute at once: executors have working folders of their own.
        words = {option: given[name] for name, option in _STORE_OPTIONS.items() if name in given}
        store = command_line.single_store(command_line.Command(self.name(), arguments=(given["path"],), options=words))
        self.location = StoreLocation(store.path, store.parts)
        self.broker_conf = store.broker_conf
        self.release, self.release_from = store.release, store.release_from

    def columns(self) -> tuple[str, ...]:
        """The chosen columns, in the order in which they were named."""
        if "columns" not in self.given:
            return self.default_columns()
        names = tuple(name.strip() for name in self.given["columns"].split(","))
        self.check_columns(names)
        return names

    def default_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in SOURCES[self.source])

    def check_columns(self, names: Sequence[str]) -> None:
        known = [column.name for column in SOURCES[self.source]]
        for name in names:
            if name not in known:
                raise UsageError(f"column {name!r}: the columns of {self.name()} are {', '.join(known)}")
        if len(set(names)) != len(names):
            raise UsageError(f"a column twice: {', '.join(names)}")

    def schema(self) -> StructType:
        names = self.columns()
        check_store(self.location)
        return self.types(names)

    def types(self, names: Sequence[str]) -> StructType:
        by_name = {column.name: column for column in SOURCES[self.source]}
        return StructType.fromJson({"type": "struct", "fields": [field_json(by_name[name]) for name in names]})

    def reader(self, schema: StructType) -> DataSourceReader:
        names = schema.fieldNames()
        self.check_columns(names)
        if [f.dataType for f in schema] != [f.dataType for f in self.types(names)]:
            raise UsageError(f"{self.name()}: a schema can choose columns, not change their types")
        store = open_store(self.location, self.release, self.broker_conf)
        reader = self.make_reader(store, tuple(names), to_arrow_schema(schema, **_UTC))
        return reader if self.flag("pushdown", True) else _Unpushed(reader)

    def make_reader(self, store: OpenStore, names: tuple[str, ...], arrow: pa.Schema) -> StoreReader:
        raise NotImplementedError

    def flag(self, name: str, default: bool = False) -> bool:
        """An option that is true or false."""
        text = self.given.get(name, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise UsageError(f"option {name}={self.given[name]!r}: true or false")
        return text == "true"


class StoreReader(DataSourceReader):
    """Reads one source of one store; it is sent to every task, so files are named by the partitions alone."""

    def __init__(self, arrow: pa.Schema) -> None:
        self.arrow = arrow
        self.wanted = EVERY_MESSAGE
        self.listed: list[Any] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "listed": []}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take over what can be said of messages exactly; the rest narrows what is read, and Spark looks again."""
        left = []
        for condition in filters:
            narrower, exact = as_message_filter(condition)
            self.wanted = self.wanted.narrowed(narrower)
            if not exact:
                left.append(condition)
        return left

    def partitions(self) -> list[InputPartition]:
        raise NotImplementedError

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own, where there are none
            return
        from store_io.base import checksum  # only tasks need what reads bytes: planners start faster without it

        checksum.trust()
        for batch in self.batches(partition.value):
            columns = [batch.column(name).cast(field.type) for name, field in zip(self.arrow.names, self.arrow, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.arrow)

    def batches(self, part: Any) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class _Unpushed(DataSourceReader):
    """The same without conditions, which Spark accepts in a session that has their pushdown switched off."""

    def __init__(self, reader: StoreReader) -> None:
        self.reader = reader

    def partitions(self) -> Sequence[InputPartition]:
        return self.reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reader.read(partition)


# ---- conditions ------------------------------------------------------------------------------------------------------


def as_message_filter(condition: Filter) -> tuple[MessageFilter, bool]:
    """(a filter that keeps at least what the condition keeps, whether it is exact)."""
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    value = getattr(condition, "value", None)
    if len(path) != 1 or value is None:
        return EVERY_MESSAGE, False
    name = path[0]
    values = list(value) if isinstance(condition, In) else [value]
    one_of = isinstance(condition, In | EqualTo | EqualNullSafe)
    if name == "topic" and one_of and all(isinstance(v, str) for v in values):
        return MessageFilter(topics=frozenset(values)), True
    if name == "queue_id" and one_of and all(type(v) is int for v in values):
        return MessageFilter(queue_ids=frozenset(values)), True
    if name in ("phy_offset", "queue_offset", "store_time_ms") and values and all(type(v) is int for v in values):
        bounds, exact = _bounds(condition, values), len(values) == 1
        if name == "phy_offset":
            return MessageFilter(phy_offsets=bounds), exact
        return (MessageFilter(queue_offsets=bounds) if name == "queue_offset" else MessageFilter(store_times=bounds)), exact
    if name == "store_time" and all(isinstance(v, datetime) and v.tzinfo is not None for v in values) and values:
        low, high = _bounds(condition, [(v - _EPOCH) // timedelta(milliseconds=1) for v in values], coarse=True)
        return MessageFilter(store_times=(low, high)), False
    return EVERY_MESSAGE, False


def _bounds(condition: Filter, values: Sequence[int], coarse: bool = False) -> Range:
    """The half-open range that the condition leaves. coarse: values were rounded down."""
    low, high = min(values), max(values)
    if isinstance(condition, In | EqualTo | EqualNullSafe):
        return low, high + 1
    if isinstance(condition, GreaterThanOrEqual):
        return low, None
    if isinstance(condition, GreaterThan):
        return (low if coarse else low + 1), None
    if isinstance(condition, LessThanOrEqual):
        return None, high + 1
    if isinstance(condition, LessThan):
        return None, (high + 1 if coarse else high)
    return None, None


def _longest_first(files: Iterable[MappedFile]) -> list[InputPartition]:
    return [InputPartition(file) for file in sorted(files, key=lambda f: (-f.size, f.start, f.path))]


# ---- messages --------------------------------------------------------------------------------------------------------


class MessagesSource(StoreSource):
    """The messages that the audit accepts."""

    source = "messages"
    own_options = _MESSAGE_OPTIONS

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.body = self.given.get("body", "decoded" if self.flag("decompress") else "none").strip().lower()
        if self.body not in ("none", "raw", "decoded"):
            raise UsageError(f"option body={self.given['body']!r}: none, raw or decoded")
        if self.flag("decompress") and self.body != "decoded":
            raise UsageError(f"options decompress=true and body={self.body}: say one of them")
        self.lost, self.trust_clock = self.flag("lost"), self.flag("trust_clock")
        self.unpack = self.flag("unpack", self.lost)
        self.max_body = MAX_BODY_BYTES
        if "max_body_bytes" in self.given:
            text = self.given["max_body_bytes"].strip()
            if not text.isdecimal() or not 0 < int(text) < 1 << 31:
                raise UsageError(f"option max_body_bytes={text!r}: a number from 1 to {(1 << 31) - 1}")
            self.max_body = int(text)
        mode, salt_file = self.given.get("redact", "none").strip(), self.given.get("redact_salt_file")
        salt = None if salt_file is None else places.read_salt(salt_file, "redact_salt_file")
        self.redaction = read_redaction(None if mode == "none" else mode, salt)
        low, high = (read_time(self.given[name], name) if name in self.given else None for name in ("since", "until"))
        self.times: Range = (low, high)
        self.tables = places.tables_at("option tables", self.given["tables"]) if "tables" in self.given else None

    def default_columns(self) -> tuple[str, ...]:
        return DEFAULT_COLUMNS + (() if self.body == "none" else BODY_COLUMNS) + ((LOST,) if self.lost else ())

    def check_columns(self, names: Sequence[str]) -> None:
        super().check_columns(names)
        if (self.lost or LOST in names) and self.release_from == DEFAULT:
            asked = "option lost" if self.lost else f"column {LOST!r}"
            raise UsageError(f"{asked}: what a start would lose depends on the release; say it with the option release")

    def types(self, names: Sequence[str]) -> StructType:
        self.check_columns(names)
        return super().types(names)

    def make_reader(self, store: OpenStore, names: tuple[str, ...], arrow: pa.Schema) -> StoreReader:
        segments = segment_times(store) if self.trust_clock else [SegmentTimes(file, None, None) for file in store.segments()]
        scan = MessageScan(
            self.location, "", 0, 0, names, MessageFilter(store_times=self.times), self.body == "decoded", self.unpack,
            store.rules, self.max_body, only_lost=self.lost,
        )  # fmt: skip
        return MessagesReader(arrow, scan, segments, self.redaction, self._places(names), self._earlier(store))

    def _earlier(self, store: OpenStore) -> EarlierTimes | None:
        """What earlier audits say of the segments, where they are to be asked."""
        if self.tables is None:
            return None
        from jobs.explore.earlier_times import earlier_times

        return earlier_times(self.tables, store, self.release)

    def _places(self, names: tuple[str, ...]) -> LostPlaces | None:
        """What a start would take, where that is asked for."""
        if not self.lost and LOST not in names:
            return None
        from store_io.audit.audit_store import run_audit
        from store_io.base import checksum
        from store_io.explore.lost.lost_places import lost_places

        checksum.trust()
        return lost_places(run_audit(AuditRequest("store", self.location, self.release, self.broker_conf)))


class MessagesReader(StoreReader):
    def __init__(
        self,
        arrow: pa.Schema,
        scan: MessageScan,
        segments: list[SegmentTimes],
        redaction: Redaction,
        places: LostPlaces | None = None,
        earlier: EarlierTimes | None = None,
    ) -> None:
        super().__init__(arrow)
        self.scan, self.listed, self.redaction, self.places, self.earlier = scan, segments, redaction, places, earlier

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "places": None, "earlier": None}

    def partitions(self) -> list[InputPartition]:
        wanted = self.wanted.narrowed(self.scan.wanted)
        found = [times.file for times in self.listed if times.may_hold(wanted.store_times)]
        found = [f for f in found if wanted.may_be_in(f.start, f.size)]
        if self.earlier is not None and wanted.store_times != ALL:
            kept = needed(found, self.earlier, wanted.store_times)
            said = printable(skipped_sentence(self.earlier, len(found) - len(kept), len(found)))
            print(f"rocketmq.messages: {said}", file=sys.stderr, flush=True)
            found = kept
        parts = _longest_first(found)
        if self.places is None:
            return parts
        parts = [part for part in parts if not self.scan.only_lost or self.places.of(part.value.path)]
        return [InputPartition((part.value, self.places.of(part.value.path))) for part in parts]

    def batches(self, part: MappedFile | tuple[MappedFile, SegmentLoss]) -> Iterator[pa.RecordBatch]:
        from store_io.explore.message_rows import scan_messages

        file, loss = part if isinstance(part, tuple) else (part, None)
        wanted = self.wanted.narrowed(self.scan.wanted)
        scan = replace(self.scan, wanted=wanted).of(file, loss)
        yield from map(self.redaction.batch, scan_messages(scan))


# ---- the other sources -----------------------------------------------------------------------------------------------


class ConsumeQueueSource(StoreSource):
    """The entries that ConsumeQueues and BatchConsumeQueues hold on disk."""

    source = "consumequeue"

    def make_reader(self, store: OpenStore, names: tuple[str, ...], arrow: pa.Schema) -> StoreReader:
        return QueuesReader(arrow, EntryScan(self.location, store.rules), store.queues())


class QueuesReader(StoreReader):
    def __init__(self, arrow: pa.Schema, scan: EntryScan, queues: list[QueueFiles]) -> None:
        super().__init__(arrow)
        self.scan, self.listed = scan, queues

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        left = list(super().pushFilters(filters))
        # Of an entry's own numbers only where it leads is looked at before it becomes a row.
        taken = ("topic", "queue_id", "phy_offset")
        return [f for f in filters if f in left or getattr(f, "attribute", ()) not in [(name,) for name in taken]]

    def partitions(self) -> list[InputPartition]:
        topics, ids = self.wanted.topics, self.wanted.queue_ids
        chosen = [q for q in self.listed if (topics is None or q.key[0] in topics) and (ids is None or q.key[1] in ids)]
        chosen.sort(key=lambda q: (-sum(f.size for f in q.files), q.key, q.batch))
        groups: list[tuple[QueueFiles, ...]] = []
        group: list[QueueFiles] = []
        size = 0
        for queue in chosen:
            group.append(queue)
            size += sum(f.size for f in queue.files)
            if size >= GROUP_BYTES or len(group) >= GROUP_QUEUES:
                groups.append(tuple(group))
                group, size = [], 0
        return [InputPartition(g) for g in [*groups, tuple(group)] if g]

    def batches(self, part: tuple[QueueFiles, ...]) -> Iterator[pa.RecordBatch]:
        from store_io.explore.entry_rows import scan_queue_entries

        for queue in part:
            yield from scan_queue_entries(replace(self.scan, phy_offsets=self.wanted.phy_offsets), queue)


class IndexSource(StoreSource):
    """The entries that index files hold on disk."""

    source = "index"

    def make_reader(self, store: OpenStore, names: tuple[str, ...], arrow: pa.Schema) -> StoreReader:
        return FilesReader(arrow, EntryScan(self.location, store.rules), store.index_files(), index=True)


class ExtentsSource(StoreSource):
    """The byte ranges of segments by what they are."""

    source = "extents"

    def make_reader(self, store: OpenStore, names: tuple[str, ...], arrow: pa.Schema) -> StoreReader:
        return FilesReader(arrow, EntryScan(self.location, store.rules), store.segments(), index=False)


class FilesReader(StoreReader):
    """Index files or segments, one a task."""

    def __init__(self, arrow: pa.Schema, scan: EntryScan, files: list[MappedFile], index: bool) -> None:
        super().__init__(arrow)
        self.scan, self.listed, self.index = scan, files, index

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        super().pushFilters([f for f in filters if getattr(f, "attribute", ()) == ("phy_offset",)])
        return filters

    def partitions(self) -> list[InputPartition]:
        return _longest_first(f for f in self.listed if self.index or self.wanted.may_be_in(f.start, f.size))

    def batches(self, part: MappedFile) -> Iterator[pa.RecordBatch]:
        from store_io.explore.entry_rows import scan_extents, scan_index_entries

        if self.index:
            return scan_index_entries(replace(self.scan, phy_offsets=self.wanted.phy_offsets), part)
        return scan_extents(self.scan, part)


_BY_NAME: dict[str, type[StoreSource]] = {
    source.source: source for source in (MessagesSource, ConsumeQueueSource, IndexSource, ExtentsSource)
}
