"""The questions of a repair about one segment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from schemas.commitlog_layout import MAGIC_BLANK_BYTES
from schemas.rows import EXTENT_MESSAGE, Extent, SegmentSummary
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


@contextlib.contextmanager
def window_of(source: ByteSource, path: str) -> Iterator[SegmentWindow]:
    """The segment, open to be read in parts."""
    with source.open(path) as file:
        yield SegmentWindow(file, file.size, WINDOW_BYTES)
