"""A sound store of any size from one segment on the disk: repeated, each time with offsets and times of its own. Needs numba.

Each repetition is a segment of real bytes: its messages store their own physical offset, their own queue offset and a later time;
bodies and their checksums stay, as these cover none of that. ConsumeQueue files are worked out from the same messages. So a
terabyte or a million files need the room of one segment, and nothing of them is a hole. There is no index.
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from dev.sample_kinds import Piece, small_file
from dev.sample_store import FIRST_STORE_TIME, MESSAGES_PER_MILLISECOND, SampleStore, segment_parts, topic_table
from schemas.layouts import checkpoint_layout
from schemas.layouts import commitlog_layout as layout
from schemas.layouts import consumequeue_layout as queue_layout
from schemas.layouts.entries import STORED_ENTRY_DTYPE
from store_io.base.errors import StoreChanged
from store_io.base.java.java_compat import string_hash
from store_io.base.locks import made_once
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.source.byte_file import BasicFile, ByteFile, Found
from store_io.source.byte_source import ByteSource, DerivedLocation, StoreLocation, open_source

SEGMENT, ROWS, STORE = "segment", "rows", "store.json"
_LIGHT_CONF = "enableLmq=true\nenableMultiDispatch=true\n"
_UNIT = queue_layout.ENTRY_BYTES
_BORN_BEFORE = 2  # ms, as the sample store has it
_DIGITS = 12
_MODIFIED_NS = FIRST_STORE_TIME * 1_000_000

TEMPLATE_DTYPE = np.dtype(
    [
        ("position", "i8"),
        ("size", "i4"),
        ("tags_code", "i8"),
        ("store_time", "i8"),
        ("queue", "i4"),  # number in the template's list of queues
        ("queue_offset", "i8"),
        ("light", "i4"),  # the same of its light queue; -1: none
        ("light_offset", "i8"),
    ]
)


# ---- the segment that is repeated --------------------------------------------------------------------------------------


def template_pieces(store: SampleStore) -> Iterator[Piece]:
    """Yield the first segment of a sample store, to be repeated. Takes as much room as that, and 52 bytes for each message."""
    end = count = 0
    for position, data, made in segment_parts(store):
        yield Piece(SEGMENT, store.segment_bytes, position, data)
        rows = np.zeros(len(made), TEMPLATE_DTYPE)
        for name in ("size", "tags_code", "store_time", "queue", "queue_offset"):
            rows[name] = made[name]
        rows["position"], rows["light"] = made["phy_offset"], -1
        yield _row_piece(rows, count)
        count += len(rows)
        end = position + len(data)
    yield _filler(store.segment_bytes, end)
    names = [(store.topic(topic), queue) for topic in range(store.topics) for queue in range(store.queues)]
    yield _about(names, store.segment_bytes, store.queue_file_bytes)


def light_template_pieces(queues: int, messages: int, queue_file_bytes: int) -> Iterator[Piece]:
    """Yield a segment whose messages, all of one ordinary queue, are dispatched into so many light queues, one after the
    other."""
    topic, body = b"SampleTopic00", bytes(range(64))
    names = [f"{LMQ_PREFIX}sample{number:07d}" for number in range(queues)]
    before = f"INNER_MULTI_DISPATCH\x01{names[0]}\x02INNER_MULTI_QUEUE_OFFSET\x01".encode()
    properties = before + b"0" * _DIGITS + b"\x02TAGS\x01TagA\x02"
    size = layout.BODY_POSITION + len(body) + 1 + len(topic) + 2 + len(properties)
    one = bytearray(size)
    for at, form, value in (
        (layout.TOTAL_SIZE_POSITION, ">i", size),
        (layout.MAGIC_POSITION, ">i", layout.MAGIC_V1),
        (layout.BODY_CRC_POSITION, ">i", zlib.crc32(body) & 0x7FFFFFFF),
        (layout.BORN_HOST_POSITION, ">q", 0x0A000002_0000C350),  # 10.0.0.2:50000
        (layout.STORE_HOST_POSITION, ">q", 0x0A000001_00002A9F),  # 10.0.0.1:10911
        (layout.BODY_LENGTH_POSITION, ">i", len(body)),
    ):
        struct.pack_into(form, one, at, value)
    one[layout.BODY_POSITION :] = body + bytes([len(topic)]) + topic + struct.pack(">h", len(properties)) + properties
    numbers = np.arange(messages, dtype=np.int64)
    times = FIRST_STORE_TIME + numbers // MESSAGES_PER_MILLISECOND
    table = np.tile(np.frombuffer(bytes(one), np.uint8), (messages, 1))
    at = size - len(properties)
    light = numbers % queues
    for low, data in (
        (layout.QUEUE_OFFSET_POSITION, numbers.astype(">i8").tobytes()),
        (layout.PHY_OFFSET_POSITION, (numbers * size).astype(">i8").tobytes()),
        (layout.BORN_TIMESTAMP_POSITION, (times - _BORN_BEFORE).astype(">i8").tobytes()),
        (layout.STORE_TIMESTAMP_POSITION, times.astype(">i8").tobytes()),
        (at + before.index(b"\x02") - 7, b"".join(b"%07d" % n for n in light.tolist())),
        (at + len(before), b"".join(b"%012d" % n for n in (numbers // queues).tolist())),
    ):
        columns = np.frombuffer(data, np.uint8).reshape(messages, -1)
        table[:, low : low + columns.shape[1]] = columns
    segment_bytes = -(-(messages * size + layout.FRAME_BYTES) // 4096) * 4096
    yield Piece(SEGMENT, segment_bytes, 0, table.reshape(-1))
    yield _filler(segment_bytes, messages * size)
    rows = np.zeros(messages, TEMPLATE_DTYPE)
    rows["position"], rows["size"], rows["tags_code"] = numbers * size, size, string_hash("TagA")
    rows["store_time"] = times
    rows["queue_offset"], rows["light"], rows["light_offset"] = numbers, light + 1, numbers // queues
    keys = [("SampleTopic00", 0), *((name, 0) for name in names)]
    yield _row_piece(rows, 0)
    yield _about(keys, segment_bytes, queue_file_bytes, at + len(before))


def _row_piece(rows: np.ndarray, before: int) -> Piece:
    size = TEMPLATE_DTYPE.itemsize
    return Piece(ROWS, (before + len(rows)) * size, before * size, rows.view(np.uint8))


def _filler(segment_bytes: int, end: int) -> Piece:
    return Piece(SEGMENT, segment_bytes, end, np.array([segment_bytes - end, layout.MAGIC_BLANK], ">i4").view(np.uint8))


def _about(names: Sequence[tuple[str, int]], segment_bytes: int, queue_file_bytes: int, text_at: int = 0) -> Piece:
    about = {"names": names, "segment_bytes": segment_bytes, "queue_file_bytes": queue_file_bytes, "text_at": text_at}
    return small_file(STORE, json.dumps(about).encode())


# ---- the store that repeats it ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RepeatedLocation(DerivedLocation):
    """A store of so many segments.

    root: the folder of its template.
    wrong_every: of the ConsumeQueue entries one in so many has another tags code; 0: none.
    lost: consumequeue/ is gone.
    """

    repeats: int = 1
    wrong_every: int = 0
    lost: bool = False

    def source(self) -> ByteSource:
        return ByteSource(self, _Repeated(self), {})

    def settings(self) -> str:
        """Return the lines of its broker.conf."""
        of = _template(self.root)
        sizes = f"mappedFileSizeCommitLog={of.segment_bytes}\nmappedFileSizeConsumeQueue={of.queue_file_bytes}\n"
        return "messageIndexEnable=false\n" + sizes + (_LIGHT_CONF if of.text_at else "")


class _Template:
    """The facts of a template.

    Only `counts` and `span` are kept of its rows, until a file is worked out from them: a driver holds none, so that its memory
    is that of an audit.
    """

    def __init__(self, root: str):
        self.source = open_source(StoreLocation(root))
        about = json.loads(self.source.read_small(STORE))
        self.names = [(topic, queue) for topic, queue in about["names"]]
        self.segment_bytes, self.queue_file_bytes = int(about["segment_bytes"]), int(about["queue_file_bytes"])
        self.text_at = int(about["text_at"])
        rows = self._read()
        self.counts = np.bincount(self._owners(rows), minlength=len(self.names))
        self.span = (len(rows) - 1) // MESSAGES_PER_MILLISECOND + 1  # ms from one repetition to the next

    def _read(self) -> np.ndarray:
        with self.source.open(ROWS) as file:
            return np.frombuffer(file.read(0, file.size), TEMPLATE_DTYPE)

    @staticmethod
    def _owners(rows: np.ndarray) -> np.ndarray:
        """Return the queue of each row, then the light queue of each that has one."""
        return np.concatenate([rows["queue"], rows["light"][rows["light"] >= 0]])

    @functools.cached_property
    def rows(self) -> np.ndarray:
        return self._read()

    @functools.cached_property
    def positions(self) -> np.ndarray:
        return np.ascontiguousarray(self.rows["position"])

    @functools.cached_property
    def order(self) -> np.ndarray:
        """Return the rows of each queue in the order of their queue offsets."""
        places = np.concatenate([np.arange(len(self.rows)), np.flatnonzero(self.rows["light"] >= 0)])
        order: np.ndarray = places[np.argsort(self._owners(self.rows), kind="stable")].astype(np.int32)
        return order

    @functools.cached_property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.counts)])

    @functools.cached_property
    def numbers(self) -> dict[tuple[str, int], int]:
        return {key: number for number, key in enumerate(self.names)}


@made_once(2)
def _template(root: str) -> _Template:
    return _Template(root)


class _Repeated:
    """The store as a folder (`byte_file.Folder`)."""

    def __init__(self, location: RepeatedLocation):
        self._location, self._of = location, _template(location.root)
        last_time = FIRST_STORE_TIME + location.repeats * self._of.span - 1
        self._folders = ("commitlog", "config") if location.lost else ("commitlog", "config", "consumequeue")
        self._small = {
            checkpoint_layout.CHECKPOINT_FILE: struct.pack(">qqq", last_time, last_time, 0).ljust(
                checkpoint_layout.FILE_BYTES, b"\0"
            ),
            "config/topics.json": self._topics(),
            "lock": b"lock",
        }

    def _topics(self) -> bytes:
        queues: dict[str, int] = {}
        for topic, queue in self._of.names:
            if not topic.startswith(LMQ_PREFIX):
                queues[topic] = max(queues.get(topic, 0), queue + 1)
        return json.dumps({"topicConfigTable": topic_table(queues)}).encode()

    def has(self, relative: str) -> bool:
        return relative in self._small or relative.partition("/")[0] in self._folders

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        if not relative:
            for name in self._folders:
                yield name, "directory", 0, _MODIFIED_NS
        for path, data in self._small.items():
            folder, _, name = path.rpartition("/")
            if folder == relative:
                yield name, "file", len(data), _MODIFIED_NS
        if relative == "commitlog":
            for number in range(self._location.repeats):
                yield f"{number * self._of.segment_bytes:020d}", "file", self._of.segment_bytes, _MODIFIED_NS
        elif relative == "consumequeue" and not self._location.lost:
            yield from self._queue_files()

    def _queue_files(self) -> Iterator[Found]:
        size, before = self._of.queue_file_bytes, ""
        for (topic, queue), count in zip(self._of.names, self._of.counts.tolist(), strict=True):
            if not count:
                continue
            if topic != before:
                yield topic, "directory", 0, _MODIFIED_NS
                before = topic
            yield f"{topic}/{queue}", "directory", 0, _MODIFIED_NS
            for start in range(0, count * self._location.repeats * _UNIT, size):
                yield f"{topic}/{queue}/{start:020d}", "file", size, _MODIFIED_NS

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        if relative in self._small:
            return _Bytes(path, self._small[relative])
        part, _, rest = relative.partition("/")
        if part == "commitlog":
            return _Segment(path, self._of, int(rest) // self._of.segment_bytes)
        topic, _, rest = rest.partition("/")
        queue, _, name = rest.partition("/")
        number = self._of.numbers.get((topic, int(queue)))
        if number is None:
            raise StoreChanged(f"{path}: is not there")
        return _QueueFile(path, self._of, number, int(name), self._location)


class _Bytes(BasicFile):
    def __init__(self, path: str, data: bytes):
        self.path, self.size, self._data = path, len(data), data

    def _fill(self, position: int, view: memoryview) -> int:
        part = self._data[position : position + len(view)]
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class _Segment(BasicFile):
    """A repetition of the segment."""

    def __init__(self, path: str, template: _Template, number: int):
        self.path, self.size, self._of, self._number = path, template.segment_bytes, template, number
        self._file = template.source.open(SEGMENT)

    def _fill(self, position: int, view: memoryview) -> int:
        count = self._file.read_into(position, view)
        if self._number:
            of = self._of
            first, last = np.searchsorted(of.positions, (position, position + count))
            data = np.frombuffer(view[:count], np.uint8)
            place = (self._number * of.segment_bytes, self._number * of.span, self._number)
            _go_on(data, position, of.rows[max(0, first - 1) : last], of.counts, place, of.text_at)
        return count

    def close(self) -> None:
        self._file.close()


@njit(cache=True, nogil=True)
def _put_at(data, at, value, size):  # type: ignore[no-untyped-def]
    """Return the big-endian bytes of a number, those of them that are in the buffer."""
    for i in range(size):
        if 0 <= at + i < len(data):
            data[at + i] = (value >> (8 * (size - 1 - i))) & 0xFF


@njit(cache=True, nogil=True)
def _go_on(data, position, rows, counts, place, text_at):  # type: ignore[no-untyped-def]
    """Make a part of the template, which begins at `position`, that of a later repetition.

    place: by how much physical offsets and times are higher, and which repetition it is.
    """
    for row in rows:
        at = row.position - position
        _put_at(data, at + layout.PHY_OFFSET_POSITION, row.position + place[0], 8)
        _put_at(data, at + layout.QUEUE_OFFSET_POSITION, row.queue_offset + place[2] * counts[row.queue], 8)
        _put_at(data, at + layout.BORN_TIMESTAMP_POSITION, row.store_time + place[1] - _BORN_BEFORE, 8)
        _put_at(data, at + layout.STORE_TIMESTAMP_POSITION, row.store_time + place[1], 8)
        if row.light >= 0:
            value = row.light_offset + place[2] * counts[row.light]
            base = at + text_at
            for i in range(_DIGITS - 1, -1, -1):
                if 0 <= base + i < len(data):
                    data[base + i] = 48 + value % 10
                value //= 10


class _QueueFile(BasicFile):
    """A ConsumeQueue file, worked out from the messages."""

    def __init__(self, path: str, template: _Template, number: int, start: int, location: RepeatedLocation):
        self.path, self.size, self._of = path, template.queue_file_bytes, template
        self._start, self._location = start, location
        self._rows = template.order[template.starts[number] : template.starts[number + 1]]
        self._end = len(self._rows) * location.repeats  # entries

    def _fill(self, position: int, view: memoryview) -> int:
        wanted = min(len(view), self.size - position)
        first, last = (self._start + position) // _UNIT, -(-(self._start + position + wanted) // _UNIT)
        entries = np.zeros(last - first, STORED_ENTRY_DTYPE)
        numbers = np.arange(first, min(last, self._end))
        if len(numbers):
            repeat, place = np.divmod(numbers, len(self._rows))
            rows = self._of.rows[self._rows[place]]
            made = entries[: len(numbers)]
            made["phy_offset"], made["size"] = rows["position"] + repeat * self._of.segment_bytes, rows["size"]
            every = self._location.wrong_every
            made["tags_code"] = rows["tags_code"] ^ (numbers % every == 0 if every else 0)
        low = self._start + position - first * _UNIT
        view[:wanted] = entries.tobytes()[low : low + wanted]
        return wanted

    def next_data(self, position: int) -> int:
        return position if self._start + position < self._end * _UNIT else self.size

    def next_hole(self, position: int) -> int:
        return min(self.size, max(position + 1, self._end * _UNIT - self._start))

    def close(self) -> None:
        """Do nothing: nothing is open."""
