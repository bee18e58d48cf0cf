"""The acts on the copy that make the log of a new store, each a step of the repair.

The questions of a repair about one segment.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.layouts.commitlog_layout import MAGIC_BLANK_BYTES
from schemas.layouts.store_names import COMMITLOG
from schemas.repair import Bridge, DroppedMessage, RepairStep
from schemas.rows import EXTENT_MESSAGE, Extent, QueueKey, SegmentSummary
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import ByteSource
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 1 << 20


def segment_path(base: int) -> str:
    """Return the path that a broker gives the segment."""
    return f"{COMMITLOG}/{base:020d}"


def filler(size: int) -> bytes:
    """Return the head of a filler of that many bytes."""
    return size.to_bytes(4, "big") + MAGIC_BLANK_BYTES


def message_extents(summary: SegmentSummary) -> list[Extent]:
    """Return the ranges of the segment that hold messages."""
    return [e for e in summary.extents if e.kind == EXTENT_MESSAGE]


@contextlib.contextmanager
def window_of(source: ByteSource, path: str) -> Iterator[SegmentWindow]:
    """Yield the segment, open to be read in parts."""
    with source.open(path) as file:
        yield SegmentWindow(file, file.size, WINDOW_BYTES)


class Edit(NamedTuple):
    """One act. act: carries it out."""

    step: RepairStep
    act: Callable[[StoreWriter], None]


@dataclass
class LogPlan:
    """The new log as a plan.

    end: the physical offset after the last message, 0 if no message stays.
    messages: how many stay, without bridges.
    added: by queue the records that the audit of the copy did not accept: bridges, and messages that the repair makes whole.
    padded_from: the end without added segments.
    """

    edits: list[Edit] = field(default_factory=list)
    start: int = 0
    end: int = 0
    messages: int = 0
    bridges: list[Bridge] = field(default_factory=list)
    dropped: list[DroppedMessage] = field(default_factory=list)
    added: Counter[QueueKey] = field(default_factory=Counter)
    zeroed_bytes: int = 0
    padded_from: int | None = None

    @property
    def own_end(self) -> int:
        return self.end if self.padded_from is None else self.padded_from

    def add_bridge(self, base: int, start: int, end: int, kind: str, store_time: int | None = None) -> None:
        """Note for the report what fills [start, end) of the segment that begins at `base`."""
        self.bridges.append(Bridge(segment_path(base), start, end, base + start, kind, store_time))


def apply_edits(work: Work, edits: Sequence[Edit]) -> None:
    """Carry the edits out on the copy. Raises WriteFailed."""
    for edit in edits:
        work.steps.take(edit.step)
        edit.act(work.writer)
