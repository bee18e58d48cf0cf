"""What a repair asks of one segment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from schemas.commitlog_layout import MAGIC_BLANK_BYTES
from schemas.rows import EXTENT_MESSAGE, RUN_LMQ, WALK_AUDIT, Extent, SegmentSummary
from schemas.store_names import COMMITLOG
from store_io.source.byte_source import ByteSource
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 1 << 20


def segment_path(base: int) -> str:
    """The path that a broker gives the segment."""
    return f"{COMMITLOG}/{base:020d}"


def filler(size: int) -> bytes:
    """The head of a filler of that many bytes."""
    return size.to_bytes(4, "big") + MAGIC_BLANK_BYTES


def message_extents(summary: SegmentSummary) -> list[Extent]:
    """The ranges of the segment that hold messages."""
    return [e for e in summary.extents if e.kind == EXTENT_MESSAGE]


def message_runs(summary: SegmentSummary) -> np.ndarray:
    """The runs of the audit's walk in which each message is once."""
    runs = summary.runs
    found: np.ndarray = runs[(runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_LMQ)]
    return found


def runs_from(summary: SegmentSummary, position: int) -> np.ndarray:
    """Those that begin at that position or later."""
    runs = message_runs(summary)
    found: np.ndarray = runs[runs["first_position"] >= position]
    return found


@contextlib.contextmanager
def window_of(source: ByteSource, path: str) -> Iterator[SegmentWindow]:
    """The segment, open to be read in parts."""
    with source.open(path) as file:
        yield SegmentWindow(file, file.size, WINDOW_BYTES)
