"""One pass over a range of keys of the queues' entries. It finds which numbers each queue has, and keys and values that no
broker writes.

Bounded: a batch at a time, and ranges of numbers per queue. Every entry is read once here; what it leads to is compared where the
CommitLog is read (log.entries.queue_probe), and entries that no message matched are looked at again (audit.queue_leftovers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.layouts import rocksdb_layout as layout
from schemas.rows import Finding, QueueKey, QueueSummary
from store_io.base.errors import StoreError
from store_io.broker.queues.rocksdb_queue_state import QueueEnd
from store_io.log.entries.queue_keys import entry_key
from store_io.log.entries.stored_entries import BadBytes, by_queue, entry_parts
from store_io.rocksdb.database import Batch, Database, DatabaseDamaged, StoredDatabase
from store_io.source.byte_source import StoreLocation, open_source

MAX_RANGES = 1 << 16  # of numbers of one queue, kept apart


@dataclass(frozen=True)
class KeyRangeTask:
    """A task over the entries with keys in [first, end).

    maxima: those of the queues in this range.
    log_min: the minimum of the CommitLog.
    """

    store: int
    location: StoreLocation
    database: StoredDatabase
    first: bytes
    end: bytes | None
    maxima: Mapping[QueueKey, QueueEnd]
    log_min: int
    entries: int = 0  # about so many
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.entries * layout.ENTRY_VALUE_BYTES

    @property
    def paths(self) -> tuple[str, ...]:
        return self.database.paths

    def run(self) -> KeyRangeResult:
        return pass_over(self)


@dataclass
class KeyRangeResult:
    """The result of a pass over a range of keys.

    queues: those with entries in the range, or with an end.
    findings: on the database.
    problem: why it could not be read.
    """

    queues: list[QueueSummary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    bytes_read: int = 0
    problem: Gap | None = None


def pass_over(task: KeyRangeTask) -> KeyRangeResult:
    """Never raises over bytes."""
    reading = _Pass(task)
    if not task.database.absent:
        try:
            with task.database.open(open_source(task.location)) as database:
                reading.read(database)
        except DatabaseDamaged as why:
            reading.damage(why)
        except StoreError as why:
            return KeyRangeResult(problem=why.gap())
    return reading.result()


@dataclass
class _Queue:
    """The facts known of one queue so far.

    Entries below the log's start, or beyond the queue's maximum, are no part of `ranges`: the first may be there until a
    compaction, the second are the rest of a truncation.
    """

    ranges: list[tuple[int, int]] = field(default_factory=list)
    at_maximum: int | None = None  # where the entry at the maximum leads

    def add(self, numbers: np.ndarray) -> None:
        edges = np.flatnonzero(np.diff(numbers) != 1) + 1
        firsts, lasts = numbers[np.concatenate(([0], edges))], numbers[np.concatenate((edges - 1, [len(numbers) - 1]))]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            ranges = self.ranges
            if ranges and (first == ranges[-1][1] or len(ranges) >= MAX_RANGES):
                ranges[-1] = (ranges[-1][0], last + 1)
            else:
                ranges.append((first, last + 1))


class _Pass:
    def __init__(self, task: KeyRangeTask):
        self._task = task
        self._queues: dict[QueueKey, _Queue] = {key: _Queue() for key in task.maxima}
        self._found = KeyRangeResult()
        self._odd: dict[str, tuple[int, str]] = {}  # what is odd -> (how many, the first one)
        self._bad: dict[str, str] = {}

    def read(self, database: Database) -> None:
        """Read the whole range. After bad bytes it continues with the next keys that can be read."""
        for part in entry_parts(database, self._task.first, self._task.end):
            if isinstance(part, BadBytes):
                self.damage(part)
            else:
                self._take(part)

    def damage(self, why: DatabaseDamaged | BadBytes) -> None:
        """Remember which file has bad bytes."""
        self._bad[why.path] = why.reason

    def _take(self, batch: Batch) -> None:
        self._found.bytes_read += len(batch.keys) + len(batch.values)
        for key, prefix, numbers, rows, whole in by_queue(batch):
            if key is None:
                self._note("keys that no broker writes", len(rows), repr(prefix[:80]))
                continue
            if not whole.all():
                example = entry_key(prefix, int(numbers[np.argmin(whole)]))
                self._note("values of another length", int((~whole).sum()), repr(example[:80]))
                numbers, rows = numbers[whole], rows[whole]
            if len(rows):
                self._take_queue(key, numbers, rows)

    def _take_queue(self, key: QueueKey, numbers: np.ndarray, rows: np.ndarray) -> None:
        queue = self._queues.setdefault(key, _Queue())
        maximum = self._task.maxima.get(key)
        if maximum is None:
            return  # no end: a broker answers with none of them
        phy = rows["phy_offset"]
        at = np.flatnonzero(numbers == maximum.queue_offset)
        if len(at):
            queue.at_maximum = int(phy[at[0]])
        counted = numbers[(phy >= self._task.log_min) & (numbers <= maximum.queue_offset)]
        if len(counted):
            queue.add(counted)

    def _note(self, what: str, count: int, example: str) -> None:
        before, first = self._odd.get(what, (0, example))
        self._odd[what] = before + count, first

    def result(self) -> KeyRangeResult:
        found = self._found
        folder = self._task.database.folder
        for key, queue in self._queues.items():
            end = queue.ranges[-1][1] if queue.ranges else 0
            found.queues.append(QueueSummary(key, used=queue.ranges, used_end=end, findings=self._of_queue(key, queue)))
        for what, (count, first) in sorted(self._odd.items()):
            message = f"{folder}/: {what} in the database of the ConsumeQueues, the first: {first}."
            found.findings.append(Finding(Code.QUEUE_ENTRY_INVALID, folder, actual=first, message=message, count=count))
        for path, reason in sorted(self._bad.items()):
            found.findings.append(Finding(Code.QUEUE_DATABASE_DAMAGED, path, actual=reason))
        return found

    def _of_queue(self, key: QueueKey, queue: _Queue) -> list[Finding]:
        """Return the queue's end against its entry.

        Ends that a start sets without entries (double write) name the physical offset 0.
        """
        maximum = self._task.maxima.get(key)
        if maximum is None or not maximum.phy_offset or maximum.phy_offset < self._task.log_min or self._bad:
            return []
        if queue.at_maximum == maximum.phy_offset:
            return []
        return [
            Finding(
                Code.QUEUE_END_WRONG,
                self._task.database.folder,
                phy_offset=maximum.phy_offset,
                topic=key[0],
                queue_id=key[1],
                queue_offset=maximum.queue_offset,
                expected=f"an entry that leads to physical offset {maximum.phy_offset}",
                actual="no entry" if queue.at_maximum is None else f"an entry that leads to {queue.at_maximum}",
            )
        ]
