"""The queues in files that a broker has in memory, while a start is followed.

A million of them as objects would take a gigabyte. So very many lie packed, and a pass opens some hundred neighbours at a time.
Of those into which dispatch puts something some thousand are objects at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from schemas.rows import QueueKey, QueueSummary
from store_io.base import packed
from store_io.base.packed import PackedMap
from store_io.broker.queues.queue_state import NOTHING_SCANNED, DiskEntries, QueueState
from store_io.broker.releases import BrokerRules


class FileQueues:
    """Queue by key. Nobody keeps a queue beyond the pass that gave it, nor one that was asked for once another one is."""

    def __init__(self, rules: BrokerRules, disk: DiskEntries, scans: list[object]):
        """scans: what the scan numbers of the queues' pieces mean."""
        self._rules, self._disk, self._scans = rules, disk, scans
        self._summaries: Mapping[QueueKey, QueueSummary] = NOTHING_SCANNED
        self._open: dict[QueueKey, QueueState] = {}  # all of them, where they are few
        self._packed: PackedMap[QueueKey, QueueState] | None = None  # the others; one that is open too is out of date there

    def load(self, queues: Iterable[tuple[QueueKey, QueueState]], many: bool, summaries: Mapping[QueueKey, QueueSummary]) -> None:
        """Take in those that load() finds, in the order of their keys. summaries: of all that were scanned."""
        self._summaries = summaries
        if many:
            self._packed = self._pack(queues)
        else:
            self._open.update(queues)

    def _pack(self, queues: Iterable[tuple[QueueKey, QueueState]], few: bool = False) -> PackedMap[QueueKey, QueueState]:
        reopened = partial(QueueState.reopened, (self._rules, self._disk, self._scans, self._summaries))
        return PackedMap.of(queues, QueueState.closed, reopened, QueueState.weight, packs=not few)

    def add(self, queue: QueueState) -> None:
        """Add one that is not there."""
        self._make_room()
        self._open[queue.key] = queue

    def find(self, key: QueueKey) -> QueueState | None:
        """Return a queue, to be changed; not while `changing` is under way."""
        queue = self._open.get(key)
        if queue is None and self._packed is not None:
            queue = self._packed.get(key)
            if queue is not None:
                self._make_room()
                self._open[key] = queue
        return queue

    def look(self, key: QueueKey) -> QueueState | None:
        """Return a queue, to be looked at and not kept. Keys in their order are found in least time."""
        queue = self._open.get(key)
        return self._packed.get(key) if queue is None and self._packed is not None else queue

    def are_many(self) -> bool:
        """Say whether most lie packed."""
        return self._packed is not None

    def __getitem__(self, key: QueueKey) -> QueueState:
        queue = self.find(key)
        if queue is None:
            raise KeyError(key)
        return queue

    def __len__(self) -> int:
        if self._packed is None:
            return len(self._open)
        return len(self._packed) + sum(key not in self._packed for key in sorted(self._open))

    def __iter__(self) -> Iterator[QueueState]:
        """Yield all queues, to be looked at."""
        self._pack_many()
        return iter(self._open.values()) if self._packed is None else iter(self._packed.values())

    def changing(self) -> Iterator[QueueState]:
        """Yield all queues, each of which may be changed before the next one is asked for."""
        self._pack_many()
        return iter([*self._open.values()]) if self._packed is None else self._packed.changing()

    def _make_room(self) -> None:
        """Pack the open queues, if they are many, before one more is opened."""
        if len(self._open) > packed.FEW:
            self._pack_many()

    def close(self) -> None:
        """Pack the open queues, if they are many or hold much."""
        self._pack_many(sum(map(QueueState.weight, self._open.values())) > packed.FEW_INSIDE)

    def _pack_many(self, much: bool = False) -> None:
        """Pack the open queues, if they are many.

        much: pack them if they are few, too.
        """
        opened = self._open
        if self._packed is not None:
            self._packed.put(opened)
        elif much or len(opened) > packed.FEW:
            self._packed = self._pack((key, opened[key]) for key in sorted(opened))
        if self._packed is not None:
            self._open = {}

    def snapshot(self, before: Mapping[QueueKey, object]) -> PackedMap[QueueKey, QueueState]:
        """Return all queues as they are now, which later steps do not touch. before: an earlier one, to share equal parts."""
        self._pack_many()
        if self._packed is None:
            made = self._pack(self._snapshots(before), few=True)
            if not made.packs:
                return made
            self._packed, self._open = made, {}  # they hold much
        return self._packed.copy()

    def _snapshots(self, before: Mapping[QueueKey, object]) -> Iterator[tuple[QueueKey, QueueState]]:
        for key in sorted(self._open):
            earlier = before.get(key)
            yield key, self._open[key].snapshot(earlier if isinstance(earlier, QueueState) else None)
