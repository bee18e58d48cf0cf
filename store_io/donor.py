"""Messages of a second copy of the same replica group, put where the first one is damaged.

Only what passes every check at the very same physical offset is taken, and only where the segment holds messages that both
copies have with equal bytes (next to the segment where nothing is left of it): copies of different groups share offsets but no
messages, and those of one group may have parted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from schemas.commitlog_layout import FRAME_BYTES
from schemas.rows import EXTENT_FILLER, EXTENT_MESSAGE, Extent, Row, SegmentSummary
from store_io.byte_source import ByteFile, ByteSource, StoreLocation, open_source
from store_io.message_columns import RecordCheck
from store_io.repair_log import WINDOW_BYTES, segment_path
from store_io.rules.loading import Tree, segments_of
from store_io.rules.releases import BrokerRules
from store_io.segment_findings import PROPERTIES
from store_io.segment_scan import SegmentTask, scan_segment
from store_io.segment_walk import whole_messages_end
from store_io.segment_window import SegmentWindow
from store_io.store_dir import list_store
from store_io.store_writer import StoreWriter

COPY_BYTES = 4 << 20
COMPARED_BYTES, MOST_COMPARED = 512, 8


class Donor:
    """The second copy. Raises StoreError where it is no store."""

    def __init__(self, location: StoreLocation, rules: BrokerRules):
        self.location, self.rules = location, rules
        self.source = open_source(location)
        size = rules.segment_bytes
        files = segments_of(Tree(list_store(location).files))
        self.files = {f.start: f for f in files if f.start % size == 0 and f.size <= size}

    def heal(self, writer: StoreWriter, segments: Sequence[SegmentSummary], source: ByteSource, tree: Tree) -> list[Row]:
        """Write the donor's messages into the copy's damaged ranges; a row for each range taken."""
        size = self.rules.segment_bytes
        own = {s.base_offset: s for s in segments if s.base_offset % size == 0}
        held = [base for base, s in own.items() if any(e.kind == EXTENT_MESSAGE for e in s.extents)]
        if not held:
            return []
        taken: list[Row] = []
        base, healed_end = min(held), False
        while base <= max(held) or healed_end:
            summary = own.get(base)
            gaps = _gaps(summary.extents if summary else [], size)
            doubtful = list(self._doubtful(summary, source)) if summary is not None and base in self.files else []
            if base not in held and not self._same_around(base, own, held, source):
                gaps = []
            gaps += doubtful
            rows = list(self._fill(writer, base, gaps, doubtful, summary, source, tree)) if gaps and base in self.files else []
            taken += rows
            healed_end = bool(rows) and base >= max(held)
            base += size
        return taken

    @staticmethod
    def _doubtful(summary: SegmentSummary, source: ByteSource) -> Iterator[tuple[int, int]]:
        """Messages whose properties no broker wrote: no checksum covers them, so that only another copy tells."""
        doubtful = [(f.phy_offset or 0) - summary.base_offset for f in summary.findings if f.code == PROPERTIES]
        if doubtful:
            with source.open(summary.path) as file:
                for at in doubtful:
                    yield at, at + int.from_bytes(file.read(at, 4), "big")

    def _fill(
        self,
        writer: StoreWriter,
        base: int,
        gaps: list[tuple[int, int]],
        doubtful: list[tuple[int, int]],
        summary: SegmentSummary | None,
        source: ByteSource,
        tree: Tree,
    ) -> Iterator[Row]:
        file = self.files[base]
        task = SegmentTask(0, file.path, base, file.size, self.location, self.rules, probe=False, digest=False)
        scanned = scan_segment(task, self.source)
        extents = [e for e in scanned.extents if e.kind == EXTENT_MESSAGE and not e.plausible]
        path = segment_path(base)
        size = self.rules.segment_bytes
        with self.source.open(file.path) as donor:
            for start, end in gaps:
                if not self._same_beside(donor, start, end, doubtful, summary, source):
                    continue
                for low, high in self._whole_messages(donor, base, extents, start, end):
                    if path not in tree.by_path and summary is None:
                        writer.create(path, size)
                        summary = SegmentSummary(path, base, size)
                    elif summary is not None and summary.size < size:
                        writer.resize(summary.path, size)
                    target = summary.path if summary is not None else path
                    for at in range(low, high, COPY_BYTES):
                        writer.write(target, at, donor.read(at, min(COPY_BYTES, high - at)))
                    yield {"file": path, "start": low, "end": high, "phy_offset": base + low}
                    if any(e.kind == EXTENT_FILLER and e.start == high for e in scanned.extents) and end == size:
                        writer.write(target, high, donor.read(high, FRAME_BYTES))

    def _whole_messages(
        self, donor: ByteFile, base: int, extents: Sequence[Extent], start: int, end: int
    ) -> Iterator[tuple[int, int]]:
        """Ranges of whole messages of the donor inside the gap."""
        check = RecordCheck.audit_of(base, self.rules)
        window = SegmentWindow(donor, donor.size, WINDOW_BYTES)
        for extent in extents:
            low, high = max(start, extent.start), min(end, extent.end)
            whole = whole_messages_end(check, window, low, high)
            if whole > low:
                yield low, whole

    def _same_around(self, base: int, own: Mapping[int, SegmentSummary], held: Sequence[int], source: ByteSource) -> bool:
        """Whether the copies agree next to a segment of which nothing is left: at the end of the last one before it that holds
        messages, else at the beginning of the first one behind it."""
        before = max((b for b in held if b < base), default=None)
        near = before if before is not None else min(b for b in held if b > base)
        if near not in self.files:
            return False
        known = [e for e in own[near].extents if e.kind == EXTENT_MESSAGE]
        edge = known[-1] if before is not None else known[0]
        low, high = (
            (max(edge.start, edge.end - COMPARED_BYTES), edge.end)
            if before is not None
            else (edge.start, min(edge.end, edge.start + COMPARED_BYTES))
        )
        with source.open(own[near].path) as mine, self.source.open(self.files[near].path) as donor:
            return _equal(mine, donor, low, high)

    def _same_beside(
        self,
        donor: ByteFile,
        start: int,
        end: int,
        doubtful: Sequence[tuple[int, int]],
        summary: SegmentSummary | None,
        source: ByteSource,
    ) -> bool:
        """Whether both copies have the same messages beside the gap: those that touch it must be the same, as copies may have
        parted inside of the segment (a master that came back); where none does, some others. A whole segment has none."""
        known = [e for e in summary.extents if e.kind == EXTENT_MESSAGE] if summary is not None else []
        if summary is None or not known:
            return True
        touching = [(max(e.start, e.end - COMPARED_BYTES), e.end) for e in known if e.end == start]
        touching += [(e.start, min(e.end, e.start + COMPARED_BYTES)) for e in known if e.start == end and not e.plausible]
        sure = [(a, b) for a, b in touching if not any(low < b and a < high for low, high in doubtful)]
        heads = [(e.start, min(e.end, e.start + COMPARED_BYTES)) for e in known[:MOST_COMPARED] if e.start != start]
        with source.open(summary.path) as own:
            if sure:
                return all(_equal(own, donor, a, b) or a >= end and _nothing(donor, a) for a, b in sure)
            return any(_equal(own, donor, a, b) for a, b in heads)


def _equal(own: ByteFile, donor: ByteFile, start: int, end: int) -> bool:
    return donor.size >= end and own.read(start, end - start) == donor.read(start, end - start)


def _nothing(donor: ByteFile, start: int) -> bool:
    """Whether the donor ends before: a slave that was behind."""
    return donor.size <= start or not any(donor.read(start, min(FRAME_BYTES, donor.size - start)))


def _gaps(extents: Sequence[Extent], size: int) -> list[tuple[int, int]]:
    """What of a segment holds no message."""
    gaps, at = [], 0
    for extent in extents:
        if extent.kind == EXTENT_MESSAGE:
            if at < extent.start:
                gaps.append((at, extent.start))
            at = extent.end
    if at < size:
        gaps.append((at, size))
    return gaps
