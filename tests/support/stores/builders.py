"""Stores written byte by byte, importing nothing of the project: a second witness of the formats.

`StoreBuilder` appends messages as a broker of a release does (queue offsets, fillers, batches, pre-blank, index chains) and
writes a whole store directory, after a clean stop or after a kill with messages not yet dispatched. Sizes are arguments.
`Dispatcher` is the plain reference dispatch: records in, ConsumeQueue, BatchConsumeQueue, ext and index files out. `decode`
and `walk` read records back; `encode` of what they read gives the same bytes, for real brokers' records too.

Source: RocketMQ's MessageExtEncoder, CommitLog.DefaultAppendMessageCallback, ConsumeQueue, ConsumeQueueExt, BatchConsumeQueue,
IndexFile, IndexService and StoreCheckpoint, 4.8.0 to 5.5.0. All integers big-endian and signed.
"""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

V1, V2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
BORN_V6, STORE_V6 = 0x10, 0x20
PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC
NEED_UNWRAP, INNER_BATCH = 0x40, 0x80
COMPRESSED = {"zlib-old": 0x1, "lz4": 0x101, "zstd": 0x201, "zlib": 0x301}
HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"
DELAYS_MS = [1000 * n for n in (1, 5, 10, 30, *range(60, 660, 60), 1200, 1800, 3600, 7200)]
EXT_BASE = -(1 << 63)

# name -> (position with two IPv4 hosts, format); IPv6 hosts move what follows them by 12 bytes each
FIELDS = {
    "size": (0, ">i"),
    "magic": (4, ">I"),
    "bodyCRC": (8, ">i"),
    "queueId": (12, ">i"),
    "flag": (16, ">i"),
    "queueOffset": (20, ">q"),
    "physOffset": (28, ">q"),
    "sysFlag": (36, ">i"),
    "bornTimestamp": (40, ">q"),
    "bornHost": (48, ""),
    "storeTimestamp": (56, ">q"),
    "storeHost": (64, ""),
    "reconsumeTimes": (72, ">i"),
    "preparedOffset": (76, ">q"),
    "bodyLength": (84, ">i"),
}
BEHIND_BORN_HOST = ("storeTimestamp", "storeHost", "reconsumeTimes", "preparedOffset", "bodyLength")
BEHIND_STORE_HOST = ("reconsumeTimes", "preparedOffset", "bodyLength")


def java_hash(text: str) -> int:
    """String.hashCode over UTF-16 units."""
    h = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        h = (31 * h + unit) % (1 << 32)
    return h - (1 << 32) if h >= 1 << 31 else h


def index_hash(key: str) -> int:
    """abs in Java's int arithmetic; what overflows becomes 0."""
    h = abs(java_hash(key))
    return 0 if h == 1 << 31 else h


def version_of(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def compress(body: bytes, kind: str) -> bytes:
    """The body as a producer with this compression type stores it (`COMPRESSED` has the flag bits)."""
    if kind == "lz4":
        import lz4.frame

        return bytes(lz4.frame.compress(body))
    if kind == "zstd":
        import zstandard

        return zstandard.ZstdCompressor().compress(body)
    return zlib.compress(body, 5)


def inner_body(bodies: Sequence[bytes]) -> bytes:
    """The body of an inner batch: small records without addresses."""
    return b"".join(struct.pack(">iiiii", 22 + len(b), 0, 0, 0, len(b)) + b + struct.pack(">h", 0) for b in bodies)


# ---- one record ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    """What a producer and a broker put into one record. None: the builder fills it in; a number is stored as it is.

    properties: further ones, in order, behind UNIQ_KEY, KEYS, TAGS.  lmq: multi-dispatch queues, their offsets are filled in.
    inner_count: > 0 makes it an inner batch (INNER_NUM, INNER_BASE).  raw_properties: the whole part, instead of all these.
    """

    topic: str = "TopicA"
    queue_id: int = 0
    body: bytes = b""
    tags: str | None = None
    keys: str | None = None
    uniq: str | None = None
    flag: int = 0
    sys_flag: int = 0  # transaction and compression bits; those for IPv6 hosts follow from the hosts
    born_time: int = 0
    store_time: int | None = None
    born_host: bytes = b"\x7f\x00\x00\x01\x00\x00\xc3\x50"  # address, int32 port: 8 or 20 bytes
    store_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
    reconsume_times: int = 0
    prepared_offset: int = 0
    properties: tuple[tuple[str, str], ...] = ()
    lmq: tuple[str, ...] = ()
    inner_count: int = 0
    property_crc: bool = False
    queue_offset: int | None = None
    phy_offset: int | None = None
    version: int | None = None
    raw_properties: bytes | None = None


@dataclass(frozen=True)
class Record:
    """One record as it stands in the CommitLog. `at`: where it lies; phy_offset: what it says."""

    at: int
    size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    phy_offset: int
    sys_flag: int
    born_time: int
    born_host: bytes
    store_time: int
    store_host: bytes
    reconsume_times: int
    prepared_offset: int
    body: bytes
    topic: str
    raw_properties: bytes

    @property
    def properties(self) -> dict[str, str]:
        """By the reader of 4.9.1 and later; the last of equal names wins."""
        return properties_of(self.raw_properties)

    @property
    def transaction(self) -> int:
        return self.sys_flag & 0xC


def properties_of(raw: bytes, release: str = "4.9.1") -> dict[str, str]:
    """As the reader of that release has them."""
    found = {}
    text = raw.decode("utf-8", "replace")
    if version_of(release) < (4, 9, 1):
        pairs = [item.rstrip("\x01").split("\x01") for item in text.split("\x02")]
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    at = 0
    while at < len(text):
        end = text.find("\x02", at)
        end = len(text) if end < 0 else end
        middle = text.find("\x01", at)
        if end - at >= 3 and at < middle < end - 1:
            found[text[at:middle]] = text[middle + 1 : end]
        at = end + 1
    return found


def pack_properties(pairs: Iterable[tuple[str, str]], closing: bool) -> bytes:
    parts = [f"{name}\x01{value}".encode() for name, value in pairs]
    return b"\x02".join(parts) + (b"\x02" if parts and closing else b"")


def encode(r: Record) -> bytes:
    """The record's bytes. Size, CRC and flags are written as they are in it, right or wrong."""
    topic = r.topic.encode()
    head = struct.pack(
        ">iIiiiqqiq", r.size, r.magic, r.body_crc, r.queue_id, r.flag, r.queue_offset, r.phy_offset, r.sys_flag, r.born_time
    )
    middle = (
        struct.pack(">q", r.store_time) + r.store_host + struct.pack(">iqi", r.reconsume_times, r.prepared_offset, len(r.body))
    )
    topic_length = struct.pack(">B" if r.magic == V1 else ">H", len(topic))
    return (
        head + r.born_host + middle + r.body + topic_length + topic + struct.pack(">H", len(r.raw_properties)) + r.raw_properties
    )


def decode(data: bytes | memoryview, position: int, base: int = 0) -> Record:
    """The record at `position` of a segment that begins at `base`. Raises ValueError or struct.error where there is none."""
    size, magic, crc, queue_id, flag, queue_offset, phy, sys_flag, born = struct.unpack_from(">iIiiiqqiq", data, position)
    if magic not in (V1, V2):
        raise ValueError(f"no record at {base + position}: magic {magic:08x}")
    at = position + 48

    def take(count: int) -> bytes:
        nonlocal at
        if count < 0 or at + count > len(data):
            raise ValueError(f"a part of the record at {base + position} leads out of the segment")
        at += count
        return bytes(data[at - count : at])

    born_host = take(20 if sys_flag & BORN_V6 else 8)
    (store_time,) = struct.unpack(">q", take(8))
    store_host = take(20 if sys_flag & STORE_V6 else 8)
    reconsume, prepared, body_length = struct.unpack(">iqi", take(16))
    body = take(max(body_length, 0))
    (topic_length,) = struct.unpack(">b" if magic == V1 else ">h", take(1 if magic == V1 else 2))
    topic = take(topic_length).decode()
    (properties_length,) = struct.unpack(">h", take(2))
    raw = take(max(properties_length, 0))
    if at - position != size:
        raise ValueError(f"the record at {base + position} says {size} bytes and has {at - position}")
    return Record(
        base + position, size, magic, crc, queue_id, flag, queue_offset, phy, sys_flag, born, born_host, store_time, store_host,
        reconsume, prepared, body, topic, raw,
    )  # fmt: skip


def walk(data: bytes | memoryview, base: int = 0) -> Iterator[Record]:
    """All records of a segment up to its filler or its end."""
    position = 0
    while position + 8 <= len(data) and struct.unpack_from(">I", data, position + 4)[0] in (V1, V2):
        record = decode(data, position, base)
        yield record
        position += record.size


def field_position(record: Record, name: str) -> tuple[int, int]:
    """(position in the record, bytes) of a field of `FIELDS`, or of body, topic, topicLength, props, propsLength."""
    moved = len(record.born_host) - 8, len(record.store_host) - 8
    body_at = 88 + sum(moved)
    topic_at = body_at + len(record.body) + (1 if record.magic == V1 else 2)
    props_at = topic_at + len(record.topic.encode()) + 2
    later = {
        "body": (body_at, len(record.body)),
        "topicLength": (body_at + len(record.body), topic_at - body_at - len(record.body)),
        "topic": (topic_at, len(record.topic.encode())),
        "propsLength": (props_at - 2, 2),
        "props": (props_at, len(record.raw_properties)),
    }
    if name in later:
        return later[name]
    position, form = FIELDS[name]
    position += moved[0] * (name in BEHIND_BORN_HOST) + moved[1] * (name in BEHIND_STORE_HOST)
    hosts = {"bornHost": len(record.born_host), "storeHost": len(record.store_host)}
    return position, hosts.get(name) or struct.calcsize(form)


def property_crc_text(crc: int) -> str:
    """Ten digits, least significant first."""
    return f"{crc:010d}"[::-1]


def tags_code(record: Record, delays_ms: Sequence[int] = tuple(DELAYS_MS), release: str = "4.9.1") -> int:
    """What a ConsumeQueue entry carries for it: hash of the tags, or the time a delayed message is due."""
    found = properties_of(record.raw_properties, release)
    if record.topic == SCHEDULE_TOPIC and "DELAY" in found and int(found["DELAY"]) > 0:
        return record.store_time + delays_ms[min(int(found["DELAY"]), len(delays_ms)) - 1]
    return java_hash(found["TAGS"]) if found.get("TAGS") else 0


# ---- derived files -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """The store's file sizes, as the settings of these names give them."""

    segment: int = 4096  # mappedFileSizeCommitLog
    queue_file: int = 400  # mappedFileSizeConsumeQueue
    ext_file: int = 1024  # mappedFileSizeConsumeQueueExt
    batch_file: int = 460  # mapperFileSizeBatchConsumeQueue
    slots: int = 20  # maxHashSlotNum
    index_max: int = 50  # maxIndexNum

    @property
    def index_file(self) -> int:
        return 40 + 4 * self.slots + 20 * self.index_max


@dataclass
class QueueFiles:
    """One queue: its files by start offset. `unit`: bytes of an entry."""

    unit: int
    file_size: int
    files: dict[int, bytearray] = field(default_factory=dict)
    end: int = 0  # byte offset behind the last entry
    ext: dict[int, bytearray] = field(default_factory=dict)
    ext_end: int = 0

    def append(self, entry: bytes, at_entry: int | None = None) -> None:
        if at_entry is not None and not self.files and at_entry:  # the slots before a queue's first entry
            self.end = at_entry * self.unit
            start = self.end - self.end % self.file_size
            self.files[start] = bytearray(self.file_size)
            for at in range(0, self.end - start, self.unit):
                struct.pack_into(">qiq", self.files[start], at, 0, 0x7FFFFFFF, 0)
        start = self.end - self.end % self.file_size
        if start not in self.files:
            self.files[start] = bytearray(self.file_size)
        self.files[start][self.end - start : self.end - start + self.unit] = entry
        self.end += self.unit

    def put_ext(self, code: int, store_time: int, bit_map: bytes, file_size: int) -> int:
        """The new unit's address."""
        unit = struct.pack(">hqqh", 20 + len(bit_map), code, store_time, len(bit_map)) + bit_map
        start = self.ext_end - self.ext_end % file_size
        page = self.ext.setdefault(start, bytearray(file_size))
        if len(unit) > file_size - (self.ext_end - start) - 4:
            struct.pack_into(">h", page, self.ext_end - start, -1)
            start = self.ext_end = start + file_size
            page = self.ext[start] = bytearray(file_size)
        page[self.ext_end - start : self.ext_end - start + len(unit)] = unit
        self.ext_end += len(unit)
        return EXT_BASE + self.ext_end - len(unit)

    def entries(self) -> list[tuple[int, bytes]]:
        """(entry number, bytes), pre-blank included."""
        found = []
        for start, data in sorted(self.files.items()):
            for at in range(start, min(start + self.file_size, self.end), self.unit):
                found.append((at // self.unit, bytes(data[at - start : at - start + self.unit])))
        return found


@dataclass
class IndexPage:
    """One index file in memory."""

    sizes: Sizes
    begin_time: int = 0
    end_time: int = 0
    begin_phy: int = 0
    end_phy: int = 0
    used_slots: int = 0
    next: int = 1
    slots: dict[int, int] = field(default_factory=dict)
    entries: list[tuple[int, int, int, int]] = field(default_factory=list)  # hash, phy_offset, seconds, previous

    def put(self, key: str, phy: int, store_time: int) -> bool:
        if self.next >= self.sizes.index_max:
            return False
        h = index_hash(key)
        slot = h % self.sizes.slots
        previous = self.slots.get(slot, 0)
        seconds = int((store_time - self.begin_time) / 1000) if self.begin_time > 0 else 0
        self.entries.append((h, phy, min(max(seconds, 0), 0x7FFFFFFF), previous))
        self.slots[slot] = self.next
        if self.next == 1:
            self.begin_phy, self.begin_time = phy, store_time
        self.used_slots += previous == 0
        self.next += 1
        self.end_phy, self.end_time = phy, store_time
        return True

    def to_bytes(self) -> bytes:
        data = bytearray(self.sizes.index_file)
        count = self.next if self.entries else 0
        times = self.begin_time, self.end_time, self.begin_phy, self.end_phy
        struct.pack_into(">qqqqii", data, 0, *times, self.used_slots, count)
        for slot, number in self.slots.items():
            struct.pack_into(">i", data, 40 + 4 * slot, number)
        for number, entry in enumerate(self.entries, 1):
            struct.pack_into(">iqii", data, 40 + 4 * self.sizes.slots + 20 * number, *entry)
        return bytes(data)


@dataclass
class Dispatcher:
    """Plain dispatch of records in log order, from an empty start: what healthy ConsumeQueue and index files hold.

    ext_bit_map: bytes of a bit map per entry when ConsumeQueueExt is on; None: off.
    """

    release: str = "5.3.3"
    sizes: Sizes = Sizes()
    batch_topics: frozenset[str] = frozenset()
    lmq: bool = False
    index: bool = True
    ext_bit_map: int | None = None
    delays_ms: tuple[int, ...] = tuple(DELAYS_MS)
    queues: dict[tuple[str, int], QueueFiles] = field(default_factory=dict)
    pages: list[IndexPage] = field(default_factory=list)
    last: Record | None = None  # the last one dispatched

    def put(self, record: Record) -> None:
        if record.transaction in (0, COMMIT):
            if record.topic in self.batch_topics:
                self._put_batch(record)
            else:
                self._put_entry(record, record.topic, record.queue_id, record.queue_offset)
                for name, queue_id, queue_offset in self.lmq_of(record):
                    self._put_entry(record, name, queue_id, queue_offset)
        if self.index:
            self._put_index(record)
        self.last = record

    def _put_entry(self, record: Record, topic: str, queue_id: int, queue_offset: int) -> None:
        queue = self.queues.setdefault((topic, queue_id), QueueFiles(20, self.sizes.queue_file))
        code = tags_code(record, self.delays_ms, self.release)
        if self.ext_bit_map is not None:
            bit_map = struct.pack(">Q", record.phy_offset * 0x9E3779B97F4A7C15 % (1 << 64)) * (self.ext_bit_map // 8 + 1)
            code = queue.put_ext(code, record.store_time, bit_map[: self.ext_bit_map], self.sizes.ext_file)
        queue.append(struct.pack(">qiq", record.phy_offset, record.size, code), queue_offset)

    def _put_batch(self, record: Record) -> None:
        queue = self.queues.setdefault((record.topic, record.queue_id), QueueFiles(46, self.sizes.batch_file))
        found = record.properties
        base, count = record.queue_offset, 1
        if "INNER_BASE" in found and "INNER_NUM" in found:
            base, count = int(found["INNER_BASE"]), int(found["INNER_NUM"])
        code = tags_code(record, self.delays_ms)
        queue.append(struct.pack(">qiqqqhii", record.phy_offset, record.size, code, record.store_time, base, count, -1, 0))

    def lmq_of(self, record: Record) -> list[tuple[str, int, int]]:
        """(topic, queue id, queue offset) of its multi-dispatch entries."""
        found, version = record.properties, version_of(self.release)
        if not self.lmq or "INNER_MULTI_DISPATCH" not in found or "INNER_MULTI_QUEUE_OFFSET" not in found:
            return []
        system = record.topic.startswith("rmq_sys_") if version >= (5, 2, 0) else record.topic == "rmq_sys_wheel_timer"
        if version >= (5, 1, 2) and (system or record.topic.startswith("%RETRY%") or record.topic == SCHEDULE_TOPIC):
            return []
        names, offsets = found["INNER_MULTI_DISPATCH"].split(","), found["INNER_MULTI_QUEUE_OFFSET"].split(",")
        if len(names) != len(offsets) or not all(o.isdigit() for o in offsets):
            return []
        pairs = [(n, o) for n, o in zip(names, offsets, strict=True) if version < (5, 1, 2) or "/" not in n]
        return [(n, 0 if n.startswith("%LMQ%") else record.queue_id, int(o)) for n, o in pairs]

    def index_keys(self, record: Record) -> list[str]:
        """The strings whose hashes are put, in order; none for a rollback message."""
        if record.transaction == ROLLBACK:
            return []
        found = properties_of(record.raw_properties, self.release)
        keys = [found["UNIQ_KEY"]] if "UNIQ_KEY" in found else []
        keys += [key for key in found.get("KEYS", "").split(" ") if key]
        if version_of(self.release) >= (5, 4, 0) and found.get("TAGS"):
            keys.append("T#" + found["TAGS"])
        return [f"{record.topic}#{key}" for key in keys]

    def _put_index(self, record: Record) -> None:
        page = self._page()
        for key in self.index_keys(record):
            if not page.put(key, record.phy_offset, record.store_time):
                page = self._page()
                page.put(key, record.phy_offset, record.store_time)

    def _page(self) -> IndexPage:
        if not self.pages:
            self.pages.append(IndexPage(self.sizes))
        elif self.pages[-1].next >= self.sizes.index_max:
            full = self.pages[-1]
            self.pages.append(IndexPage(self.sizes, full.end_time, full.end_time, full.end_phy, full.end_phy))
        return self.pages[-1]


# ---- a store -------------------------------------------------------------------------------------------------------


@dataclass
class Store:
    """A written store. `records`: all of them; `expected`: the dispatch of all of them, whatever was on disk at the end."""

    root: Path
    release: str
    sizes: Sizes
    broker_conf: str
    records: list[Record]
    expected: Dispatcher
    clean: bool

    def segment_of(self, record: Record) -> Path:
        return self.root / "commitlog" / f"{record.at - record.at % self.sizes.segment:020d}"

    def position_of(self, record: Record) -> int:
        return record.at % self.sizes.segment


class StoreBuilder:
    """Appends messages as a broker of this release does, then writes the directory.

    first_offset: physical offset of the first segment (retention took what was before): a multiple of the segment size.
    queue_starts: next queue offset of queues that do not begin at 0.  stale_fill: the bytes behind a filler's 8 are old
    ones, as 4.9.0 and older left them.  settings: further broker.conf lines.
    """

    def __init__(
        self,
        release: str = "5.3.3",
        sizes: Sizes | None = None,
        *,
        first_offset: int = 0,
        queue_starts: dict[tuple[str, int], int] | None = None,
        batch_topics: Iterable[str] = (),
        lmq: bool = False,
        index: bool = True,
        ext_bit_map: int | None = None,
        stale_fill: bool = False,
        start_time: int = 1_700_000_000_000,
        settings: dict[str, str] | None = None,
    ):
        self.release, self.sizes = release, sizes or Sizes()
        self.version = version_of(release)
        self.segments: dict[int, bytearray] = {}
        self.end = self.first_offset = first_offset
        self.next_offsets = dict(queue_starts or {})
        self.batch_topics, self.lmq, self.index, self.ext_bit_map = frozenset(batch_topics), lmq, index, ext_bit_map
        self.stale_fill, self.clock = stale_fill, start_time
        self.settings = dict(settings or {})
        self.records: list[Record] = []

    # -- appending

    def put(self, message: Message) -> Record:
        """Append one message; a filler first where it does not fit into the segment."""
        return self.put_batch([message])[0]

    def put_batch(self, messages: Sequence[Message]) -> list[Record]:
        """Append a client batch: consecutive records, all in one segment."""
        trial = [self._fill_in(m, at=0) for m in messages]
        total = sum(r.size for r in trial)
        if total + 8 > self.sizes.segment:
            raise ValueError(f"{total} bytes do not fit into a segment of {self.sizes.segment}")
        if total + 8 > self.room():
            self.roll()
        written = []
        for message in messages:
            record = self._seal(self._fill_in(message, self.end), message)
            self._append(encode(record))
            written.append(record)
            self._advance(message, record)
        self.records += written
        return written

    def room(self) -> int:
        """Bytes left in the current segment; 0 at a boundary."""
        return -(self.end - self.first_offset) % self.sizes.segment

    def roll(self) -> None:
        """Close the segment with a filler, if one is open."""
        left = self.room()
        if not left:
            return
        fill = struct.pack(">iI", left, BLANK)
        if self.stale_fill:
            segment = self.segments[self.end - self.end % self.sizes.segment]
            fill += bytes(segment[: left - 8])
        self._append(fill)
        self.end += self.room()

    def put_bytes(self, data: bytes) -> None:
        """Append bytes as they are (what no healthy broker wrote)."""
        self._append(data)

    def _append(self, data: bytes) -> None:
        start = self.end - self.end % self.sizes.segment
        segment = self.segments.setdefault(start, bytearray(self.sizes.segment))
        assert self.end - start + len(data) <= self.sizes.segment
        segment[self.end - start : self.end - start + len(data)] = data
        self.end += len(data)

    def _fill_in(self, m: Message, at: int) -> Record:
        sys_flag = m.sys_flag | BORN_V6 * (len(m.born_host) == 20) | STORE_V6 * (len(m.store_host) == 20)
        key = m.topic, m.queue_id
        queue_offset = m.queue_offset
        if queue_offset is None:
            queue_offset = 0 if sys_flag & 0xC in (PREPARED, ROLLBACK) else self.next_offsets.get(key, 0)
        pairs = [(n, v) for n, v in (("UNIQ_KEY", m.uniq), ("KEYS", m.keys), ("TAGS", m.tags)) if v is not None]
        pairs += m.properties
        if m.lmq:
            pairs += [("INNER_MULTI_DISPATCH", ",".join(m.lmq)), ("INNER_MULTI_QUEUE_OFFSET", self._lmq_offsets(m))]
        if m.inner_count:
            sys_flag |= NEED_UNWRAP | INNER_BATCH
            pairs += [("INNER_NUM", str(m.inner_count)), ("INNER_BASE", str(queue_offset))]
        closing = m.property_crc or not (4, 9) <= self.version < (5,)
        raw = pack_properties(pairs, closing) if m.raw_properties is None else m.raw_properties
        raw += b"__CRC32#\x01" + b"0" * 10 + b"\x02" if m.property_crc else b""
        magic = m.version
        if magic is None:
            magic = V2 if len(m.topic.encode("utf-16-be")) > 254 and self.version >= (5, 1, 0) else V1
        size = 75 + len(m.born_host) + len(m.store_host) + (magic == V2) + len(m.body) + len(m.topic.encode()) + len(raw)
        store_time = self.clock if m.store_time is None else m.store_time
        phy = at if m.phy_offset is None else m.phy_offset
        crc = zlib.crc32(m.body) & 0x7FFFFFFF if m.body else 0
        return Record(
            at, size, magic, crc, m.queue_id, m.flag, queue_offset, phy, sys_flag, m.born_time or store_time - 2, m.born_host,
            store_time, m.store_host, m.reconsume_times, m.prepared_offset, m.body, m.topic, raw,
        )  # fmt: skip

    def _seal(self, record: Record, message: Message) -> Record:
        """Fill in the property CRC, which covers all but itself."""
        if not message.property_crc:
            return record
        digits = property_crc_text(zlib.crc32(encode(record)[:-20]) & 0x7FFFFFFF)
        return replace(record, raw_properties=record.raw_properties[:-11] + digits.encode() + b"\x02")

    def _lmq_offsets(self, m: Message) -> str:
        ids = [0 if name.startswith("%LMQ%") else m.queue_id for name in m.lmq]
        return ",".join(str(self.next_offsets.get((name, i), 0)) for name, i in zip(m.lmq, ids, strict=True))

    def _advance(self, m: Message, record: Record) -> None:
        if record.transaction in (0, COMMIT) and m.queue_offset is None:
            self.next_offsets[m.topic, m.queue_id] = record.queue_offset + max(m.inner_count, 1)
            for name, queue_id, queue_offset in self.dispatcher().lmq_of(record):
                self.next_offsets[name, queue_id] = queue_offset + 1
        if m.store_time is None:
            self.clock += 7

    # -- writing

    def dispatcher(self) -> Dispatcher:
        return Dispatcher(self.release, self.sizes, self.batch_topics, self.lmq, self.index, self.ext_bit_map)

    def write(
        self,
        root: Path,
        *,
        clean: bool = True,
        undispatched: int = 0,
        spare: bool | None = None,
        checkpoint: dict[str, int] | None = None,
        topics_json: bool = True,
        config: dict[str, str] | None = None,
    ) -> Store:
        """Write the store under `root` (made if absent).

        undispatched: the last so many records have no derived data.  spare: the next segment is preallocated (default: after
        a kill).  checkpoint: fields by name instead of what the broker would have there.  config: files below config/.
        """
        root.mkdir(parents=True, exist_ok=True)
        on_disk, expected = self.dispatcher(), self.dispatcher()
        for number, record in enumerate(self.records):
            expected.put(record)
            if number < len(self.records) - undispatched:
                on_disk.put(record)
        segments = {start: bytes(data) for start, data in self.segments.items()}
        if (not clean if spare is None else spare) and segments:
            segments[max(segments) + self.sizes.segment] = b""
        for start, data in segments.items():
            write_sparse(root / "commitlog" / f"{start:020d}", data, self.sizes.segment)
        (root / "commitlog").mkdir(exist_ok=True)
        write_derived(root, on_disk)
        self._write_checkpoint(root, on_disk, clean, checkpoint or {})
        (root / "lock").write_bytes(b"lock")
        if not clean:
            (root / "abort").write_bytes(b"" if self.version < (5,) else b"4711")
        if self.version >= (5,):
            (root / "abort.bak").write_bytes(b"")
        if topics_json and self.batch_topics:
            table = {t: {"topicName": t, "attributes": {"queue.type": "BatchCQ"}} for t in sorted(self.batch_topics)}
            # As brokers write both; without the second all delayed messages would come again.
            delays = {"delayOffset.json": json.dumps({"offsetTable": {str(level): 0 for level in range(1, 19)}})}
            config = {"topics.json": json.dumps({"topicConfigTable": table}), **delays, **(config or {})}
        for name, text in (config or {}).items():
            (root / "config").mkdir(exist_ok=True)
            (root / "config" / name).write_text(text, encoding="utf-8")
        return Store(root, self.release, self.sizes, self.broker_conf(), list(self.records), expected, clean)

    def _write_checkpoint(self, root: Path, on_disk: Dispatcher, clean: bool, given: dict[str, int]) -> None:
        last_time = self.records[-1].store_time if self.records else 0
        dispatched = on_disk.last
        fields = {
            "physic": last_time,
            "logics": dispatched.store_time if dispatched else 0,
            "index": on_disk.pages[-2].end_time if len(on_disk.pages) > 1 else 0,
            "masterFlushed": 0,
            "confirm": 0,
            "logicsPhysical": dispatched.phy_offset if dispatched and self.version >= (5, 5, 0) else 0,
        } | given
        assert len(fields) == 6, f"unknown checkpoint fields in {given}"
        (root / "checkpoint").write_bytes(struct.pack(">6q", *fields.values()).ljust(4096, b"\0"))

    def broker_conf(self) -> str:
        """The settings that this store was written with, in RocketMQ's own words."""
        s = self.sizes
        lines = {
            "mappedFileSizeCommitLog": s.segment,
            "mappedFileSizeConsumeQueue": s.queue_file,
            "maxHashSlotNum": s.slots,
            "maxIndexNum": s.index_max,
        }
        if self.batch_topics:
            lines["mapperFileSizeBatchConsumeQueue"] = s.batch_file
        text = {name: str(value) for name, value in lines.items()}
        if self.ext_bit_map is not None:
            text |= {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": str(s.ext_file)}
        if self.lmq:
            text |= {"enableLmq": "true", "enableMultiDispatch": "true"}
        if not self.index:
            text["messageIndexEnable"] = "false"
        return "".join(f"{name}={value}\n" for name, value in (text | self.settings).items())


def write_sparse(path: Path, data: bytes, size: int) -> None:
    """A preallocated file: `data`, then a hole up to `size`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as f:
        f.write(data.rstrip(b"\0"))
        f.truncate(size)


def index_name(stamp: int) -> str:
    """yyyyMMddHHmmssSSS of a moment (UTC)."""
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(stamp // 1000)) + f"{stamp % 1000:03d}"


def write_derived(root: Path, dispatched: Dispatcher) -> None:
    """ConsumeQueue, BatchConsumeQueue, ext and index files of a dispatch."""
    for (topic, queue_id), queue in dispatched.queues.items():
        kind = "batchconsumequeue" if queue.unit == 46 else "consumequeue"
        for start, data in queue.files.items():
            write_sparse(root / kind / topic / str(queue_id) / f"{start:020d}", bytes(data), queue.file_size)
        for start, data in queue.ext.items():
            write_sparse(root / "consumequeue_ext" / topic / str(queue_id) / f"{start:020d}", bytes(data), len(data))
    created = 0
    for page in dispatched.pages:  # names follow the clock, also where store times do not
        created = max(created + 1, page.begin_time)
        write_sparse(root / "index" / index_name(created), page.to_bytes(), dispatched.sizes.index_file)
