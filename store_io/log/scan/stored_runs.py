"""Keeps the runs of segment summaries in a temporary file, and packs summaries for their way between processes.

Where neighbouring messages differ, each is a run of its own. A summary has a run per queue at least, of 113 bytes; ten million of
them would exceed what Spark takes as a job's result. So pickles are small, and summaries share what they have in common.
"""

from __future__ import annotations

import copyreg
import zlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from schemas.rows import RUN_DTYPE, QueueKey, SegmentSummary
from store_io.base.spill import bytes_of, spill

PACKED_FROM = 64  # runs; fewer are sent as they are
MOST_HELD = 1 << 18  # runs of one store that stay in memory, of 113 bytes each


def _reduce(summary: SegmentSummary) -> tuple[Callable[..., SegmentSummary], tuple[Any, ...]]:
    values = {f.name: getattr(summary, f.name) for f in fields(summary)}
    if len(summary.runs) < PACKED_FROM:
        return _rebuild, (values,)
    runs = values.pop("runs")
    return _rebuild, (values, len(runs), pack_runs(runs))


def _rebuild(values: dict[str, Any], count: int = 0, packed: bytes = b"") -> SegmentSummary:
    if count:
        values["runs"] = unpack_runs(packed, count)
    return SegmentSummary(**values)


def pack_runs(runs: np.ndarray) -> bytes:
    """Return runs in little room."""
    # Byte by byte across all runs: neighbours' high bytes are equal.
    planes = [
        np.ascontiguousarray(runs[name]).view(np.uint8).reshape(len(runs), -1).T.tobytes() for name in RUN_DTYPE.names or ()
    ]
    return zlib.compress(b"".join(planes), 1)


def unpack_runs(packed: bytes, count: int) -> np.ndarray:
    """Return `count` runs from the bytes of `pack_runs`."""
    runs, data, at = np.empty(count, RUN_DTYPE), np.frombuffer(zlib.decompress(packed), np.uint8), 0
    for name in RUN_DTYPE.names or ():
        size = RUN_DTYPE[name].itemsize * count
        planes = data[at : at + size].reshape(-1, count)
        runs[name] = np.ascontiguousarray(planes.T).view(RUN_DTYPE[name])[:, 0]
        at += size
    return runs


def register(kind: type[SegmentSummary]) -> None:
    """Pickle such summaries in this way."""
    copyreg.pickle(kind, _reduce)


register(SegmentSummary)


class KeyTable:
    """Lets summaries share the queues that they name: each has thousands, and mostly the same."""

    def __init__(self) -> None:
        self._keys: dict[QueueKey, QueueKey] = {}
        self._last: list[QueueKey] = []

    def share(self, summary: SegmentSummary) -> None:
        """Replace the summary's queues by equal ones that were met before."""
        if summary.queues == self._last:
            summary.queues = self._last
        else:
            self._last = summary.queues = [self._keys.setdefault(key, key) for key in summary.queues]


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
        """Return the summary, to be held."""
        if self._held + len(summary.runs) <= MOST_HELD:
            self._held += len(summary.runs)
            return summary
        return StoredSummary(summary, self)

    def opened(self, summary: StoredSummary) -> np.ndarray:
        """Return the runs of one."""
        last = self._last
        if last is None or last[0] is not summary:
            last = self._last = None  # never two of them
            last = self._last = summary, summary.read_runs()
        return last[1]
