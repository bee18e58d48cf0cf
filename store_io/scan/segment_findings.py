"""Findings of one segment: a bounded collection in a stable order."""

from __future__ import annotations

from dataclasses import replace

from schemas.rows import Finding

MOST_FINDINGS = 1_000  # per code and segment; what is beyond is counted


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
