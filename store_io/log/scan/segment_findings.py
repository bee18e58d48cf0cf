"""Findings of one segment: a bounded collection in a stable order.

The place of a finding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from schemas.finding_codes import Code
from schemas.rows import Finding, QueueKey

MAX_FINDINGS = 1_000  # per code, severity and segment; what is beyond is counted


class Span(NamedTuple):
    """Bytes [start, end) of a file; both are None if the place is a key."""

    path: str
    start: int | None
    end: int | None


def message_finding(code: Code, span: Span, row: np.void, key: QueueKey, **more: Any) -> Finding:
    """Return a finding on one message of queue `key`, a row of `message_columns`."""
    of: dict[str, Any] = {"phy_offset": int(row["phy_offset"]), "queue_offset": int(row["queue_offset"])}
    return Finding(code, *span, topic=key[0], queue_id=key[1], **of | more)


class Findings:
    """At most `MAX_FINDINGS` of a code and severity, the first ones met: so no note keeps out a loss."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._count: Counter[tuple[str, str]] = Counter()
        self._last: dict[tuple[str, str], int] = {}  # (code, file) -> the finding that may still grow
        self.dropped: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        """Keep the finding, or count it if there are enough of its code and severity."""
        if self.room(finding.code, finding.severity):
            self._count[finding.code, finding.severity] += 1
            self._kept.append(finding)
        else:
            self.dropped[finding.code] = self.dropped.get(finding.code, 0) + finding.count

    def add_beside(self, finding: Finding, gap: int) -> None:
        """Add a finding, or join it to the last finding of its code and file.

        It is joined if it begins `gap` bytes after the end of that finding.
        """
        last = self._last.get((finding.code, finding.file))
        if last is not None and self._kept[last].end == (finding.start or 0) - gap:
            kept = self._kept[last]
            self._kept[last] = replace(kept, end=finding.end, count=kept.count + finding.count)
            return
        if self.room(finding.code, finding.severity):
            self._last[finding.code, finding.file] = len(self._kept)
        self.add(finding)

    def room(self, code: Code, severity: str = "") -> bool:
        """Say whether another finding of this code would be kept. severity: as the finding has it."""
        return self._count[code, severity] < MAX_FINDINGS

    def ordered(self) -> list[Finding]:
        """Return the sort key: file, place, code."""
        return sorted(self._kept, key=lambda f: (f.file, f.start or 0, f.end or 0, f.code, f.phy_offset or 0))


class Place(NamedTuple):
    """The place of a finding: a path below the store root, and a byte, or None for a key."""

    path: str
    position: int | None
