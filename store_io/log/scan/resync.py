"""Judges a place without a valid message: unwritten, a filler, or damage; finds where messages continue after it.

No local check can prove a message's boundary, so all that is found after damage is plausible at best. Order of trust: the sizes
that the broken frame itself gives, if something valid follows there; else the next magic whose frame passes every check, stores
its own position and has a successor.

The only question at such a place is whether a valid message begins there. A few properties decide that. Frames in damage may
claim properties that overlap, up to 32 KB for every 90 bytes, so compiled code picks the parts that decide before any is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_UNWRITTEN, Extent, Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.compiled.native import kept
from store_io.base.wording import count_text
from store_io.broker.message_verdict import VALID, Frames, Verdict
from store_io.log.records.framing import filler_size
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.message_decode import names_place
from store_io.log.records.segment_walk import StrayChain
from store_io.source.segment_window import SegmentWindow

DECIDING = (layout.PROPERTY_CRC_NAME, "DELAY", "DUP_INFO", "INNER_NUM", "INNER_BASE")  # all that can make a message invalid
_NAMES = np.array([list(name.encode().ljust(1 + len(name), b"\x01").ljust(16, b"\x00")) for name in DECIDING], np.uint8)
_DA, _A3, _20, _A7, _AB = layout.MAGIC_V1_BYTES + layout.MAGIC_V2_BYTES[3:]
TAIL_ZEROS = 2  # a whole message ends in at most so many zero bytes: a properties length of 0


@kept()
def _last_parts(data, names, old_parser, found):  # type: ignore[no-untyped-def]
    """found[k]: begin and end of the last part that gives the property names[k] a value, as `parse_properties` reads it.

    names: each with its separator, filled up with zeros.
    """
    item, size = 0, len(data)
    while item < size:
        end = item
        while end < size and data[end] != 2:
            end += 1
        for k in range(len(names)):
            i = 0
            while names[k, i] != 0 and item + i < end and data[item + i] == names[k, i]:
                i += 1
            value = item + i
            if names[k, i] != 0 or value >= end:
                continue
            if old_parser:  # one value without a separator in it; separators after it are dropped
                place = value
                while place < end and data[place] != 1:
                    place += 1
                some = place > value
                while place < end and data[place] == 1:
                    place += 1
                if not some or place < end:
                    continue
            found[k, 0], found[k, 1] = item, end
        item = end + 1


def deciding_parts(data: bytes, old_parser: bool) -> bytes:
    """Return properties with the last part of each name in DECIDING, so that each name has its value in `data`."""
    found = np.full((len(DECIDING), 2), -1, np.int64)
    _last_parts(np.frombuffer(data, np.uint8), _NAMES, old_parser, found)
    return layout.PROPERTY_END.join(data[start:end] for start, end in sorted(found.tolist()) if start >= 0)


class CandidateFrames:
    """The frames of `frames`, with those properties alone that decide. old_parser: as in `parse_properties`."""

    def __init__(self, frames: Frames, old_parser: bool):
        self._old_parser = old_parser
        self.read, self.crc32 = frames.read, frames.crc32

    def properties(self, start: int, end: int) -> bytes:
        """Return the deciding ones of the properties in bytes [start, end)."""
        return deciding_parts(self.read(start, end), self._old_parser)


@dataclass
class ResyncResult:
    """The verdict on [start, resume) of a segment.

    resume: the position from which on messages may continue; None: the rest of the segment is judged.
    """

    extents: list[Extent] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    resume: int | None = None


@kept(layout)
def _next_magic(data, low, high, base, header, filler_magic, filler_at):  # type: ignore[no-untyped-def]
    """Return the index of the next frame's first byte in data[low:high], or -1.

    A message's magic counts only if the record stores its own address. That address must lie in `data` as well.
    base: the physical offset of data[0].
    header, filler_magic, filler_at: those of the framing.
    """
    most = len(data) - header - (layout.PHY_OFFSET_POSITION + 8)
    for i in range(low, high):
        if i <= most and data[i + header + 4] == _DA:
            at = i + header
            if data[at + 5] == _A3 and data[at + 6] == _20 and (data[at + 7] == _A7 or data[at + 7] == _AB):
                stored = np.int64(0)
                for k in range(8):
                    stored = (stored << 8) | data[at + layout.PHY_OFFSET_POSITION + k]
                if stored == base + at:
                    return i
        if data[i + filler_at] == filler_magic[0]:
            at = i + filler_at
            if data[at + 1] == filler_magic[1] and data[at + 2] == filler_magic[2] and data[at + 3] == filler_magic[3]:
                return i
    return -1


class Resync:
    """Judges one segment's broken places. check: the audit's own."""

    def __init__(self, window: SegmentWindow, path: str, base_offset: int, check: RecordCheck, unclean: bool):
        self._window, self._path, self._base, self._check, self._unclean = window, path, base_offset, check, unclean
        self._candidates = CandidateFrames(window, check.rules.old_property_parser)
        self._framing = check.framing
        self._record = check.framing.header_bytes  # where a frame's record begins in it
        self._filler_start = np.frombuffer(check.framing.filler_magic, np.uint8)
        self._size = window.size
        self._written_end: int | None = None

    # ---- what follows ------------------------------------------------------------------------------------------------

    def _zero_from(self, position: int) -> bool:
        if self._written_end is None:
            self._written_end = self._window.last_nonzero_end(0)
        return position >= self._written_end

    def _number(self, position: int, size: int) -> int:
        return int.from_bytes(self._window.read(position, position + size), "big", signed=True)

    def _filler_size(self, position: int) -> int | None:
        """Return the size that the filler at this position declares, or None without a filler."""
        return filler_size(self._framing, self._window.read(position, position + layout.FRAME_BYTES))

    def exact_filler(self, position: int) -> bool:
        """Say whether a filler with the right size is there."""
        return self._filler_size(position) == self._size - position

    def _valid_size(self, position: int) -> int | None:
        """Return the size of the frame there, if it holds a valid message."""
        verdict = self._check.verdict(self._candidates, position, self._size)
        return verdict.size if verdict.kind == VALID else None

    def _follows(self, position: int) -> bool:
        """Say whether what is there confirms that a message ends there."""
        return position < self._size and (
            self._zero_from(position) or self.exact_filler(position) or self._valid_size(position) is not None
        )

    def _looks_like_message(self, position: int) -> bool:
        """Say whether a magic and the record's own address are there, whatever else is wrong."""
        record = position + self._record
        return names_place(self._window.read(record, record + layout.BODY_POSITION), self._base + record)

    def _stores_own_address(self, position: int) -> bool:
        record = position + self._record
        return self._number(record + layout.PHY_OFFSET_POSITION, 8) == self._base + record

    def next_valid(self, start: int) -> int | None:
        """Return the first position from `start` on at which messages, or the segment's filler, plausibly continue."""
        window, at = self._window, int(start)
        header = self._record + layout.PHY_OFFSET_POSITION + 8
        framing = self._record, self._filler_start, self._framing.filler_magic_position
        while at + layout.FRAME_BYTES <= self._size:
            if not (window.start <= at and min(at + header, self._size) <= window.end):
                window.hold(at)
            # The last frames of the window are left to the next one, where their addresses can be read.
            high = window.end - (layout.FRAME_BYTES - 1 if window.end == self._size else header - 1)
            view = window.buffer[: window.end - window.start]
            found = int(_next_magic(view, at - window.start, high - window.start, self._base + window.start, *framing))
            if found < 0:
                at = window.skip_zeros(high, layout.FRAME_BYTES)  # a frame may begin with zeros: its size's
                continue
            at = window.start + found
            if self.exact_filler(at):
                return at
            length = self._valid_size(at)
            if length is not None:
                end = at + length
                if end == self._size or self._follows(end) or self._looks_like_message(end):
                    return at
            at += 1
        return None

    # ---- judging -----------------------------------------------------------------------------------------------------

    def judge(self, start: int, verdict: Verdict, stray_chain: Callable[[int], StrayChain]) -> ResyncResult:
        """Judge the bytes at `start`, at which the audit's check gave `verdict`.

        stray_chain: judges the messages from a position on.
        """
        window, size = self._window, self._size
        if start >= size:
            return ResyncResult()
        first = window.first_nonzero(start)
        if first == size:
            return ResyncResult([Extent(EXTENT_UNWRITTEN, start, size)])
        if self._filler_size(start) is not None:
            return self._filler(start)
        total = self._number(start + self._record, 4)
        if verdict.reason == "phy_offset":
            return self._stray(start, verdict, stray_chain)
        zeros = first - start if first >= start + layout.FRAME_BYTES else 0
        ends = [
            start + self._record + length
            for length in (total, verdict.computed_size)
            if length >= layout.MIN_SIZE_V1_BYTES and start + self._record + length < size and not zeros
        ]
        for end in ends:
            if self.exact_filler(end) or self._valid_size(end) is not None:
                return self._hole(start, end, end, verdict)
        before_zeros = [end for end in ends if self._zero_from(end)]
        for end in before_zeros:
            if not self._zero_from(end - TAIL_ZEROS - 1):
                return self._hole(start, end, end, verdict)
        if before_zeros:  # the fields say how long it should be, and more of its end is zero than any whole message's
            return self._torn_tail(start, verdict)
        found = self.next_valid(start + 1)
        if found is not None:
            return self._hole(start, None, found, verdict, zeros)
        if total == size - start:  # no message leaves so little after it
            return self._filler_magic(start, verdict)
        written_end = window.last_nonzero_end(start)
        if not zeros and total >= layout.MIN_SIZE_V1_BYTES and written_end < min(start + self._record + total, size) - TAIL_ZEROS:
            return self._torn_tail(start, verdict)
        return self._hole(start, None, max(written_end, min(start + layout.FRAME_BYTES, size)), verdict, zeros)

    def _torn_tail(self, start: int, verdict: Verdict) -> ResyncResult:
        end = max(self._window.last_nonzero_end(start), min(start + layout.FRAME_BYTES, self._size))
        finding = self._finding(
            Code.COMMITLOG_TORN_TAIL, start, end, verdict, f"the last message was cut short after {end - start:,} bytes"
        )
        finding = replace(finding, severity=severity_in(finding.code, Case.AFTER_CLEAN_STOP, not self._unclean))
        return ResyncResult([Extent(EXTENT_DAMAGED, start, end, reason=verdict.reason)], [finding], end)

    def _filler(self, start: int) -> ResyncResult:
        size, left = self._size, self._size - start
        total, end = self._filler_size(start), min(start + layout.FRAME_BYTES, size)
        found = self._hidden(start, end)
        findings = []
        if total != left:
            findings.append(
                self._at(
                    Code.FILLER_WRONG_SIZE,
                    start,
                    end,
                    expected=str(left),
                    actual=str(total),
                    message=f"the filler says {total:,} bytes, but {left:,} are left",
                )
            )
        if found is not None:
            text = f"messages continue at position {found:,}, after a filler"
            findings.append(self._at(Code.FILLER_HIDES_MESSAGES, start, end, message=text))
            return ResyncResult([Extent(EXTENT_DAMAGED, start, found, reason="filler")], findings, found)
        if self._window.first_nonzero(end) < size:
            text = "the bytes after the filler are not zero"
            findings.append(self._at(Code.FILLER_NOT_ZERO, end, size, phy_offset=None, message=text))
        return ResyncResult([Extent(EXTENT_FILLER, start, size)], findings)

    def _hidden(self, start: int, end: int) -> int | None:
        """Return the position after the filler [start, end) from which on messages that belong here continue, or None.

        The rest of a segment may hold another one's old bytes (transientStorePoolEnable, and releases up to 4.9.0). These are
        messages that store addresses elsewhere, and even fillers. A filler has no address and alone proves nothing, so later
        fillers are passed over. But if this filler lies on a message's first bytes, whose own address still follows, the filler
        is damage itself, and a later filler is the segment's end.
        """
        found = self.next_valid(end)
        if self._stores_own_address(start):
            return found
        while found is not None and self.exact_filler(found):
            found = self.next_valid(found + layout.FRAME_BYTES)
        return found

    def _filler_magic(self, start: int, verdict: Verdict) -> ResyncResult:
        end = start + layout.FRAME_BYTES
        finding = self._finding(Code.COMMITLOG_DAMAGED, start, end, verdict, "an end-of-segment filler with a wrong magic")
        extents = [Extent(EXTENT_DAMAGED, start, end, reason=verdict.reason), Extent(EXTENT_FILLER, end, self._size)]
        return ResyncResult(extents, [finding])

    def _stray(self, start: int, verdict: Verdict, chain: Callable[[int], StrayChain]) -> ResyncResult:
        end, count, valid_follows = chain(start)
        record = start + self._record
        stored = verdict.message.phy_offset if verdict.message else 0
        one = count == 1
        text = f"{count_text(count, 'valid message')}"
        finding = self._at(
            Code.COMMITLOG_FOREIGN,
            record + layout.PHY_OFFSET_POSITION if one else start,
            record + layout.PHY_OFFSET_POSITION + 8 if one else end,
            phy_offset=self._base + record,
            expected=str(self._base + record),
            actual=str(stored),
            message=f"{text} with another physical offset than {'its' if one else 'their'} place: {stored:,}"
            + ("" if valid_follows else "; no message that belongs here follows"),
            count=count,
        )
        return ResyncResult([Extent(EXTENT_DAMAGED, start, end, reason="phy_offset")], [finding], end)

    def _hole(self, start: int, record_end: int | None, end: int, verdict: Verdict, zeros: int = 0) -> ResyncResult:
        """Return the damage [start, end).

        record_end: the end of its first record, or None if that is not known.
        zeros: the number of zeros with which the damage begins.
        """
        extent = Extent(EXTENT_DAMAGED, start, end, reason="unwritten" if zeros else verdict.reason, zeros=zeros)
        if zeros:
            finding = self._finding(
                Code.COMMITLOG_DAMAGED, start, end, verdict, "zeros, then other bytes, where messages should be"
            )
            return ResyncResult([extent], [finding], end)
        code = Code.PROPERTY_CRC_MISMATCH if verdict.reason == "property_crc" else Code.COMMITLOG_DAMAGED
        low, high = start, record_end if record_end is not None else min(start + layout.FRAME_BYTES, end)
        if verdict.reason == "frame_header":
            high = start + self._record
        message = verdict.message
        if verdict.reason == "body_crc" and message is not None and record_end is not None:
            body_end = message.body_position + message.body_length
            low, high = message.position + layout.BODY_CRC_POSITION, min(body_end, record_end)
        findings = [self._finding(code, low, high, verdict, f"a message is not valid here: {verdict.reason}")]
        if record_end is None and high < end:
            text = f"{end - high:,} bytes after a damaged message hold no recognisable message"
            findings.append(self._at(Code.COMMITLOG_DAMAGED, high, end, message=text))
        return ResyncResult([extent], findings, end)

    def _at(self, code: Code, start: int, end: int, **more: Any) -> Finding:
        """Return a finding on bytes [start, end) of the segment."""
        return Finding(code, self._path, start, end, **{"phy_offset": self._base + start} | more)

    def _finding(self, code: Code, start: int, end: int, verdict: Verdict, text: str) -> Finding:
        values: dict[str, Any] = {"expected": verdict.expected or None, "actual": verdict.actual or None}
        if (message := verdict.message) is not None and message.topic:
            values |= {"topic": message.topic, "queue_id": message.queue_id, "queue_offset": message.queue_offset}
        return self._at(code, start, end, message=text, **values)
