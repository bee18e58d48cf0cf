"""The messages of a segment that the audit accepts, as Arrow batches.

Memory is bounded by the window and by BATCH_BYTES, whatever the bytes say. Only uncompressed bodies and unpacked inner batches
make a Python object for each message. Source of unpacking: MessageDecoder.decodeMessage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import arrow_schema
from schemas.layouts import commitlog_layout as layout
from schemas.layouts import rocksdb_layout
from schemas.sources import BODY_COLUMNS
from store_io.base.errors import StoreChanged, UsageError
from store_io.base.java.java_compat import MAX_LONG, decode_utf8
from store_io.base.ranges import inside
from store_io.broker.message_verdict import parse_properties
from store_io.log.records.message_bodies import STORED, TOO_LARGE, decode_body, inner_messages
from store_io.log.records.message_columns import Columns, RecordCheck, TopicTable
from store_io.log.records.segment_walk import FAST, Decoding, StrayChain, capacity_for, decoder_of, stray_chain, walk_batches
from store_io.log.scan.resync import Resync
from store_io.log.scan.row_texts import find_in_pieces, gather_bytes, record_bytes
from store_io.messages.lost.segment_loss import KEPT
from store_io.messages.message_batch import MessageBatch
from store_io.messages.message_filter import ANY_CONTENTS, TIMES, Contents, within
from store_io.messages.scans import COLUMNS, MessageScan
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, open_source
from store_io.source.segment_window import SegmentWindow

LEAST_WINDOW_BYTES = 1 << 18
BATCH_BYTES = 32 << 20  # of bodies in one batch, unless a single one is larger
INNER_BYTES = 512  # of a message of an inner batch, besides its own bytes, which may be none
_INNER = layout.SYS_INNER_BATCH | layout.SYS_NEED_UNWRAP
HALF_TOPICS = frozenset((layout.HALF_TOPIC, rocksdb_layout.HALF_TOPIC))
TRANSACTION_TOPICS = HALF_TOPICS | {layout.OPERATION_TOPIC, rocksdb_layout.DONE_TOPIC, layout.GIVEN_UP_TOPIC}


def message_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of these columns. Raises UsageError for an unknown name."""
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or not columns:
        raise UsageError(f"column {unknown[0] if unknown else ''!r}: the columns of messages are {', '.join(COLUMNS)}")
    if len(set(columns)) != len(columns):
        raise UsageError(f"a column twice: {', '.join(columns)}")
    return arrow_schema(COLUMNS[name] for name in columns)


def scan_messages(
    scan: MessageScan, source: ByteSource | None = None, contents: Contents = ANY_CONTENTS
) -> Iterator[pa.RecordBatch]:
    """Yield the segment's messages that pass the filter, in the order of their physical offsets, as batches of `message_schema`.

    contents: what a message says, so that few are given that do not meet them; the caller looks again.
    Reads no further than the filter's physical offsets. Never raises over bytes; StoreError where the file cannot be read or
    changed since it was listed, UsageError for an unknown column.
    """
    schema = message_schema(scan.columns)
    with (source or open_source(scan.location)).open(scan.path) as file:
        if file.size != scan.size:
            raise StoreChanged.in_size(scan.path, file.size, scan.size)
        yield from _Reading(scan, file, schema, contents).batches()


class _Reading:
    """The state of one scan."""

    def __init__(self, scan: MessageScan, file: ByteFile, schema: pa.Schema, contents: Contents):
        self.scan, self.wanted, self.schema = scan, scan.wanted, schema
        self._properties, needles = contents.sought
        self._needles = [np.frombuffer(needle, np.uint8) for needle in needles]
        self._named = np.array(contents.named, np.int64)
        high = self.wanted.phy_offsets[1]
        self._end = scan.size if high is None else min(scan.size, high - scan.base_offset)
        least = max(LEAST_WINDOW_BYTES, self._end - scan.begin)
        self.window = SegmentWindow(file, scan.size, min(scan.window_bytes, least))
        self.topics = TopicTable()
        self.rows = Columns(capacity_for(len(self.window.buffer)))
        self.with_bodies = not set(BODY_COLUMNS).isdisjoint(scan.columns)
        self.plausible = scan.plausible  # whether damage was passed
        self._chosen = np.zeros(0, bool)  # by topic reference

    def batches(self) -> Iterator[pa.RecordBatch]:
        scan, window = self.scan, self.window
        if not self.wanted.may_be_in(scan.base_offset, scan.size) or scan.only_lost and not scan.loss:
            return
        decode = decoder_of(scan.decoder or FAST)
        decoding = Decoding(decode, window, self.rows, self.topics)
        check = RecordCheck.audit_of(scan.base_offset, scan.rules, scan.path)
        resync = Resync(window, scan.path, scan.base_offset, check, False)

        def chain(start: int) -> StrayChain:
            return stray_chain(decoding, check, start)

        at = max(0, scan.begin - check.framing.header_bytes)
        while True:
            walk = walk_batches(decoding, check, at, scan.size)
            while True:
                try:
                    rows = self.rows.rows[: next(walk)]
                except StopIteration as stop:
                    at, verdict = stop.value
                    break
                past = int(rows["position"][-1]) + int(rows["total_size"][-1]) >= self._end
                yield from self._wanted(rows)
                if past:
                    return
            if at >= self._end:
                return
            damage = resync.judge(at, verdict, chain)
            if damage.resume is None:
                return
            at, self.plausible = damage.resume, True

    def _wanted(self, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield batches of those of the decoder's rows that pass the filter."""
        wanted = self.wanted
        if rows["phy_offset"][-1] < (wanted.phy_offsets[0] or 0):  # they ascend
            return
        unpacked = np.zeros(len(rows), bool)
        if self.scan.unpack:
            unpacked = rows["sys_flag"] & _INNER == _INNER
        mask = inside(rows["phy_offset"], wanted.phy_offsets)
        for name, field in TIMES.items():
            mask &= inside(rows[field], getattr(wanted, name))
        mask &= inside(rows["queue_offset"], wanted.queue_offsets) | unpacked
        if wanted.of_transactions:
            mask &= self._of_transactions(rows)
        if wanted.topics is not None or wanted.queue_ids is not None:
            mask &= self._chosen_refs()[rows["topic_ref"]]
        if self.scan.only_lost and self.scan.loss is not None:
            mask &= self.scan.loss.of_rows(rows, self.topics.keys) != KEPT
        if self._needles:
            mask &= unpacked | self._says_so(rows)
        if wanted.tags is not None:
            mask[mask] &= unpacked[mask] | self._tagged(rows[mask], wanted.tags)
        if not mask.all():
            rows, unpacked = rows[mask], unpacked[mask]
        if not len(rows):
            return
        if unpacked.any():
            yield from self._unpacked(rows, unpacked)
        elif self.with_bodies:
            yield from self._with_bodies(rows)
        else:
            yield self.batch(rows).build(self.schema)

    def _chosen_refs(self) -> np.ndarray:
        """Return by topic reference whether messages of that queue are wanted."""
        for key in self.topics.keys[len(self._chosen) :]:
            self._chosen = np.append(self._chosen, self.wanted.holds_queue(*key))
        return self._chosen

    def _of_transactions(self, rows: np.ndarray) -> np.ndarray:
        """Say which rows are part of a transaction: by their topics, or as committed messages."""
        refs = [number for number, (topic, _) in enumerate(self.topics.keys) if topic in TRANSACTION_TOPICS]
        found: np.ndarray = np.isin(rows["topic_ref"], refs) | (
            rows["sys_flag"] & layout.SYS_TRANSACTION_MASK == layout.SYS_COMMIT
        )
        return found

    def _says_so(self, rows: np.ndarray) -> np.ndarray:
        """Say which rows have a wanted text in their properties, or are named by this text."""
        found: np.ndarray = np.isin(rows["phy_offset"], self._named) if len(self._named) else np.zeros(len(rows), bool)
        for name in self._properties:
            size = rows[f"{name}_len"].astype(np.int64)
            buffer, start = record_bytes(self.window, rows, rows[f"{name}_at"], size)
            for needle in self._needles:
                find_in_pieces(buffer, start, size, needle, found)
        return found

    def _tagged(self, rows: np.ndarray, tags: frozenset[str]) -> np.ndarray:
        """Say which rows have one of these tags."""
        if not len(rows):
            return np.zeros(0, bool)
        column = self.batch(rows).property_texts("TAGS", "tags")
        found = pc.is_in(column, value_set=pa.array(sorted(tags), pa.string()))
        return np.asarray(found.to_numpy(zero_copy_only=False), bool)

    def batch(self, rows: np.ndarray, bodies: list[tuple[bytes | None, int]] | None = None) -> MessageBatch:
        """Return a batch of these rows. bodies: each with its status."""
        batch = MessageBatch(rows, self.window, self.scan.path, self.topics.keys, self.plausible)
        batch.loss = self.scan.loss
        if bodies is not None:
            batch.bodies = pa.array([body for body, _ in bodies], pa.binary())
            batch.body_status = np.array([status for _, status in bodies], np.int8)
        return batch

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def _with_bodies(self, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield batches of rows with their bodies, cut so that the bodies of one stay below BATCH_BYTES."""
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
                buffer, start = record_bytes(self.window, part, part["body_at"], size)
                batch = self.batch(part)
                batch.bodies = gather_bytes(buffer, start, size, fits)
                batch.body_status = np.where(fits, STORED, TOO_LARGE).astype(np.int8)
                yield batch.build(self.schema)
                low = high
            return
        low, held = 0, 0
        bodies: list[tuple[bytes | None, int]] = []
        for i in range(len(rows)):
            bodies.append(self.decoded(rows[i]))
            held += len(bodies[-1][0] or b"")
            if held >= BATCH_BYTES or i + 1 == len(rows):
                yield self.batch(rows[low : i + 1], bodies).build(self.schema)
                low, bodies, held = i + 1, [], 0

    def decoded(self, row: np.void) -> tuple[bytes | None, int]:
        """Return a message's body, uncompressed."""
        size = max(0, int(row["body_len"]))
        if size > self.scan.max_body_bytes:
            return None, TOO_LARGE
        start = int(row["position"]) + int(row["body_at"])
        return decode_body(self.window.read(start, start + size), int(row["sys_flag"]), self.scan.max_body_bytes)

    # ---- inner batches -----------------------------------------------------------------------------------------------

    def _unpacked(self, rows: np.ndarray, unpacked: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield batches in which each inner batch is its messages; runs of other rows between them are batches as usual."""
        edges = np.flatnonzero(np.diff(unpacked)) + 1
        for low, high in zip([0, *edges.tolist()], [*edges.tolist(), len(rows)], strict=True):
            part = rows[low:high]
            if not unpacked[low]:
                yield from self._with_bodies(part) if self.with_bodies else [self.batch(part).build(self.schema)]
                continue
            inner = _Inner(self)
            for i in range(len(part)):
                inner.add(part[i : i + 1])
                if inner.held >= BATCH_BYTES:
                    yield from inner.batches()
                    inner = _Inner(self)
            yield from inner.batches()


@dataclass(frozen=True)
class _InnerMessage:
    """One message of an inner batch.

    row: the batch, an array of one row.
    number: its place in the batch; -1: it is the batch itself.
    body: with its status.
    """

    row: np.ndarray
    number: int
    queue_offset: int
    flag: int
    properties: bytes
    body: tuple[bytes | None, int]
    body_size: int


class _Inner:
    """Gathers the messages of inner batches until they are passed on."""

    def __init__(self, reading: _Reading):
        self._reading = reading
        self._found: list[_InnerMessage] = []
        self.held = 0

    def add(self, row: np.ndarray) -> None:
        """Add one inner batch, as an array of one row."""
        reading, r = self._reading, row[0]
        body, status = reading.decoded(r)
        messages = inner_messages(body) if body is not None else None
        if body is None or messages is None:
            start = int(r["position"]) + int(r["props_at"])
            stored = body, status
            if not reading.scan.decompress and int(r["body_len"]) <= reading.scan.max_body_bytes:
                at = int(r["position"]) + int(r["body_at"])
                stored = reading.window.read(at, at + max(0, int(r["body_len"]))), STORED
            properties = reading.window.read(start, start + int(r["props_len"]))
            self._put(_InnerMessage(row, -1, int(r["queue_offset"]), int(r["flag"]), properties, stored, int(r["body_len"])))
            return
        for number, message in enumerate(messages):
            own = body[slice(*message.body)]
            properties = body[slice(*message.properties)]
            offset = min(int(r["batch_base"]) + number, MAX_LONG)
            self._put(_InnerMessage(row, number, offset, message.flag, properties, (own, status), len(own)))

    def _put(self, inner: _InnerMessage) -> None:
        if not within(inner.queue_offset, self._reading.wanted.queue_offsets):
            return
        tags = self._reading.wanted.tags
        if tags is not None and parse_properties(decode_utf8(inner.properties)).get("TAGS") not in tags:
            return
        if not self._reading.with_bodies:
            inner = replace(inner, body=(None, STORED))
        self._found.append(inner)
        self.held += INNER_BYTES + len(inner.properties) + len(inner.body[0] or b"")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the gathered messages, if there are any."""
        if not self._found:
            return
        runs = [list(run) for _, run in groupby(self._found, lambda one: id(one.row))]  # each of one inner batch
        rows = np.concatenate([run[0].row for run in runs]).repeat([len(run) for run in runs])
        rows["queue_offset"] = [one.queue_offset for one in self._found]
        rows["flag"] = [one.flag for one in self._found]
        rows["body_len"] = [one.body_size for one in self._found]
        batch = self._reading.batch(rows, [one.body for one in self._found])
        batch.inner = np.array([one.number for one in self._found], np.int32)
        batch.own_properties = [one.properties for one in self._found]
        yield batch.build(self._reading.schema)
