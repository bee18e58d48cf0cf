"""What is counted of a repair, from its report."""

from __future__ import annotations

from typing import Protocol

from schemas.rows import Row


class _Reported(Protocol):
    @property
    def report(self) -> Row: ...


class RepairFigures:
    """Of a class that has a repair's report as `report`."""

    @property
    def given_up(self: _Reported) -> int:
        """Messages that the new store does not hold, although the copy holds them or shows that they were there."""
        return int(self.report["given_up"]["messages"])

    @property
    def healed(self: _Reported) -> int:
        """Damaged records that were made whole."""
        return len((self.report.get("healed") or {}).get("records", ()))
