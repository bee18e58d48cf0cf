"""Half messages of a stretch of their queue, and the numbers in operation messages that decide such, as small rows.

Source: TransactionalMessageServiceImpl.needDiscard, getImmunityTime and fillOpRemoveMap, 4.6.1 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.layouts.commitlog_layout import HALF_TOPIC, OPERATION_TOPIC
from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import decode_utf8, parse_number, split_dropping_tail
from store_io.base.tasks import OfScan
from store_io.broker.message_verdict import parse_properties
from store_io.log.scan.batch_items import part_of
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_all
from store_io.source.byte_source import open_source

HALVES: QueueKey = (HALF_TOPIC, 0)  # a broker has one queue of each
OPERATIONS: QueueKey = (OPERATION_TOPIC, 0)
HALF_ROW = np.dtype(
    [
        ("queue_offset", "i8"),
        ("born_time", "i8"),
        ("checks", "i8"),  # how often the producer was asked; -1: never, or no number
        ("immunity", "i8"),  # seconds for which the producer is not asked; -1: no number; NO_IMMUNITY: nothing says it
    ]
)
OPERATION_ROW = np.dtype(
    [
        ("queue_offset", "i8"),  # of the operation message, which has a row for each of its numbers
        ("half", "i8"),  # the queue offset of the half message that it decides; -1: none of the stretch
        ("born_time", "i8"),
    ]
)
NO_HALVES, NO_OPERATIONS = np.zeros(0, HALF_ROW), np.zeros(0, OPERATION_ROW)
NO_IMMUNITY = np.iinfo(np.int64).min
CHECKS, IMMUNITY = "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS"
REMOVE_TAG = b"d"


@dataclass(frozen=True)
class HalfStretch:
    """The parts of the two queues that are wanted: queue offsets, half-open.

    end: messages from this physical offset on are not there after a start.
    lists: an operation message may name several half messages.
    """

    halves: tuple[int, int]
    operations: tuple[int, int]
    end: int
    lists: bool

    @property
    def empty(self) -> bool:
        """Say whether no message is wanted."""
        return self.halves[0] >= self.halves[1] and self.operations[0] >= self.operations[1]


@dataclass
class HalfRows:
    """Rows of both queues. dropped: how many are beyond the bound. parts: of so many tasks together."""

    halves: np.ndarray = field(default_factory=lambda: NO_HALVES)
    operations: np.ndarray = field(default_factory=lambda: NO_OPERATIONS)
    dropped: int = 0
    parts: int = 0
    bytes_read: int = 0
    problem: Gap | None = None

    def __add__(self, other: HalfRows) -> HalfRows:
        return HalfRows(
            np.concatenate([self.halves, other.halves]),
            np.concatenate([self.operations, other.operations]),
            self.dropped + other.dropped,
            max(self.parts, other.parts),
            self.bytes_read + other.bytes_read,
            self.problem or other.problem,
        )


@dataclass(frozen=True)
class HalfTask(OfScan):
    """The task that collects the rows of one segment, at most so many of each queue. parts: how many tasks there are."""

    scan: SegmentTask
    stretch: HalfStretch
    most: int
    parts: int
    not_after: float = 0

    def run(self) -> HalfRows:
        sink = _Sink(self.stretch, self.most)
        try:
            read, problem = scan_all((self.scan,), open_source(self.scan.location), sink)
        except StoreError as why:
            return HalfRows(parts=self.parts, problem=why.gap())
        halves, operations = np.array(sink.halves, HALF_ROW), np.array(sink.operations, OPERATION_ROW)
        return HalfRows(halves, operations, sink.dropped, self.parts, read, problem)


class _Sink:
    want_keys = False

    def __init__(self, stretch: HalfStretch, most: int):
        self._stretch, self._most = stretch, most
        self.halves: list[tuple[int, int, int, int]] = []
        self.operations: list[tuple[int, int, int]] = []
        self.dropped = 0

    def add(self, scanned: ScannedRows) -> None:
        """Take the messages of one batch."""
        for row in self._rows(scanned, HALVES, self._stretch.halves):
            if len(self.halves) == self._most:
                self.dropped += 1
                continue
            properties = parse_properties(decode_utf8(part_of(scanned.window, row, "props")))
            immunity, checks = properties.get(IMMUNITY), properties.get(CHECKS, "")
            self.halves.append(
                (
                    int(row["queue_offset"]),
                    int(row["born_time"]),
                    _number(checks, 32),
                    NO_IMMUNITY if immunity is None else _number(immunity),
                )
            )
        for row in self._rows(scanned, OPERATIONS, self._stretch.operations):
            decided = list(self._decided(scanned, row))
            kept = decided[: max(0, self._most - len(self.operations))]
            self.dropped += len(decided) - len(kept)
            self.operations += [(int(row["queue_offset"]), half, int(row["born_time"])) for half in kept]

    def _rows(self, scanned: ScannedRows, key: QueueKey, wanted: tuple[int, int]) -> np.ndarray:
        rows = scanned.columns.rows[: scanned.columns.count]
        refs = [number for number, own in enumerate(scanned.keys) if own == key]
        offset = rows["queue_offset"]
        own = np.isin(rows["topic_ref"], refs) & (offset >= wanted[0]) & (offset < wanted[1])
        found: np.ndarray = rows[own & (rows["phy_offset"] < self._stretch.end)]
        return found

    def _decided(self, scanned: ScannedRows, row: np.void) -> Iterator[int]:
        """Yield the numbers in an operation message that name half messages of the stretch, else -1."""
        low, high = self._stretch.halves
        found = False
        if part_of(scanned.window, row, "tags") == REMOVE_TAG:
            text = decode_utf8(part_of(scanned.window, row, "body"))
            for part in split_dropping_tail(text, ",") if self._stretch.lists else [text]:
                number = _number(part)
                if low <= number < high:
                    found = True
                    yield number
        if not found:
            yield -1


def _number(text: str, bits: int = 64) -> int:
    """Return the number, as Long.valueOf reads it; -1 if it is none."""
    number = parse_number(text, bits)
    return -1 if number is None else number
