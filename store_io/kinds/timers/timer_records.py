"""Timer messages of a segment and their delivered copies, as small rows that can be matched (timer.md 6).

Source: TimerMessageStore.enqueue, convert, convertMessage (5.1.4 to 5.5.0). A delivered copy keeps body, born time, unique key
and TIMER_OUT_MS of its message; so has a timer message that was rolled on. TIMER_DEQUEUE_MS has only what the wheel delivers,
not what comes from RocksDB (TimerMessageRocksDBStore.convertMessage, 5.4.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.layouts.timer_layout import TIMER_TOPIC
from schemas.rows import Extent, QueueKey, SegmentSummary
from store_io.base import fingerprints
from store_io.base.compiled.native import compiled_helper, kept
from store_io.base.fingerprints import SEED, fold_bytes
from store_io.log.records.message_columns import Columns
from store_io.log.scan.followers import FollowedScan
from store_io.log.scan.row_texts import properties_of
from store_io.source.segment_window import SegmentWindow

DELIVERED = 1  # a copy in its real topic
ROLLED = 2  # a timer message that was put again
DELETES = 4  # a timer message that cancels another: `unique` is that one's
NO_HASH = 8  # its topic is no plain text, so that `topic_hash` is not known

TIMER_ROW = np.dtype(
    [
        ("identity", "u8"),  # of message and copy the same
        ("unique", "u8"),  # `fold_bytes` of the unique key alone; 0 without one
        ("phy_offset", "i8"),
        ("queue_offset", "i8"),
        ("out_time", "i8"),  # ms; -1: no number
        ("size", "i4"),
        ("topic_hash", "i4"),  # of REAL_TOPIC, as a unit has it
        ("flags", "u1"),
    ]
)
NO_ROWS = np.zeros(0, TIMER_ROW)
MOST_DIGITS = 18
_OTHER, _TIMER, _NONE = 0, 1, 2  # queues: may hold copies; holds timer messages; of the timer topic, and read by no timer

_OUT = np.frombuffer(b"TIMER_OUT_MS", np.uint8)
_ROLL = np.frombuffer(b"TIMER_ROLL_TIMES", np.uint8)
_LABEL = np.frombuffer(b"TIMER_ROLL_LABEL", np.uint8)
_CANCEL = np.frombuffer(b"TIMER_DEL_UNIQKEY", np.uint8)
_TOPIC = np.frombuffer(b"REAL_TOPIC", np.uint8)


class TimerRecords:
    """Collects at most `most` rows of a segment; what is beyond is counted in `dropped`."""

    def __init__(self, most: int):
        self._most = most
        self._parts: list[np.ndarray] = []
        self._refs = np.zeros(0, np.uint8)
        self.count = self.dropped = 0

    def add(self, columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> None:
        """Take the messages of one batch."""
        rows = columns.rows[: columns.count]
        if not len(rows):
            return
        if len(keys) > len(self._refs):
            kinds = (_OTHER if topic != TIMER_TOPIC else _NONE if queue else _TIMER for topic, queue in keys)
            self._refs = np.array([*kinds], np.uint8)
        buffer, origin = properties_of(window, rows)
        found = np.zeros(len(rows), TIMER_ROW)
        count = _collect(rows, self._refs, buffer, origin, found, _OUT, _ROLL, _LABEL, _CANCEL, _TOPIC)
        kept = min(count, self._most - self.count)
        self._parts.append(found[:kept].copy())
        self.count += kept
        self.dropped += count - kept

    @property
    def rows(self) -> np.ndarray:
        """Return the rows in the order of the log: TIMER_ROW."""
        return np.concatenate([NO_ROWS, *self._parts])

    def finish(self, extents: Sequence[Extent], summary: SegmentSummary) -> None:
        summary.timers, summary.timers_dropped = self.rows, self.dropped

    def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(frozen=True)
class TimerCollector:
    """Collects timer messages and copies of all segments, of each at most so many."""

    most: int

    def follow(self, scan: FollowedScan) -> TimerRecords:
        return TimerRecords(self.most)


@compiled_helper()
def _is(buffer, at, end, name):  # type: ignore[no-untyped-def]
    if end - at != len(name):
        return False
    for i in range(len(name)):
        if buffer[at + i] != name[i]:
            return False
    return True


@compiled_helper()
def _mix(value, number):  # type: ignore[no-untyped-def]
    value = (value ^ np.uint64(number)) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@kept(fingerprints)
def _collect(rows, refs, buffer, origin, found, out_name, roll_name, label_name, cancel_name, topic_name):  # type: ignore[no-untyped-def]
    """Fill one element of `found` for each timer message and each delivered copy: how many."""
    count = 0
    for i in range(len(rows)):
        row = rows[i]
        if refs[row.topic_ref] == _NONE:
            continue
        timer = refs[row.topic_ref] == _TIMER
        at = row.position + row.props_at - origin[i]
        end = at + row.props_len
        out, flags = np.int64(-1), 0
        topic_hash, unique = np.int32(0), np.uint64(0)
        while at < end:
            name = at
            while at < end and buffer[at] != 1 and buffer[at] != 2:
                at += 1
            name_end = at
            if at < end and buffer[at] == 1:
                at += 1
            value = at
            while at < end and buffer[at] != 2:
                at += 1
            first = buffer[name] if name < name_end else 0
            if first == 0x54:  # T
                if _is(buffer, name, name_end, out_name) and 0 < at - value <= MOST_DIGITS:
                    out = np.int64(0)
                    for k in range(value, at):
                        digit = np.int64(buffer[k]) - 0x30
                        if digit < 0 or digit > 9:
                            out = np.int64(-1)
                            break
                        out = out * 10 + digit
                elif _is(buffer, name, name_end, roll_name) or _is(buffer, name, name_end, label_name):
                    flags |= ROLLED
                elif _is(buffer, name, name_end, cancel_name):
                    flags |= DELETES
                    start = value
                    for k in range(value, at):
                        if buffer[k] == 0x2B:  # topic+key since 5.3.1
                            start = k + 1
                    unique = fold_bytes(SEED, buffer, start, at)
            elif timer and first == 0x52 and _is(buffer, name, name_end, topic_name):  # R
                total = np.uint32(0)
                for k in range(value, at):
                    if buffer[k] >= 0x80:
                        flags |= NO_HASH
                    total = np.uint32(total * np.uint32(31) + np.uint32(buffer[k]))
                topic_hash = np.int32(total)
            at += 1
        if out < 0 and not timer:
            continue
        own = row.position + row.uniq_at - origin[i]
        own_hash = fold_bytes(SEED, buffer, own, own + row.uniq_len) if row.uniq_len > 0 else np.uint64(0)
        identity = _mix(_mix(_mix(_mix(own_hash, row.born_time), row.body_crc), row.body_len), out)
        element = found[count]
        element.identity = identity
        element.unique = unique if flags & DELETES else own_hash
        element.phy_offset, element.queue_offset, element.out_time = row.phy_offset, row.queue_offset, out
        element.size, element.topic_hash = row.total_size, topic_hash
        element.flags = flags & ~ROLLED | DELIVERED if not timer else flags
        count += 1
    return count
