"""The runs of a cleaning service over the files of a log, one after the other, as its release deletes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from store_io.base.java.zones import local_time
from store_io.first_day.cleaning_rules import HOUR_MS, CleaningRules, Hours

_DAY_HOURS = 49  # within which each hour of a clock comes, also if clocks are changed


@dataclass(frozen=True)
class LogSegment:
    """A file of the log, as the service sees it."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Disk:
    """The disk of the log. percent: that is used; None: not known. size: in bytes; None: deleting frees nothing that is known."""

    percent: float | None
    size: int | None = None

    def without(self, freed: int) -> Disk:
        """Return the disk after so many bytes were freed."""
        if self.percent is None or self.size is None:
            return self
        return replace(self, percent=max(0.0, self.percent - 100 * freed / self.size))


class Cleaning:
    """A log's files that are left while a service deletes.

    made_behind: the broker makes a file after the last one. keeps_last: that it is never deleted, as in an ordinary log.
    """

    def __init__(
        self,
        files: Iterable[LogSegment],
        rules: CleaningRules,
        timezone: str,
        disk: Disk,
        made_behind: bool = False,
        keeps_last: bool = True,
    ):
        self.left = deque(files)
        self.disk = disk
        self._rules, self._timezone = rules, timezone
        self._made_behind, self._keeps_last = made_behind, keeps_last

    def soon(self, first_ms: int) -> tuple[list[str], int]:
        """Return the files that go in the runs from this moment on until a run deletes none, and the moment of that run."""
        found: list[str] = []
        at_ms = first_ms
        while gone := self._run(at_ms):
            found += gone
            at_ms += self._rules.each_ms
        return found, at_ms

    def in_hour(self, begin_ms: int) -> list[str]:
        """Return the files that go in the hour that begins then."""
        found: list[str] = []
        at_ms, end_ms = begin_ms, _hour_end(begin_ms, self._timezone)
        while self.left and at_ms < end_ms:
            gone = self._run(at_ms)
            found += gone
            # a run that deletes none: the first file decides, and nothing changes before it is old enough
            expires_ms = self.left[0].modified_ms + self._rules.reserved_ms if self.left else at_ms
            if not gone and expires_ms <= at_ms:
                break
            at_ms = max(at_ms + self._rules.each_ms, 0 if gone else expires_ms)
        return found

    def _run(self, at_ms: int) -> list[str]:
        """Delete the files of one run."""
        rules = self._rules
        timely = local_time(at_ms, self._timezone).hour in rules.hours.known
        ratio = rules.ratio(self.disk.percent) if self.disk.percent is not None else 0.0
        if not timely and (rules.hours.broken or ratio <= rules.expired_above):
            return []
        forced = ratio > rules.forced_above
        gone: list[LogSegment] = []
        while self.left and len(gone) < rules.batch:
            first = self.left[0]
            if not forced and at_ms < first.modified_ms + rules.reserved_ms:
                break
            # what the broker writes first gives the last file a new time
            if len(self.left) == 1 and self._keeps_last and not (forced and self._made_behind):
                break
            gone.append(self.left.popleft())
        self.disk = self.disk.without(sum(file.size for file in gone))
        return [file.path for file in gone]


def next_hour(after_ms: int, hours: Hours, timezone: str) -> int | None:
    """Return when the next of these hours begins; None if none comes."""
    at_ms = after_ms
    for _ in range(_DAY_HOURS):
        at_ms = _hour_end(at_ms, timezone)
        if local_time(at_ms, timezone).hour in hours.known:
            return at_ms
    return None


def _hour_end(at_ms: int, timezone: str) -> int:
    """Return the end of the hour on the clocks of a zone."""
    local = local_time(at_ms, timezone)
    return at_ms + HOUR_MS - (local.minute * 60 + local.second) * 1000 - at_ms % 1000
