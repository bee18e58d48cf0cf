"""The ends of queues in the database of a store: the family `offset`, as the rules take it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from schemas.advice import Refusal
from schemas.rows import QueueKey


class QueueEnd(NamedTuple):
    """A stored maximum or minimum: the record's physical offset, and the queue offset."""

    phy_offset: int
    queue_offset: int


@dataclass(frozen=True)
class StoredEnds:
    """The ends of queues in a database.

    mark: the end of the last record whose entry is stored, 0 without one.
    refusal: why the database does not open.
    """

    mark: int = 0
    maxima: Mapping[QueueKey, QueueEnd] = field(default_factory=dict)
    minima: Mapping[QueueKey, QueueEnd] = field(default_factory=dict)
    refusal: Refusal | None = None


class EntryUnreadable(Exception):
    """Reading the entry, or the end, meets bad bytes: RocksDB throws, and so does what asked for it."""


StoredEntry = Callable[[QueueKey, int], int | None]
"""(queue, queue offset) -> the physical offset to which the stored entry leads; None: there is none. Raises EntryUnreadable."""


class BadEnds(Protocol):
    """The ends of queues if the family `offset` has bad bytes.

    They are the answers to a broker that asks by key, and the reach of its lists.
    """

    def lists(self, key: QueueKey) -> bool:
        """Whether the queue's maximum comes before the first bad bytes: there a list ends, without an error."""

    def maximum(self, key: QueueKey) -> QueueEnd | None:
        """Return the stored maximum, or None. Raises EntryUnreadable."""

    def minimum(self, key: QueueKey) -> QueueEnd | None:
        """Return the stored minimum, or None. Raises EntryUnreadable."""

    def hidden(self) -> Iterable[QueueKey]:
        """Queues with entries, whose maximum the bad bytes may hold."""
