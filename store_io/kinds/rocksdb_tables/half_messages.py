"""Half messages whose transactions lie in RocksDB, and the messages that mark them as done, as small rows (rocksdb.md 10).

Source: TransMessageRocksDBStore.buildTransIndex, makeOpMessageInner; TransRocksDBRecord.getKeyBytes (5.4.0, 5.5.0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.layouts.rocksdb_layout import DONE_TOPIC, HALF_TOPIC
from schemas.rows import QueueKey
from store_io.base.java.java_compat import decode_utf8
from store_io.kinds.rocksdb_tables.transaction_table import key_print
from store_io.log.records.message_columns import Columns
from store_io.log.scan.row_texts import properties_of
from store_io.source.segment_window import SegmentWindow

HALF_ROW = np.dtype(
    [
        ("phy_offset", "i8"),
        ("of", "i8"),  # of what marks one as done: the half message's; else its own
        ("store_time", "i8"),
        ("key", "u8"),  # `key_print` of the real topic and the unique key, as an entry has them
        ("size", "i4"),
        ("done", "?"),
    ]
)
NO_HALVES = np.zeros(0, HALF_ROW)
REAL_TOPIC, UNIQUE, OF = "REAL_TOPIC", "__transactionId__", "TRANS_OFFSET"


@dataclass(frozen=True)
class Told:
    """The facts about an entry that a half message, or its operation message, gives.

    of: the half message's physical offset.
    suffix: the bytes after that offset in the entry's key.
    """

    phy_offset: int
    of: int
    store_time: int
    suffix: bytes
    size: int
    done: bool

    @property
    def key(self) -> bytes:
        """Return the entry's key."""
        return struct.pack(">q", self.of) + self.suffix


def told_by(columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> Iterator[Told]:
    """Yield the half messages of one batch, and what marks such as done."""
    rows, wanted = _wanted(columns, keys)
    yield from (told for told in _each(rows, wanted, window) if told is not None)


def _wanted(columns: Columns, keys: Sequence[QueueKey]) -> tuple[np.ndarray, Mapping[int, bool]]:
    """Return (rows, topic reference -> whether these mark half messages as done)."""
    rows = columns.rows[: columns.count]
    wanted = {number: topic == DONE_TOPIC for number, (topic, _) in enumerate(keys) if topic in (HALF_TOPIC, DONE_TOPIC)}
    return rows[np.isin(rows["topic_ref"], list(wanted))] if wanted else rows[:0], wanted


def _each(rows: np.ndarray, wanted: Mapping[int, bool], window: SegmentWindow) -> Iterator[Told | None]:
    if not len(rows):
        return
    buffer, origin = properties_of(window, rows)
    for row, shift in zip(rows, origin.tolist(), strict=True):
        at = int(row["position"]) + int(row["props_at"]) - shift
        yield _told(row, buffer[at : at + int(row["props_len"])].tobytes(), wanted[int(row["topic_ref"])])


class HalfCollector:
    """Collects at most `most` rows; what is beyond is counted in `dropped`."""

    def __init__(self, most: int):
        self._most = most
        self._parts: list[np.ndarray] = []
        self.count = self.dropped = 0

    def add(self, columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> None:
        """Take the messages of one batch."""
        rows, wanted = _wanted(columns, keys)
        if not len(rows):
            return
        kept = min(len(rows), self._most - self.count)
        self.dropped += len(rows) - kept
        found = np.zeros(kept, HALF_ROW)
        used = 0
        for one in _each(rows[:kept], wanted, window):
            if one is not None:
                found[used] = one.phy_offset, one.of, one.store_time, key_print(one.suffix), one.size, one.done
                used += 1
        self._parts.append(found[:used])
        self.count += kept

    @property
    def rows(self) -> np.ndarray:
        """Return the rows in the order of the log: HALF_ROW."""
        return np.concatenate([NO_HALVES, *self._parts])


def _told(row: np.void, properties: bytes, done: bool) -> Told | None:
    """Return what the properties say of a half message; None for a message that a broker passes over."""
    pairs = (piece.partition("\1")[::2] for piece in decode_utf8(properties).split("\2"))
    told = dict(pairs)
    topic, unique = told.get(REAL_TOPIC, ""), told.get(UNIQUE, "")
    own = int(row["phy_offset"])
    of = told.get(OF, "") if done else str(own)
    if not topic or not unique or not of.isascii() or not of.isdigit() or len(of) > 18:
        return None
    suffix = f"@{topic}@{unique}".encode("utf-8", "surrogatepass")
    return Told(own, int(of), int(row["store_time"]), suffix, int(row["total_size"]), done)
