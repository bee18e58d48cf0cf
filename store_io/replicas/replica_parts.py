"""The comparison of one segment: the messages that other copies do not hold, in pieces and by queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from schemas.advice import Gap
from schemas.rows import QueueKey
from store_io.base.java.java_compat import MAX_LONG

MAX_COPIES = 16  # of one group
MAX_PIECES = 1000  # of one segment; later ones are only counted


class State(IntEnum):
    """The state of another copy in a message's place."""

    EQUAL = 0  # the same bytes
    EXPIRED = 1  # nothing: its log begins later, as retention or a late start of a slave leaves it
    UNKNOWN = 2  # a file that could not be read
    BEYOND = 3  # nothing: its last message is earlier
    MISSING = 4  # nothing: no file, between others
    UNWRITTEN = 5  # zeros, between messages
    DAMAGED = 6  # bytes that are no message
    FILLER = 7
    DISPUTED = 8  # the same message with other bytes, valid by every check
    OTHER = 9  # another valid message: the copies have diverged


GAPS = (State.MISSING, State.UNWRITTEN, State.DAMAGED, State.FILLER)  # no message, where others follow
LACKING = (State.BEYOND, *GAPS, State.OTHER)  # the message is not in that copy


def state_name(state: int) -> str:
    """Return the state as replicas.json and findings have it."""
    return State(state).name.lower()


@dataclass(frozen=True)
class Difference:
    """A place in which a message's bytes differ from another copy's.

    The offsets are physical and half-open; the field is that of the first byte.
    """

    start: int
    end: int
    field: str


@dataclass
class ReplicaRange:
    """Neighbouring messages of this copy in whose places each other copy has the same.

    start, end: physical offsets.
    states: per copy a State, EQUAL for this one.
    malformed: their properties have a wrong form.
    topic, queue_id, queue_offset: of the first of them; differences: how that one differs, by copy.
    """

    start: int
    end: int
    messages: int
    bytes: int
    first_store_time: int
    last_store_time: int
    states: tuple[int, ...]
    malformed: bool = False
    topic: str = ""
    queue_id: int = 0
    queue_offset: int = 0
    size: int = 0
    differences: dict[int, Difference] = field(default_factory=dict)

    def is_like(self, other: ReplicaRange) -> bool:
        """Say whether both say the same of the other copies."""
        return (self.states, self.malformed) == (other.states, other.malformed)

    def extend(self, following: ReplicaRange) -> None:
        """Take in the messages that follow it."""
        self.end = following.end
        self.messages += following.messages
        self.bytes += following.bytes
        self.first_store_time = min(self.first_store_time, following.first_store_time)
        self.last_store_time = max(self.last_store_time, following.last_store_time)


@dataclass
class QueueTotal:
    """Messages of one queue. Offsets and times (ms) are bounds; between them may be gaps."""

    messages: int = 0
    bytes: int = 0
    first_queue_offset: int = MAX_LONG
    last_queue_offset: int = -(1 << 63)
    first_store_time: int = MAX_LONG
    last_store_time: int = -(1 << 63)

    def add(self, other: QueueTotal) -> None:
        """Take in more messages of the same queue."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.first_queue_offset = min(self.first_queue_offset, other.first_queue_offset)
        self.last_queue_offset = max(self.last_queue_offset, other.last_queue_offset)
        self.first_store_time = min(self.first_store_time, other.first_store_time)
        self.last_store_time = max(self.last_store_time, other.last_store_time)


@dataclass
class ReplicaPart:
    """The messages of one segment that other copies do not have.

    totals: (states, queue) -> messages.
    pieces_dropped: the number of pieces beyond the bound.
    problem: a sentence about copy `problem_copy`. Everything else is then void.
    """

    copy: int
    base_offset: int
    pieces: list[ReplicaRange] = field(default_factory=list)
    totals: dict[tuple[tuple[int, ...], QueueKey], QueueTotal] = field(default_factory=dict)
    pieces_dropped: int = 0
    bytes_read: int = 0
    problem: Gap | None = None
    problem_copy: int = -1
