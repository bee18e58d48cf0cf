"""The entries at the end of a SparseConsumeQueue -> what recovery makes of a compacted topic's queue.

Source: SparseConsumeQueue.recover, getMaxPhyOffsetInLog and getMaxMsgOffset, CompactionLog.TopicPartitionLog.init, recover and
sanityCheck, MappedFileQueue.truncateDirtyFiles, read at 5.1.0 to 5.3.3 (compaction.md 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.advice import Refusal, RefusalKind
from schemas.layouts.consumequeue_layout import BATCH_ENTRY_BYTES
from schemas.rows import MappedFile
from store_io.base.java.java_compat import int64
from store_io.broker.loading import files_up_to
from store_io.broker.releases import BrokerRules
from store_io.kinds.compaction.compacted_queues import CompactedQueue
from store_io.source.byte_source import name_of


@dataclass(frozen=True)
class SparseEntry:
    """A valid entry: the place to which it leads, and the queue offset of its message."""

    phy_offset: int
    size: int
    base: int


@dataclass(frozen=True)
class SparseEnds:
    """The entries that recovery reads of one file of entries.

    leading: valid entries before the first that is not.
    first, last: of these.
    """

    leading: int = 0
    first: SparseEntry | None = None
    last: SparseEntry | None = None


@dataclass
class SparseRecovery:
    """The recovery of a compacted queue.

    refusal: why load() ends here, else empty.
    deleted: files that recovery removes.
    log_end: the place at which the log ends then; -1 if recovery leaves its end alone.
    next_offset: a message below this queue offset is not put.
    """

    refusal: Refusal | None = None
    deleted: list[str] = field(default_factory=list)
    log_end: int = -1
    next_offset: int = 0


def recovered(queue: CompactedQueue, ends: Mapping[str, SparseEnds], rules: BrokerRules) -> SparseRecovery:
    """Return the state of a queue that load() opens after recovery.

    ends: by path, of the files that recovery reads at least.
    """
    done = SparseRecovery()
    entries, log = list(queue.entries), list(queue.log)
    last: SparseEntry | None = None
    if entries:
        final = entries[-1]
        end = ends.get(final.path, SparseEnds())
        entries = files_up_to(final.start + end.leading * BATCH_ENTRY_BYTES, entries, done.deleted)
        last = end.last
        log_end = end.first if rules.sparse_end_by_first_entry else end.last
        if log_end is not None:
            done.log_end = int64(log_end.phy_offset + log_end.size)
        if last is None and len(queue.entries) > 1:
            before = ends.get(queue.entries[-2].path, SparseEnds())
            last = before.last
    if last is not None:
        done.next_offset = last.base + 1
    if done.log_end > 0:
        log = files_up_to(done.log_end, log, done.deleted)
    done.refusal = _names_differ(queue, log, entries)
    return done


def _names_differ(queue: CompactedQueue, log: Sequence[MappedFile], entries: Sequence[MappedFile]) -> Refusal | None:
    """Return why sanityCheck throws."""
    log_names, entry_names = ({name_of(f.path) for f in files} for files in (log, entries))
    for file in log:
        if f"{file.start:020d}" not in entry_names:
            return Refusal(RefusalKind.COMPACTED_NAMES_DIFFER, file.path, queue.entries_folder)
    for file in entries:
        if name_of(file.path) not in log_names:
            return Refusal(RefusalKind.COMPACTED_NAMES_DIFFER, file.path, queue.log_folder)
    return None
