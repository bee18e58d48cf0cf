"""ConsumeQueue entries that lead to messages which the CommitLog no longer holds: the first ones of a queue, and the number of
the others by the place to which they lead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from schemas.rows import QueueKey
from store_io.base.ranges import total, union
from store_io.base.wording import count_text
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.model import log_map as lm

if TYPE_CHECKING:  # which holds these
    from store_io.model.queue_leftovers import LeftoverResult

MAX_LOST = 1000  # entries of a queue that are listed one by one
MAX_STRETCHES = 10_000  # of a queue; entries beyond are counted in the last one
KINDS = (lm.DAMAGED, lm.UNWRITTEN, lm.MISSING, lm.BEYOND)


class LostEntry(NamedTuple):
    """An entry that leads to a message which the CommitLog no longer holds. kind: of the range there, see `log_map`."""

    queue_offset: int
    phy_offset: int
    size: int
    kind: int


@dataclass(frozen=True, slots=True)
class LostStretch:
    """Entries of one queue, beyond those that are listed, that lead to one place of the CommitLog.

    kind, place: of the log's range, or of its segment if there is no such file (`place_of`).
    queue_offset: of the first entry.
    [start, end): the physical offsets to which they lead.
    count: the messages, each counted once, at least so many; entries: how many entries lead to them.
    """

    kind: int
    place: int
    queue_offset: int
    start: int
    end: int
    count: int
    bytes: int
    entries: int


def places_of(log: lm.LogMap, kind: int, phy_offsets: np.ndarray) -> np.ndarray:
    """Return the begin of the place in which each physical offset lies: a range of that kind, or a segment that is no file."""
    if kind in (lm.MISSING, lm.BEYOND):
        begins: np.ndarray = phy_offsets - phy_offsets % log.segment_bytes
        return begins
    begins = log.starts[np.searchsorted(log.starts, phy_offsets, side="right") - 1]
    return begins


class LostEntries:
    """Collects the lost entries of one queue, in the order of their numbers.

    listed: the first MAX_LOST.
    count: how many there are of each kind.
    """

    def __init__(self, log: lm.LogMap):
        self._log = log
        self._end: dict[tuple[int, int], int] = {}  # of each place: the physical offset after the furthest message
        self._stretches: dict[tuple[int, int], LostStretch] = {}
        self._furthest: tuple[int, int] | None = None  # of MAX_STRETCHES, the last one by kind and place
        self.listed: list[LostEntry] = []
        self.count: dict[int, int] = {}

    @property
    def stretches(self) -> list[LostStretch]:
        """Return those that are not listed, by kind and place."""
        return [stretch for _, stretch in sorted(self._stretches.items())]

    def add(self, numbers: np.ndarray, rows: np.ndarray, kinds: np.ndarray) -> None:
        """Take the next lost entries. kinds: of the ranges to which they lead."""
        for kind in KINDS:
            chosen = kinds == kind
            if chosen.any():
                own = rows[chosen]
                self._add(kind, numbers[chosen], own["phy_offset"].astype(np.int64), own["size"].astype(np.int64))

    def _add(self, kind: int, numbers: np.ndarray, phy: np.ndarray, size: np.ndarray) -> None:
        self.count[kind] = self.count.get(kind, 0) + len(numbers)
        places = places_of(self._log, kind, phy)
        room = min(max(0, MAX_LOST - len(self.listed)), len(numbers))
        self.listed += map(LostEntry, numbers[:room].tolist(), phy[:room].tolist(), size[:room].tolist(), [kind] * room)
        edges = np.flatnonzero(np.diff(places)) + 1
        for low, high in zip([0, *edges.tolist()], [*edges.tolist(), len(places)], strict=True):
            at = kind, int(places[low])
            before = np.maximum.accumulate(np.concatenate(([self._end.get(at, -1)], (phy + size)[low:high])))
            if len(self._end) < MAX_STRETCHES or at in self._end:
                self._end[at] = int(before[-1])
            first = max(low, room)
            if first < high:
                fresh = phy[first:high] >= before[first - low : -1]
                self._count(at, LostStretch(
                    kind, at[1], int(numbers[first]), int(phy[first:high].min()), int((phy + size)[first:high].max()),
                    int(fresh.sum()), int(size[first:high][fresh].sum()), high - first,
                ))  # fmt: skip

    def _count(self, at: tuple[int, int], more: LostStretch) -> None:
        known = self._stretches.get(at)
        if known is None and len(self._stretches) >= MAX_STRETCHES:
            at = self._furthest = self._furthest or max(self._stretches)  # no place comes in any more
            known = self._stretches[at]
            more = replace(more, start=known.start, end=known.end, bytes=0)  # they lead further, nobody says where
        self._stretches[at] = more if known is None else _joined(known, more)


def _joined(a: LostStretch, b: LostStretch) -> LostStretch:
    return replace(
        a,
        start=min(a.start, b.start),
        end=max(a.end, b.end),
        count=a.count + b.count,
        bytes=a.bytes + b.bytes,
        entries=a.entries + b.entries,
    )


# ---- of all queues -------------------------------------------------------------------------------------------------


@dataclass
class LostAt:
    """The messages of one place to which entries lead, of all queues together; each is counted once.

    LMQ queues lead to messages of other queues, so they add none to those that the other queues only count.
    """

    spans: set[tuple[int, int]] = field(default_factory=set)  # of the listed ones, of queues that are no LMQ queues
    lmq_spans: set[tuple[int, int]] = field(default_factory=set)
    more: set[LostStretch] = field(default_factory=set)  # of the others; a queue that was copied has the same ones
    lmq_more: list[tuple[int, LostStretch]] = field(default_factory=list)  # with how many of that LMQ queue are listed
    keys: set[QueueKey] = field(default_factory=set)

    @property
    def count(self) -> int:
        """Return the number of messages; it is the least one if they are not `exact`."""
        counted = len({start for start, _ in self.spans}) + sum(stretch.count for stretch in self.more)
        if not self.more:
            counted = len({start for start, _ in self.spans | self.lmq_spans})
        return max([counted, *(listed + stretch.count for listed, stretch in self.lmq_more)])

    @property
    def exact(self) -> bool:
        return all(stretch.count == stretch.entries for stretch in self._not_listed)

    @property
    def all_listed(self) -> bool:
        return not self._not_listed

    @property
    def _not_listed(self) -> list[LostStretch]:
        return [*self.more, *(stretch for _, stretch in self.lmq_more)]

    @property
    def bytes(self) -> int:
        """Return how many bytes the messages have."""
        listed = self.spans if self.more else self.spans | self.lmq_spans
        return total(union(listed)) + sum(stretch.bytes for stretch in self.more)

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the physical offsets of the first message and of the end of the last one."""
        spans = [
            *self.spans,
            *self.lmq_spans,
            *((s.start, s.end) for s in (*self.more, *(stretch for _, stretch in self.lmq_more))),
        ]
        return min(start for start, _ in spans), max(end for _, end in spans)

    @property
    def text(self) -> str:
        """Return "12 messages" or "at least 12 messages"."""
        return f"{'' if self.exact else 'at least '}{count_text(self.count, 'message')}"


def lost_places(results: Iterable[LeftoverResult], log: lm.LogMap, kinds: Collection[int]) -> dict[tuple[int, int], LostAt]:
    """Return (kind, begin of the place) -> the messages there to which entries lead, for places of these kinds, in order."""
    found: dict[tuple[int, int], LostAt] = defaultdict(LostAt)
    for result in results:
        lmq = result.key[0].startswith(LMQ_PREFIX)
        listed: Counter[tuple[int, int]] = Counter()
        for kind in kinds:
            own = [(phy, phy + size) for _, phy, size, of in result.lost if of == kind]
            places = places_of(log, kind, np.array([start for start, _ in own], np.int64))
            for span, place in zip(own, places.tolist(), strict=True):
                at = found[kind, place]
                listed[kind, place] += 1
                at.keys.add(result.key)
                (at.lmq_spans if lmq else at.spans).add(span)
        for stretch in result.lost_more:
            if stretch.kind in kinds:
                at = found[stretch.kind, stretch.place]
                at.keys.add(result.key)
                if lmq:
                    at.lmq_more.append((listed[stretch.kind, stretch.place], stretch))
                else:
                    at.more.add(stretch)
    return dict(sorted(found.items()))
