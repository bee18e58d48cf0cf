"""Walks a segment: decodes it batch by batch through a bounded window, up to the first frame that is refused.

The audit and whoever reads messages for other purposes walk alike, so they find the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.layouts import commitlog_layout as layout
from store_io.broker.message_verdict import VALID, Verdict
from store_io.log.records import commitlog_columns, commitlog_reader
from store_io.log.records.message_columns import (
    DEFAULT_CAPACITY,
    FULL,
    HAS_MULTI_DISPATCH,
    MALFORMED_PROPERTIES,
    NEED_MORE,
    ODD_HEADER,
    Columns,
    RecordCheck,
    Stop,
    Stretch,
    TopicTable,
    append_message,
)
from store_io.source.segment_window import SegmentWindow

FIRST_REACH = 4096
LOOKED_INTO = HAS_MULTI_DISPATCH | MALFORMED_PROPERTIES | ODD_HEADER  # of a row with such a flag a scan reads the message's bytes

Decoder = Callable[[Stretch, RecordCheck, Columns, TopicTable], Stop]
FAST, REFERENCE = "fast", "reference"  # FAST, unless a test or a measurement asks for the other one


def decoder_of(name: str) -> Decoder:
    """Return FAST or REFERENCE as the function that decodes."""
    return {FAST: commitlog_columns.decode, REFERENCE: commitlog_reader.decode}[name]


def capacity_for(window_bytes: int) -> int:
    """Return how many rows a decoder needs room for, so that the window is what bounds a batch."""
    return min(DEFAULT_CAPACITY, window_bytes // layout.MIN_SIZE_V1_BYTES + 2)


@dataclass(frozen=True)
class Decoding:
    """The parts of one decoding walk: the decoder, the window to read through, the columns and topics to fill."""

    decode: Decoder
    window: SegmentWindow
    columns: Columns
    topics: TopicTable


def walk_batches(
    decoding: Decoding, check: RecordCheck, start: int, limit: int, gathered: int = 0
) -> Generator[int, None, tuple[int, Verdict]]:
    """Decode from `start` on; gives the number of rows in `columns`, again and again, until a frame is refused.

    gathered: rows of several windows are given together until there are so many. The window then holds only what was read last;
    earlier bytes are read from the file again if something asks for them. So a row whose bytes are read (`LOOKED_INTO`) ends
    the batch.

    The generator's value is then (position of that frame, the verdict). The rows are good until the next step.
    A frame larger than the window goes through the reference, which reads it in pieces, so the buffer never grows.
    A walk inside of a segment mostly begins after damage, and more may follow: it looks FIRST_REACH bytes ahead, and twice as
    far each time, so it decodes in vain no more than it has walked. A frame larger than that is the reference's, too.
    """
    decode, window, columns, topics = decoding.decode, decoding.window, decoding.columns, decoding.topics
    at, reach = start, FIRST_REACH if start else len(window.buffer)
    columns.clear()
    if at > limit:
        return at, check.verdict(window, at, limit)
    while True:
        if not window.start <= at <= window.end or (at == window.end and at < limit):
            window.hold(at)
        begin, end = at, min(window.end, limit, at + reach)
        stop = decode(Stretch(window.buffer, window.start, at, end, end == limit), check, columns, topics)
        at = stop.position
        if end < min(window.end, limit) and stop.kind == NEED_MORE:  # the reach ended it, not the window
            refill, further = False, at > begin
            reach *= 2
        else:
            refill = stop.kind == NEED_MORE and at > window.start and stop.need_bytes <= len(window.buffer)
            further = False
        verdict = None
        if not further and stop.kind != FULL and not refill:
            verdict = check.verdict(window, at, limit)
            if verdict.kind == VALID and verdict.message is not None and not columns.full:
                append_message(columns, topics, verdict.message, window, check)
                at += verdict.size
                continue
        if columns.count and not (refill and columns.count < gathered and not columns.flags & LOOKED_INTO):
            yield columns.count
            columns.clear()
        if verdict is not None and verdict.kind != VALID:
            return at, verdict
        if refill:
            window.hold(at)


def whole_messages_end(check: RecordCheck, window: SegmentWindow, start: int, limit: int) -> int:
    """Return the end of the last valid message that ends at or before `limit`.

    The messages follow one another from `start` on.
    """
    at = start
    while at < limit:
        verdict = check.verdict(window, at, window.size)
        if verdict.kind != VALID or at + verdict.size > limit:
            break
        at += verdict.size
    return at


class StrayChain(NamedTuple):
    """Messages that are valid but for their stored physical offset.

    end: the position after the last of them.
    valid_follows: whether one with the right offset is there.
    """

    end: int
    messages: int
    valid_follows: bool


def stray_chain(decoding: Decoding, check: RecordCheck, start: int) -> StrayChain:
    """Return the stray messages from `start` on. check: the audit's of this segment."""
    met = 0
    batches = walk_batches(decoding, check.without_place(), start, decoding.window.size)
    while True:
        try:
            rows = decoding.columns.rows[: next(batches)]
        except StopIteration as end:
            return StrayChain(end.value[0], met, False)
        own = np.flatnonzero(rows["phy_offset"] == check.base_offset + rows["position"])
        if len(own):
            return StrayChain(int(rows["position"][own[0]]) - check.framing.header_bytes, met + int(own[0]), True)
        met += len(rows)
