"""Compares one segment of one copy with the other copies of its group. It finds which of its messages each copy does not hold,
and why.

Copies of one broker's log hold the same bytes at the same physical offsets, wherever their files begin and end. So a message is
looked for at its own place; nothing is matched by content. Bytes that are a message in no copy are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.advice import Gap
from schemas.layouts import commitlog_layout as layout
from schemas.rows import MappedFile
from store_io.base.errors import StoreChanged, StoreError
from store_io.broker.releases import BrokerRules
from store_io.log.records import bridges
from store_io.log.records.message_columns import MALFORMED_PROPERTIES, Columns, RecordCheck, TopicTable
from store_io.log.records.message_decode import fixed_fields
from store_io.log.records.segment_walk import FAST, Decoding, capacity_for, decoder_of, walk_batches
from store_io.model import log_map
from store_io.replicas.replica_parts import GAPS, MAX_PIECES, Difference, QueueTotal, ReplicaPart, ReplicaRange, State
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import OpenFiles, StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 4 << 20

_OF_KIND = np.full(7, State.OTHER, np.uint8)  # by kind of a LogMap, where the bytes differ
for _state in GAPS:
    _OF_KIND[getattr(log_map, _state.name)] = _state

_HEADER = layout.STORE_HOST_POSITION + layout.IPV6_EXTRA_BYTES  # up to the last field that distinguishes messages


@dataclass(frozen=True)
class OtherCopy:
    """The facts that a task needs of another copy, within its own segment's range. Picklable.

    equal: its segment is the same, by digest.
    files: its segments there, ascending, none over another.
    starts, kinds: ranges as in `LogMap`.
    start: the begin of its log.
    end: the end of its last message.
    unreadable: half-open physical ranges.
    """

    copy: int
    location: StoreLocation
    equal: bool
    files: tuple[MappedFile, ...]
    starts: np.ndarray
    kinds: np.ndarray
    start: int
    end: int
    unreadable: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ReplicaTask:
    """One segment of copy `copy` to compare. Picklable.

    messages: its extents of messages, as positions in the segment.
    most_pieces: so many pieces are kept; later ones are only counted.
    """

    store: int
    copy: int
    path: str
    base_offset: int
    size: int
    location: StoreLocation
    messages: tuple[tuple[int, int], ...]
    rules: BrokerRules
    others: tuple[OtherCopy, ...]
    window_bytes: int = WINDOW_BYTES
    decoder: str = FAST
    not_after: float = 0
    most_pieces: int = MAX_PIECES

    @property
    def bytes_to_read(self) -> int:
        return self.size * (1 + sum(not other.equal for other in self.others))

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def run(self) -> ReplicaPart:
        return compare_segment(self)


class _OtherFailed(StoreError):
    def __init__(self, copy: int, error: StoreError):
        super().__init__(str(error))
        self.copy, self.error = copy, error


def compare_segment(task: ReplicaTask) -> ReplicaPart:
    """Compare message by message. Memory is a few windows; reading problems come back in `problem`."""
    part = ReplicaPart(task.copy, task.base_offset)
    readers: list[_Reader] = []
    try:
        readers += [_Reader(other) for other in task.others]
        with open_source(task.location).open(task.path) as file:
            if file.size != task.size:
                raise StoreChanged.in_size(task.path, file.size, task.size)
            _Comparison(task, file, readers, part).run()
        part.bytes_read += sum(reader.bytes_read for reader in readers)
    except _OtherFailed as why:
        return _void(task, why.copy, why.error.gap())
    except StoreError as why:
        return _void(task, task.copy, why.gap(task.path))
    finally:
        for reader in readers:
            reader.close()
    return part


def _void(task: ReplicaTask, copy: int, gap: Gap) -> ReplicaPart:
    return ReplicaPart(task.copy, task.base_offset, problem=gap, problem_copy=copy)


class _Reader:
    """Another copy's bytes by physical offset."""

    def __init__(self, other: OtherCopy):
        self.other = other
        self.bytes_read = 0
        self._files: OpenFiles | None = None

    def close(self) -> None:
        if self._files is not None:
            self._files.close()

    def read(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (the bytes of [low, high), which of them no file holds)."""
        data, absent = np.zeros(high - low, np.uint8), np.ones(high - low, bool)
        for file in self.other.files:
            start, end = max(low, file.start), min(high, file.start + file.size)
            if start < end:
                part = slice(start - low, end - low)
                try:
                    self._file(file).read_into(start - file.start, data[part])
                except StoreError as why:
                    raise _OtherFailed(self.other.copy, why) from why
                absent[part] = False
                self.bytes_read += end - start
        return data, absent

    def _file(self, file: MappedFile) -> ByteFile:
        if self._files is None:
            self._files = OpenFiles(open_source(self.other.location))
        opened = self._files.open(file.path)
        if opened.size != file.size:
            raise StoreChanged.in_size(file.path, opened.size, file.size)
        return opened


class _Comparison:
    def __init__(self, task: ReplicaTask, file: ByteFile, readers: list[_Reader], part: ReplicaPart):
        self.task, self.readers, self.part = task, readers, part
        self.base = task.base_offset
        self.check = RecordCheck.audit_of(self.base, task.rules, task.path)
        self.header = self.check.framing.header_bytes
        self.decode = decoder_of(task.decoder)
        self.window = SegmentWindow(file, task.size, task.window_bytes)
        self.columns = Columns(capacity_for(len(self.window.buffer)))
        self.topics = TopicTable()
        self.copies = 1 + max(task.copy, *(other.copy for other in task.others))
        self.open: ReplicaRange | None = None

    def run(self) -> None:
        check = self.check
        decoding = Decoding(self.decode, self.window, self.columns, self.topics)
        for start, end in self.task.messages:
            for count in walk_batches(decoding, check, start, end):
                self._batch(self.columns.rows[:count])
        self._close_piece()
        self.part.bytes_read += self.window.bytes_read

    def _batch(self, rows: np.ndarray) -> None:
        starts = rows["phy_offset"].astype(np.int64) - self.header  # of frames: a header counts as its message's
        ends = starts + self.header + rows["total_size"]
        states = np.zeros((len(rows), self.copies), np.uint8)
        for reader in self.readers:
            states[:, reader.other.copy] = self._states(rows, starts, ends, reader)
        for i in np.flatnonzero(rows["flag"] == bridges.FLAG):
            if bridges.is_bridge(self.topics.keys[rows[i]["topic_ref"]][0], rows[i]):
                states[i] = State.EQUAL  # a repair wrote it: no message that another copy could lack
        malformed = (rows["flags"] & MALFORMED_PROPERTIES != 0) & (states == State.DISPUTED).any(1)
        self._total(rows, states)
        alike = np.column_stack([states, malformed])
        # Rows that all copies hold are kept here: they separate ranges.
        cuts = np.flatnonzero((alike[1:] != alike[:-1]).any(1)) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)], strict=True):
            self._piece(rows[low:high], tuple(states[low].tolist()), bool(malformed[low]))

    def _states(self, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, reader: _Reader) -> np.ndarray:
        other = reader.other
        states = np.full(len(rows), State.EQUAL, np.uint8)
        if other.equal:
            return states
        place = np.searchsorted(other.starts, starts, "right")
        kinds = np.concatenate([[log_map.EXPIRED], other.kinds])[place]
        states[starts >= other.end] = State.BEYOND
        states[starts < other.start] = State.EXPIRED
        for low, high in other.unreadable:
            states[(starts < high) & (ends > low)] = State.UNKNOWN
        here = np.flatnonzero(states == State.EQUAL)
        if not len(here):
            return states
        differs, same = self._differing(rows, starts, ends, here, reader)
        wrong = here[differs]
        states[wrong] = _OF_KIND[kinds[wrong]]
        states[wrong[same & (kinds[wrong] == log_map.MESSAGE)]] = State.DISPUTED
        return states

    def _differing(
        self, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, here: np.ndarray, reader: _Reader
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (which of the messages `here` differ; of those, which the other copy holds as the same message by its
        header)."""
        low, high = int(starts[here[0]]), int(ends[here[-1]])
        differs = np.zeros(len(rows), bool)
        heads = np.zeros((len(rows), _HEADER), np.uint8)
        for at in range(low, high, self.task.window_bytes):
            end = min(high, at + self.task.window_bytes)
            mine = self._own(at, end)
            theirs, absent = reader.read(at, end)
            unlike = (mine != theirs) | absent
            first, last = np.searchsorted(starts, [at, end])  # messages that begin here
            inside = np.arange(max(0, first - 1), last)
            edges = np.maximum(starts[inside], at) - at
            edges = edges[: np.searchsorted(edges, len(unlike))]
            inside = inside[: len(edges)]
            hit = inside[np.logical_or.reduceat(unlike, edges)] if len(edges) else inside
            hit = hit[(starts[hit] < end) & (ends[hit] > at)]
            differs[hit] = True
            _take_heads(heads, hit, starts + self.header, at, theirs)
        differs = differs[here]
        wrong = here[differs]
        return differs, _same_message(rows[wrong], heads[wrong])

    def _own(self, low: int, high: int) -> np.ndarray:
        low, high, window = low - self.base, high - self.base, self.window
        if window.start <= low and high <= window.end:
            return window.buffer[low - window.start : high - window.start]
        return np.frombuffer(window.read(low, high), np.uint8)

    def _total(self, rows: np.ndarray, states: np.ndarray) -> None:
        found = np.flatnonzero((states != State.EQUAL).any(1))
        if not len(found):
            return
        # One number for the states of all copies: `MAX_COPIES` states of four bits each.
        codes = (states[found].astype(np.uint64) << (4 * np.arange(self.copies, dtype=np.uint64))).sum(1, dtype=np.uint64)
        mine = rows[found]
        columns = {name: np.ascontiguousarray(mine[name]) for name in ("topic_ref", "total_size", "queue_offset", "store_time")}
        bounds = [(name, what) for name in ("queue_offset", "store_time") for what in ("min", "max")]
        groups = pa.table({"code": codes, **columns}).group_by(["code", "topic_ref"], use_threads=False)
        for row in groups.aggregate([([], "count_all"), ("total_size", "sum"), *bounds]).to_pylist():
            which = tuple(row["code"] >> 4 * copy & 15 for copy in range(self.copies))
            total = QueueTotal(row["count_all"], row["total_size_sum"], *(row[f"{name}_{what}"] for name, what in bounds))
            self.part.totals.setdefault((which, self.topics.keys[row["topic_ref"]]), QueueTotal()).add(total)

    def _piece(self, rows: np.ndarray, states: tuple[int, ...], malformed: bool) -> None:
        """Take in neighbours that are alike: they extend the open piece, or begin one."""
        if not any(states):
            self._close_piece()
            return
        head, last = rows[0], rows[-1]
        topic, queue_id = self.topics.keys[head["topic_ref"]]
        piece = ReplicaRange(
            int(head["phy_offset"]) - self.header,
            int(last["phy_offset"]) + int(last["total_size"]),
            len(rows),
            int(rows["total_size"].sum(dtype=np.int64)),
            int(rows["store_time"].min()),
            int(rows["store_time"].max()),
            states,
            malformed,
            topic,
            queue_id,
            int(head["queue_offset"]),
            int(head["total_size"]),
        )
        if self.open is not None and self.open.is_like(piece) and self.open.end == piece.start:
            self.open.extend(piece)
            return
        self._close_piece()
        self.open = piece
        if len(self.part.pieces) < self.task.most_pieces:
            piece.differences = dict(self._differences(head, states))

    def _close_piece(self) -> None:
        if self.open is not None:
            if len(self.part.pieces) < self.task.most_pieces:
                self.part.pieces.append(self.open)
            else:
                self.part.pieces_dropped += 1
        self.open = None

    def _differences(self, head: np.void, states: tuple[int, ...]) -> Iterator[tuple[int, Difference]]:
        """Yield how the message differs from each other copy that has bytes in its place."""
        start, header = int(head["phy_offset"]) - self.header, self.header
        end = start + header + int(head["total_size"])
        for reader in self.readers:
            if states[reader.other.copy] not in (*GAPS, State.DISPUTED, State.OTHER):
                continue
            first, last = -1, -1
            for at in range(start, end, self.task.window_bytes):
                stop = min(end, at + self.task.window_bytes)
                theirs, absent = reader.read(at, stop)
                found = np.flatnonzero((self._own(at, stop) != theirs) | absent)
                if len(found):
                    first = at + int(found[0]) if first < 0 else first
                    last = at + int(found[-1])
            yield reader.other.copy, Difference(first, last + 1, field_at(head, first - start - header))


def _take_heads(heads: np.ndarray, hit: np.ndarray, starts: np.ndarray, at: int, data: np.ndarray) -> None:
    """Copy what `data`, which begins at physical offset `at`, holds of the first bytes of these messages."""
    low = starts[hit] - at
    whole = (low >= 0) & (low + _HEADER <= len(data))
    heads[hit[whole]] = data[low[whole][:, None] + np.arange(_HEADER)]
    for row, start in zip(hit[~whole].tolist(), low[~whole].tolist(), strict=True):
        first, last = max(start, 0), min(start + _HEADER, len(data))
        if first < last:
            heads[row, first - start : last - start] = data[first:last]


def _same_message(rows: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Say whether headers found in these messages' places are theirs, with one damaged field at the most.

    They are if the body is the same by its CRC, and two of queue offset, producer's time and broker's time are the same.
    Different messages share none of the times.
    """

    def number(at: int, kind: str) -> np.ndarray:
        width = np.dtype(kind).itemsize
        return np.ascontiguousarray(heads[:, at : at + width]).view(kind).reshape(-1).astype(np.int64)

    v6 = rows["sys_flag"] & layout.SYS_BORN_HOST_V6 != 0
    stored = layout.STORE_TIMESTAMP_POSITION
    times = np.where(v6, number(stored + layout.IPV6_EXTRA_BYTES, ">i8"), number(stored, ">i8"))
    alike = (number(layout.QUEUE_OFFSET_POSITION, ">i8") == rows["queue_offset"]).astype(int)
    alike += number(layout.BORN_TIMESTAMP_POSITION, ">i8") == rows["born_time"]
    alike += times == rows["store_time"]
    same: np.ndarray = (number(layout.BODY_CRC_POSITION, ">i4") == rows["body_crc"]) & (alike >= 2)
    return same


def field_at(row: np.void, at: int) -> str:
    """Return the name of the field that holds byte `at` of a message, as its columns locate the parts.

    Below 0 it is the frame's header.
    """
    if at < 0:
        return "FRAMEHEADER"
    for name, column in (("BODY", "body"), ("TOPIC", "topic"), ("PROPERTIES", "props")):
        start = int(row[f"{column}_at"])
        if start <= at < start + int(row[f"{column}_len"]):
            return name
    if at >= int(row["body_at"]):
        return "TOPICLENGTH" if at < int(row["topic_at"]) else "PROPERTIESLENGTH"
    return next(name for name, start, size in fixed_fields(int(row["sys_flag"])) if at < start + size)
