"""Keeps what an audit's scan has met in a segment beside the new store, so that a rebuild need not read the segment once more.

The rows have the form in which a rebuild takes them: queue entries (`entry_rows.QUEUED_DTYPE`) and raw index entries, in the
order of the log. They hold as long as the audit itself does: a change of the log leads to another audit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from schemas.rows import QueueKey, SegmentSummary
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.repair.derived.entry_rows import WAITING_ROWS, QueuedRows, raw_index_entries
from store_io.repair.writing.store_writer import StoreFileWriter, StoreWriter, WriteFailed


@dataclass(frozen=True)
class KeptRows:
    """Two files of `writer` with the rows of one segment.

    rows: the number of queue entries in the first file.
    queues: by their number in these rows.
    keys: the number of index entries in the second file.
    """

    writer: StoreWriter
    path: str
    rows: int
    queues: Sequence[QueueKey]
    keys_path: str
    keys: int


@dataclass(frozen=True)
class KeptScan:
    """A scan's summary and its kept rows; None if they could not be written, or the scan has failed."""

    summary: SegmentSummary
    kept: KeptRows | None


@dataclass(frozen=True, kw_only=True)
class KeepingTask(SegmentTask):
    """A whole scan that keeps its rows. aside: the writer of their files.  folder: the folder of these files."""

    aside: StoreWriter
    folder: str

    @classmethod
    def of(cls, task: SegmentTask, aside: StoreWriter, folder: str) -> KeepingTask:
        """Return the same scan as one that keeps its rows."""
        return cls(**{field.name: getattr(task, field.name) for field in fields(task)}, aside=aside, folder=folder)

    def run(self) -> KeptScan:  # type: ignore[override]
        sink = _Keeping(self)
        try:
            summary = scan_segment(self, sink=sink)
            return KeptScan(summary, sink.finished() if not summary.problem else None)
        finally:
            sink.close()


class _Keeping:
    """A `dataset_rows.DatasetSink` that writes the rows.

    A disk without room ends the keeping and not the audit. More bytes than the segment has do the same: room is looked for only
    once.
    """

    want_keys = True

    def __init__(self, task: KeepingTask):
        self._task, self._waiting = task, QueuedRows()
        self._paths = [f"{task.folder}/{task.path}.{what}" for what in ("rows", "keys")]
        self._files: list[StoreFileWriter] = []
        self._counts, self._room = [0, 0], task.size
        self._queues: Sequence[QueueKey] = ()
        self._going = True
        try:
            for path in self._paths:
                task.aside.create(path, 0)
                self._files.append(task.aside.open(path))
        except WriteFailed:
            self._going = False

    def close(self) -> None:
        for file in self._files:
            try:
                file.close()
            except WriteFailed:
                self._going = False

    def add(self, scanned: ScannedRows) -> None:
        if self._going:
            if self._waiting.count + len(scanned.items) > WAITING_ROWS:
                self._put(0, self._waiting.as_met())
            self._waiting.add(scanned.items, scanned.kinds)
            self._queues = scanned.keys
            self._put(1, raw_index_entries(scanned.columns, self._task.rules.tag_index))

    def finished(self) -> KeptRows | None:
        """Return the kept rows once the scan has ended."""
        self._put(0, self._waiting.as_met())
        self.close()
        if not self._going:
            with contextlib.suppress(WriteFailed):  # the room that they take is needed
                for path in self._paths:
                    self._task.aside.remove(path)
            return None
        (path, keys_path), (rows, keys) = self._paths, self._counts
        return KeptRows(self._task.aside, path, rows, tuple(self._queues), keys_path, keys)

    def _put(self, number: int, entries: np.ndarray) -> None:
        self._room -= entries.nbytes
        if not self._going or self._room < 0:
            self._going = False
            return
        try:
            self._files[number].write(self._counts[number] * entries.itemsize, entries.view(np.uint8))
        except WriteFailed:
            self._going = False
        self._counts[number] += len(entries)
