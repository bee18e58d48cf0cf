"""What a start takes of one segment, as places: who reads the segment asks it row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas import commitlog_layout as layout
from schemas.rows import QueueKey

KEPT, CUT, UNREACHABLE, UNDELIVERED = range(4)
LOSSES = ("kept", "cut", "unreachable", "undelivered")
"""By these numbers what becomes of a message: cut with the log's end; left in the log without a queue entry; a timer
message that stays in the log and is never delivered. The first that holds counts."""

_NO_PLACES = np.zeros(0, np.int64)


@dataclass(frozen=True)
class SegmentLoss:
    """What a start takes of one segment. Picklable.

    cut: position from which on all messages go; None: none does.  unreached: by queue, (first, last) position of each run of
    messages without an entry, ascending.  timers: physical offsets of timer messages that are never delivered, ascending.
    """

    cut: int | None = None
    unreached: Mapping[QueueKey, np.ndarray] = field(default_factory=dict)
    timers: np.ndarray = field(default_factory=lambda: _NO_PLACES)

    def __bool__(self) -> bool:
        return self.cut is not None or bool(self.unreached) or bool(len(self.timers))

    def of_rows(self, rows: np.ndarray, keys: Sequence[QueueKey]) -> np.ndarray:
        """KEPT, CUT, UNREACHABLE or UNDELIVERED of each decoded row. keys: (topic, queue id) by topic reference."""
        found = np.zeros(len(rows), np.int8)
        if len(self.timers):
            found[np.isin(rows["phy_offset"], self.timers)] = UNDELIVERED
        if self.unreached:
            transaction = rows["sys_flag"] & layout.SYS_TRANSACTION_MASK
            queued = (transaction != layout.SYS_PREPARED) & (transaction != layout.SYS_ROLLBACK)
            for ref in np.unique(rows["topic_ref"]).tolist():
                runs = self.unreached.get(keys[ref])
                if runs is None:
                    continue
                own = np.flatnonzero(queued & (rows["topic_ref"] == ref))
                at = rows["position"][own]
                run = np.searchsorted(runs[:, 0], at, side="right") - 1
                found[own[(run >= 0) & (at <= runs[np.maximum(run, 0), 1])]] = UNREACHABLE
        if self.cut is not None:
            found[rows["position"] >= self.cut] = CUT
        return found


NO_LOSS = SegmentLoss()
