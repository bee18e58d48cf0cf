"""A whole healthy store of any size, piece by piece: for measurements and trials. Needs numba.

What a 5.3.3 broker leaves after a clean stop: full segments with their fillers, the ConsumeQueue and index files of every
message with real chains, checkpoint, topics; of another kind (`sample_kinds`) what that has beside or instead. Nothing is
written here: the caller puts each piece where it says.
The same description gives the same bytes. Source of the formats: formats.md 2, 3, 6, 7.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from dev.sample_kinds import (
    CONTROLLER,
    LEDGER,
    LEDGER_FOLDER,
    PLAIN,
    ROCKSDB,
    KeyedQueues,
    Pairs,
    Piece,
    first_epoch,
    ledger_texts,
    ledger_units,
    put_headers,
    small_file,
    timer_messages,
)
from schemas.layouts import checkpoint_layout, consumequeue_layout, index_layout
from schemas.layouts import commitlog_layout as layout
from schemas.layouts.dledger_layout import DATA, HEADER_BYTES
from schemas.layouts.entries import STORED_ENTRY_DTYPE
from schemas.layouts.timer_layout import TIMER_TOPIC
from schemas.rows import Row
from store_io.base.compiled.machine import masked_crc32
from store_io.base.java.java_compat import string_hash

RELEASE = "5.3.3"  # 5.4.0 and later would put a key more for each message that has tags
CHUNK_BYTES = 32 << 20
POOL_BYTES = 1 << 20  # random bytes that bodies are taken from, plus the largest body
FIRST_STORE_TIME = 1_700_000_000_000
MESSAGES_PER_MILLISECOND = 16

_HEAD_BYTES = layout.BODY_POSITION
_TAGS = ("TagA", "TagB", "TagC", "TagD")
_UNIQ_HEAD = b"UNIQ_KEY\x010A00000100002A9F"
_KEYS_HEAD = b"\x02KEYS\x01order-"
_TAGS_HEAD = b"\x02TAGS\x01"
_TAIL = b"\x02WAIT\x01true\x02"
_UNIQ_DIGITS, _KEY_DIGITS, _TAG_BYTES = 16, 12, 4
PROPERTIES_BYTES = len(_UNIQ_HEAD) + _UNIQ_DIGITS + len(_KEYS_HEAD) + _KEY_DIGITS + len(_TAGS_HEAD) + _TAG_BYTES + len(_TAIL)
_UNIQ_AT = 9  # where UNIQ_KEY's value begins in the properties

_ROW_DTYPE = np.dtype(
    [
        ("queue", "i4"),
        ("size", "i4"),
        ("queue_offset", "i8"),
        ("phy_offset", "i8"),
        ("store_time", "i8"),
        ("tags_code", "i8"),
        ("uniq_hash", "i4"),
        ("key_hash", "i4"),
    ]
)


@dataclass(frozen=True)
class SampleStore:
    """The store to make. Sizes in bytes.

    bodies: the nominal body size of each segment's messages; sizes are spread evenly from half of it to half as much again.
    last_bytes: how much of the last segment is written, the rest stays zero; None: all of it.
    """

    bodies: Sequence[int]
    segment_bytes: int = layout.DEFAULT_SEGMENT_BYTES
    last_bytes: int | None = None
    topics: int = 20
    queues: int = 8
    queue_file_bytes: int = consumequeue_layout.DEFAULT_FILE_BYTES
    index_slots: int = index_layout.DEFAULT_HASH_SLOTS
    index_max: int = index_layout.DEFAULT_MAX_INDEX
    chunk_bytes: int = CHUNK_BYTES
    kind: str = PLAIN
    timers: int = 0  # of the kind with timers: how many wait, in a segment of their own

    def topic(self, number: int) -> str:
        """Name of a topic; all of a store are of one length."""
        return f"SampleTopic{number:0{max(2, len(str(self.topics - 1)))}d}"


def sample_pieces(store: SampleStore) -> Iterator[Piece | Pairs]:
    """Yield the store's files. In memory are one chunk, what is derived from it, and the slots of one index file."""
    names = [store.topic(number) for number in range(store.topics)]
    (texts, hashes, pool, offsets), chunk, rows = _given(store, names)
    index = _IndexWriter(store)
    in_ledger = store.kind == LEDGER
    head, folder = (HEADER_BYTES, f"{LEDGER_FOLDER}/{DATA}") if in_ledger else (0, "commitlog")
    keyed = KeyedQueues() if store.kind == ROCKSDB else None
    number = 0
    last_time = 0
    for segment, body in enumerate(store.bodies):
        base = segment * store.segment_bytes
        path = f"{folder}/{base:020d}"
        is_last = segment + 1 == len(store.bodies)
        end = store.last_bytes if is_last and store.last_bytes is not None else store.segment_bytes
        position, done = 0, False
        while not done:
            used, count, done = _fill(
                chunk, base, position, end, body, number, store.queues, texts, hashes, pool, offsets, rows, head
            )
            if in_ledger:
                put_headers(chunk, base + position, rows[:count], number)
                yield from ledger_units(rows[:count], number)
            number += count
            yield Piece(path, store.segment_bytes, position, chunk[:used])
            position += used
            if count:
                yield from _queue_pieces(store, names, rows[:count], keyed)
                yield from index.put(rows[:count])
                last_time = int(rows[count - 1]["store_time"])
        if end == store.segment_bytes:
            filler = [-1, end - position] if in_ledger else [end - position, layout.MAGIC_BLANK]
            yield Piece(path, store.segment_bytes, position, np.array(filler, ">i4").view(np.uint8))
    if store.timers:
        last_time += 1
        yield from _timer_pieces(store, last_time, index)
    yield from index.close()
    if in_ledger:
        yield from ledger_texts(number)
    if keyed is not None:
        yield keyed.close()
    if store.kind == CONTROLLER:
        yield first_epoch()
    yield from _small_files(store, names, last_time, index.last_full_time)


def _given(store: SampleStore, names: Sequence[str]) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Return (topics, bodies and next queue offsets for `_fill`; room for a chunk of bytes; room for its messages' rows)."""
    texts = np.array([list(name.encode()) for name in names], np.uint8)
    hashes = np.array([string_hash(name + "#") for name in names], np.int64)
    pool = np.random.default_rng(5).integers(0, 256, POOL_BYTES + 2 * max(store.bodies), np.uint8)
    offsets = np.zeros(store.topics * store.queues, np.int64)
    largest = HEADER_BYTES + _HEAD_BYTES + 2 * max(store.bodies) + 4 + texts.shape[1] + PROPERTIES_BYTES
    chunk = np.zeros(max(store.chunk_bytes, largest), np.uint8)
    rows = np.zeros(len(chunk) // (layout.MIN_SIZE_V1_BYTES + PROPERTIES_BYTES) + 1, _ROW_DTYPE)
    return (texts, hashes, pool, offsets), chunk, rows


def segment_parts(store: SampleStore) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield (position, bytes, a row for each message) of one part of the store's first segment after the other.

    Each part holds until the next is made.
    """
    names = [store.topic(number) for number in range(store.topics)]
    (texts, hashes, pool, offsets), chunk, rows = _given(store, names)
    position, number, done = 0, 0, False
    while not done:
        used, count, done = _fill(
            chunk, 0, position, store.segment_bytes, store.bodies[0], number, store.queues, texts, hashes, pool, offsets, rows, 0
        )
        yield position, chunk[:used], rows[:count]
        position, number = position + used, number + count


def _timer_pieces(store: SampleStore, store_time: int, index: _IndexWriter) -> Iterator[Piece]:
    """Yield a segment of timer messages with what is derived from them."""
    base, topic = len(store.bodies) * store.segment_bytes, store.topic(0)
    made = timer_messages(base, store.timers, store_time, topic)
    yield Piece(f"commitlog/{base:020d}", store.segment_bytes, 0, made.data)
    yield from _entry_pieces(store, f"consumequeue/{TIMER_TOPIC}/0", 0, made.entries())
    rows = np.zeros(store.timers, _ROW_DTYPE)
    rows["phy_offset"], rows["store_time"] = made.phy_offsets, store_time
    _hash_rows(made.data, made.size, np.array([*made.uniq, *made.key]), string_hash(TIMER_TOPIC + "#"), rows)
    yield from index.put(rows)
    yield from made.files(topic)


def _small_files(store: SampleStore, names: Sequence[str], last_time: int, index_time: int) -> Iterator[Piece]:
    logics_time = 0 if store.kind == ROCKSDB else last_time  # queues in RocksDB set none
    fields = np.array([last_time, logics_time, index_time], ">i8").view(np.uint8)
    yield Piece(checkpoint_layout.CHECKPOINT_FILE, checkpoint_layout.FILE_BYTES, 0, fields)
    table = topic_table(dict.fromkeys(names, store.queues))
    version = {"dataVersion": {"counter": 1}} if store.kind == ROCKSDB else {}  # else its tables' database takes no topic
    for path, text in (("config/topics.json", json.dumps({**version, "topicConfigTable": table})), ("lock", "lock")):
        yield small_file(path, text.encode())


def topic_table(queues: Mapping[str, int]) -> Row:
    """Return the table in config/topics.json of topics with so many queues."""
    row = {"perm": 6, "topicFilterType": "SINGLE_TAG"}
    return {name: {"topicName": name, "readQueueNums": count, "writeQueueNums": count, **row} for name, count in queues.items()}


# ---- messages --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _mix(value):  # type: ignore[no-untyped-def]
    """Return splitmix64 of a number: what is random about a message depends on nothing but its number."""
    value = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True)
def _put(out, at, value, size):  # type: ignore[no-untyped-def]
    for i in range(size):
        out[at + i] = (value >> (8 * (size - 1 - i))) & 0xFF


@njit(cache=True, nogil=True)
def _copy(out, at, data):  # type: ignore[no-untyped-def]
    for i in range(len(data)):
        out[at + i] = data[i]
    return at + len(data)


@njit(cache=True, nogil=True)
def _hash(out, low, high, value):  # type: ignore[no-untyped-def]
    """Return IndexFile.indexKeyHashMethod of a key, continued from the hash of what precedes it."""
    for i in range(low, high):
        value = (value * 31 + out[i]) & 0xFFFFFFFF
    if value >= 0x80000000:
        value = 0x100000000 - value
    return np.int32(value) if value < 0x80000000 else np.int32(0)


@njit(cache=True, nogil=True)
def _digits(out, at, value, base, count):  # type: ignore[no-untyped-def]
    for i in range(count - 1, -1, -1):
        digit = np.int64(value % np.uint64(base))
        out[at + i] = digit + 48 if digit < 10 else digit + 55
        value //= np.uint64(base)
    return at + count


@njit(cache=True, nogil=True)
def _fill(out, base, position, end, body, number, queues, texts, hashes, pool, offsets, rows, head):  # type: ignore[no-untyped-def]
    """Fill `out` with messages from `number` on. Gives (bytes, messages, whether none fits into the segment any more).

    end: the position up to which the segment may be written. offsets: the next queue offset of each queue; updated.
    head: how many bytes to leave before each message.
    """
    at = count = 0
    topic_bytes = texts.shape[1]
    while True:
        random = _mix(number + count)
        queue = np.int64(random % np.uint64(len(offsets)))
        size = body // 2 + np.int64((random >> np.uint64(20)) % np.uint64(body + 1))
        tag = np.int64(random >> np.uint64(62))
        total = _HEAD_BYTES + size + 1 + topic_bytes + 2 + PROPERTIES_BYTES
        if position + at + head + total + layout.FRAME_BYTES > end:
            return at, count, True
        if at + head + total > len(out) or count == len(rows):
            return at, count, False
        at += head
        topic = queue // queues
        store_time = FIRST_STORE_TIME + (number + count) // MESSAGES_PER_MILLISECOND
        phy_offset = base + position + at
        place = np.int64((random >> np.uint64(40)) % np.uint64(POOL_BYTES))
        body_at = at + _HEAD_BYTES
        out[body_at : body_at + size] = pool[place : place + size]
        _put(out, at, total, 4)
        _put(out, at + layout.MAGIC_POSITION, layout.MAGIC_V1, 4)
        _put(out, at + layout.BODY_CRC_POSITION, masked_crc32(out.ctypes.data + body_at, size) if size else 0, 4)
        _put(out, at + layout.QUEUE_ID_POSITION, queue % queues, 4)
        _put(out, at + layout.FLAG_POSITION, 0, 4)
        _put(out, at + layout.QUEUE_OFFSET_POSITION, offsets[queue], 8)
        _put(out, at + layout.PHY_OFFSET_POSITION, phy_offset, 8)
        _put(out, at + layout.SYS_FLAG_POSITION, 0, 4)
        _put(out, at + layout.BORN_TIMESTAMP_POSITION, store_time - 2, 8)
        _put(out, at + layout.BORN_HOST_POSITION, 0x0A000002_0000C350, 8)  # 10.0.0.2:50000
        _put(out, at + layout.STORE_TIMESTAMP_POSITION, store_time, 8)
        _put(out, at + layout.STORE_HOST_POSITION, 0x0A000001_00002A9F, 8)  # 10.0.0.1:10911
        _put(out, at + layout.RECONSUME_TIMES_POSITION, 0, 4)
        _put(out, at + layout.PREPARED_OFFSET_POSITION, 0, 8)
        _put(out, at + layout.BODY_LENGTH_POSITION, size, 4)
        next_at = body_at + size
        out[next_at] = topic_bytes
        next_at = _copy(out, next_at + 1, texts[topic])
        _put(out, next_at, PROPERTIES_BYTES, 2)
        properties = next_at + 2
        next_at = _digits(out, _copy(out, properties, _UNIQ_TEXT), _mix(random), 16, _UNIQ_DIGITS)
        uniq_end = next_at
        next_at = _copy(out, next_at, _KEYS_TEXT)
        key_at = next_at - 6  # "order-"
        next_at = _digits(out, next_at, np.uint64(number + count), 10, _KEY_DIGITS)
        key_end = next_at
        next_at = _copy(out, _copy(out, next_at, _TAGS_TEXT), _TAG_TEXTS[tag])
        next_at = _copy(out, next_at, _TAIL_TEXT)
        row = rows[count]
        row.queue = queue
        row.size = total
        row.queue_offset = offsets[queue]
        row.phy_offset = phy_offset
        row.store_time = store_time
        row.tags_code = _TAG_HASHES[tag]
        row.uniq_hash = _hash(out, properties + _UNIQ_AT, uniq_end, hashes[topic])
        row.key_hash = _hash(out, key_at, key_end, hashes[topic])
        offsets[queue] += 1
        at += total
        count += 1


@njit(cache=True, nogil=True)
def _hash_rows(data, size, texts, start, rows):  # type: ignore[no-untyped-def]
    """Compute the hashes of both keys of records of one size.

    texts: the places of the two in the first record, [begin, end) each.
    """
    for number in range(len(rows)):
        at = number * size
        rows[number].uniq_hash = _hash(data, at + texts[0], at + texts[1], start)
        rows[number].key_hash = _hash(data, at + texts[2], at + texts[3], start)


def _bytes(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


_UNIQ_TEXT, _KEYS_TEXT, _TAGS_TEXT, _TAIL_TEXT = _bytes(_UNIQ_HEAD), _bytes(_KEYS_HEAD), _bytes(_TAGS_HEAD), _bytes(_TAIL)
_TAG_TEXTS = np.array([list(tag.encode()) for tag in _TAGS], np.uint8)
_TAG_HASHES = np.array([string_hash(tag) for tag in _TAGS], np.int64)


# ---- what is derived from them ---------------------------------------------------------------------------------------


def _queue_pieces(
    store: SampleStore, names: Sequence[str], rows: np.ndarray, keyed: KeyedQueues | None
) -> Iterator[Piece | Pairs]:
    rows = rows[np.argsort(rows["queue"], kind="stable")]
    entries = np.empty(len(rows), STORED_ENTRY_DTYPE)
    for name in STORED_ENTRY_DTYPE.names or ():
        entries[name] = rows[name]
    queues, starts = np.unique(rows["queue"], return_index=True)
    for queue, first, last in zip(queues.tolist(), starts.tolist(), [*starts.tolist()[1:], len(rows)], strict=True):
        topic, queue_id = divmod(queue, store.queues)
        if keyed is not None:
            yield keyed.put((names[topic], queue_id), rows[first:last])
            continue
        folder = f"consumequeue/{names[topic]}/{queue_id}"
        yield from _entry_pieces(store, folder, int(rows[first]["queue_offset"]), entries[first:last])


def _entry_pieces(store: SampleStore, folder: str, number: int, entries: np.ndarray) -> Iterator[Piece]:
    """Yield entries that follow one another from this number on, file by file."""
    at, data, file_bytes = number * consumequeue_layout.ENTRY_BYTES, entries.view(np.uint8), store.queue_file_bytes
    while len(data):
        start = at - at % file_bytes
        part = data[: start + file_bytes - at]
        yield Piece(f"{folder}/{start:020d}", file_bytes, at - start, part)
        at, data = at + len(part), data[len(part) :]


_BEGIN_TIME, _END_TIME, _BEGIN_PHY, _END_PHY, _USED_SLOTS, _NEXT = range(6)


@njit(cache=True, nogil=True)
def _put_keys(rows, first, slots, most, header, entries):  # type: ignore[no-untyped-def]
    """Put the keys from number `first` on, two a message, as IndexFile.putKey; return the first without room."""
    used = 0
    for number in range(first, 2 * len(rows)):
        if header[_NEXT] >= most:
            return number
        row = rows[number // 2]
        key_hash = np.int64(row.uniq_hash if number % 2 == 0 else row.key_hash)
        slot = key_hash % len(slots)
        previous = np.int64(slots[slot])
        seconds = (row.store_time - header[_BEGIN_TIME]) // 1000 if header[_BEGIN_TIME] > 0 else np.int64(0)
        _put(entries, used, key_hash, 4)
        _put(entries, used + 4, row.phy_offset, 8)
        _put(entries, used + 12, seconds, 4)
        _put(entries, used + 16, previous, 4)
        used += index_layout.ENTRY_BYTES
        slots[slot] = header[_NEXT]
        if header[_NEXT] <= 1:
            header[_BEGIN_TIME] = row.store_time
            header[_BEGIN_PHY] = row.phy_offset
        if previous == 0:
            header[_USED_SLOTS] += 1
        header[_NEXT] += 1
        header[_END_TIME] = row.store_time
        header[_END_PHY] = row.phy_offset
    return 2 * len(rows)


class _IndexWriter:
    """The index files, one after the other."""

    def __init__(self, store: SampleStore):
        self._store = store
        self._path = ""
        self._files = 0
        self._slots = np.zeros(store.index_slots, np.int32)
        self._header = np.zeros(6, np.int64)
        self._first_entry = index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * store.index_slots
        self._file_bytes = self._first_entry + index_layout.ENTRY_BYTES * store.index_max
        self.last_full_time = 0

    def put(self, rows: np.ndarray) -> Iterator[Piece]:
        """Yield the entries of these messages, and the heads of files that they fill."""
        entries = np.empty(2 * len(rows) * index_layout.ENTRY_BYTES, np.uint8)
        number = 0
        while number < 2 * len(rows):
            if not self._path or self._header[_NEXT] >= self._store.index_max:
                yield from self.close()
                self._begin(int(rows[number // 2]["store_time"]))
            first, entry = number, int(self._header[_NEXT])
            number = _put_keys(rows, first, self._slots, self._store.index_max, self._header, entries)
            place = self._first_entry + index_layout.ENTRY_BYTES * entry
            yield Piece(self._path, self._file_bytes, place, entries[: (number - first) * index_layout.ENTRY_BYTES])

    def _begin(self, store_time: int) -> None:
        """Begin a new file with the times of the file before (formats.md 6)."""
        stamp = store_time + self._files
        name = time.strftime("%Y%m%d%H%M%S", time.gmtime(stamp // 1000)) + f"{stamp % 1000:03d}"
        if self._files:
            self.last_full_time = int(self._header[_END_TIME])
        self._path, self._files = f"index/{name}", self._files + 1
        self._slots[:] = 0
        self._header[_BEGIN_TIME], self._header[_BEGIN_PHY] = self._header[_END_TIME], self._header[_END_PHY]
        self._header[_USED_SLOTS], self._header[_NEXT] = 0, 1

    def close(self) -> Iterator[Piece]:
        """Yield the header and slots of the last file, if there is one."""
        if self._path:
            header = np.frombuffer(struct.pack(index_layout.HEADER_FORMAT, *self._header.tolist()), np.uint8)
            yield Piece(self._path, self._file_bytes, 0, np.concatenate([header, self._slots.astype(">i4").view(np.uint8)]))
