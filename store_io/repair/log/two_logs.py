"""A damaged copy's log and a donor's, compared: whether they are copies of one log, and where they diverged.

Copies of different replica groups share offsets but no messages, and those of one group may have diverged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np

from schemas.layouts.commitlog_layout import FRAME_BYTES, MAGIC_BLANK_BYTES
from schemas.rows import Extent, SegmentSummary
from store_io.base.errors import UnfitDonor
from store_io.broker.loading import Tree, segments_of
from store_io.broker.message_verdict import VALID
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_columns import RecordCheck
from store_io.repair.log.edits import message_extents, segment_path, window_of
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation, open_source, shown
from store_io.source.store_dir import list_store

COMPARED_BYTES, MOST_COMPARED = 512, 8
MOST_SEGMENTS = 64  # whose messages are compared to find out whether the donor is a copy of this log


class TwoLogs:
    """The logs of a copy and its donor. Raises StoreError if the donor is no store.

    own: the copy's segments, by their bases.
    held: the bases of those with messages, ascending.
    files: the donor's segments, by their bases.
    """

    def __init__(self, source: ByteSource, segments: Sequence[SegmentSummary], donor: StoreLocation, rules: BrokerRules):
        self.source, self.donor, self.location, self.rules = source, open_source(donor), donor, rules
        self.name, self.size = shown(donor.root), rules.segment_bytes
        self.own = {s.base_offset: s for s in segments if s.base_offset % self.size == 0}
        self.held = sorted(base for base, summary in self.own.items() if message_extents(summary))
        files = segments_of(Tree(list_store(donor).files), rules)
        self.files = {f.start: f for f in files if f.start % self.size == 0 and f.size <= self.size}

    def recognise(self) -> tuple[int, int]:
        """Return (messages compared, those that are the same). Raises UnfitDonor if some were compared, and none is the same."""
        common = [base for base in self.held if base in self.files]
        if not common:
            raise UnfitDonor(
                f"--donor {self.name}: no copy of this log: none of its segments has the offsets of one of the copy's, which hold"
                f" {self._span(self.held)}; the donor's hold {self._span(self.files)}"
            )
        compared: list[int] = []
        same = 0
        for base in common[:: max(1, len(common) // MOST_SEGMENTS)]:
            with self.source.open(self.own[base].path) as mine, self.donor.open(self.files[base].path) as other:
                for extent in message_extents(self.own[base])[:MOST_COMPARED]:
                    if not _nothing(other, extent.start):
                        compared.append(base + extent.start)
                        same += _equal(mine, other, _head(extent))
            if same:
                break
        if compared and not same:
            at = compared[0]
            base = at - at % self.size
            raise UnfitDonor(
                f"--donor {self.name}: no copy of this log: of {len(compared)} messages compared none is the same; at physical"
                f" offset {at} the copy has {self._message_text(self.source, self.own[base].path, at)}, the donor"
                f" {self._message_text(self.donor, self.files[base].path, at)}"
            )
        return len(compared), same

    def _span(self, bases: Collection[int]) -> str:
        return f"{min(bases)} to {max(bases) + self.size}" if bases else "nothing"

    def _message_text(self, source: ByteSource, path: str, phy_offset: int) -> str:
        """Return words on the message at this place."""
        at = phy_offset % self.size
        with window_of(source, path) as window:
            verdict = RecordCheck.audit_of(phy_offset - at, self.rules, path).verdict(window, at, window.size)
        message = verdict.message
        if verdict.kind != VALID or message is None:
            return "no valid message"
        time = str(np.datetime64(message.store_time, "ms")).replace("T", " ")
        return (
            f"a message of {message.topic}, queue {message.queue_id}, offset {message.queue_offset}, {message.total_size} bytes,"
            f" body CRC 0x{message.body_crc & 0xFFFFFFFF:08x}, stored {time}"
        )

    def parted_around(self, base: int) -> str:
        """Explain how the two copies differ next to a segment of which nothing is left; "" if they agree.

        The places are the end of the last one before it that holds messages, else the beginning of the first one after it.
        """
        place = bisect_left(self.held, base)
        near = self.held[max(0, place - 1)]
        if near not in self.files:
            return f"the donor does not have {segment_path(near)} beside it, by which the copies could be compared"
        known = message_extents(self.own[near])
        low, high = part = _tail(known[-1]) if place else _head(known[0])
        with self.source.open(self.own[near].path) as mine, self.donor.open(self.files[near].path) as other:
            same = _equal(mine, other, part)
        return "" if same else f"the copies have other bytes beside it, at physical offsets {near + low} to {near + high}"

    def parted_beside(self, other: ByteFile, base: int, gap: tuple[int, int], doubtful: Sequence[tuple[int, int]]) -> str:
        """Say why the copies do not have the same messages beside a gap of a segment; "" if they do. A whole segment has none.

        The messages that touch the gap must be the same, as copies may have diverged inside of the segment (a master that came
        back); if none does, some others.
        other: the donor's segment.
        doubtful: messages that cannot show it.
        """
        summary = self.own.get(base)
        known = message_extents(summary) if summary is not None else []
        if summary is None or not known:
            return ""
        start, end = gap
        touching = [_tail(e) for e in known if e.end == start] + [_head(e) for e in known if e.start == end and not e.plausible]
        sure = [(a, b) for a, b in touching if not any(low < b and a < high for low, high in doubtful)]
        heads = [_head(e) for e in known[:MOST_COMPARED] if e.start != start]
        with self.source.open(summary.path) as mine:
            if not sure:
                same = any(_equal(mine, other, part) for part in heads)
                return "" if same else f"no message of this segment is the same in both copies, of {len(heads)} compared"
            for a, b in sure:
                if not _equal(mine, other, (a, b)) and not (a >= end and _nothing(other, a)):
                    return f"the copies have other bytes beside it, at physical offsets {base + a} to {base + b}"
        return ""

    def donor_continues(self) -> bool:
        """Say whether the donor has a message after the copy's last one."""
        base = self.held[-1]
        end = message_extents(self.own[base])[-1].end
        for file, start in ((self.files.get(base), end), (self.files.get(base + self.size), 0)):
            if file is None:
                continue
            with self.donor.open(file.path) as donor:
                head = donor.read(start, min(FRAME_BYTES, max(0, donor.size - start)))
            if any(head) and head[4:8] != MAGIC_BLANK_BYTES:
                return True
        return False


def _head(extent: Extent) -> tuple[int, int]:
    return extent.start, min(extent.end, extent.start + COMPARED_BYTES)


def _tail(extent: Extent) -> tuple[int, int]:
    return max(extent.start, extent.end - COMPARED_BYTES), extent.end


def _equal(own: ByteFile, donor: ByteFile, part: tuple[int, int]) -> bool:
    start, end = part
    return donor.size >= end and own.read(start, end - start) == donor.read(start, end - start)


def _nothing(donor: ByteFile, start: int) -> bool:
    """Say whether the donor ends before that position: a slave whose log was shorter."""
    return donor.size <= start or not any(donor.read(start, min(FRAME_BYTES, donor.size - start)))
