"""The work that a kind of files may have a segment's scan do: hold messages against its own entries, or collect some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.rows import Extent, QueueKey, SegmentSummary
from store_io.base.findings import Findings
from store_io.broker.message_verdict import Verdict
from store_io.log.records.message_columns import Columns
from store_io.source.byte_source import ByteSource
from store_io.source.segment_window import SegmentWindow


@dataclass(frozen=True)
class SegmentPlace:
    """A segment and its place in the log.

    base_offset: the physical offset of its first byte.
    log_end: the physical offset of the log's end.
    """

    path: str
    base_offset: int
    size: int
    log_end: int

    def holds(self, phy_offset: int) -> bool:
        """Say whether that offset lies in it."""
        return self.base_offset <= phy_offset < self.base_offset + self.size


@dataclass(frozen=True)
class FollowedScan:
    """One scan of a segment, for those that follow its audit's walk.

    verdict: the audit's, of the record at a position.
    messages_from: messages that follow one another from a position on, in so many bytes or less, with hashes of their keys.
    """

    source: ByteSource
    place: SegmentPlace
    findings: Findings
    verdict: Callable[[int], Verdict]
    messages_from: Callable[[int, int], Columns]


class Following(Protocol):
    """Follows one scan."""

    def add(self, columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> None:
        """Take in the messages of one batch."""

    def finish(self, extents: Sequence[Extent], summary: SegmentSummary) -> None:
        """Add what was found to the segment's summary; all of the segment is read."""

    def close(self) -> None:
        """Give back what is open."""


class Follower(Protocol):
    """Follows the scans of all segments. Picklable; equal ones may share a scan."""

    def follow(self, scan: FollowedScan) -> Following:
        """Return what follows this scan."""
