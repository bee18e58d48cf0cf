"""What the database of a store says of its queues' ends: the family `offset`, as the rules take it."""

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
    """mark: end of the last record whose entry is stored, 0 where there is none.  refusal: why the database does not open."""

    mark: int = 0
    maxima: Mapping[QueueKey, QueueEnd] = field(default_factory=dict)
    minima: Mapping[QueueKey, QueueEnd] = field(default_factory=dict)
    refusal: Refusal | None = None


class EntryUnreadable(Exception):
    """Reading the entry, or the end, meets bad bytes: RocksDB throws, and so does what asked for it."""


StoredEntry = Callable[[QueueKey, int], int | None]
"""(queue, queue offset) -> the physical offset to which the stored entry leads; None: there is none. Raises EntryUnreadable."""


class BadEnds(Protocol):
    """The ends of queues where the family `offset` has bad bytes: what a broker gets that asks by key, and how far it lists."""

    def lists(self, key: QueueKey) -> bool:
        """Whether the queue's maximum comes before the first bad bytes: there a list ends, without an error."""

    def maximum(self, key: QueueKey) -> QueueEnd | None:
        """The stored one, None where there is none. Raises EntryUnreadable."""

    def minimum(self, key: QueueKey) -> QueueEnd | None:
        """The stored one, None where there is none. Raises EntryUnreadable."""

    def hidden(self) -> Iterable[QueueKey]:
        """Queues with entries, whose maximum the bad bytes may hold."""
