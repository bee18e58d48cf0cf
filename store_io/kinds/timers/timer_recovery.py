"""Recovery of the timer store: pure functions of its checkpoint (timer.md 5).

Source: TimerMessageStore.recover, reviseQueueOffset (5.1.4, 5.3.2 to 5.5.0); TimerMessageRocksDBStore.start (5.4.0).
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.rows import MappedFile
from store_io.broker.releases import BrokerRules


def recovery_begin(flush_position: int, files: Sequence[MappedFile]) -> int:
    """Return the position from which on units are looked at again: one file before the flushed position.

    The file that holds it is read whole.
    """
    return max(0, flush_position - files[-1].size if files else flush_position)


def queue_offset_after(
    rules: BrokerRules, stored: int, master: int, last_message: int | None, bounds: tuple[int, int], keyed: int = 0
) -> int:
    """Return the entry of the timer topic's queue from which on messages are taken after a start.

    stored, master: those of the checkpoint.
    last_message: the queue offset of the last unit's message; None if it cannot be read.
    bounds: minimum and maximum of the queue when load() has returned.
    keyed: the offset of timers in RocksDB, 0 without any.
    """
    offset = max(min(stored if last_message is None else last_message + 1, master), keyed)
    if rules.clamps_timer_offset:
        offset = min(max(offset, bounds[0]), bounds[1]) if bounds[0] <= bounds[1] else bounds[0]
    return offset
