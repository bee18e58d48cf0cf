"""The rows of healing: one change, a change that makes a record whole, and what is decided of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the table of commands takes DEFAULT_RISK from here, and is read before anything is installed
    from store_io.broker.message_verdict import Message

DEFAULT_RISK = 1e-4


@dataclass(frozen=True, slots=True)
class Place:
    """A place in which records are searched for. Positions are bytes in the segment.

    start, end: a record begins at `start`; valid bytes begin again at `end`.
    zeros_follow: nothing valid does, the log ends there.
    filler: the segment's filler lies there.
    queue_offset: the value that the neighbours in its queue leave for the message there, which is valid but for that.
    """

    start: int
    end: int
    zeros_follow: bool = False
    filler: bool = False
    queue_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """New bytes for old ones.

    position: of the first, in the segment.
    field: the record's or filler's, as RocketMQ names it.
    """

    field: str
    position: int
    old: bytes
    new: bytes

    @property
    def narrowed(self) -> Change:
        """Return the change without the bytes at either end that stay as they are."""
        low, high = 0, len(self.old)
        while low < high and self.old[low] == self.new[low]:
            low += 1
        while high > low and self.old[high - 1] == self.new[high - 1]:
            high -= 1
        return Change(self.field, self.position + low, self.old[low:high], self.new[low:high])


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change after which every check accepts the frame at `start`.

    size: the size of the frame then.
    patterns: changes of this kind that were tried.
    bits: how many bits agree by chance alone, if it is not the right one. A fact that agreed before the change too says nothing
    of it and is not counted.
    by_entry, by_order: how many more an entry or neighbours that agree add, 0 if they would say the same without the change.
    proven: a checksum over the changed bytes fits with it, and did not before.
    whole: that checksum covers all of the record.
    located: an entry or a neighbour says that the message belongs into its queue at its queue offset.
    agrees: clauses on other facts that say the same.
    against: the facts that contradict it.
    message: None for a filler.
    """

    change: Change
    start: int
    size: int
    patterns: int
    bits: int
    proven: bool
    whole: bool = False
    by_entry: int = 0
    by_order: int = 0
    located: bool = False
    agrees: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    message: Message | None = None

    @property
    def risk(self) -> float:
        """Return how likely bytes that are damaged otherwise look like this."""
        return min(1.0, self.patterns / 2.0**self.bits)


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates that the search found at one place.

    why: the reason if there is none.
    """

    place: Place
    candidates: tuple[Candidate, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Healing:
    """The decision on one damaged record.

    why_not: "" if the change is to be made.
    file: the segment.
    start, end: the record with its header, in bytes of the file.
    change: None if no single change makes it whole.
    """

    file: str
    start: int
    end: int
    phy_offset: int
    change: Change | None = None
    risk: float = 1.0
    reason: str = ""
    why_not: str = ""
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    others: tuple[Change, ...] = ()

    @property
    def heals(self) -> bool:
        return self.change is not None and not self.why_not
