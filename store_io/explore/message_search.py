"""Messages of a copy that meet conditions which only their contents can: keys, ids, pieces of bodies. Bounded, in log order.

`scan_messages` gives what the audit accepts; here it is narrowed down further, and no more rows are made than are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.base.failed_reads import can_do_without
from store_io.explore.message_filter import MessageFilter
from store_io.explore.message_rows import message_schema, scan_messages
from store_io.explore.scans import MessageScan
from store_io.formats.commitlog.message_bodies import STATUS_NAMES, TOO_LARGE, decode_body
from store_io.formats.commitlog.message_columns import RecordCheck
from store_io.rules.index_keys import UNIQUE_KEY, has_key
from store_io.rules.message_verdict import VALID, Message
from store_io.rules.releases import BrokerRules
from store_io.source.byte_file import ByteFile
from store_io.source.byte_search import last_place
from store_io.source.byte_source import ByteSource, open_source
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 1 << 16
SHARED_BYTES = 1 << 13  # that a window must still hold of a message, or the window moves on to it


@dataclass(frozen=True)
class Contents:
    """Conditions on what a message says. Picklable. None: any.

    key: one of its KEYS, or its unique key, as an index has them.  unique_key: that alone.  body: bytes that it contains, as the
    producer sent it or as it is stored.
    """

    key: str | None = None
    unique_key: str | None = None
    body: bytes | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be read to know."""
        names: tuple[str, ...] = ()
        if self.key is not None:
            names += ("keys", "unique_key")
        elif self.unique_key is not None:
            names += ("unique_key",)
        return names + (("sys_flag", "body") if self.body is not None else ())

    @property
    def needle(self) -> bytes:
        """Bytes that each message which meets these has in its record; empty where there may be none."""
        text = self.unique_key if self.key is None else self.key
        if text is None or "\N{REPLACEMENT CHARACTER}" in text:  # what bytes that are no UTF-8 are read as
            return b""
        return text.encode("utf-8", "surrogatepass").strip(b"\0")

    def mask(self, batch: pa.RecordBatch, max_body_bytes: int) -> pa.Array:
        """Which rows of a batch that holds these columns, bodies as they are stored, meet them all."""
        found = pa.array(np.ones(batch.num_rows, bool))
        if self.key is not None:
            found = pc.and_(found, pc.or_(_equal(batch, "unique_key", self.key), _has_key(batch.column("keys"), self.key)))
        if self.unique_key is not None:
            found = pc.and_(found, _equal(batch, "unique_key", self.unique_key))
        if self.body is not None and pc.any(found).as_py():
            numbers = np.flatnonzero(found.to_numpy(zero_copy_only=False))
            kept = np.zeros(batch.num_rows, bool)
            bodies, flags = batch.column("body"), batch.column("sys_flag")
            for number in numbers.tolist():
                kept[number] = self.in_body(bodies[number].as_py(), flags[number].as_py(), max_body_bytes)
            found = pa.array(kept)
        return found

    def matches(self, message: Message, body: bytes, max_body_bytes: int) -> bool:
        """The same for one message."""
        if self.key is not None and not has_key(message.properties, self.key):
            return False
        if self.unique_key is not None and self.unique_key != message.properties.get(UNIQUE_KEY):
            return False
        return self.body is None or self.in_body(body, message.sys_flag, max_body_bytes)

    def in_body(self, body: bytes | None, sys_flag: int, max_body_bytes: int) -> bool:
        """Whether a stored body, or what it unpacks to, contains the wanted bytes."""
        assert self.body is not None
        if body is None:
            return False
        if self.body in body:
            return True
        unpacked, _ = decode_body(body, sys_flag, max_body_bytes)
        return unpacked is not None and self.body in unpacked


def _equal(batch: pa.RecordBatch, name: str, text: str) -> pa.Array:
    column = batch.column(name)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return pc.fill_null(pc.equal(column.cast(pa.string()), text), False)


def _has_key(column: pa.Array, key: str) -> pa.Array:
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    near = pc.fill_null(pc.match_substring(column.cast(pa.string()), key), False).to_numpy(zero_copy_only=False)
    kept = np.zeros(len(column), bool)
    for number in np.flatnonzero(near).tolist():
        kept[number] = key in column[number].as_py().split(" ")
    return pa.array(kept)


def search(scan: MessageScan, contents: Contents, source: ByteSource | None = None) -> Iterator[pa.RecordBatch]:
    """The segment's messages that meet the scan's filter and these contents: batches of the scan's columns, in log order.

    Bodies are as the scan wants them, decoded or stored, whatever `contents` had to look at.
    """
    if contents == Contents():
        yield from scan_messages(scan, source)
        return
    kept = _narrowed(scan, contents, source)
    if kept is None:
        return
    scan = kept
    # What is looked into is the stored body; those that match are uncompressed afterwards.
    decode = contents.body is not None and scan.decompress
    columns = tuple(dict.fromkeys((*scan.columns, *contents.columns)))
    wide = replace(scan, columns=columns, decompress=scan.decompress and contents.body is None)
    for batch in scan_messages(wide, source):
        kept = batch.filter(contents.mask(batch, scan.max_body_bytes))
        if kept.num_rows:
            yield (_decoded(kept, scan.max_body_bytes) if decode else kept).select(list(scan.columns))


def _narrowed(scan: MessageScan, contents: Contents, source: ByteSource | None) -> MessageScan | None:
    """The same scan, up to where a message that meets the contents can begin; None where there is none in the segment."""
    needle = contents.needle
    if not needle or scan.unpack:  # an inner batch may be compressed
        return scan
    try:
        with can_do_without("the segment is decoded to its end then"):
            with (source or open_source(scan.location)).open(scan.path) as file:
                if file.size != scan.size:
                    return scan
                last = last_place(file, needle)
    except StoreError:  # who decodes it meets the same, perhaps only after what is asked for
        return scan
    if last < 0:
        return None
    before = MessageFilter(phy_offsets=(None, scan.base_offset + last))
    return replace(scan, wanted=scan.wanted.narrowed(before))


def _decoded(batch: pa.RecordBatch, max_body_bytes: int) -> pa.RecordBatch:
    """Return the batch with uncompressed bodies."""
    flags = batch.column("sys_flag").to_pylist()
    found = [
        (None, TOO_LARGE) if body is None else decode_body(body, flag, max_body_bytes)
        for body, flag in zip(batch.column("body").to_pylist(), flags, strict=True)
    ]
    values = {"body": [body for body, _ in found], "body_status": [STATUS_NAMES[status] for _, status in found]}
    for name in values.keys() & set(batch.schema.names):
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, batch.schema.field(place), pa.array(values[name], batch.schema.field(place).type))
    return batch


class SingleMessages:
    """Single messages of one segment that is open, by physical offset. The offsets asked for should ascend: reads are shared."""

    def __init__(self, opened: ByteFile, rules: BrokerRules, file: MappedFile):
        self._check = RecordCheck.audit_of(file.start, rules, file.path)
        self._window = SegmentWindow(opened, file.size, WINDOW_BYTES)
        self._file = file

    def at(self, phy_offset: int) -> Message | None:
        """The message that the audit accepts there. Raises StoreError."""
        file, window = self._file, self._window
        position = phy_offset - file.start - self._check.framing.header_bytes
        if not 0 <= position < file.size:
            return None
        if not window.start <= position <= window.end - SHARED_BYTES:
            window.hold(position)
        verdict = self._check.verdict(window, position, file.size)
        return verdict.message if verdict.kind == VALID else None


def message_at(source: ByteSource, rules: BrokerRules, file: MappedFile, phy_offset: int) -> Message | None:
    """The message of the segment that the audit accepts at this physical offset."""
    with source.open(file.path) as opened:
        return SingleMessages(opened, rules, file).at(phy_offset)


# ---- many segments, in tasks ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchTask:
    """One segment to search, and at most so many rows of it to bring back. Picklable."""

    scan: MessageScan
    contents: Contents
    most_rows: int
    most_bytes: int


class SearchResult(NamedTuple):
    """The first rows found, as an Arrow stream. whole: whether these are surely all."""

    stream: bytes
    whole: bool


def run_search(task: SearchTask) -> SearchResult:
    """Search one segment. Raises as `scan_messages`."""
    sink = pa.BufferOutputStream()
    rows = size = 0
    whole = True
    with pa.ipc.new_stream(sink, message_schema(task.scan.columns)) as writer:
        for batch in search(task.scan, task.contents):
            part = batch.slice(0, task.most_rows - rows)
            while part.num_rows and size + part.nbytes > task.most_bytes:  # a batch of large bodies may alone be more
                part = part.slice(0, part.num_rows // 2)
            writer.write_batch(part)
            rows, size = rows + part.num_rows, size + part.nbytes
            if part.num_rows < batch.num_rows or size >= task.most_bytes:
                whole = False
                break
    return SearchResult(sink.getvalue().to_pybytes(), whole)
