"""Searches a segment for messages by what only their contents show: keys, ids, pieces of bodies. Bounded, in log order.

`scan_messages` gives what the audit accepts; here it is narrowed down further, and no more rows are made than are asked for.

A message can hold a key only where the key's bytes are, so a segment without them needs no decoding, and one with them none after
the last of them. Finding bytes is many times faster than decoding. The bytes themselves prove that. An index file cannot: its
entries may be missing, or lead elsewhere.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.base.failed_reads import can_do_without
from store_io.broker.message_verdict import VALID, Message
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_bodies import STATUS_NAMES, TOO_LARGE, decode_body
from store_io.log.records.message_columns import RecordCheck
from store_io.messages.message_filter import Contents, MessageFilter
from store_io.messages.message_rows import scan_messages
from store_io.messages.scans import MessageScan
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, open_source
from store_io.source.segment_window import SegmentWindow

SEARCHED_BYTES = 4 << 20
PART_BYTES = 64 << 20  # of a file that a thread of its own is worth
WINDOW_BYTES = 1 << 16
SHARED_BYTES = 1 << 13  # that a window must still hold of a message, or the window moves on to it


def last_place(file: ByteFile, needle: bytes) -> int:
    """Return the position at which the bytes begin for the last time in the file, or -1.

    Raises as `ByteFile.read_into`.
    needle: not empty, and not of zeros alone.
    """
    threads = min(os.cpu_count() or 1, -(-file.size // PART_BYTES)) if file.descriptor() is not None else 1
    if threads < 2:
        return _last_between(file, needle, 0, file.size)
    edges = [file.size * number // threads for number in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(lambda low, high: _last_between(file, needle, low, high), edges, edges[1:]))


def _last_between(file: ByteFile, needle: bytes, low: int, high: int) -> int:
    """Return the last place of the bytes that begins in [low, high), or -1."""
    more = len(needle) - 1  # of the next window, so that none is cut in two
    buffer = bytearray(SEARCHED_BYTES + more)
    found, at = -1, low
    while at < high:
        data = file.next_data(at)
        if data > at + more:  # a hole, but for what may end in the data after it
            at = min(data - more, high)
            continue
        wanted = min(SEARCHED_BYTES, high - at) + more
        got = file.read_into(at, memoryview(buffer)[:wanted])
        if _is_in(buffer, got, needle):
            found = at + buffer.rfind(needle, 0, got)
        at += SEARCHED_BYTES
    return found


def _system_search() -> Any:
    """Return the C library's memmem, which compares whole vectors and does not hold Python's lock; None without one."""
    function = getattr(ctypes.CDLL(None), "memmem", None)
    if function is not None:
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return function


_SEARCH = _system_search()


def _is_in(buffer: bytearray, size: int, needle: bytes) -> bool:
    if _SEARCH is None:
        return buffer.find(needle, 0, size) >= 0
    start = (ctypes.c_char * len(buffer)).from_buffer(buffer)
    return _SEARCH(ctypes.addressof(start), size, needle, len(needle)) is not None


def mask(contents: Contents, batch: pa.RecordBatch, max_body_bytes: int) -> pa.Array:
    """Say of each row of a batch whether it meets all conditions. The batch has `contents.columns`, bodies as they are stored."""
    found = pa.array(np.ones(batch.num_rows, bool))
    if contents.key is not None:
        own = _one_of(batch, "unique_key", (contents.key,))
        found = pc.and_(found, pc.or_(own, _has_key(_texts(batch, "keys"), contents.key)))
    for text in contents.in_keys:
        found = pc.and_(found, pc.fill_null(pc.match_substring(_texts(batch, "keys"), text), False))
    if contents.unique_keys is not None:
        found = pc.and_(found, _one_of(batch, "unique_key", contents.unique_keys))
    if contents.msg_ids is not None:
        found = pc.and_(found, _one_of(batch, "msg_id", contents.msg_ids))
    if contents.body is not None and pc.any(found).as_py():
        numbers = np.flatnonzero(found.to_numpy(zero_copy_only=False))
        kept = np.zeros(batch.num_rows, bool)
        bodies, flags = batch.column("body"), batch.column("sys_flag")
        for number in numbers.tolist():
            kept[number] = in_body(contents.body, bodies[number].as_py(), flags[number].as_py(), max_body_bytes)
        found = pa.array(kept)
    return found


def in_body(wanted: bytes, body: bytes | None, sys_flag: int, max_body_bytes: int) -> bool:
    """Say whether a stored body, or its unpacked form, contains the wanted bytes."""
    if body is None:
        return False
    if wanted in body:
        return True
    unpacked, _ = decode_body(body, sys_flag, max_body_bytes)
    return unpacked is not None and wanted in unpacked


def _texts(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch.column(name)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(pa.string())


def _one_of(batch: pa.RecordBatch, name: str, texts: Iterable[str]) -> pa.Array:
    return pc.is_in(_texts(batch, name), value_set=pa.array(sorted(texts), pa.string()))


def _has_key(column: pa.Array, key: str) -> pa.Array:
    near = pc.fill_null(pc.match_substring(column, key), False).to_numpy(zero_copy_only=False)
    kept = np.zeros(len(column), bool)
    for number in np.flatnonzero(near).tolist():
        kept[number] = key in column[number].as_py().split(" ")
    return pa.array(kept)


def search(
    scan: MessageScan, contents: Contents, source: ByteSource | None = None, look_first: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the segment's messages that meet the scan's filter and these contents: batches of the scan's columns, in log order.

    Bodies are as the scan wants them, decoded or stored, whatever `contents` had to look at.
    look_first: look for a text's bytes in the whole segment before it is decoded, if it lies on this machine. Threads share that,
    so it is for a process that has several cores to itself; on one core decoding alone is faster.
    """
    if contents == Contents():
        yield from scan_messages(scan, source)
        return
    kept = _narrowed(scan, contents, source) if look_first else scan
    if kept is None:
        return
    scan = kept
    # What is looked into is the stored body; those that match are uncompressed afterwards.
    decode = contents.body is not None and scan.decompress
    columns = tuple(dict.fromkeys((*scan.columns, *contents.columns)))
    wide = replace(scan, columns=columns, decompress=scan.decompress and contents.body is None)
    for batch in scan_messages(wide, source, contents):
        kept = batch.filter(mask(contents, batch, scan.max_body_bytes))
        if kept.num_rows:
            yield (_decoded(kept, scan.max_body_bytes) if decode else kept).select(list(scan.columns))


def _narrowed(scan: MessageScan, contents: Contents, source: ByteSource | None) -> MessageScan | None:
    """Return the scan up to the last place at which a message with these contents can begin. None if there is no such place."""
    _, needles = contents.sought
    if len(needles) != 1 or scan.unpack:  # an inner batch may be compressed
        return scan
    try:
        with can_do_without("the segment is decoded to its end then"):
            with (source or open_source(scan.location)).open(scan.path) as file:
                if file.size != scan.size or file.descriptor() is None:  # another machine's bytes are fetched once
                    return scan
                last = last_place(file, needles[0])
    except StoreError:  # who decodes it meets the same, perhaps only after what is asked for
        return scan
    named = [at - scan.base_offset for at in contents.named if at - scan.base_offset < scan.size]
    last = max([last, *named])
    if last < 0:
        return None
    before = MessageFilter(phy_offsets=(None, scan.base_offset + last + 1))
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
        """Return the message that the audit accepts there. Raises StoreError."""
        file, window = self._file, self._window
        position = phy_offset - file.start - self._check.framing.header_bytes
        if not 0 <= position < file.size:
            return None
        if not window.start <= position <= window.end - SHARED_BYTES:
            window.hold(position)
        verdict = self._check.verdict(window, position, file.size)
        return verdict.message if verdict.kind == VALID else None


def message_at(source: ByteSource, rules: BrokerRules, file: MappedFile, phy_offset: int) -> Message | None:
    """Return the message of the segment that the audit accepts at this physical offset."""
    with source.open(file.path) as opened:
        return SingleMessages(opened, rules, file).at(phy_offset)
