"""Reads rows of the table `segments`, which an outcome has, as values: for pages, texts and steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.rows import EXTENT_MESSAGE, Extent, Row


@dataclass(frozen=True, slots=True)
class SegmentRead:
    """A segment as its row has it. What is null there is 0, "" or empty here.

    first_store_time, last_store_time: of its messages, ms; None without one.
    """

    path: str
    base_offset: int
    size: int
    modified_ns: int
    bytes_read: int
    digest: str
    problem: str
    messages: int
    damaged_bytes: int
    first_store_time: int | None
    last_store_time: int | None
    extents: tuple[Extent, ...]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def end(self) -> int:
        """Return the physical offset after its last byte."""
        return self.base_offset + self.size

    @property
    def message_end(self) -> int | None:
        """Return the physical offset after its last message; None without one."""
        ends = (self.base_offset + extent.end for extent in self.extents if extent.kind == EXTENT_MESSAGE)
        return max(ends, default=None)


def segments_read(rows: Iterable[Row]) -> list[SegmentRead]:
    """Return the values of rows, in their order."""
    return [
        SegmentRead(
            str(row.get("file") or ""),
            row.get("base_offset") or 0,
            row.get("size_bytes") or 0,
            row.get("modified_ns") or 0,
            row.get("bytes_read") or 0,
            row.get("digest") or "",
            row.get("problem") or "",
            row.get("messages") or 0,
            row.get("damaged_bytes") or 0,
            row.get("first_store_time_ms"),
            row.get("last_store_time_ms"),
            tuple(Extent(**extent) for extent in row.get("extents") or ()),
        )
        for row in rows
    ]
