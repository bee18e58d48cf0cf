"""Hours of messages that have entries in the index in RocksDB: its retention removes whole hours (rocksdb.md 10).

Source: IndexRocksDBStore.deleteExpiredIndex, MessageRocksDBStorage.deleteRecordsForIndex (5.4.0, 5.5.0).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schemas.layouts.rocksdb_layout import HOUR_MS
from store_io.base.fingerprints import Stretches

NO_SPANS = np.zeros((0, 2), np.int64)
WINDOW_MS = 168 * HOUR_MS  # from the first hour that retention removes at once to the last


@dataclass
class HourSpans:
    """The number, and the messages' first and last hour, of each stretch of the log with such messages."""

    stretch: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    spans: np.ndarray = field(default_factory=lambda: NO_SPANS)

    def __add__(self, other: HourSpans) -> HourSpans:
        if not len(other.stretch):
            return self
        stretch, place = np.unique(np.concatenate([self.stretch, other.stretch]), return_inverse=True)
        all_spans = np.concatenate([self.spans, other.spans])
        spans = np.tile(np.array([[np.iinfo(np.int64).max, -1]]), (len(stretch), 1))
        np.minimum.at(spans[:, 0], place, all_spans[:, 0])
        np.maximum.at(spans[:, 1], place, all_spans[:, 1])
        return HourSpans(stretch, spans)

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Return (first hour, last hour) of these stretches; (0, -1) of one without such messages."""
        found = np.tile(np.array([[0, -1]]), (len(numbers), 1))
        known = np.isin(self.stretch, numbers)
        found[np.searchsorted(numbers, self.stretch[known])] = self.spans[known]
        return found


def hour_spans(rows: np.ndarray, stretches: Stretches) -> HourSpans:
    """Return the spans of these rows of a scan."""
    rows = rows[(rows["uniq_len"] > 0) & (rows["store_time"] >= HOUR_MS)]
    hours = rows["store_time"] // HOUR_MS * HOUR_MS
    numbers = (rows["phy_offset"] - stretches.start) // stretches.size
    return HourSpans() + HourSpans(numbers, np.stack([hours, hours], axis=1).astype(np.int64))


@dataclass(frozen=True)
class AbsentHours:
    """The hours without any index entry, though there should be entries.

    count: entries that are not there, of hours of which none is.
    first, last: the first and the last of these hours.
    """

    count: int = 0
    first: int = 0
    last: int = 0

    def __add__(self, other: AbsentHours) -> AbsentHours:
        if not self.count or not other.count:
            return self if self.count else other
        return AbsentHours(self.count + other.count, min(self.first, other.first), max(self.last, other.last))

    def by_retention(self, there: np.ndarray | None, ran_until: int) -> bool:
        """Say whether retention may have removed them: one window of whole hours, an hour or more before this time. there: hours
        with entries, ascending; the next ones on both sides are further apart than the window."""
        if there is None or self.last - self.first > WINDOW_MS or self.last + HOUR_MS > ran_until:
            return False
        place = int(np.searchsorted(there, self.first))
        if place != int(np.searchsorted(there, self.last)):
            return False
        return place in (0, len(there)) or bool(there[place] - there[place - 1] > WINDOW_MS + HOUR_MS)
