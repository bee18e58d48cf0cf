"""Findings of one segment: a bounded collection in a stable order, and the codes that a segment's scan uses."""

from __future__ import annotations

from dataclasses import replace

from schemas.rows import Finding

MOST_FINDINGS = 1_000  # per code and segment; what is beyond is counted

DAMAGED = "commitlog_damaged"
TORN = "commitlog_torn_tail"
FOREIGN = "commitlog_foreign"
PROPERTY_CRC = "property_crc_mismatch"
PROPERTIES = "properties_malformed"
HEADER_ODD = "message_header_odd"
HOST_ODD = "store_host_odd"
BRIDGED = "commitlog_bridged"
FILLER_SIZE = "filler_wrong_size"
FILLER_HIDES = "filler_hides_messages"
FILLER_NOT_ZERO = "filler_not_zero"
TIME_ODD = "store_time_odd"
TIME_BACK = "store_time_back"
ENTRY_WRONG = "queue_entry_wrong"
EXT_DAMAGED = "queue_ext_damaged"
EXT_DANGLING = "queue_ext_dangling"
INDEX_MISSING = "index_entry_missing"
INDEX_DANGLING = "index_entry_dangling"
INDEX_BEYOND = "index_entry_beyond_end"
INDEX_WRONG = "index_entry_wrong"
INDEX_HEADER = "index_header_wrong"
INDEX_DUPLICATE = "index_entry_duplicate"

TIME_DIFFERENCE = "the time difference of index entries does not fit their messages"  # message of an INDEX_WRONG about this alone


class Findings:
    """At most `MOST_FINDINGS` of a code, the first ones met."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._count: dict[str, int] = {}
        self._last: dict[tuple[str, str], int] = {}  # (code, file) -> the finding that may still grow
        self.dropped: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        """Keep the finding, or count it where there are enough of its code."""
        count = self._count.get(finding.code, 0)
        self._count[finding.code] = count + 1
        if count < MOST_FINDINGS:
            self._kept.append(finding)
        else:
            self.dropped[finding.code] = self.dropped.get(finding.code, 0) + finding.count

    def add_beside(self, finding: Finding, gap: int) -> None:
        """As `add`, but one that begins `gap` bytes behind the last one of its code and file is folded into that."""
        last = self._last.get((finding.code, finding.file))
        if last is not None and self._kept[last].end == (finding.start or 0) - gap:
            kept = self._kept[last]
            self._kept[last] = replace(kept, end=finding.end, count=kept.count + finding.count)
            return
        if self.room(finding.code):
            self._last[finding.code, finding.file] = len(self._kept)
        self.add(finding)

    def room(self, code: str) -> bool:
        """Whether another finding of this code would be kept."""
        return self._count.get(code, 0) < MOST_FINDINGS

    def ordered(self) -> list[Finding]:
        """By file, place, code."""
        return sorted(self._kept, key=lambda f: (f.file, f.start or 0, f.end or 0, f.code, f.phy_offset or 0))
