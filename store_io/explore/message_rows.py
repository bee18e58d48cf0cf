"""A segment's messages as Arrow batches, for whoever explores a store: the messages that the audit accepts, field by field.

Memory is bounded by the window and by BATCH_BYTES, whatever the bytes say. Texts, ids and properties are built from the window's
bytes by compiled code; a Python object for each message comes only with uncompressed bodies and unpacked inner batches.
Source of the ids: MessageDecoder.createMessageId and decode, MessageClientExt.getMsgId; of unpacking: MessageDecoder
.decodeMessage; of the properties: MessageDecoder.string2messageProperties.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from schemas import commitlog_layout as layout
from schemas.arrow import arrow_schema
from schemas.sources import BODY_COLUMNS
from store_io.base.errors import StoreChanged, UsageError
from store_io.base.java_compat import decode_utf8, parse_number
from store_io.base.ranges import inside
from store_io.explore.scans import COLUMNS, MessageScan
from store_io.formats.commitlog import commitlog_columns, commitlog_reader
from store_io.formats.commitlog.message_bodies import STATUS_NAMES, STORED, TOO_LARGE, decode_body, inner_messages
from store_io.formats.commitlog.message_columns import Columns, RecordCheck, TopicTable
from store_io.formats.commitlog.segment_walk import Decoding, StrayChain, capacity_for, stray_chain, walk_batches
from store_io.rules.message_verdict import parse_properties
from store_io.scan.resync import Resync
from store_io.scan.row_texts import gather_bytes, gather_texts, pieces_of, queue_ids, topic_texts
from store_io.source.byte_source import ByteFile, ByteSource, open_source
from store_io.source.segment_window import SegmentWindow

BATCH_BYTES = 32 << 20  # of bodies in one batch, unless a single one is larger
INNER_BYTES = 512  # what a message of an inner batch takes besides its own bytes, which may be none
_INNER = layout.SYS_INNER_BATCH | layout.SYS_NEED_UNWRAP
_HEX_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_HEAD_BYTES = layout.BODY_POSITION + 2 * layout.IPV6_EXTRA_BYTES
_FIRST_TIME_MS, _LAST_TIME_MS = 0, 9_214_646_399_999  # years 1970 to 2261: what Python's and pandas' types hold as well
_TRANSACTIONS = ("none", "prepared", "commit", "rollback")
_COMPRESSIONS = ("none", "zlib", "lz4", "zstd", "zlib", "unknown", "unknown", "unknown", "unknown")  # 0, then type + 1


def message_schema(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of these columns. Raises UsageError for a name that is none."""
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or not columns:
        raise UsageError(f"column {unknown[0] if unknown else ''!r}: the columns of messages are {', '.join(COLUMNS)}")
    if len(set(columns)) != len(columns):
        raise UsageError(f"a column twice: {', '.join(columns)}")
    return arrow_schema(COLUMNS[name] for name in columns)


def scan_messages(scan: MessageScan, source: ByteSource | None = None) -> Iterator[pa.RecordBatch]:
    """The segment's messages that pass the filter, in the order of their physical offsets, as batches of `message_schema`.

    Reads no further than the filter's physical offsets. Never raises over bytes; StoreError where the file cannot be read or
    changed since it was listed, UsageError for a column that is none.
    """
    schema = message_schema(scan.columns)
    with (source or open_source(scan.location)).open(scan.path) as file:
        if file.size != scan.size:
            raise StoreChanged(f"{scan.path}: {file.size} bytes, {scan.size} when the copy was listed")
        yield from _Reading(scan, file, schema).batches()


class _Reading:
    """The state of one scan."""

    def __init__(self, scan: MessageScan, file: ByteFile, schema: pa.Schema):
        self.scan, self.wanted, self.schema = scan, scan.wanted, schema
        self.window = SegmentWindow(file, scan.size, scan.window_bytes)
        self.topics = TopicTable()
        self.rows = Columns(capacity_for(scan.window_bytes))
        self.with_bodies = not set(BODY_COLUMNS).isdisjoint(scan.columns)
        self._chosen = np.zeros(0, bool)  # by topic reference

    def batches(self) -> Iterator[pa.RecordBatch]:
        scan, window = self.scan, self.window
        if not self.wanted.may_be_in(scan.base_offset, scan.size):
            return
        decode = commitlog_columns.decode if scan.decoder == "fast" else commitlog_reader.decode
        decoding = Decoding(decode, window, self.rows, self.topics)
        check = RecordCheck.audit(scan.base_offset, scan.delays)
        resync = Resync(window, scan.path, scan.base_offset, check, False)
        end = scan.size
        if self.wanted.phy_offsets[1] is not None:
            end = min(end, self.wanted.phy_offsets[1] - scan.base_offset)

        def chain(start: int) -> StrayChain:
            return stray_chain(decoding, check, start)

        at, plausible = 0, False
        while True:
            walk = walk_batches(decoding, check, at, scan.size)
            while True:
                try:
                    rows = self.rows.rows[: next(walk)]
                except StopIteration as stop:
                    at, verdict = stop.value
                    break
                past = int(rows["position"][-1]) + int(rows["total_size"][-1]) >= end
                yield from self._wanted(rows, plausible)
                if past:
                    return
            if at >= end:
                return
            damage = resync.judge(at, verdict, chain)
            if damage.resume is None:
                return
            at, plausible = damage.resume, True

    def _wanted(self, rows: np.ndarray, plausible: bool) -> Iterator[pa.RecordBatch]:
        """Batches of those of the decoder's rows that pass the filter."""
        wanted = self.wanted
        unpacked = np.zeros(len(rows), bool)
        if self.scan.unpack:
            unpacked = rows["sys_flag"] & _INNER == _INNER
        mask = inside(rows["phy_offset"], wanted.phy_offsets) & inside(rows["store_time"], wanted.store_times)
        mask &= inside(rows["queue_offset"], wanted.queue_offsets) | unpacked
        if wanted.topics is not None or wanted.queue_ids is not None:
            mask &= self._chosen_refs()[rows["topic_ref"]]
        if not mask.all():
            rows, unpacked = rows[mask], unpacked[mask]
        if not len(rows):
            return
        if unpacked.any():
            yield from self._unpacked(rows, unpacked, plausible)
        elif self.with_bodies:
            yield from self._with_bodies(rows, plausible)
        else:
            yield _Batch(self, _Items(rows, self.window), plausible).build()

    def _chosen_refs(self) -> np.ndarray:
        """By topic reference, whether messages of that queue are wanted."""
        keys = self.topics.keys
        topics, ids = self.wanted.topics, self.wanted.queue_ids
        for topic, queue_id in keys[len(self._chosen) :]:
            chosen = (topics is None or topic in topics) and (ids is None or queue_id in ids)
            self._chosen = np.append(self._chosen, chosen)
        return self._chosen

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def _with_bodies(self, rows: np.ndarray, plausible: bool) -> Iterator[pa.RecordBatch]:
        """Batches of rows with their bodies, cut so that the bodies of one stay below BATCH_BYTES."""
        compressed = rows["sys_flag"] & layout.SYS_COMPRESSED != 0
        if not (self.scan.decompress and compressed.any()):
            ends = np.cumsum(np.minimum(np.maximum(rows["body_len"], 0), self.scan.max_body_bytes).astype(np.int64))
            low = 0
            while low < len(rows):
                before = int(ends[low - 1]) if low else 0
                high = max(low + 1, int(np.searchsorted(ends, before + BATCH_BYTES, "right")))
                part = rows[low:high]
                size = np.maximum(part["body_len"].astype(np.int64), 0)
                fits = size <= self.scan.max_body_bytes
                size[~fits] = 0
                buffer, start = pieces_of(self.window, part, part["body_at"], size)
                items = _Items(part, self.window)
                items.bodies = gather_bytes(buffer, start, size, fits)
                items.body_status = np.where(fits, STORED, TOO_LARGE).astype(np.int8)
                yield _Batch(self, items, plausible).build()
                low = high
            return
        low, bodies, statuses, held = 0, [], [], 0
        for i in range(len(rows)):
            body, status = self._decoded(rows[i])
            bodies.append(body)
            statuses.append(status)
            held += len(body or b"")
            if held >= BATCH_BYTES or i + 1 == len(rows):
                items = _Items(rows[low : i + 1], self.window)
                items.bodies, items.body_status = pa.array(bodies, pa.binary()), np.array(statuses, np.int8)
                yield _Batch(self, items, plausible).build()
                low, bodies, statuses, held = i + 1, [], [], 0

    def _decoded(self, row: np.void) -> tuple[bytes | None, int]:
        """A message's body, uncompressed."""
        size = max(0, int(row["body_len"]))
        if size > self.scan.max_body_bytes:
            return None, TOO_LARGE
        start = int(row["position"]) + int(row["body_at"])
        return decode_body(self.window.read(start, start + size), int(row["sys_flag"]), self.scan.max_body_bytes)

    # ---- inner batches -----------------------------------------------------------------------------------------------

    def _unpacked(self, rows: np.ndarray, unpacked: np.ndarray, plausible: bool) -> Iterator[pa.RecordBatch]:
        """Batches in which each inner batch is its messages; runs of other rows between them are batches as ever."""
        edges = np.flatnonzero(np.diff(unpacked)) + 1
        for low, high in zip([0, *edges.tolist()], [*edges.tolist(), len(rows)], strict=True):
            part = rows[low:high]
            if not unpacked[low]:
                yield from (
                    self._with_bodies(part, plausible)
                    if self.with_bodies
                    else iter([_Batch(self, _Items(part, self.window), plausible).build()])
                )
                continue
            inner = _Inner(self)
            for i in range(len(part)):
                inner.add(part[i : i + 1])
                if inner.held >= BATCH_BYTES:
                    yield from inner.batches(plausible)
                    inner = _Inner(self)
            yield from inner.batches(plausible)


@dataclass(frozen=True)
class _InnerMessage:
    """One message of an inner batch. number: its place in the batch; -1: it is the batch itself.  body: its bytes, and what
    became of them (a code of the body's status)."""

    number: int
    queue_offset: int
    flag: int
    properties: bytes
    body: tuple[bytes | None, int]
    body_size: int


class _Inner:
    """Gathers the messages of inner batches until they are handed on."""

    def __init__(self, reading: _Reading):
        self._reading = reading
        self._rows: list[np.ndarray] = []  # one for each message: its batch's
        self._numbers: list[int] = []  # place in the batch; -1: it is the batch itself
        self._own: list[tuple[int, int]] = []  # queue offset, flag
        self._properties: list[bytes] = []
        self._bodies: list[tuple[bytes | None, int]] = []
        self._sizes: list[int] = []
        self.held = 0

    def add(self, row: np.ndarray) -> None:
        """One inner batch, as an array of one row."""
        reading, r = self._reading, row[0]
        body, status = reading._decoded(r)
        messages = inner_messages(body) if body is not None else None
        if body is None or messages is None:
            start = int(r["position"]) + int(r["props_at"])
            stored = body, status
            if not reading.scan.decompress and int(r["body_len"]) <= reading.scan.max_body_bytes:
                at = int(r["position"]) + int(r["body_at"])
                stored = reading.window.read(at, at + max(0, int(r["body_len"]))), STORED
            properties = reading.window.read(start, start + int(r["props_len"]))
            self._put(row, _InnerMessage(-1, int(r["queue_offset"]), int(r["flag"]), properties, stored, int(r["body_len"])))
            return
        for number, message in enumerate(messages):
            own = body[slice(*message.body)]
            properties = body[slice(*message.properties)]
            offset = min(int(r["batch_base"]) + number, (1 << 63) - 1)
            self._put(row, _InnerMessage(number, offset, message.flag, properties, (own, status), len(own)))

    def _put(self, row: np.ndarray, inner: _InnerMessage) -> None:
        low, high = self._reading.wanted.queue_offsets
        if low is not None and inner.queue_offset < low or high is not None and inner.queue_offset >= high:
            return
        self._rows.append(row)
        self._numbers.append(inner.number)
        self._own.append((inner.queue_offset, inner.flag))
        self._properties.append(inner.properties)
        self._bodies.append(inner.body if self._reading.with_bodies else (None, STORED))
        self._sizes.append(inner.body_size)
        self.held += INNER_BYTES + len(inner.properties) + (len(inner.body[0] or b"") if self._reading.with_bodies else 0)

    def batches(self, plausible: bool) -> Iterator[pa.RecordBatch]:
        """What was gathered, if anything."""
        if not self._rows:
            return
        items = _Items(np.concatenate(self._rows), self._reading.window)
        items.rows["queue_offset"] = [offset for offset, _ in self._own]
        items.rows["flag"] = [flag for _, flag in self._own]
        items.rows["body_len"] = self._sizes
        items.inner = np.array(self._numbers, np.int32)
        items.own_properties = self._properties
        if self._reading.with_bodies:
            items.bodies = pa.array([body for body, _ in self._bodies], pa.binary())
            items.body_status = np.array([status for _, status in self._bodies], np.int8)
        yield _Batch(self._reading, items, plausible).build()


# ---- columns ---------------------------------------------------------------------------------------------------------


class _Items:
    """Rows, and where the bytes behind their columns stand."""

    def __init__(self, rows: np.ndarray, window: SegmentWindow):
        self.rows, self.window = rows, window
        self.inner: np.ndarray | None = None  # place in an inner batch; -1: none
        self.own_properties: list[bytes] | None = None  # of messages whose properties do not stand in the segment
        self.bodies: pa.Array | None = None
        self.body_status: np.ndarray | None = None

    @cached_property
    def properties(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(bytes, start, size) of each row's properties."""
        if self.own_properties is None:
            size = np.maximum(self.rows["props_len"].astype(np.int64), 0)
            return (*pieces_of(self.window, self.rows, self.rows["props_at"], size), size)
        size = np.array([len(part) for part in self.own_properties], np.int64)
        return np.frombuffer(b"".join(self.own_properties) or b"\0", np.uint8), np.cumsum(size) - size, size

    @cached_property
    def heads(self) -> tuple[np.ndarray, np.ndarray]:
        """(bytes, start) of each record's fixed part, with its hosts."""
        size = np.minimum(self.rows["total_size"], _HEAD_BYTES).astype(np.int64)
        return pieces_of(self.window, self.rows, 0, size)

    def hosts(self, store: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(bytes, start, size) of each record's born or store host: 4 or 16 bytes and an int32 port."""
        buffer, start = self.heads
        flags, extra = self.rows["sys_flag"], layout.IPV6_EXTRA_BYTES
        born_v6 = flags & layout.SYS_BORN_HOST_V6 != 0
        if not store:
            return buffer, start + layout.BORN_HOST_POSITION, np.where(born_v6, 8 + extra, 8)
        at = layout.STORE_HOST_POSITION + np.where(born_v6, extra, 0)
        return buffer, start + at, np.where(flags & layout.SYS_STORE_HOST_V6 != 0, 8 + extra, 8)

    def property_texts(self, name: str, located: str = "") -> pa.Array:
        """One property of each row; null without. located: how the decoder calls it, where it has looked for it."""
        buffer, start, size = self.properties
        if located and self.own_properties is None:
            value_size = self.rows[located + "_len"].astype(np.int64)
            value_start = start + self.rows[located + "_at"] - self.rows["props_at"]
        else:
            value_start, value_size = np.empty(len(size), np.int64), np.empty(len(size), np.int64)
            _find_property(buffer, start, size, np.frombuffer(name.encode(), np.uint8), value_start, value_size)
        return gather_texts(buffer, value_start, value_size, value_size > 0)


class _Batch:
    """Builds one batch, each column by a method of its name; columns that are the rows' own need none."""

    def __init__(self, reading: _Reading, items: _Items, plausible: bool):
        self._reading, self._items, self._rows, self._plausible = reading, items, items.rows, plausible
        self._keys = reading.topics.keys

    def build(self) -> pa.RecordBatch:
        schema = self._reading.schema
        arrays = []
        for target in schema:
            make = getattr(self, "column_" + target.name, None)
            array = make() if make is not None else self._numbers(target.name)
            if array.type != target.type:
                array = array.cast(target.type)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _numbers(self, name: str) -> pa.Array:
        return pa.array(np.ascontiguousarray(self._rows[name]))

    def _constant(self, text: str) -> pa.Array:
        return pa.repeat(pa.scalar(text, pa.string()), len(self._rows))

    def _names(self, codes: np.ndarray, names: Sequence[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names, pa.string()))

    def _time(self, name: str) -> pa.Array:
        ms = self._rows[name]
        outside = (ms < _FIRST_TIME_MS) | (ms > _LAST_TIME_MS)
        return pa.array(np.where(outside, 0, ms) * 1000, pa.timestamp("us", "UTC"), mask=outside)

    def column_file(self) -> pa.Array:
        return self._constant(self._reading.scan.path)

    def column_topic(self) -> pa.Array:
        return topic_texts(self._rows["topic_ref"], self._keys)

    def column_queue_id(self) -> pa.Array:
        return queue_ids(self._rows, self._keys)

    def column_store_time(self) -> pa.Array:
        return self._time("store_time")

    def column_store_time_ms(self) -> pa.Array:
        return self._numbers("store_time")

    def column_born_time(self) -> pa.Array:
        return self._time("born_time")

    def column_born_time_ms(self) -> pa.Array:
        return self._numbers("born_time")

    def column_msg_id(self) -> pa.Array:
        unique = self._unique
        return pc.coalesce(unique, self.column_offset_msg_id()) if unique.null_count else unique

    def column_offset_msg_id(self) -> pa.Array:
        heads, head_start = self._items.heads
        _, host_start, host_size = self._items.hosts(True)
        ends = np.zeros(len(self._rows) + 1, np.int32)
        np.cumsum(2 * (host_size + 8), out=ends[1:])
        digits = np.empty(int(ends[-1]), np.uint8)
        _hex_ids(heads, host_start, host_size, head_start + layout.PHY_OFFSET_POSITION, ends, digits)
        return pa.Array.from_buffers(pa.string(), len(self._rows), [None, pa.py_buffer(ends), pa.py_buffer(digits)])

    def column_tags(self) -> pa.Array:
        return self._items.property_texts("TAGS", "tags")

    def column_keys(self) -> pa.Array:
        return self._items.property_texts("KEYS", "keys")

    @cached_property
    def _unique(self) -> pa.Array:
        return self._items.property_texts("UNIQ_KEY", "uniq")

    def column_unique_key(self) -> pa.Array:
        return self._unique

    def column_properties(self) -> pa.Array:
        return _property_maps(*self._items.properties)

    def column_properties_size(self) -> pa.Array:
        return pa.array(self._items.properties[2].astype(np.int32))

    def column_transaction(self) -> pa.Array:
        return self._names((self._rows["sys_flag"] & layout.SYS_TRANSACTION_MASK) // layout.SYS_PREPARED, _TRANSACTIONS)

    def column_compression(self) -> pa.Array:
        flags = self._rows["sys_flag"]
        kind = ((flags & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT) + 1
        return self._names(np.where(flags & layout.SYS_COMPRESSED != 0, kind, 0), _COMPRESSIONS)

    def column_inner_batch(self) -> pa.Array:
        return pa.array(self._rows["sys_flag"] & layout.SYS_INNER_BATCH != 0)

    def column_born_host(self) -> pa.Array:
        return _host_texts(*self._items.hosts(False))

    def column_store_host(self) -> pa.Array:
        return _host_texts(*self._items.hosts(True))

    def column_delay_level(self) -> pa.Array:
        return _integers(self._items.property_texts("DELAY"))

    def column_real_topic(self) -> pa.Array:
        return self._items.property_texts("REAL_TOPIC")

    def column_real_queue_id(self) -> pa.Array:
        return _integers(self._items.property_texts("REAL_QID"))

    def column_inner_index(self) -> pa.Array:
        inner = self._items.inner
        if inner is None:
            return pa.nulls(len(self._rows), pa.int32())
        return pa.array(inner, mask=inner < 0)

    def column_status(self) -> pa.Array:
        return self._constant("plausible" if self._plausible else "valid")

    def column_body_size(self) -> pa.Array:
        return pa.array(np.maximum(self._rows["body_len"], 0))

    def column_body(self) -> pa.Array:
        return self._items.bodies

    def column_body_status(self) -> pa.Array:
        assert self._items.body_status is not None
        return self._names(self._items.body_status, STATUS_NAMES)


def _integers(texts: pa.Array) -> pa.Array:
    """Texts as int32 where they are one as Java reads it; few different ones are expected."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.int32())
    coded = texts.dictionary_encode()
    numbers = pa.array([parse_number(text, 32) for text in coded.dictionary.to_pylist()], pa.int32())
    return numbers.take(coded.indices)


def _host_texts(buffer: np.ndarray, start: np.ndarray, size: np.ndarray) -> pa.Array:
    """Hosts as ip:port. Few different ones are expected: each is written once."""
    refs, firsts = np.empty(len(start), np.int32), np.empty(len(start), np.int32)
    count = _distinct(buffer, start, size, refs, firsts)
    texts = []
    for i in firsts[:count].tolist():
        data = buffer[start[i] : start[i] + size[i]].tobytes()
        port = int.from_bytes(data[-4:], "big", signed=True)
        address = ipaddress.ip_address(data[:-4])
        texts.append(f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}")
    return pa.DictionaryArray.from_arrays(pa.array(refs), pa.array(texts, pa.string()))


def _property_maps(buffer: np.ndarray, start: np.ndarray, size: np.ndarray) -> pa.Array:
    """All properties of each row as a map, of equal names the last."""
    room = int((size // 4 + 1).sum())  # a property has three bytes at least, and one ends it
    ends = np.zeros(len(size) + 1, np.int32)
    name_at, name_size, value_at, value_size = (np.empty(room, np.int64) for _ in range(4))
    count = _list_properties(buffer, start, size, ends, name_at, name_size, value_at, value_size)
    whole = np.ones(count, bool)
    names = gather_bytes(buffer, name_at[:count], name_size[:count], whole).view(pa.string())
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:  # names that differ in their bytes may be equal once they are text
        rows = [bytes(buffer[low : low + length]) for low, length in zip(start.tolist(), size.tolist(), strict=True)]
        maps = [list(parse_properties(decode_utf8(row)).items()) for row in rows]
        return pa.array(maps, pa.map_(pa.string(), pa.string()))
    values = gather_texts(buffer, value_at[:count], value_size[:count], whole)
    return pa.MapArray.from_arrays(pa.array(ends), names, values)


# ---- compiled --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _find_property(buffer, start, size, name, value_start, value_size):  # type: ignore[no-untyped-def]
    """Where the value of the property of that name stands in each row's properties; size 0: nowhere. The last one counts."""
    for row in range(len(start)):
        value_start[row], value_size[row] = 0, 0
        at, end = start[row], start[row] + size[row]
        while at < end:
            split = np.int64(-1)
            stop = at
            while stop < end and buffer[stop] != 2:
                if split < 0 and buffer[stop] == 1:
                    split = stop
                stop += 1
            if split - at == len(name) and split < stop - 1:
                same = True
                for k in range(len(name)):
                    if buffer[at + k] != name[k]:
                        same = False
                        break
                if same:
                    value_start[row], value_size[row] = split + 1, stop - split - 1
            at = stop + 1


@njit(cache=True, nogil=True)
def _list_properties(buffer, start, size, ends, name_at, name_size, value_at, value_size):  # type: ignore[no-untyped-def]
    """Fill one element per property; ends[row + 1]: behind the row's last one. Gives their number."""
    slots = np.zeros(1 << 15, np.int32)  # of the row's names: element + 1; a row has no more than a quarter of as many
    count = 0
    for row in range(len(start)):
        first = count
        at, end = start[row], start[row] + size[row]
        while at < end:
            split = np.int64(-1)
            stop = at
            mixed = np.uint32(2166136261)
            while stop < end and buffer[stop] != 2:
                if split < 0:
                    if buffer[stop] == 1:
                        split = stop
                    else:
                        mixed = (mixed ^ np.uint32(buffer[stop])) * np.uint32(16777619)
                stop += 1
            if at < split and split < stop - 1:
                slot = np.int64(mixed ^ (mixed >> np.uint32(15))) & (len(slots) - 1)
                found = np.int64(-1)
                for _ in range(64):  # names made to meet cost no more than this; one met twice is then listed twice
                    held = np.int64(slots[slot]) - 1
                    if held < first or held >= count:
                        slots[slot] = count + 1
                        break
                    same = name_size[held] == split - at
                    if same:
                        for k in range(split - at):
                            if buffer[name_at[held] + k] != buffer[at + k]:
                                same = False
                                break
                    if same:
                        found = held
                        break
                    slot = (slot + 1) & (len(slots) - 1)
                if found < 0:
                    found = np.int64(count)
                    name_at[found], name_size[found] = at, split - at
                    count += 1
                value_at[found], value_size[found] = split + 1, stop - split - 1
            at = stop + 1
        ends[row + 1] = count
    return count


@njit(cache=True, nogil=True)
def _distinct(buffer, start, size, refs, firsts):  # type: ignore[no-untyped-def]
    """Number the different pieces: refs[i] is piece i's number, firsts[number] the first piece with it. Gives their count.

    Pieces made to meet in one place of the table may get a number more than once.
    """
    slots = np.zeros(1 << 12, np.int32)
    count = 0
    for i in range(len(start)):
        mixed = np.uint32(2166136261)
        for k in range(size[i]):
            mixed = (mixed ^ np.uint32(buffer[start[i] + k])) * np.uint32(16777619)
        slot = np.int64(mixed ^ (mixed >> np.uint32(15))) & (len(slots) - 1)
        number = np.int64(-1)
        for _ in range(16):
            held = np.int64(slots[slot]) - 1
            if held < 0:
                slots[slot] = count + 1
                break
            other = firsts[held]
            same = size[other] == size[i]
            if same:
                for k in range(size[i]):
                    if buffer[start[other] + k] != buffer[start[i] + k]:
                        same = False
                        break
            if same:
                number = held
                break
            slot = (slot + 1) & (len(slots) - 1)
        if number < 0:
            number = np.int64(count)
            firsts[count] = i
            count += 1
        refs[i] = number
    return count


@njit(cache=True, nogil=True)
def _hex_ids(heads, host_start, host_size, offset_start, ends, digits):  # type: ignore[no-untyped-def]
    """Host, port and physical offset of each record in hexadecimal, as they stand in it."""
    for i in range(len(host_start)):
        out = ends[i]
        for part in range(2):
            at = host_start[i] if part == 0 else offset_start[i]
            for k in range(host_size[i] if part == 0 else 8):
                digits[out] = _HEX_DIGITS[heads[at + k] >> 4]
                digits[out + 1] = _HEX_DIGITS[heads[at + k] & 15]
                out += 2
