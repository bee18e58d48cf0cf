"""Finds messages of the CommitLog that a compacted topic's log should hold and does not (compaction.md 4).

A queue's messages are read by queue offset, through its entries, a window of them at a time. Only the newest file of a queue is
sure to hold every message with a key between its first and its last one: the broker never compacts that file. What follows its
last one was not put yet, or never will be.
Source: CompactionLog.asyncPutMessage and getCompactionFile.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.layouts.consumequeue_layout import BATCH_ENTRY_BYTES, ENTRY_BYTES
from schemas.layouts.entries import ENTRY_DTYPE
from schemas.layouts.store_names import COMPACTED_QUEUE
from schemas.rows import Finding, MappedFile, QueueKey
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import is_blank
from store_io.base.wording import count_text
from store_io.broker.message_verdict import AUDIT_RULES, Message
from store_io.log.entries.file_entries import FilesAt, read_entries
from store_io.log.records.message_decode import decode_message
from store_io.source.byte_source import ByteSource, OpenFiles

WINDOW_ENTRIES = 1 << 10
MAX_RECORD_BYTES = 64 << 20  # a larger record is not compared
MAX_LOOKED_AT = 100_000  # messages of one queue
KEYS = "KEYS"


@dataclass(frozen=True)
class LogFiles:
    """The files of the CommitLog and of the queue's entries. Picklable."""

    segments: tuple[MappedFile, ...]
    queue_files: tuple[MappedFile, ...]


class LogMessages:
    """`record` and `entries` of one queue. A file that cannot be read is as one that is not there: others say so."""

    def __init__(self, source: ByteSource, files: LogFiles):
        self._source, self._files = source, files
        self._open = OpenFiles(source)
        self._queue_files = FilesAt(files.queue_files)
        self._starts = np.array([f.start for f in files.segments], np.int64)
        self._first, self._rows = 0, np.zeros(0, ENTRY_DTYPE)
        self.bytes_read = 0

    def close(self) -> None:
        self._open.close()

    @property
    def first(self) -> int:
        """Return the number of the first entry that a file of the queue has room for."""
        return min((f.start // ENTRY_BYTES for f in self._files.queue_files), default=0)

    @property
    def end(self) -> int:
        """Return the number after the last entry that a file of the queue has room for."""
        return max(((f.start + f.size) // ENTRY_BYTES for f in self._files.queue_files), default=0)

    def entries(self, first: int, last: int) -> np.ndarray:
        """Return entries [first, last) of the queue; a missing entry is zeros. The caller bounds the range."""
        try:
            rows = read_entries(self._source, self._queue_files, first, last)
        except StoreError:
            return np.zeros(max(0, last - first), ENTRY_DTYPE)
        self.bytes_read += rows.nbytes
        return rows

    def record(self, queue_offset: int) -> bytes:
        """Return the bytes of the CommitLog to which this entry leads, or no bytes."""
        if not self._first <= queue_offset < self._first + len(self._rows):
            self._first = queue_offset
            self._rows = self.entries(queue_offset, queue_offset + WINDOW_ENTRIES)
        row = self._rows[queue_offset - self._first]  # never empty: the window begins there
        return self.at(int(row["phy_offset"]), int(row["size"]))

    def segment_of(self, phy_offset: int) -> int:
        """Return the first physical offset of the segment that holds this one, or of the one before."""
        return int(self._starts[max(0, int(np.searchsorted(self._starts, phy_offset, "right")) - 1)])

    def at(self, phy_offset: int, size: int) -> bytes:
        """Return these bytes of the CommitLog, or no bytes if no segment has all of them."""
        if phy_offset < 0 or not layout.MIN_SIZE_V1_BYTES <= size <= MAX_RECORD_BYTES:
            return b""
        number = int(np.searchsorted(self._starts, phy_offset, "right")) - 1
        if number < 0:
            return b""
        segment: MappedFile = self._files.segments[number]
        if phy_offset + size > segment.start + segment.size:
            return b""
        try:
            data = self._open.open(segment.path).read(phy_offset - segment.start, size)
        except StoreError:
            return b""
        self.bytes_read += len(data)
        return data if len(data) == size else b""


def same_but_place(one: bytes, other: bytes) -> bool:
    """Say whether two records differ in nothing but the physical offset that each stores."""
    at = layout.PHY_OFFSET_POSITION
    return one[:at] == other[:at] and one[at + 8 :] == other[at + 8 :]


def unput_messages(key: QueueKey, path: str, bases: np.ndarray, messages: LogMessages, unclean: bool) -> list[Finding]:
    """Report at most one finding for those between the file's messages, and one for those after its last.

    bases: its queue offsets.
    """
    bases = np.sort(bases)
    seen = _Unput(key, messages, int(bases[0]), bases)
    found = []
    for numbers, case, where in (
        ([n for n in seen.numbers if n < bases[-1]], None, "between messages that its log holds"),
        ([n for n in seen.numbers if n > bases[-1]], Case.AFTER_CRASH if unclean else None, "after the last one of its log"),
    ):
        if numbers:
            entry = int(np.searchsorted(bases, numbers[0])) * BATCH_ENTRY_BYTES  # where the first one's would be
            found.append(seen.finding(path, numbers, case, where, entry))
    return found or seen.not_looked_at(path)


def without_log(key: QueueKey, messages: LogMessages) -> tuple[list[Finding], dict[int, int]]:
    """Return a note on the messages of a queue without any record of its own log, and how many with a key each segment holds.

    The topic may have become a compacted one after them.
    """
    seen = _Unput(key, messages, messages.first, np.zeros(0, np.int64))
    path = f"{COMPACTED_QUEUE}/{key[0]}/{key[1]}"
    if not seen.numbers:
        return seen.not_looked_at(path), {}
    where = "whose queue has no record in such a log: it is gone, or the topic was made a compacted one after them"
    return [seen.finding(path, seen.numbers, Case.NOT_WRITTEN_YET, where)], dict(seen.by_segment)


class _Unput:
    """The queue offsets, from `first` on and without `held`, of messages of the CommitLog that have a key."""

    def __init__(self, key: QueueKey, messages: LogMessages, first: int, held: np.ndarray):
        self.key, self.numbers = key, list[int]()
        self.by_segment = Counter[int]()  # how many each segment holds, by its first physical offset
        self._looked_at = 0
        for start in range(first, messages.end, WINDOW_ENTRIES):
            rows = messages.entries(start, min(start + WINDOW_ENTRIES, messages.end))
            if not rows["size"].any() or not self._take(messages, start, rows, held):
                break

    def _take(self, messages: LogMessages, start: int, rows: np.ndarray, held: np.ndarray) -> bool:
        """Collect the messages of one window that were never put; return False once enough messages were looked at."""
        numbers = start + np.flatnonzero((rows["size"] > 0) & (rows["phy_offset"] >= 0))
        for number in map(int, numbers[~np.isin(numbers, held)]):
            self._looked_at += 1
            if self._looked_at > MAX_LOOKED_AT:
                return False
            row = rows[number - start]
            if _has_key(messages.at(int(row["phy_offset"]), int(row["size"])), self.key, number):
                self.numbers.append(number)
                self.by_segment[messages.segment_of(int(row["phy_offset"]))] += 1
        return True

    def not_looked_at(self, path: str) -> list[Finding]:
        """Return a note if there are more messages than are looked at."""
        if self._looked_at <= MAX_LOOKED_AT:
            return []
        message = f"only {MAX_LOOKED_AT:,} messages of the queue were looked at, and each was put"
        severity = severity_in(Code.COMPACTED_MESSAGE_MISSING, Case.NOT_LOOKED_AT)
        return [
            Finding(
                Code.COMPACTED_MESSAGE_MISSING, path, severity=severity, topic=self.key[0], queue_id=self.key[1], message=message
            )
        ]

    def finding(self, path: str, numbers: list[int], case: Case | None, where: str, entry: int | None = None) -> Finding:
        more = f"; only {MAX_LOOKED_AT:,} messages were looked at" if self._looked_at > MAX_LOOKED_AT else ""
        message = f"{count_text(len(numbers), 'message')} of the CommitLog with a key, {where}{more}"
        severity = severity_in(Code.COMPACTED_MESSAGE_MISSING, case) if case is not None else ""
        return Finding(
            Code.COMPACTED_MESSAGE_MISSING, path, entry, None if entry is None else entry + BATCH_ENTRY_BYTES, severity,
            topic=self.key[0], queue_id=self.key[1], queue_offset=numbers[0], expected="an entry", actual="none",
            message=message, count=len(numbers),
        )  # fmt: skip


def _has_key(data: bytes, key: QueueKey, number: int) -> bool:
    message: Message | None = decode_message(data, AUDIT_RULES) if data else None
    if message is None or (message.topic, message.queue_id) != key or message.queue_offset != number:
        return False
    return not is_blank(message.properties.get(KEYS, ""))
