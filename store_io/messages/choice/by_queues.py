"""Chooses the parts of the log that hold the asked messages of some queues, as their ConsumeQueues say.

Each entry must lead to a message that the audit accepts, of its topic, queue, queue offset and size, and further into the log
than the one before. If one does not, anything may be wrong, and the whole log is read. So it is if a queue has no files, or empty
entries between others. What the entries do not reach is read, too: the log from the last one on if the question goes beyond it,
and up to the first one if it begins before that. Entries that lead below the log's start say nothing, as messages that are gone
and damage look alike: if the question begins with such, the first one after them that leads into the log counts as the queue's
first. What is read is read from a segment's start, so a message's status is that of the whole log. A second message with a queue
offset that an entry leads to can be anywhere, and so can one whose stored queue offset is damaged: the log alone shows them, so
an answer that is narrowed down like this has to say so.

`entries_led_out` counts the entries that lead where this copy has no segment: their messages cannot be found in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from schemas.layouts import consumequeue_layout as layout
from schemas.rows import MappedFile, QueueKey
from store_io.base.errors import NotAFile, StoreError
from store_io.base.failed_reads import can_do_without
from store_io.base.java.java_compat import MAX_LONG
from store_io.base.wording import seen
from store_io.broker.releases import BrokerRules
from store_io.log.entries.file_entries import read_entries, unit_bytes, valid_entries
from store_io.log.entries.queue_store import is_used
from store_io.messages.message_filter import ALL, MessageFilter
from store_io.messages.message_search import SingleMessages
from store_io.messages.open_store import NoQueueFiles, OpenStore, QueueFiles
from store_io.source.byte_source import ByteSource, OpenFiles

MOST_LED_OUT = 1 << 17  # that are looked at, of each queue
SMALL_LOG_BYTES = 128 << 20  # read in less time than it takes to look at entries
ENTRY_BYTES = 1 << 19  # of a log that are read in the time that it takes to look at an entry
MOST_ENTRIES = 8192  # that are looked at, of all queues
MOST_BYTES = 32 << 20  # of messages of which only the first few are wanted
WINDOW_ENTRIES = 1 << 15
MOST_WINDOWS = 128  # of entries that a look for the queue's first or last one takes
WORTH_IT = 0.75  # of a log, where so much is to be read it may be all
_UNREAD = -1


def entries_led_out(store: OpenStore, wanted: MessageFilter) -> int:
    """Count the entries of these queues and queue offsets that lead to physical offsets in no segment.

    0 if the question names no queue or no queue offsets, for queues in RocksDB, and for queues with more such entries than are
    looked at. Raises Unreadable.
    """
    if wanted.topics is None or wanted.queue_ids is None or wanted.queue_offsets == ALL:
        return 0
    segments, found = store.segments(), 0
    try:
        for queue in store.queues():
            if queue.key[0] in wanted.topics and queue.key[1] in wanted.queue_ids and not queue.batch and queue.files:
                found += _led_out(store, queue.files, wanted, segments)
    except (NotAFile, NoQueueFiles):
        return 0
    return found


def _led_out(store: OpenStore, files: tuple[MappedFile, ...], wanted: MessageFilter, segments: list[MappedFile]) -> int:
    low, high = wanted.queue_offsets
    unit = unit_bytes(False)
    begin, end = min(f.start for f in files) // unit, max(f.start + f.size for f in files) // unit
    first, last = max(low or 0, begin), end if high is None else min(high, end)
    if last - first > MOST_LED_OUT:
        return 0
    rows = read_entries(store.source(), files, first, last)
    places = rows["phy_offset"][valid_entries(rows) & is_used(rows)]
    held = np.zeros(len(places), bool)
    for file in segments:
        held |= (places >= file.start) & (places < file.start + file.size)
    return int((~held).sum())


@dataclass(frozen=True)
class QueueChoice:
    """The parts of segments to be read, as entries say.

    ends: segment to be read -> the physical offset before which, None: all of it. None if entries say nothing: `refused` is why,
    or "" if the question is none for them.
    enough: this many messages must be found, or entries lead to some that cannot be reached; 0: any number is right.
    named: the places to which they lead, if `enough` is not 0. None of these may be missing up to the last one of so many
    messages.
    """

    ends: Mapping[str, int | None] | None = None
    refused: str = ""
    enough: int = 0
    named: frozenset[int] = frozenset()

    def bytes_of(self, file: MappedFile) -> int:
        """Return how much of a segment is to be read, about."""
        end = file.start if self.ends is not None and file.path not in self.ends else (self.ends or {}).get(file.path)
        return file.size if end is None else min(file.size, end - file.start)

    def narrows(self, segments: Sequence[MappedFile]) -> bool:
        """Say whether it leaves out much of these segments. Only then it is worth an answer that is not the whole log's."""
        return sum(map(self.bytes_of, segments)) < WORTH_IT * sum(f.size for f in segments)


class _Unsound(Exception):
    """Entries are not what they have to be; the sentence says where."""


class _TooMany(Exception):
    """More entries than are worth it."""


def choose_by_queues(store: OpenStore, wanted: MessageFilter, segments: Sequence[MappedFile], most: int | None) -> QueueChoice:
    """Choose the parts to read for these messages.

    segments: all of the log, by name.
    most: the first so many are enough; None: all.
    """
    if wanted.topics is None or wanted.queue_ids is None or sum(f.size for f in segments) <= SMALL_LOG_BYTES:
        return QueueChoice()
    keys = sorted((topic, queue_id) for topic in wanted.topics for queue_id in wanted.queue_ids)
    try:
        files = {queue.key: queue for queue in store.queues() if not queue.batch and queue.files}
        with can_do_without("all segments are read then"), closing(OpenFiles(store.source())) as opened:
            return _choice(keys, files, _Log(segments, store.rules, opened), store.source(), wanted, most)
    except _TooMany:
        return QueueChoice()
    except NoQueueFiles:
        return QueueChoice(refused="they are in RocksDB")
    except (_Unsound, StoreError) as problem:
        return QueueChoice(refused=str(problem))


def _choice(
    keys: Sequence[QueueKey],
    files: Mapping[QueueKey, QueueFiles],
    log: _Log,
    source: ByteSource,
    wanted: MessageFilter,
    most: int | None,
) -> QueueChoice:
    room, cut = min(MOST_ENTRIES, sum(f.size for f in log.segments) // ENTRY_BYTES), False
    for key in keys:
        if key not in files:
            raise _Unsound(f"there is none of {_name(key)}")
        taken = _Queue(source, files[key], log).take(wanted, room, most)
        room, cut = room - taken.entries, cut or taken.cut
        if cut and log.named_bytes > MOST_BYTES:
            raise _TooMany
    if cut and most is not None:
        return QueueChoice(log.ends, enough=most, named=frozenset(log.wanted))
    return QueueChoice(log.ends)


def _name(key: QueueKey) -> str:
    return f"topic {seen(key[0])}, queue {key[1]}"


class _Taken(NamedTuple):
    """How many entries were looked at. cut: whether more of the queue were asked for than are wanted."""

    entries: int
    cut: bool


class _Log:
    """The segments, and how far each is to be read."""

    def __init__(self, segments: Sequence[MappedFile], rules: BrokerRules, opened: OpenFiles):
        for one, after in pairwise(segments):
            if one.start + one.size > after.start:
                raise _Unsound(f"{one.path} and {after.path} overlap")
        self.segments, self.start, self._rules, self._opened = segments, segments[0].start, rules, opened
        self._starts = np.array([f.start for f in segments])
        self.ends: dict[str, int | None] = {}
        self.wanted: set[int] = set()  # where messages of the answer are
        self.named_bytes = 0
        self._messages: dict[str, SingleMessages] = {}  # of the segment that was asked last

    def name(self, key: QueueKey, number: int, phy_offset: int, size: int) -> None:
        """Have the message read to which entry `number` leads. Raises _Unsound if it is another one, or none."""
        if phy_offset < self.start:
            raise _Unsound(f"entry {number} of {_name(key)} leads below the log's start")
        place = int(np.searchsorted(self._starts, phy_offset, "right")) - 1
        file = self.segments[place]
        if phy_offset >= file.start + file.size:
            raise _Unsound(f"entry {number} of {_name(key)} leads out of the log")
        if file.path not in self._messages:
            self._messages = {file.path: SingleMessages(self._opened.open(file.path), self._rules, file)}
        found = self._messages[file.path].at(phy_offset)
        if found is None or (found.topic, found.queue_id, found.queue_offset, found.total_size) != (*key, number, size):
            raise _Unsound(f"entry {number} of {_name(key)} leads to no such message")
        self.named_bytes += size
        self._read(file, phy_offset + 1)

    def all_before(self, phy_offset: int) -> None:
        """Have everything before this physical offset read."""
        for file in self.segments:
            if file.start < phy_offset:
                self._read(file, phy_offset if phy_offset < file.start + file.size else None)

    def all_after(self, phy_offset: int) -> None:
        """Have everything from there on read."""
        for file in self.segments:
            if file.start + file.size > phy_offset:
                self._read(file, None)

    def _read(self, file: MappedFile, end: int | None) -> None:
        known = self.ends.get(file.path, _UNREAD)
        self.ends[file.path] = None if end is None or known is None else max(known, end)


class _Queue:
    """One queue of the question. Raises _Unsound if its files do not follow one another: their names are not to be trusted."""

    def __init__(self, source: ByteSource, queue: QueueFiles, log: _Log):
        files = sorted(queue.files, key=lambda f: f.start)
        self._source, self._files, self._key, self._log = source, files, queue.key, log
        for one, after in pairwise(files):
            if one.start + one.size != after.start:
                raise _Unsound(f"{after.path} does not begin where {one.path} ends")
        unit = unit_bytes(False)
        first, end = files[0].start, files[-1].start + files[-1].size
        if first % unit or end > MAX_LONG:
            raise _Unsound(f"no broker gives a file the name of {files[0].path}")
        self._first, self._end = first // unit, end // unit  # end: the number after the last slot

    def take(self, wanted: MessageFilter, room: int, most: int | None) -> _Taken:
        """Have what the question needs of this queue read. room: entries that may be looked at.

        Raises _Unsound, _TooMany, StoreError.
        """
        low, high = wanted.queue_offsets
        low = low or 0
        cut = most is not None and most <= room
        begin = self._first_in_log(max(low, self._first))
        wished = begin + (most if cut and most is not None else room + 1)
        rows = self._rows(begin, min(self._end if high is None else high, wished))
        valid = valid_entries(rows)
        count = len(rows) if valid.all() else int(np.argmin(valid))
        if count > room:
            raise _TooMany
        if begin > low:
            self._before(begin)
        self._name(begin, rows[:count])
        self._log.wanted.update(rows["phy_offset"][:count].tolist())
        stop = begin + count
        if stop == wished:
            return _Taken(count, True)
        if high is None or stop < high:
            self._beyond(stop)
        return _Taken(count, False)

    def _rows(self, first: int, last: int) -> np.ndarray:
        return read_entries(self._source, self._files, first, min(last, self._end))

    def _first_in_log(self, number: int) -> int:
        """Return the first slot from this one on that is not passed over.

        Passed over are slots that were filled up because the queue does not begin at 0, and entries that lead below the log.
        """
        for start in self._windows(number, self._end):
            rows = self._rows(start, start + WINDOW_ENTRIES)
            blank = (rows["phy_offset"] == 0) & (rows["size"] == layout.PRE_BLANK_SIZE)
            passed = blank | (valid_entries(rows) & (rows["phy_offset"] < self._log.start))
            if not passed.all():
                return start + int(np.argmin(passed))
        return max(number, self._end)

    def _windows(self, first: int, end: int) -> Iterator[int]:
        """Yield the begin of each window of these slots. Raises _TooMany."""
        for count, start in enumerate(range(first, end, WINDOW_ENTRIES)):
            if count == MOST_WINDOWS:
                raise _TooMany
            yield start

    def _before(self, first: int) -> None:
        """Answer the part of the question that lies before the queue's first entry."""
        rows = self._rows(first, first + 1)
        if not len(rows) or not valid_entries(rows)[0]:
            raise _Unsound(f"no entry of {_name(self._key)} leads into the log")
        self._name(first, rows)
        self._log.all_before(int(rows[0]["phy_offset"]))

    def _beyond(self, stop: int) -> None:
        """Answer the part of the question that goes beyond the queue's last entry, which must be before `stop`."""
        for number in self._windows(stop, self._end):
            used = np.flatnonzero(_used(self._rows(number, number + WINDOW_ENTRIES)))
            if len(used) and number + used[0] == stop:
                raise _Unsound(f"entry {stop} of {_name(self._key)} is not valid")
            if len(used):
                raise _Unsound(f"entry {stop} of {_name(self._key)} is empty, and entry {number + used[0]} is not")
        number, stop = stop, min(stop, self._end)
        for back in self._windows(0, stop - self._first):
            end = stop - back
            start = max(self._first, end - WINDOW_ENTRIES)
            rows = self._rows(start, end)
            used = np.flatnonzero(_used(rows))
            if len(used):
                last = used[-1:]
                if not valid_entries(rows[last])[0]:
                    break
                self._name(start + int(last[0]), rows[last])
                self._log.all_after(int(rows[last]["phy_offset"][0]))
                return
        raise _Unsound(f"that of {_name(self._key)} holds no entry before {number}")

    def _name(self, first: int, rows: np.ndarray) -> None:
        """Have these entries' messages read. first: the number of the first of them."""
        places = rows["phy_offset"]
        back = np.flatnonzero(np.diff(places) <= 0)
        if len(back):
            number = first + int(back[0])
            raise _Unsound(f"entry {number + 1} of {_name(self._key)} leads no further than entry {number}")
        for number, row in enumerate(rows.tolist(), first):
            self._log.name(self._key, number, row[0], row[1])


def _used(rows: np.ndarray) -> np.ndarray:
    used: np.ndarray = (rows["phy_offset"] | rows["size"] | rows["tags_code"]) != 0
    return used
