"""Scans of a store as plain values that travel to the place of reading. Imports nothing heavy: planners load it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from schemas.rows import MappedFile
from schemas.sources import BODY_COLUMNS, LOST, MESSAGES
from store_io.broker.releases import BrokerRules, broker_rules
from store_io.messages.lost.segment_loss import SegmentLoss
from store_io.messages.message_filter import ALL, EVERY_MESSAGE, MessageFilter, Range
from store_io.source.byte_source import StoreLocation

WINDOW_BYTES = 4 << 20
MAX_BODY_BYTES = 64 << 20  # a broker's default limit is 4 MiB

NOTE = "note"  # the column of what is to be said of a message as a broker serves it
COLUMNS = {column.name: column for column in MESSAGES}
DEFAULT_COLUMNS = tuple(name for name in COLUMNS if name not in (*BODY_COLUMNS, LOST))
"""Columns that are given where none are chosen: all but the bodies, and but what only an audit knows."""


@dataclass(frozen=True)
class MessageScan:
    """One segment to read. Picklable.

    path, base_offset, size: as listed.
    columns: names of `schemas.sources.MESSAGES`, in the order in which they are wanted.
    decompress: bodies as producers sent them instead of as they are stored.
    unpack: the messages of an inner batch instead of the batch; one that cannot be unpacked stays as it is.
    rules: of the store: how records are framed, delays for tags codes.
    loss: what a start takes of the segment, for the column `lost`; None: not asked.
    only_lost: nothing but that.
    begin: position of a message that an earlier scan has found, before which nothing is read.
    plausible: whether that message was found after damage.
    """

    location: StoreLocation
    path: str
    base_offset: int
    size: int
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    wanted: MessageFilter = EVERY_MESSAGE
    decompress: bool = False
    unpack: bool = False
    rules: BrokerRules = field(default_factory=broker_rules)
    max_body_bytes: int = MAX_BODY_BYTES
    window_bytes: int = WINDOW_BYTES
    decoder: str = ""
    loss: SegmentLoss | None = None
    only_lost: bool = False
    begin: int = 0
    plausible: bool = False

    def of(self, file: MappedFile, loss: SegmentLoss | None = None) -> MessageScan:
        """Return the scan of this segment."""
        return replace(self, path=file.path, base_offset=file.start, size=file.size, loss=loss)


@dataclass(frozen=True)
class EntryScan:
    """The entries to read. Picklable.

    phy_offsets: only entries that lead there.
    """

    location: StoreLocation
    rules: BrokerRules
    phy_offsets: Range = ALL
