"""Copies of one broker's log, compared: who holds more, who diverged, whose tables are newest. Values, in no language.

`store_io.replicas` makes them; replicas.json has them all. Offsets are physical and half-open, times are ms since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Relation(StrEnum):
    """How the logs of two copies compare."""

    EQUAL = "equal"
    BEHIND = "behind"  # one of them ends earlier
    APART = "apart"  # no physical offset in common
    DAMAGED = "damaged"
    DISPUTED = "disputed"  # one message in two forms, each valid
    DIVERGED = "diverged"  # different messages at one place
    UNKNOWN = "unknown"


LOGS_APART = (Relation.DIVERGED, Relation.APART, Relation.UNKNOWN)  # offsets of one log do not fit the other


class Rejoining(StrEnum):
    """The first act of a replica in controller mode that joins another one as its slave."""

    COPIES = "copies"
    CUTS = "cuts"
    REFUSED = "refused"  # neither cuts nor copies, without end
    KEEPS = "keeps_its_log"


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """The last entry of a DLedger log, and what its checkpoint calls committed, as a start reads them."""

    end_index: int
    end_term: int
    committed_index: int


@dataclass(frozen=True, slots=True)
class GroupCopy:
    """One copy of the group.

    starts: None if that is not known. start, end: of its log; None without a file.
    lacks: messages that other copies hold and it does not. cut: valid ones that its start loses; loses: both.
    before_its_start, disputed, not_compared: the most messages of one other copy for which this copy has that state.
    undecided: messages in two forms of which nothing shows which is right.
    """

    store: str
    location: str = ""
    complete: bool = True
    starts: bool | None = True
    start: int | None = None
    end: int | None = None
    messages: int = 0
    lacks: int = 0
    cut: int | None = 0
    loses: int | None = 0
    before_its_start: int = 0
    disputed: int = 0
    undecided: int = 0
    not_compared: int = 0
    dledger: LedgerEnd | None = None


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first place in which two copies differ. message: the physical offset of the message that `holder` has there.

    field: None if the other copy does not have the message at all; other_has: what it has, a state of `replica_parts`.
    """

    phy_offset: int
    message: int
    size: int = 0
    field: str | None = None
    topic: str = ""
    queue_id: int = 0
    queue_offset: int = 0
    holder: str = ""
    other: str = ""
    other_has: str = ""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """What a replica does, and loses, if it joins another one as its slave.

    differs_before: the two differ before the consistent point, and this stays.
    """

    slave: str
    master: str
    consistent_point: int | None
    outcome: Rejoining
    messages: int = 0
    bytes: int = 0
    first_store_time: int | None = None
    last_store_time: int | None = None
    differs_before: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """Two copies, compared. same_until: None if it is not known, or they have no offset in common.

    rejoin: the first as slave of the second, and the other way round; None unless both are replicas in controller mode.
    """

    left: str
    right: str
    relation: Relation
    common_start: int | None = None
    common_end: int | None = None
    same_until: int | None = None
    first_difference: FirstDifference | None = None
    rejoin: tuple[Rejoin, ...] | None = None

    def other(self, store: str) -> str:
        """Return the copy that is not this one."""
        return self.right if self.left == store else self.left


@dataclass(frozen=True, slots=True)
class LackedQueue:
    """Messages of one queue. Offsets and times are bounds; between them may be gaps."""

    topic: str
    queue_id: int
    messages: int
    bytes: int
    first_queue_offset: int
    last_queue_offset: int
    first_store_time: int
    last_store_time: int


@dataclass(frozen=True, slots=True)
class LackedRange:
    """Neighbouring messages. other_has: what the copy that lacks them has in their place, a state of `replica_parts`."""

    start: int
    end: int
    other_has: str
    messages: int
    bytes: int
    first_store_time: int
    last_store_time: int


@dataclass(frozen=True, slots=True)
class Lacked:
    """What one copy lacks, or has otherwise, of another one. ranges_dropped: how many more there are."""

    store: str
    holder: str
    messages: int = 0
    bytes: int = 0
    by_queue: tuple[LackedQueue, ...] = ()
    ranges: tuple[LackedRange, ...] = ()
    ranges_dropped: int = 0


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry of a table of config/ by its own names, of which those are None that such a table does not have.

    own, other: the offset in this copy, and in the other one.
    read_queues, write_queues: of a topic, as the other copy has it; batch: None of any other entry.
    """

    topic: str | None = None
    group: str | None = None
    queue_id: int | None = None
    delay_level: int | None = None
    own: int | None = None
    other: int | None = None
    read_queues: int | None = None
    write_queues: int | None = None
    batch: bool | None = None


@dataclass(frozen=True, slots=True)
class TableAhead:
    """A table of config/ of which another copy has more.

    table: "topics", "groups", "offsets" or "delay_offsets". file: what this copy's table is from, None without one.
    lacks: entries that only the holder has. `behind`: how many offsets are smaller here; messages: by so many in all.
    entries: the first of both.
    """

    store: str
    holder: str
    table: str
    holder_file: str
    file: str | None = None
    lacks: int = 0
    behind: int = 0
    messages: int = 0
    entries: tuple[TableEntry, ...] = ()

    @property
    def of_offsets(self) -> bool:
        """Say whether the entries are offsets, else they are names."""
        return self.table in ("offsets", "delay_offsets")


@dataclass(frozen=True, slots=True)
class Group:
    """All that is said of one group. best: the copy to start as master, None if none is known to start; why: a sentence.

    problems: sentences on what could not be compared. A copy that was compared with no other has a group without copies.
    """

    name: str = ""
    best: str | None = None
    why: str = ""
    copies: tuple[GroupCopy, ...] = ()
    pairs: tuple[Pair, ...] = ()
    lacks: tuple[Lacked, ...] = ()
    problems: tuple[str, ...] = ()
    config: tuple[TableAhead, ...] = ()

    def copy(self, store: str) -> GroupCopy | None:
        """Return this copy; None if it is not in the group."""
        return next((copy for copy in self.copies if copy.store == store), None)

    def place(self, store: str) -> str:
        """Return where a copy lies, so that it can be opened; its name if that is not known."""
        copy = self.copy(store)
        return copy.location or store if copy is not None else store

    def pairs_of(self, store: str) -> Iterator[Pair]:
        """Yield the pairs to which this copy belongs."""
        return (pair for pair in self.pairs if store in (pair.left, pair.right))

    def pair(self, store: str, other: str) -> Pair | None:
        """Return the pair of two copies, whichever of them is named first."""
        return next((pair for pair in self.pairs_of(store) if pair.other(store) == other), None)

    def relation(self, store: str, other: str) -> Relation | None:
        """Return how two copies compare; None if nobody compared them."""
        pair = self.pair(store, other)
        return pair.relation if pair is not None else None

    def lacked_by(self, store: str, holder: str | None = None) -> list[Lacked]:
        """Return what a copy lacks of each other one, or of this one."""
        return [lack for lack in self.lacks if lack.store == store and holder in (None, lack.holder)]

    def ahead_of(self, store: str) -> list[TableAhead]:
        """Return the tables of which other copies have more than this one."""
        return [table for table in self.config if table.store == store]


NO_GROUP = Group()
