"""One question for messages of a store: what is asked, and which parts of the log are read for it.

Segments are left out by their names and sizes; by what an earlier audit saw of their store times; and, if the broker's clock is
trusted, by the store times at which they begin. `answer` leaves out more by ConsumeQueue entries. All who read the messages of a
store for people ask here. Imports nothing heavy: planners load it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from schemas.rows import MappedFile
from schemas.sources import LOST
from store_io.messages.choice.by_pieces import ScanPart, parts_of, written_bytes
from store_io.messages.choice.by_tables import EarlierTimes, needed
from store_io.messages.message_filter import ALL, ANY_CONTENTS, EVERY_MESSAGE, Contents, MessageFilter
from store_io.messages.open_store import OpenStore, SegmentTimes, segment_times
from store_io.messages.scans import DEFAULT_COLUMNS, MAX_BODY_BYTES, MessageScan

if TYPE_CHECKING:
    from store_io.messages.lost.lost_places import LostPlaces

MOST_LAST = 10_000_000  # messages of `Question.last`: their places are held, 8 bytes each


@dataclass(frozen=True)
class Question:
    """The messages that are asked for, and what is to be read of each. Picklable.

    columns, decompress, unpack, max_body_bytes, only_lost: as a `MessageScan` has them.
    trust_clock: segments may be left out by the store times at which they begin.
    whole_log: no segment is left out by ConsumeQueue entries.
    at: the physical offset of the one message that is wanted.
    limit: so many messages are shown, and one more shows that there are more.
    last: only so many messages, the last.
    """

    wanted: MessageFilter = EVERY_MESSAGE
    contents: Contents = ANY_CONTENTS
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    decompress: bool = False
    unpack: bool = False
    max_body_bytes: int = MAX_BODY_BYTES
    only_lost: bool = False
    trust_clock: bool = False
    whole_log: bool = False
    at: int | None = None
    limit: int | None = None
    last: int | None = None

    @property
    def needs_audit(self) -> bool:
        """Say whether what a start would lose must be known."""
        return self.only_lost or LOST in self.columns

    @property
    def enough(self) -> int | None:
        """Return the number of messages that suffice, if only a queue and a range of its offsets are asked for.

        None: other conditions choose among the messages.
        """
        free = self.contents == ANY_CONTENTS and not self.unpack and self.wanted.of_queues_alone
        return self.limit + 1 if free and self.limit is not None else None

    def narrowed(self, wanted: MessageFilter, contents: Contents = ANY_CONTENTS) -> Question:
        """Return the question for those messages alone that are also wanted here."""
        return replace(self, wanted=wanted.narrowed(self.wanted), contents=self.contents.narrowed(contents))


@dataclass(frozen=True)
class ByTimes:
    """Segments that an earlier audit rules out. read: of `segments`, so many are left."""

    times: EarlierTimes
    read: int
    segments: int


@dataclass(frozen=True)
class ByQueues:
    """The answer of ConsumeQueue entries.

    read: of `segments`, so many are read.
    refused: why all are read; "" if they are not.
    """

    read: int
    segments: int
    refused: str = ""


@dataclass(frozen=True)
class ByKeys:
    """A broker's lookup by key, which gives no more than `most` messages."""

    most: int


Narrowing = ByTimes | ByQueues | ByKeys
"""What leaves messages out of an answer, or segments unread, in a way that whoever asked must know."""
Tell = Callable[[Narrowing], None]


@dataclass(frozen=True)
class MessageSearch:
    """A store that is asked one question.

    times: of all segments of the log, as listed; without times unless the clock is trusted.
    earlier: what earlier audits know of the segments; None: they are not asked.
    places: the messages that a start takes; None: not asked.
    """

    store: OpenStore
    question: Question
    times: tuple[SegmentTimes, ...]
    earlier: EarlierTimes | None = None
    places: LostPlaces | None = None

    @property
    def segments(self) -> list[MappedFile]:
        """Return all segments of the log, as listed."""
        return [times.file for times in self.times]

    @property
    def scan(self) -> MessageScan:
        """Return the scan of no segment yet; a part makes its own of it."""
        question = self.question
        return MessageScan(
            self.store.location, "", 0, 0, question.columns, question.wanted, question.decompress, question.unpack,
            self.store.rules, question.max_body_bytes, only_lost=question.only_lost,
        )  # fmt: skip

    def parts(self, tell: Tell) -> list[ScanPart]:
        """Return the segments that may hold such messages, whole, as listed."""
        wanted = self.question.wanted
        found = [times.file for times in self.times if times.may_hold(wanted.store_times)]
        found = [file for file in found if wanted.may_be_in(file.start, file.size)]
        if self.earlier is not None and wanted.store_times != ALL:
            before = len(found)
            found = needed(found, self.earlier, wanted.store_times)
            tell(ByTimes(self.earlier, len(found), before))
        return [self._with_loss(ScanPart(file)) for file in found]

    def pieces(self, tell: Tell, cores: int) -> list[ScanPart]:
        """Return what tasks on so many cores read, the longest first: segments, or pieces of them."""
        found = [part.file for part in self.parts(tell) if part.loss or not self.question.only_lost]
        if self.question.contents.sought[1]:  # a search for bytes needs no pieces: hardly a row is made
            cores = 1
        parts = parts_of(found, written_bytes(self.store.location, found, cores), cores, len(self.question.columns))
        return [self._with_loss(part) for part in parts if self.question.wanted.may_be_in(*part.bytes)]

    def _with_loss(self, part: ScanPart) -> ScanPart:
        return part if self.places is None else replace(part, loss=self.places.of(part.file.path))


def open_search(store: OpenStore, question: Question) -> MessageSearch:
    """Ask a store. Reads the first bytes of each segment if the clock is trusted. Raises StoreError."""
    times = segment_times(store) if question.trust_clock else [SegmentTimes(file, None, None) for file in store.segments()]
    return MessageSearch(store, question, tuple(times))
