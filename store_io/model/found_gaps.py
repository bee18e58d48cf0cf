"""The gaps of one audit: why it is not complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.advice import Gap


@dataclass
class Gaps:
    """Lists what kept an audit from all that was asked, in the order in which it was met.

    broken: something that a broker would read is unknown, so nothing is predicted.  failed: reads that another try may do, by
    path.
    """

    found: list[Gap] = field(default_factory=list)
    broken: bool = False
    failed: dict[str, Gap] = field(default_factory=dict)

    @property
    def faults(self) -> list[Gap]:
        """Return the gaps for which nobody has asked: with one it is not said what a start would do."""
        return [gap for gap in self.found if not gap.on_purpose]

    @property
    def on_purpose(self) -> list[Gap]:
        """Return the gaps that were asked for, or that the time limit made."""
        return [gap for gap in self.found if gap.on_purpose]

    def add(self, gaps: Iterable[Gap]) -> None:
        """Add the gaps that are not there yet."""
        self.found += [gap for gap in gaps if gap not in self.found]

    def add_failed(self, failed: Mapping[str, Gap]) -> None:
        """Add the failed reads of files of which nothing is said yet."""
        told = {gap.path for gap in self.found} if failed else set()
        for path, gap in failed.items():
            self.failed.setdefault(path, gap)
            if gap.path not in told or not gap.path and gap not in self.found:
                self.cannot_read(gap)

    def cannot_read(self, gap: Gap) -> None:
        """Add what a broker would read and is unknown here: the rest is audited, and nothing is predicted."""
        self.broken = True
        self.found.append(gap)
