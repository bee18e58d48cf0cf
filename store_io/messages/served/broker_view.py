"""The answers of a broker once its load() and start() are done: by queue and by key, entry by entry.

Nothing that an entry leads to is checked: what lies at its physical offset is what a consumer gets.
Source: DefaultMessageStore.getMessage, queryMessage, lookMessageByOffset, isTheBatchFull; ConsumeQueue.getIndexBuffer and
iterateFrom; BatchConsumeQueue.getBatchMsgIndexBuffer; IndexService.queryOffset; IndexFile.selectPhyOffset; read at 4.8.0,
4.9.8, 5.1.4, 5.3.3 and develop of September 2025.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.layouts import index_layout
from schemas.layouts.entries import BATCH_DTYPE, ENTRY_DTYPE
from schemas.rows import QueueKey
from store_io.audit.audit_store import StoreAudit
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import MAX_LONG, divide
from store_io.broker.index_keys import key_hash
from store_io.broker.message_verdict import Message
from store_io.broker.prediction import LogFile, Memory
from store_io.broker.queues.combination import reads_rocksdb
from store_io.broker.queues.queue_state import QueueFile, QueueState
from store_io.log.entries.file_entries import read_file_entries
from store_io.log.entries.index_entries import entry_position
from store_io.log.records.message_decode import decode_message
from store_io.messages.served.appended_entries import EXPANDED_ENTRIES, AppendedEntries
from store_io.source.byte_source import OpenFiles

PULL_MESSAGES = 32  # a consumer's default pullBatchSize
TRANSFER_MESSAGES = 32  # maxTransferCountOnMessageInMemory
TRANSFER_BYTES = 256 << 10  # maxTransferBytesOnMessageInMemory
SCANNED_BYTES = 16_000  # of entries, in one getMessage
MAX_KEYED = 64  # maxMsgsNumBatch
KEY_ATTEMPTS = 3
MAX_MESSAGE_BYTES = 64 << 20  # of one record that is decoded; a broker's own limit is 4 MiB
BLOCK_ENTRIES = 4096  # read of a queue at a time
KEPT_BLOCKS = 16
MAX_INT = (1 << 31) - 1

SERVED, UNDECODABLE, REMOVED, SKIPPED = "served", "undecodable", "removed", "skipped"


@dataclass(frozen=True)
class Served:
    """A broker's answer to one entry.

    queue_offset: the one by which a consumer asks for it.
    phy_offset, size: the place to which the entry leads.
    status: SERVED; UNDECODABLE (bytes are handed out that no client can read); REMOVED (the log holds no such bytes); SKIPPED
    (passed over after a removed one).
    message: as it is decoded.
    file, position: the place of its bytes, if any segment holds them.
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size: int
    status: str
    message: Message | None = None
    file: str | None = None
    position: int = 0


class BrokerView:
    """The answers of the broker that `audit` predicts. The audit must have a prediction in which it starts.

    A context manager: its files stay open until its end. pull: messages asked for at a time.
    """

    def __init__(self, audit: StoreAudit, pull: int = PULL_MESSAGES):
        prediction = audit.prediction
        assert prediction is not None and prediction.settled is not None
        self.audit, self.rules, self.pull = audit, audit.rules, pull
        self.memory: Memory = prediction.settled
        if reads_rocksdb(audit.rules):
            raise StoreError("what consumers get of ConsumeQueues in RocksDB is not modelled: search the messages without --view")
        self._queues = {key: q for key, q in self.memory.queues.items() if isinstance(q, QueueState)}
        self.log = self.memory.log
        self.log_end = self.log[-1].file.start + self.log[-1].wrote if self.log else 0
        self._appended = AppendedEntries(audit)
        self._blocks: dict[tuple[QueueKey, int, int], np.ndarray] = {}  # entries by queue, file and first number
        self._index_keys: dict[int, np.ndarray] = {}
        self._files = OpenFiles(audit.source)

    def __enter__(self) -> BrokerView:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._files.close()

    def bytes_at(self, path: str, position: int, size: int) -> bytes:
        """Return bytes of one of the store's files, fewer at its end."""
        return self._files.open(path).read(position, size)

    def queues(self) -> dict[QueueKey, tuple[int, int]]:
        """Return every queue that the broker has, with the minimum and the maximum that it answers."""
        return {key: (q.min_offset, q.max_offset) for key, q in sorted(self.memory.queues.items())}

    # ---- by queue ----------------------------------------------------------------------------------------------------

    def read(self, wanted: Sequence[tuple[QueueKey, int, int]]) -> Iterator[Served]:
        """Yield the answers to consumers that read these queues, in this order.

        wanted: (queue, queue offset from which on it is read, queue offset below which).
        """
        for start in range(0, len(wanted), 256):
            group = wanted[start : start + 256]
            if len(group) > 1:
                self._appended.prepare([self._queues[key] for key, _, _ in group if key in self._queues])
            for key, first, last in group:
                queue = self._queues.get(key)
                if queue is not None:
                    yield from self._read_queue(queue, first, last)

    def _read_queue(self, queue: QueueState, first: int, last: int) -> Iterator[Served]:
        at = max(first, queue.min_offset, 0)
        end = min(last, queue.max_offset)
        while at < end:
            got, following = self._get_message(queue, at)
            yield from (one for one in got if one.queue_offset < end)
            if following <= at:
                return
            at = following

    def _get_message(self, queue: QueueState, offset: int) -> tuple[list[Served], int]:
        """Follow getMessage: return (what is made of each entry that it looks at, the offset to continue with)."""
        found: list[Served] = []
        file, number = self._entry_file(queue, offset)
        if file is None:
            return [], 0 if queue.batch else self._next_queue_file(queue, offset)
        unit = queue.unit
        count = (file.wrote - (number * unit - file.start)) // unit
        count = min(count, max(SCANNED_BYTES, self.pull * unit) // unit)
        rows = self._rows(queue, file, number, count)
        following, size_total, message_total, skip_below = offset, 0, 0, -MAX_LONG
        modern = self.rules.serves_below_maximum
        for i, row in enumerate(rows):
            phy, size = int(row["phy_offset"]), int(row["size"])
            place = int(row["base"]) if queue.batch else number + i
            messages = int(row["count"]) if queue.batch else 1
            if modern and place >= queue.max_offset:
                break
            if not modern and phy < skip_below:
                found.append(self._served(queue.key, place, phy, size, SKIPPED))
                following = place + 1
                continue
            if self._full(size, messages, size_total, message_total, modern):
                break
            following = place + messages
            if phy < skip_below:
                found.append(self._served(queue.key, place, phy, size, SKIPPED))
                continue
            holder = self._select(phy, size)
            if holder is None:
                found.append(self._served(queue.key, place, phy, size, REMOVED))
                skip_below = phy + self.rules.segment_bytes - phy % self.rules.segment_bytes
                continue
            found.append(self._decoded(queue.key, place, phy, size, holder))
            size_total, message_total, skip_below = size_total + size, message_total + messages, -MAX_LONG
        return found, following

    def _full(self, size: int, messages: int, size_total: int, message_total: int, modern: bool) -> bool:
        if not size_total or not message_total:
            return False
        if message_total + messages > self.pull if modern else message_total >= self.pull:
            return True
        return size_total + size > TRANSFER_BYTES or message_total >= TRANSFER_MESSAGES

    def _entry_file(self, queue: QueueState, offset: int) -> tuple[QueueFile | None, int]:
        """Return (the file that answers for this queue offset, the number of the first entry)."""
        unit = queue.unit
        if queue.batch:
            return self._batch_entry(queue, offset)
        at = offset * unit
        if at < queue.min_logic:
            return None, 0
        file = next((f for f in queue.files if f.start <= at < f.start + f.size and at - f.start < f.wrote), None)
        return file, offset

    def _batch_entry(self, queue: QueueState, offset: int) -> tuple[QueueFile | None, int]:
        """Return the last entry whose base is not above the offset.

        It is looked for from the last file back, then by bisection inside the file.
        """
        unit = queue.unit
        for file in reversed(queue.files):
            if file.wrote < unit or int(self._rows(queue, file, file.start // unit, 1)["base"][0]) > offset:
                continue
            low, high = 0, file.wrote // unit - 1
            while low < high:
                middle = (low + high + 1) // 2
                if int(self._rows(queue, file, file.start // unit + middle, 1)["base"][0]) <= offset:
                    low = middle
                else:
                    high = middle - 1
            return file, file.start // unit + low
        return None, 0

    def _next_queue_file(self, queue: QueueState, offset: int) -> int:
        per_file = queue.file_bytes // queue.unit
        return offset + per_file - offset % per_file

    def _rows(self, queue: QueueState, file: QueueFile, first: int, count: int) -> np.ndarray:
        """Return entries [first, first + count) of the queue in this file: those on disk, then what dispatch put over them."""
        unit = queue.unit
        begin, end = file.start // unit, (file.start + file.wrote) // unit
        low = begin + (first - begin) // BLOCK_ENTRIES * BLOCK_ENTRIES
        if (queue.key, file.start, low) not in self._blocks or first + count > low + BLOCK_ENTRIES:
            high = min(end, max(first + count, low + BLOCK_ENTRIES))
            if len(self._blocks) >= KEPT_BLOCKS:
                self._blocks.clear()
            self._blocks[queue.key, file.start, low] = self._read_rows(queue, file, low, high - low)
        return self._blocks[queue.key, file.start, low][first - low : first - low + count]

    def _read_rows(self, queue: QueueState, file: QueueFile, first: int, count: int) -> np.ndarray:
        unit = queue.unit
        rows = np.zeros(count, BATCH_DTYPE if queue.batch else ENTRY_DTYPE)
        if file.path is not None and count:
            disk = read_file_entries(self.audit.source, file.path, first - file.start // unit, count, queue.batch)
            rows[: len(disk)] = disk
        for number in self._pieces_in(queue, file, first, first + count):
            piece = queue.pieces.piece(number)
            begin = piece.start // unit
            low, high = max(first, begin), min(first + count, begin + piece.count)
            rows[low - first : high - first] = self._appended.entries(queue, number, piece, low - begin, high - begin)
        return rows

    @staticmethod
    def _pieces_in(queue: QueueState, file: QueueFile, low: int, high: int) -> list[int]:
        """Return the pieces that hold one of these entries of a file, the oldest first."""
        pieces = queue.pieces.rows
        if not len(pieces):
            return []
        starts = np.array(queue.pieces.starts, np.int64)[pieces["file"]]
        begins = (starts + pieces["at"]) // queue.unit
        hits = (starts == file.start) & (begins < high) & (begins + pieces["count"] > low)
        return [int(number) for number in np.flatnonzero(hits)]

    # ---- the log -----------------------------------------------------------------------------------------------------

    def _find(self, phy_offset: int) -> LogFile | None:
        """MappedFileQueue.findMappedFileByOffset."""
        for file in self.log:
            if file.file.start <= phy_offset < file.file.start + file.file.size:
                return file
        return self.log[0] if self.log and phy_offset == 0 else None

    def _select(self, phy_offset: int, size: int) -> tuple[LogFile, int] | None:
        """CommitLog.getMessage: (file, position) of so many written bytes."""
        file = self._find(phy_offset)
        if file is None:
            return None
        position = phy_offset % file.file.size
        return (file, position) if size >= 0 and position + size <= file.wrote else None

    def _decoded(self, key: QueueKey, place: int, phy_offset: int, size: int, holder: tuple[LogFile, int]) -> Served:
        file, position = holder
        message = None
        if size <= MAX_MESSAGE_BYTES:
            message = decode_message(self.bytes_at(file.file.path, position, size), self.rules)
        status = UNDECODABLE if message is None else SERVED
        return Served(key[0], key[1], place, phy_offset, size, status, message, file.file.path, position)

    @staticmethod
    def _served(key: QueueKey, place: int, phy_offset: int, size: int, status: str) -> Served:
        return Served(key[0], key[1], place, phy_offset, size, status)

    # ---- by key ------------------------------------------------------------------------------------------------------

    def by_key(self, topic: str, key: str, most: int = MAX_KEYED, begin: int = 0, end: int = MAX_LONG) -> list[Served]:
        """Follow queryMessage: return the messages to which the index leads, by physical offset.

        Keys are compared by their hash alone, so another message may come, too.
        begin, end: store times in ms.
        """
        found: list[Served] = []
        last_time = end
        for _ in range(KEY_ATTEMPTS):
            offsets = sorted(self._query_offsets(f"{topic}#{key}", min(most, MAX_KEYED), begin, last_time))
            if not offsets:
                break
            for number, phy_offset in enumerate(offsets):
                served = self.at(phy_offset)
                if number == 0:
                    if served is None or served.message is None:
                        continue
                    last_time = served.message.store_time
                if served is not None:
                    found.append(served)
            if found or last_time < begin:
                break
        return found

    def at(self, phy_offset: int) -> Served | None:
        """lookMessageByOffset, by an offset message id: the record there, by the size at its start; None: the log
        holds none."""
        holder = self._select(phy_offset, layout.FRAME_BYTES // 2)
        if holder is None:
            return None
        file, position = holder
        size = int.from_bytes(self.bytes_at(file.file.path, position, layout.FRAME_BYTES // 2), "big", signed=True)
        if size < 0 or position + size > file.wrote:
            return None
        one = self._decoded(("", -1), -1, phy_offset, size, holder)
        m = one.message
        return one if m is None else replace(one, topic=m.topic, queue_id=m.queue_id, queue_offset=m.queue_offset)

    def _query_offsets(self, text: str, most: int, begin: int, end: int) -> list[int]:
        found: list[int] = []
        for number in reversed(range(len(self.memory.index))):
            file = self.memory.index[number]
            low, high = file.begin_time, file.end_time
            if begin < low and end > high or low <= begin <= high or low <= end <= high:
                self._select_offsets(number, text, found, most, begin, end)
            if low < begin or len(found) >= most:
                break
        return found

    def _select_offsets(self, number: int, text: str, found: list[int], most: int, begin: int, end: int) -> None:
        """IndexFile.selectPhyOffset: the slot's chain, newest first."""
        file, slots = self.memory.index[number], self.rules.index_slots
        wanted = key_hash(text)
        count = file.count
        if count <= 1:
            return
        chain = _Chain(self, number, wanted % slots)
        at = chain.head()
        steps = 0
        if not 0 < at <= count:
            return
        while len(found) < most and steps <= count:  # where links go round, a broker fills its answer, or reads without end
            steps += 1
            entry = chain.entry(at)
            if entry is None:
                return
            stored, phy_offset, seconds, previous = entry
            if seconds < 0:
                return
            when = file.begin_time + seconds * 1000
            if stored == wanted and begin <= when <= end:
                found.append(phy_offset)
            if not 0 < previous <= count or previous == at or when < begin:
                return
            at = previous

    def appended_keys(self, number: int, slot: int) -> np.ndarray:
        """Return the entries that dispatch put into one index file, as KEY_DTYPE. If they are many, only the slot's."""
        pieces = self.memory.index[number].pieces
        if sum(piece.last - piece.first + 1 for piece in pieces) > EXPANDED_ENTRIES:
            return self._appended.keys(pieces, slot)
        if number not in self._index_keys:
            self._index_keys[number] = self._appended.keys(pieces, None)
        return self._index_keys[number]


class _Chain:
    """One slot's chain in an index file as the broker has it. It has entries on disk, and those that dispatch put over them."""

    def __init__(self, view: BrokerView, number: int, slot: int):
        self.view, self.slot, self.file = view, slot, view.memory.index[number]
        self.slots = view.rules.index_slots
        self.new = view.appended_keys(number, slot)
        appended = sum(piece.last - piece.first + 1 for piece in self.file.pieces)
        self.first_new = self.file.count - appended
        self.own = self.new["place"][self.new["key_hash"] % self.slots == slot]

    def _disk_slot(self) -> int:
        if self.file.path is None:
            return 0
        place = index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * self.slot
        return int.from_bytes(self.view.bytes_at(self.file.path, place, index_layout.SLOT_BYTES), "big", signed=True)

    def head(self) -> int:
        return self.first_new + int(self.own[-1]) if len(self.own) else self._disk_slot()

    def entry(self, number: int) -> tuple[int, int, int, int] | None:
        """Return (key hash, physical offset, seconds, previous); None if the file ends before it."""
        if number >= self.first_new:
            place = number - self.first_new
            at = int(np.searchsorted(self.new["place"], place))
            if at == len(self.new) or int(self.new["place"][at]) != place:
                return None  # only this slot's are known; an old link that leads into what is new is not followed
            row = self.new[at]
            before = int(np.searchsorted(self.own, place))
            previous = self.first_new + int(self.own[before - 1]) if before else self._disk_slot()
            return int(row["key_hash"]), int(row["phy_offset"]), self._seconds(row), previous if 0 < previous < number else 0
        if self.file.path is None:
            return None
        data = self.view.bytes_at(self.file.path, entry_position(self.slots, number), index_layout.ENTRY_BYTES)
        if len(data) < index_layout.ENTRY_BYTES:
            return None
        stored, phy_offset, seconds, previous = struct.unpack(index_layout.ENTRY_FORMAT, data)
        return stored, phy_offset, seconds, previous

    def _seconds(self, row: np.void) -> int:
        """Return IndexFile.putKey's time difference: from the file's begin, which its first entry sets when it is put."""
        first = self.first_new <= 1 and int(row["place"]) == 0
        begin = self.file.start_begin_time if first else self.file.begin_time
        seconds = divide(int(row["store_time"]) - begin, 1000) if begin > 0 else 0
        return min(max(seconds, 0), MAX_INT)
