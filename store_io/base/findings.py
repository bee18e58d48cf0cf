"""A bounded collection of findings: what is beyond the bound is counted, and hides nothing that is more severe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from schemas.rows import Finding

MAX_FINDINGS = 1_000  # of each code and severity

_Sort = tuple[str, str, bool]  # code, severity, only_time: checks may take back the findings of one of these, and no others


class Findings:
    """Keeps at most `most` findings of each code and severity, the first ones met, and counts the others.

    So no note takes the room of a loss. The last finding that is kept of a code and severity has the others' number
    (`Finding.more`): whoever leaves that finding out, or gives it another severity, does so with all of them.
    """

    def __init__(self, most: int = MAX_FINDINGS) -> None:
        self._most = most
        self._kept: list[Finding] = []
        self._count: Counter[_Sort] = Counter()
        self._last: dict[_Sort, int] = {}  # the last one kept
        self._more: Counter[_Sort] = Counter()
        self._open: dict[tuple[str, str], int] = {}  # (code, file) -> the finding that may still grow

    def add(self, finding: Finding) -> None:
        """Keep the finding, or count it if there are enough of its code and severity."""
        sort = finding.code, finding.severity, finding.only_time
        if self._count[sort] < self._most:
            self._count[sort] += 1
            self._last[sort] = len(self._kept)
            self._kept.append(finding)
        else:
            self._more[sort] += finding.count + finding.more

    def add_all(self, findings: Iterable[Finding]) -> None:
        """Add findings in their order."""
        for finding in findings:
            self.add(finding)

    def add_more(self, code: str, severity: str, number: int) -> None:
        """Count so many further ones, of a code and severity of which there are enough. severity: as `room` has it."""
        assert not self.room(code, severity)
        self._more[code, severity, False] += number

    def add_beside(self, finding: Finding, gap: int = 0) -> None:
        """Add a finding, or join it to the last finding of its code and file.

        It is joined if it begins `gap` bytes after the end of that finding, and is as severe.
        """
        last = self._open.get((finding.code, finding.file))
        kept = self._kept[last] if last is not None else None
        if last is not None and kept is not None and (kept.end, kept.severity) == ((finding.start or 0) - gap, finding.severity):
            self._kept[last] = replace(kept, end=finding.end, count=kept.count + finding.count)
            return
        if self.room(finding.code, finding.severity):
            self._open[finding.code, finding.file] = len(self._kept)
        self.add(finding)

    def room(self, code: str, severity: str = "") -> bool:
        """Say whether another finding of this code would be kept. severity: as the finding has it, empty for the code's own."""
        return self._count[code, severity, False] < self._most

    @property
    def found(self) -> list[Finding]:
        """Return the findings that are kept, in the order in which they came."""
        kept = list(self._kept)
        for sort, number in self._more.items():
            last = self._last[sort]
            kept[last] = replace(kept[last], more=kept[last].more + number)
        return kept

    def ordered(self) -> list[Finding]:
        """Return the findings that are kept, by file, place and code."""
        return sorted(self.found, key=lambda f: (f.file, f.start or 0, f.end or 0, f.code, f.phy_offset or 0))
