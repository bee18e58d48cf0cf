"""The additions of a sample store of another kind than a plain one: DLedger's entries, queues in RocksDB, timers, epochs.

`sample_store` asks for these. Nothing is written here, and the same description gives the same bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.layouts import dledger_layout, rocksdb_layout, timer_layout
from schemas.layouts.entries import SLOT_DTYPE, STORED_ENTRY_DTYPE, STORED_KEYED_ENTRY_DTYPE, UNIT_DTYPE
from schemas.layouts.store_names import EPOCH_FILE, TIMER_LOG
from schemas.rows import QueueKey
from store_io.base.java.java_compat import string_hash
from store_io.broker.epochs import Epoch
from store_io.kinds.controller.controller_files import epoch_text
from store_io.log.entries.queue_keys import entry_key, mark_key, offset_key, queue_prefix

PLAIN, CONTROLLER, LEDGER, ROCKSDB, TIMERS = KINDS = ("plain", "controller", "dledger", "rocksdb", "timers")
CONF = {
    PLAIN: "",
    CONTROLLER: "enableControllerMode=true\n",
    LEDGER: "enableDLegerCommitLog=true\ndLegerGroup=sample\ndLegerSelfId=n0\ndLegerPeers=n0-127.0.0.1:40911\n",
    ROCKSDB: "storeType=defaultRocksDB\n",
    TIMERS: "",
}  # what its broker.conf says beside the sizes
FAMILIES = (rocksdb_layout.ENTRY_FAMILY, rocksdb_layout.OFFSET_FAMILY)
LEDGER_FOLDER = f"{dledger_layout.FOLDER_PREFIX}n0"
TIMER_BODY_BYTES = 64
TIMER_SECONDS = 3600  # over which they are due


@dataclass(frozen=True)
class Piece:
    """A piece of the file `path`: `data` belongs at `position`. The file has `file_bytes` in all and is zero outside of pieces.

    The data are good until the next piece is asked for.
    """

    path: str
    file_bytes: int
    position: int
    data: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """Keys and values for a family of the database in this folder."""

    folder: str
    family: str
    pairs: Sequence[tuple[bytes, bytes]]


def small_file(path: str, text: bytes, file_bytes: int = 0) -> Piece:
    """Return a file of these bytes, and of zeros after them."""
    return Piece(path, file_bytes or len(text), 0, np.frombuffer(text, np.uint8))


# ---- DLedger ---------------------------------------------------------------------------------------------------------


def put_headers(chunk: np.ndarray, start: int, rows: np.ndarray, number: int) -> None:
    """Write the entries' headers before the messages of these rows. chunk: begins at physical offset `start`."""
    headers = np.zeros(len(rows), dledger_layout.HEADER_DTYPE)
    headers["magic"], headers["size"] = dledger_layout.MAGIC, rows["size"] + dledger_layout.HEADER_BYTES
    headers["index"] = number + np.arange(len(rows))
    headers["pos"], headers["body_size"] = rows["phy_offset"] - dledger_layout.HEADER_BYTES, rows["size"]
    places = (rows["phy_offset"] - dledger_layout.HEADER_BYTES - start)[:, None] + np.arange(dledger_layout.HEADER_BYTES)
    chunk[places] = headers.view(np.uint8).reshape(len(rows), -1)


def ledger_units(rows: np.ndarray, number: int) -> Iterator[Piece]:
    """Yield the index units of these entries."""
    units = np.zeros(len(rows), dledger_layout.UNIT_DTYPE)
    units["magic"], units["pos"] = dledger_layout.MAGIC, rows["phy_offset"] - dledger_layout.HEADER_BYTES
    units["size"], units["index"] = rows["size"] + dledger_layout.HEADER_BYTES, number + np.arange(len(rows))
    at, data = number * dledger_layout.UNIT_BYTES, units.view(np.uint8)
    while len(data):
        start = at - at % dledger_layout.INDEX_FILE_BYTES
        part = data[: start + dledger_layout.INDEX_FILE_BYTES - at]
        path = f"{LEDGER_FOLDER}/{dledger_layout.INDEX}/{start:020d}"
        yield Piece(path, dledger_layout.INDEX_FILE_BYTES, at - start, part)
        at, data = at + len(part), data[len(part) :]


def ledger_texts(entries: int) -> Iterator[Piece]:
    """Yield the group's two texts, once it has so many entries, all committed."""
    last = entries - 1
    said = f"{dledger_layout.COMMITTED_INDEX}={last}\n{dledger_layout.END_INDEX}={last}\n"
    yield small_file(f"{LEDGER_FOLDER}/{dledger_layout.CHECKPOINT}", said.encode())
    term = f"{dledger_layout.VOTE_LEADER}=n0\n{dledger_layout.CURRENT_TERM}=0\n"
    yield small_file(f"{LEDGER_FOLDER}/{dledger_layout.TERM}", term.encode())


# ---- queues in RocksDB -----------------------------------------------------------------------------------------------


class KeyedQueues:
    """The entries of all queues as keys and values, and in the end the queues' ends."""

    def __init__(self) -> None:
        self._ends: dict[QueueKey, tuple[int, int]] = {}
        self._mark = 0

    def put(self, key: QueueKey, rows: np.ndarray) -> Pairs:
        """Return the entries of one queue's messages, in their order."""
        values = np.empty(len(rows), STORED_KEYED_ENTRY_DTYPE)
        for name in STORED_KEYED_ENTRY_DTYPE.names or ():
            values[name] = rows[name]
        prefix, data, size = queue_prefix(key), values.tobytes(), STORED_KEYED_ENTRY_DTYPE.itemsize
        first, last = int(rows["queue_offset"][0]), rows[-1]
        self._ends[key] = int(last["phy_offset"]), int(last["queue_offset"])
        self._mark = max(self._mark, int(last["phy_offset"] + last["size"]))
        pairs = [(entry_key(prefix, first + n), data[n * size : (n + 1) * size]) for n in range(len(rows))]
        return Pairs(rocksdb_layout.FOLDER, rocksdb_layout.ENTRY_FAMILY, pairs)

    def close(self) -> Pairs:
        """Return the ends, and the mark."""
        pairs = [(offset_key(rocksdb_layout.MAXIMUM, key), struct.pack(">qq", *end)) for key, end in sorted(self._ends.items())]
        return Pairs(rocksdb_layout.FOLDER, rocksdb_layout.OFFSET_FAMILY, [*pairs, (mark_key(), struct.pack(">q", self._mark))])


# ---- controller mode -------------------------------------------------------------------------------------------------


def first_epoch() -> Piece:
    """Return the epoch file of a master that there always was."""
    return small_file(EPOCH_FILE, epoch_text([Epoch(1, 0)]))


# ---- timers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimerMessages:
    """Timer messages that wait.

    data: their records, side by side, of `size` bytes each, the first at physical offset `start`.
    uniq, key: the places of the two key texts in the first record, [begin, end).
    """

    start: int
    size: int
    count: int
    first_time: int
    data: np.ndarray
    uniq: tuple[int, int]
    key: tuple[int, int]

    @property
    def phy_offsets(self) -> np.ndarray:
        return self.start + np.arange(self.count, dtype=np.int64) * self.size

    def entries(self) -> np.ndarray:
        """Return the entries of their queue."""
        found = np.zeros(self.count, STORED_ENTRY_DTYPE)
        found["phy_offset"], found["size"] = self.phy_offsets, self.size
        return found

    def files(self, topic: str) -> Iterator[Piece]:
        """Yield timer log, wheel and checkpoint, when the timer has taken them all and delivered none. topic: their real one."""
        numbers = np.arange(self.count, dtype=np.int64)
        slots = min(self.count, TIMER_SECONDS)
        units = np.zeros(self.count, UNIT_DTYPE)
        units["size"], units["magic"] = timer_layout.UNIT_BYTES, timer_layout.MAGIC_UNIT
        units["previous"] = np.where(numbers < slots, -1, (numbers - slots) * timer_layout.UNIT_BYTES)
        units["write_time"] = self.first_time
        units["delay"] = due_times(self.first_time, self.count) - self.first_time
        units["phy_offset"], units["message_size"], units["topic_hash"] = self.phy_offsets, self.size, string_hash(topic)
        data = units.view(np.uint8)
        assert len(data) < timer_layout.LOG_FILE_BYTES, "one timer log file"
        yield Piece(f"{TIMER_LOG}/{0:020d}", timer_layout.LOG_FILE_BYTES, 0, data)
        wheel = np.zeros(timer_layout.SLOTS, SLOT_DTYPE)
        seconds = due_times(self.first_time, slots) // 1000
        of_slot = numbers[:slots]
        last = of_slot + (self.count - 1 - of_slot) // slots * slots
        wheel["time"][seconds % timer_layout.SLOTS] = seconds
        wheel["first"][seconds % timer_layout.SLOTS] = of_slot * timer_layout.UNIT_BYTES
        wheel["last"][seconds % timer_layout.SLOTS] = last * timer_layout.UNIT_BYTES
        wheel["number"][seconds % timer_layout.SLOTS] = (last - of_slot) // slots + 1
        yield Piece(timer_layout.TIMER_WHEEL, timer_layout.WHEEL_BYTES, 0, wheel.view(np.uint8))
        fields = struct.pack(timer_layout.CHECK_FIELDS_FORMAT, self.first_time, len(data), self.count, self.count)
        yield small_file(timer_layout.TIMER_CHECK, fields, timer_layout.CHECK_BYTES)


def due_times(first_time: int, count: int) -> np.ndarray:
    """Return when each timer is due, ms: one second after the other, and again."""
    begin = first_time // 1000 * 1000 + 60_000
    found: np.ndarray = begin + np.arange(count, dtype=np.int64) % TIMER_SECONDS * 1000
    return found


def timer_messages(start: int, count: int, store_time: int, topic: str) -> TimerMessages:
    """Return `count` timer messages, side by side from physical offset `start` on.

    topic: their real one.
    """
    body, own = layout.BODY_POSITION, timer_layout.TIMER_TOPIC.encode()
    head = b"UNIQ_KEY\x01"
    properties = head + b"0" * 32 + b"\x02KEYS\x01timer-" + b"0" * 12 + b"\x02TIMER_OUT_MS\x01" + b"0" * 13
    properties += b"\x02REAL_TOPIC\x01" + topic.encode() + b"\x02REAL_QID\x010\x02"
    size = body + TIMER_BODY_BYTES + 1 + len(own) + 2 + len(properties)
    template = bytearray(size)
    hosts = (0x0A000002_0000C350, 0x0A000001_00002A9F)  # 10.0.0.2:50000, 10.0.0.1:10911
    for at, form, value in (
        (0, ">i", size), (layout.MAGIC_POSITION, ">i", layout.MAGIC_V1), (layout.BORN_TIMESTAMP_POSITION, ">q", store_time - 2),
        (layout.BORN_HOST_POSITION, ">q", hosts[0]), (layout.STORE_TIMESTAMP_POSITION, ">q", store_time),
        (layout.STORE_HOST_POSITION, ">q", hosts[1]), (layout.BODY_LENGTH_POSITION, ">i", TIMER_BODY_BYTES),
    ):  # fmt: skip
        struct.pack_into(form, template, at, value)
    at = body + TIMER_BODY_BYTES
    template[at:] = bytes([len(own)]) + own + struct.pack(">h", len(properties)) + properties
    at = size - len(properties)
    rows = np.tile(np.frombuffer(bytes(template), np.uint8), (count, 1))
    rows[:, body : body + TIMER_BODY_BYTES] = np.random.default_rng(7).integers(0, 256, (count, TIMER_BODY_BYTES), np.uint8)
    crcs = np.array([zlib.crc32(row.data) & 0x7FFFFFFF for row in rows[:, body : body + TIMER_BODY_BYTES].copy()], ">i4")
    numbers = np.arange(count, dtype=np.int64)
    uniq, key = (at + len(head), at + len(head) + 32), (at + properties.index(b"timer-"), at + properties.index(b"\x02TIMER_OUT"))
    out = at + properties.index(b"TIMER_OUT_MS\x01") + len(b"TIMER_OUT_MS\x01")
    texts = (
        (uniq[0], b"".join(b"%032X" % n for n in range(count))),
        (key[1] - 12, b"".join(b"%012d" % n for n in range(count))),
        (out, b"".join(b"%013d" % n for n in due_times(store_time, count).tolist())),
        (layout.BODY_CRC_POSITION, crcs.tobytes()),
        (layout.QUEUE_OFFSET_POSITION, numbers.astype(">i8").tobytes()),
        (layout.PHY_OFFSET_POSITION, (start + numbers * size).astype(">i8").tobytes()),
    )
    for low, data in texts:
        columns = np.frombuffer(data, np.uint8).reshape(count, -1)
        rows[:, low : low + columns.shape[1]] = columns
    return TimerMessages(start, size, count, store_time, rows.reshape(-1), uniq, key)
