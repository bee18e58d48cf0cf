"""What recovery makes of a compacted topic's queue."""

from __future__ import annotations

from schemas.advice import Refusal, RefusalKind
from schemas.rows import MappedFile
from store_io.broker.releases import broker_rules
from store_io.kinds.compaction.compacted_queues import CompactedQueue
from store_io.kinds.compaction.sparse_recovery import SparseEnds, SparseEntry, SparseRecovery, recovered

ENTRIES, LOG = 460, 2300
FIRST = SparseEntry(2 * LOG, 100, 40)


def queue_of(log: tuple[int, ...], entries: tuple[int, ...]) -> CompactedQueue:
    queue = CompactedQueue(("T", 0))
    queue.log = [MappedFile(f"L/{n * LOG:020d}", n * LOG, LOG) for n in log]
    queue.entries = [MappedFile(f"C/{n * LOG:020d}", n * LOG, ENTRIES) for n in entries]
    return queue


def recover(
    log: tuple[int, ...],
    entries: tuple[int, ...],
    last: SparseEntry | None,
    release: str = "5.3.3",
    before: SparseEntry | None = None,
) -> SparseRecovery:
    names = [f"C/{n * LOG:020d}" for n in entries]
    ends = {name: SparseEnds(1, before, before) for name in names[-2:-1]}
    ends[names[-1]] = SparseEnds(2 if last else 0, FIRST if last else None, last)
    return recovered(queue_of(log, entries), ends, broker_rules(release))


def path_of(refusal: Refusal | None) -> str:
    assert refusal is not None and refusal.kind == RefusalKind.COMPACTED_NAMES_DIFFER
    return refusal.path


def test_the_log_ends_with_the_last_entrys_record() -> None:
    done = recover((0, 2), (0, 2), SparseEntry(2 * LOG + 100, 50, 41))
    assert done == SparseRecovery(None, [], 2 * LOG + 150, 42)


def test_5_1_0_takes_the_first_entry_of_the_last_file() -> None:
    assert recover((0, 2), (0, 2), SparseEntry(2 * LOG + 100, 50, 41), "5.1.0").log_end == 2 * LOG + 100


def test_a_log_file_beyond_the_entries_is_deleted() -> None:
    done = recover((0, 1, 2), (0, 1), SparseEntry(LOG + 100, 50, 9))
    assert (done.refusal, done.deleted) == (None, [f"L/{2 * LOG:020d}"])


def test_without_an_entry_in_the_last_file_the_log_stays_as_it_is() -> None:
    done = recover((0, 1), (0, 1), None, before=SparseEntry(70, 30, 9))
    assert done == SparseRecovery(None, [], -1, 10)


def test_names_that_differ_end_the_load() -> None:
    assert path_of(recover((0,), (0, 1), None).refusal) == f"C/{LOG:020d}"
    assert path_of(recover((0, 1), (1,), SparseEntry(LOG, 50, 9)).refusal) == f"L/{0:020d}"


def test_an_entry_that_leads_back_deletes_the_newest_log_file_and_ends_the_load() -> None:
    done = recover((0, 1), (0, 1), SparseEntry(10, 50, 9))
    assert done.deleted == [f"L/{LOG:020d}"] and path_of(done.refusal) == f"C/{LOG:020d}"


def test_an_end_beyond_63_bits_wraps_as_in_java() -> None:
    assert recover((0, 1), (0, 1), SparseEntry((1 << 63) - 10, 50, 9)).log_end < 0
