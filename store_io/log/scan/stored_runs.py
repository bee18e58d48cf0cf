"""Segment summaries whose runs lie in a temporary file: where neighbouring messages differ, each is a run of its own."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from schemas.rows import SegmentSummary
from store_io.base.spill import bytes_of, spill
from store_io.log.scan.summary_pickle import pack_runs, register, unpack_runs

MOST_HELD = 1 << 18  # runs of one store that stay in memory, of 113 bytes each


class StoredSummary(SegmentSummary):
    """A summary whose `runs` are read when they are asked for, and must not be changed.

    `dataclasses.replace` does not take it.
    """

    def __init__(self, summary: SegmentSummary, shelf: RunShelf):
        values = {field.name: getattr(summary, field.name) for field in fields(summary)}
        runs = values.pop("runs")
        self.__dict__.update(values)
        self._shelf, self._count, self._data = shelf, len(runs), spill(pack_runs(runs))

    @property
    def runs(self) -> np.ndarray:  # type: ignore[override]
        """Return the runs, read back. Raises NotReadBack."""
        return self._shelf.opened(self)

    def read_runs(self) -> np.ndarray:
        return unpack_runs(bytes_of(self._data), self._count)


register(StoredSummary)


class RunShelf:
    """The runs of one store: those of the first segments in memory, all others in temporary files.

    The segment that was asked for last is in memory, too.
    """

    def __init__(self) -> None:
        self._held = 0
        self._last: tuple[StoredSummary, np.ndarray] | None = None

    def of(self, summary: SegmentSummary) -> SegmentSummary:
        """The summary, to be held."""
        if self._held + len(summary.runs) <= MOST_HELD:
            self._held += len(summary.runs)
            return summary
        return StoredSummary(summary, self)

    def opened(self, summary: StoredSummary) -> np.ndarray:
        """The runs of one."""
        last = self._last
        if last is None or last[0] is not summary:
            last = self._last = None  # never two of them
            last = self._last = summary, summary.read_runs()
        return last[1]
