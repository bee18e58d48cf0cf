"""Decoded rows of a segment as one Arrow batch of `schemas.sources.MESSAGES`, column by column.

Texts, ids and properties are built from the window's bytes by compiled code, without a Python object for each message.
Source of the ids: MessageDecoder.createMessageId, MessageClientExt.getMsgId; of the properties:
MessageDecoder.string2messageProperties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.layouts import commitlog_layout as layout
from schemas.rows import QueueKey
from store_io.base.compiled.native import kept
from store_io.base.java.java_compat import decode_utf8, parse_number
from store_io.base.times import timestamps
from store_io.broker.message_verdict import FIXED_PART_BYTES, parse_properties
from store_io.log.records.message_bodies import STATUS_NAMES
from store_io.log.records.message_decode import host_text
from store_io.log.scan.row_texts import gather_bytes, gather_texts, queue_ids, record_bytes, topic_texts
from store_io.messages.lost.segment_loss import KEPT, LOSSES, SegmentLoss
from store_io.source.segment_window import SegmentWindow

TRANSACTIONS = ("none", "prepared", "commit", "rollback")
COMPRESSIONS = ("none", "zlib", "lz4", "zstd", "zlib", "unknown", "unknown", "unknown", "unknown")  # 0, then type + 1
_HEX_PAIRS = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint16)

Pieces = tuple[np.ndarray, np.ndarray, np.ndarray]  # (bytes, where each row's piece begins in them, its size)


@dataclass
class MessageBatch:
    """Rows of one segment, and the further sources of their columns.

    keys: (topic, queue id) by topic reference.
    inner: places in an inner batch, -1 for none.
    own_properties: those of messages whose properties are not in the segment's bytes.
    bodies, body_status: given if they are wanted.
    loss: the messages that a start takes.
    """

    rows: np.ndarray
    window: SegmentWindow
    path: str
    keys: Sequence[QueueKey]
    plausible: bool
    inner: np.ndarray | None = None
    own_properties: list[bytes] | None = None
    bodies: pa.Array | None = None
    body_status: np.ndarray | None = None
    loss: SegmentLoss | None = None

    def build(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the batch. Columns without an entry in `_COLUMNS` are the rows' own of that name."""
        arrays = []
        for target in schema:
            make = _COLUMNS.get(target.name)
            array = make(self) if make is not None else self.numbers(target.name)
            arrays.append(array if array.type == target.type else array.cast(target.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    # ---- bytes of each row -------------------------------------------------------------------------------------------

    @cached_property
    def properties(self) -> Pieces:
        """Return each row's properties."""
        if self.own_properties is None:
            size = np.maximum(self.rows["props_len"].astype(np.int64), 0)
            return (*record_bytes(self.window, self.rows, self.rows["props_at"], size), size)
        size = np.array([len(part) for part in self.own_properties], np.int64)
        return np.frombuffer(b"".join(self.own_properties) or b"\0", np.uint8), np.cumsum(size) - size, size

    @cached_property
    def heads(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (bytes, start) of each record's fixed part, with its hosts."""
        size = np.minimum(self.rows["total_size"], FIXED_PART_BYTES).astype(np.int64)
        return record_bytes(self.window, self.rows, 0, size)

    def hosts(self, store: bool) -> Pieces:
        """Return each record's born or store host: 4 or 16 bytes and an int32 port."""
        buffer, start = self.heads
        flags, extra = self.rows["sys_flag"], layout.IPV6_EXTRA_BYTES
        born_v6 = flags & layout.SYS_BORN_HOST_V6 != 0
        if not store:
            return buffer, start + layout.BORN_HOST_POSITION, np.where(born_v6, 8 + extra, 8)
        at = layout.STORE_HOST_POSITION + np.where(born_v6, extra, 0)
        return buffer, start + at, np.where(flags & layout.SYS_STORE_HOST_V6 != 0, 8 + extra, 8)

    # ---- columns -----------------------------------------------------------------------------------------------------

    def numbers(self, name: str) -> pa.Array:
        """Return the rows' own column."""
        return pa.array(np.ascontiguousarray(self.rows[name]))

    def constant(self, text: str) -> pa.Array:
        """Return this text for each row."""
        return pa.repeat(pa.scalar(text, pa.string()), len(self.rows))

    def time(self, name: str) -> pa.Array:
        """Return milliseconds as a time; null outside of 1970 to 2261."""
        return timestamps(self.rows[name])

    def property_texts(self, name: str, located: str = "") -> pa.Array:
        """Return one property of each row; null without.

        located: the decoder's name for it, if it has looked for it.
        """
        buffer, start, size = self.properties
        if located and self.own_properties is None:
            value_size = self.rows[located + "_len"].astype(np.int64)
            value_start = start + self.rows[located + "_at"] - self.rows["props_at"]
        else:
            value_start, value_size = np.empty(len(size), np.int64), np.empty(len(size), np.int64)
            _find_property(buffer, start, size, np.frombuffer(name.encode(), np.uint8), value_start, value_size)
        return gather_texts(buffer, value_start, value_size, value_size > 0)

    def host_texts(self, store: bool) -> pa.Array:
        """Return hosts as ip:port. Few different ones are expected: each is written once."""
        coded = gather_bytes(*self.hosts(store), np.ones(len(self.rows), bool)).dictionary_encode()
        texts = [host_text(host) for host in coded.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string()))

    @cached_property
    def unique_keys(self) -> pa.Array:
        return self.property_texts("UNIQ_KEY", "uniq")

    @cached_property
    def offset_msg_ids(self) -> pa.Array:
        """Return host, port and physical offset of each record in hexadecimal."""
        buffer, start = self.heads
        _, host_start, host_size = self.hosts(True)
        starts = np.column_stack([host_start, start + layout.PHY_OFFSET_POSITION]).ravel()
        sizes = np.column_stack([host_size, np.full(len(start), 8)]).ravel()
        _, ends, data = gather_bytes(buffer, starts, sizes, np.ones(len(sizes), bool)).buffers()
        digits = _HEX_PAIRS[np.frombuffer(data, np.uint8)]
        text_ends = 2 * np.frombuffer(ends, np.int32)[: len(sizes) + 1 : 2]
        return pa.Array.from_buffers(pa.string(), len(start), [None, pa.py_buffer(text_ends), pa.py_buffer(digits)])


def _names(codes: np.ndarray, names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names, pa.string()))


def compression_code(sys_flag: np.ndarray | int) -> np.ndarray:
    """Return numbers of COMPRESSIONS."""
    kind = ((sys_flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT) + 1
    return np.where(sys_flag & layout.SYS_COMPRESSED != 0, kind, 0)


def transaction_code(sys_flag: Any) -> Any:
    """Return numbers of TRANSACTIONS."""
    return (sys_flag & layout.SYS_TRANSACTION_MASK) // layout.SYS_PREPARED


def _status_names(batch: MessageBatch) -> pa.Array:
    assert batch.body_status is not None
    return _names(batch.body_status, STATUS_NAMES)


def _losses(batch: MessageBatch) -> pa.Array:
    """Return the kind of loss of each row; null if it stays, or nobody asked."""
    if not batch.loss:
        return pa.nulls(len(batch.rows), pa.string())
    codes = batch.loss.of_rows(batch.rows, batch.keys)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes == KEPT), pa.array(LOSSES, pa.string()))


def _integers(texts: pa.Array) -> pa.Array:
    """Return texts as int32, if they are one as Java reads it; few different ones are expected."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.int32())
    coded = texts.dictionary_encode()
    numbers = pa.array([parse_number(text, 32) for text in coded.dictionary.to_pylist()], pa.int32())
    return numbers.take(coded.indices)


_COLUMNS: Mapping[str, Callable[[MessageBatch], pa.Array]] = {
    "file": lambda b: b.constant(b.path),
    "topic": lambda b: topic_texts(b.rows["topic_ref"], b.keys),
    "queue_id": lambda b: queue_ids(b.rows, b.keys),
    "store_time": lambda b: b.time("store_time"),
    "store_time_ms": lambda b: b.numbers("store_time"),
    "born_time": lambda b: b.time("born_time"),
    "born_time_ms": lambda b: b.numbers("born_time"),
    "msg_id": lambda b: pc.coalesce(b.unique_keys, b.offset_msg_ids) if b.unique_keys.null_count else b.unique_keys,
    "offset_msg_id": lambda b: b.offset_msg_ids,
    "tags": lambda b: b.property_texts("TAGS", "tags"),
    "keys": lambda b: b.property_texts("KEYS", "keys"),
    "unique_key": lambda b: b.unique_keys,
    "properties": lambda b: _property_maps(*b.properties),
    "properties_size": lambda b: pa.array(b.properties[2].astype(np.int32)),
    "transaction": lambda b: _names(transaction_code(b.rows["sys_flag"]), TRANSACTIONS),
    "compression": lambda b: _names(compression_code(b.rows["sys_flag"]), COMPRESSIONS),
    "inner_batch": lambda b: pa.array(b.rows["sys_flag"] & layout.SYS_INNER_BATCH != 0),
    "born_host": lambda b: b.host_texts(False),
    "store_host": lambda b: b.host_texts(True),
    "delay_level": lambda b: _integers(b.property_texts("DELAY")),
    "real_topic": lambda b: b.property_texts("REAL_TOPIC"),
    "real_queue_id": lambda b: _integers(b.property_texts("REAL_QID")),
    "inner_index": lambda b: pa.nulls(len(b.rows), pa.int32()) if b.inner is None else pa.array(b.inner, mask=b.inner < 0),
    "status": lambda b: b.constant("plausible" if b.plausible else "valid"),
    "body_size": lambda b: pa.array(np.maximum(b.rows["body_len"], 0)),
    "body": lambda b: b.bodies,
    "body_status": _status_names,
    "lost": _losses,
}


def _property_maps(buffer: np.ndarray, start: np.ndarray, size: np.ndarray) -> pa.Array:
    """Return all properties of each row as a map, of equal names the last."""
    room = int((size // 4 + 1).sum())  # a property has three bytes at least, and one ends it
    ends = np.zeros(len(size) + 1, np.int32)
    name_at, name_size, value_at, value_size = (np.empty(room, np.int64) for _ in range(4))
    slots = np.zeros(1 << 15, np.int32)  # a row has no more than a quarter of as many names
    count = _list_properties(buffer, start, size, ends, name_at, name_size, value_at, value_size, slots)
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


@kept()
def _find_property(buffer, start, size, name, value_start, value_size):  # type: ignore[no-untyped-def]
    """Find the place of the value of that property in each row's properties; size 0: nowhere. The last one counts."""
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


@kept()
def _list_properties(buffer, start, size, ends, name_at, name_size, value_at, value_size, slots):  # type: ignore[no-untyped-def]
    """Fill one element per property; ends[row + 1]: one after the row's last. Returns their number.

    slots: zeros, a power of two, for the row's names: element + 1.
    """
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
