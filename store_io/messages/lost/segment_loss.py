"""The loss of one segment by a start, as places: who reads the segment asks it row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.layouts.timer_layout import TIMER_TOPIC
from schemas.rows import QueueKey

KEPT, CUT, UNREACHABLE, UNDELIVERED = range(4)
LOSSES = ("kept", "cut", "unreachable", "undelivered")
"""By these numbers what becomes of a message: cut with the log's end; left in the log without a queue entry; a timer
message that stays in the log and is never delivered. The first that holds counts."""

WAITING_TOPICS = frozenset((layout.SCHEDULE_TOPIC, TIMER_TOPIC))
"""Where a delayed or timer message waits for its delivery."""

COPY_STAYS, PASSED, TIMERS_HAVE_IT = range(3)
SPARED = (
    "its delivered copy stays in the log",
    "delayOffset.json has passed it, so that it was delivered",
    "the broker's timers still hold it and deliver it",
)
"""By these numbers why a lost delayed or timer message is not sent again."""
UNSURE = "too many delayed and timer messages are lost to look for each one's delivered copy, which may stay in the log"

_NO_PLACES = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Spared:
    """Lost delayed and timer messages that are not to be sent again. Picklable.

    places: physical offsets, ascending.
    reasons: for each its number in SPARED.
    unsure_from: from this physical offset on they were too many to be looked for; None: they were not.
    """

    places: np.ndarray = field(default_factory=lambda: _NO_PLACES)
    reasons: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))
    unsure_from: int | None = None

    def why_not(self, topic: str, phy_offset: int) -> str | None:
        """Return why the lost message there is not to be sent; None: nothing speaks against it."""
        if topic not in WAITING_TOPICS:
            return None
        if self.unsure_from is not None and phy_offset >= self.unsure_from:
            return UNSURE
        at = int(np.searchsorted(self.places, phy_offset))
        return SPARED[self.reasons[at]] if at < len(self.places) and self.places[at] == phy_offset else None

    def within(self, low: int, high: int) -> Spared:
        """Return the part between two physical offsets."""
        part = slice(*np.searchsorted(self.places, [low, high]).tolist())
        return Spared(self.places[part], self.reasons[part], self.unsure_from)


NONE_SPARED = Spared()


@dataclass(frozen=True)
class SegmentLoss:
    """The messages that a start takes of one segment. Picklable.

    cut: the position from which on all messages go; None: none does.
    unreached: by queue, (first, last) position of each run of messages without an entry, ascending.
    timers: physical offsets of timer messages that are never delivered, ascending.
    spared: those that are not to be sent again; none if nobody looked.
    """

    cut: int | None = None
    unreached: Mapping[QueueKey, np.ndarray] = field(default_factory=dict)
    timers: np.ndarray = field(default_factory=lambda: _NO_PLACES)
    spared: Spared = NONE_SPARED

    def __bool__(self) -> bool:
        return self.cut is not None or bool(self.unreached) or bool(len(self.timers))

    def of_rows(self, rows: np.ndarray, keys: Sequence[QueueKey]) -> np.ndarray:
        """Return KEPT, CUT, UNREACHABLE or UNDELIVERED of each decoded row. keys: (topic, queue id) by topic reference."""
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
