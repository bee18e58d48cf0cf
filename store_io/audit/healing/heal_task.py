"""Searches the damaged places of one segment for changes that make a record whole, as a task.

The places are those that the scans report as damage, and nothing else. A change may also make the filler at a segment's end
whole: its size is what is left, its magic is one number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, EXTENT_UNWRITTEN, LOSS, SegmentSummary
from store_io.audit.healing.changes import Candidate, Change, Found, Place
from store_io.audit.healing.record_changes import MOST_RECORD_BYTES, RecordChanges
from store_io.audit.healing.witnesses import LogOrder, Misplaced, Says, by_entry
from store_io.base.errors import StoreError
from store_io.broker.releases import BrokerRules
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.log.entries.queue_store import QueuePaths, QueueStore, open_queue_store
from store_io.log.records.framing import PLAIN
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.message_decode import names_place
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

_BITS = 32  # the field that is right
MOST_PLACES = 1000  # of one store
MOST_RECORDS = 50  # in one damaged range: records beside one another, each with a fault of its own
_WINDOW_BYTES = 1 << 16
NO_CHANGE = "no single changed field or byte makes this record whole"
_TOO_LONG = f"a range of more than {MOST_RECORD_BYTES >> 20} MiB is not searched"
_LED_HERE = "its ConsumeQueue entry leads here, with its size"
_TAGGED, _BY_EXT = " and tags code", "; an ext unit has its tags code, which is not compared"


def filler_changes(window: SegmentWindow, place: Place) -> list[Candidate]:
    """Return the one change of a filler, if one of its two fields is right. For plain segments."""
    head, left = window.read(place.start, place.start + layout.FRAME_BYTES), window.size - place.start
    size, magic = head[:4], head[4:]
    right_size = left.to_bytes(4, "big")
    if len(head) < layout.FRAME_BYTES or (size == right_size) == (magic == layout.MAGIC_BLANK_BYTES):
        return []
    if size == right_size:
        change = Change("filler MAGICCODE", place.start + 4, magic, layout.MAGIC_BLANK_BYTES)
    else:
        change = Change("filler TOTALSIZE", place.start, size, right_size)
    agrees = (f"{left:,} bytes are left in the segment", "the next segment begins with a valid message")
    return [Candidate(change.narrowed, place.start, left, 1, _BITS, True, True, agrees=agrees)]


def places_of(summary: SegmentSummary, next_begins: bool, misplaced: Iterable[Misplaced] = ()) -> list[Place]:
    """Return the places of one segment, ascending.

    next_begins: the next segment begins with a valid message.
    misplaced: of this segment.
    """
    found, extents = [], summary.extents
    torn = {
        f.start for f in summary.findings if f.code == Code.COMMITLOG_TORN_TAIL and f.severity != LOSS
    }  # never written to its end
    fillers = {f.start for f in summary.findings if f.code == Code.FILLER_WRONG_SIZE}
    for number, extent in enumerate(extents):
        after = extents[number + 1] if number + 1 < len(extents) else None
        if extent.kind == EXTENT_FILLER and extent.start in fillers and next_begins:
            found.append(Place(extent.start, extent.end, filler=True))
        if extent.kind != EXTENT_DAMAGED or extent.zeros or extent.start in torn:
            continue
        if after is not None and after.kind == EXTENT_FILLER and extent.end - extent.start == layout.FRAME_BYTES:
            if next_begins:
                found.append(Place(extent.start, extent.end, filler=True))
            continue
        at_end = after is None or after.kind == EXTENT_UNWRITTEN
        found.append(Place(extent.start, extent.end, zeros_follow=at_end))
    for each in misplaced:
        start = each.phy_offset - summary.base_offset
        found.append(Place(start, start + each.size, queue_offset=each.queue_offset))
    return sorted(found, key=lambda place: place.start)


def all_places(summaries: Sequence[SegmentSummary], order: LogOrder) -> tuple[dict[str, list[Place]], int]:
    """Return by segment the first MOST_PLACES of a store; and how many more there are. order: by these segments."""
    misplaced = order.out_of_place()
    begins = {s.base_offset: begins_with_message(s) for s in summaries}
    found: dict[str, list[Place]] = {}
    more, room = 0, MOST_PLACES
    for summary in summaries:
        end = summary.base_offset + summary.size
        low, high = (bisect_left(misplaced, offset, key=lambda each: each.phy_offset) for offset in (summary.base_offset, end))
        places = places_of(summary, begins.get(end, False), misplaced[low:high])
        more += max(0, len(places) - room)
        places = places[:room]
        room -= len(places)
        if places:
            found[summary.path] = places
    return found, more


def begins_with_message(summary: SegmentSummary) -> bool:
    """Say whether a valid message lies at the segment's first byte."""
    return bool(summary.extents) and summary.extents[0].kind == EXTENT_MESSAGE and summary.extents[0].start == 0


@dataclass(frozen=True)
class HealTask:
    """Damaged places of one segment. Picklable.

    queues: the paths by which the entries of its messages are looked up.
    """

    store: int
    path: str
    base_offset: int
    location: StoreLocation
    rules: BrokerRules
    places: tuple[Place, ...]
    queues: QueuePaths
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return sum(min(place.end - place.start, MOST_RECORD_BYTES) for place in self.places)

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def run(self) -> list[Found]:
        """Return the findings of the search at each place. Raises StoreError if the segment cannot be read."""
        return search(self, open_source(self.location))


def queue_paths(copy: OpenedCopy) -> QueuePaths:
    """Return the paths of the entries of a copy's queues. BatchConsumeQueues are not asked."""
    paths, table = QueuePaths(copy.queues_in_files.served.files, {}, {}), copy[ROCKS_QUEUES].served_table
    return paths if table is None else replace(paths, database=table.database, stored=frozenset(table.ends.maxima))


@dataclass(frozen=True)
class HealSearch:
    """A search for changes.

    order: judges the answers.
    more: the number of places that are not searched.
    """

    tasks: Sequence[HealTask]
    order: LogOrder
    more: int


def search_of(copy: OpenedCopy, location: StoreLocation, rules: BrokerRules, segments: Sequence[SegmentSummary]) -> HealSearch:
    """Return the search of these segments' damage.

    A repair takes all of a copy's segments, `explain` those around one.
    """
    order, queues = LogOrder(segments), queue_paths(copy)
    places, more = all_places(segments, order)
    bases = {s.path: s.base_offset for s in segments}
    tasks = [HealTask(0, path, bases[path], location, rules, tuple(of_file), queues) for path, of_file in places.items()]
    return HealSearch(tasks, order, more)


def search(task: HealTask, source: ByteSource) -> list[Found]:
    """Search a task's places in an open source."""
    store = open_queue_store(task.rules, source, task.queues)
    try:
        with source.open(task.path) as file:
            window = SegmentWindow(file, file.size, _WINDOW_BYTES)
            searched = _Search(task, window, store)
            return [found for place in task.places for found in searched.at(place)]
    finally:
        store.close()


class _Search:
    def __init__(self, task: HealTask, window: SegmentWindow, store: QueueStore):
        self.task, self.window, self.store = task, window, store
        self.check = RecordCheck.audit_of(task.base_offset, task.rules, task.path)

    def at(self, place: Place) -> Iterator[Found]:
        """Yield one for each record of the place that can be found."""
        if place.filler:
            changes = filler_changes(self.window, place) if self.check.framing == PLAIN else []
            yield Found(place, tuple(changes), "" if changes else NO_CHANGE)
            return
        if place.end - place.start > MOST_RECORD_BYTES:
            yield Found(place, (), _TOO_LONG)
            return
        for _ in range(MOST_RECORDS):
            found = self._record(place)
            yield found
            following = self._next(found)
            if following is None or place.queue_offset is not None:
                return
            place = replace(place, start=following)

    def _record(self, place: Place) -> Found:
        wanted = place.queue_offset
        if wanted is None:
            candidates = RecordChanges(self.check, self.window, place).run()
        else:  # the place of a valid message is that of its record
            place = replace(place, start=place.start - self.check.framing.header_bytes)
            candidates = RecordChanges(self.check, self.window, place).queue_offset(wanted)
        heard = tuple(self._heard(candidate) for candidate in candidates)
        return Found(place, heard, "" if heard else NO_CHANGE)

    def _heard(self, candidate: Candidate) -> Candidate:
        message = candidate.message
        assert message is not None
        try:
            says = by_entry(self.store, self.task.rules, message, self.task.base_offset + message.position)
        except StoreError:  # a failed read is noted: `base.failed_reads`
            says = Says.NOTHING
        if says is Says.NO:
            return replace(candidate, against=(*candidate.against, "its ConsumeQueue entry says otherwise"))
        if says is Says.NOTHING:
            return candidate
        led = _LED_HERE + (_BY_EXT if says is Says.YES_BY_EXT else _TAGGED)
        return replace(candidate, agrees=(*candidate.agrees, led), bits=candidate.bits + candidate.by_entry, located=True)

    def _next(self, found: Found) -> int | None:
        """Return the begin of the place's next record, or None.

        It follows the record that a change makes whole, else the size that this record has, if a record with its own address is
        there.
        """
        place = found.place
        if len(found.candidates) == 1:
            end = place.start + found.candidates[0].size
            return end if end < place.end else None
        record = place.start + self.check.framing.header_bytes
        computed = self.check.verdict(self.window, place.start, self.window.size).computed_size
        stored = int.from_bytes(self.window.read(record, record + 4), "big", signed=True)
        for size in (stored, computed):
            end = record + size
            if layout.MIN_SIZE_V1_BYTES <= size and end < place.end and self._is_record(end):
                return end
        return None

    def _is_record(self, start: int) -> bool:
        record = start + self.check.framing.header_bytes
        return names_place(self.window.read(record, record + layout.BODY_POSITION), self.task.base_offset + record)
