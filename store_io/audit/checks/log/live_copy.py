"""Whether ConsumeQueues and CommitLog of a copy are of different moments: what lies beyond the log's end then is no damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from schemas.rows import Finding
from schemas.store_names import COMMITLOG
from store_io.audit import log_map as lm
from store_io.audit.queue_leftovers import LeftoverResult
from store_io.base.ranges import union
from store_io.base.wording import count_text

# Entries beyond the log's end that cover less than this part of the bytes there are of different moments.
COVERAGE = 0.8


@dataclass(frozen=True)
class LiveCopy:
    """What entries beyond the log's data say of a copy that an unclean exit, or none, preceded.

    holes: they do not cover the bytes there.  A broker dispatches in physical order, so in a copy of one moment they do, but for
    messages that have no entry.  later: they begin exactly behind the log's last message, which is whole, and lead into zeros, or
    where the segment behind the last, full one would begin: the queues are of a later moment than the log.  proven: so they are;
    a lost last page of the log would not do the same.  unwritten: what is told of zeros in the log before later messages.
    """

    messages: int = 0
    holes: bool = False
    later: bool = False
    proven: bool = False
    unwritten: Finding | None = None

    def __bool__(self) -> bool:
        return self.holes or self.later

    def findings(self, log: lm.LogMap) -> Iterator[Finding]:
        """How it is told: first what the log itself shows."""
        if self.unwritten is not None:
            yield self.unwritten
        if self.later:
            yield self._copied_later(log)
        elif self.holes and self.unwritten is None:
            message = "probably copied while the broker ran: the ConsumeQueues lead beyond the CommitLog, but with holes"
            yield Finding("live_copy", COMMITLOG, message=message)

    def _copied_later(self, log: lm.LogMap) -> Finding:
        number = count_text(self.messages, "message")
        place: tuple[str, int | None, int | None] = (log.segment_name(log.end), None, None)
        at, actual, otherwise = log.end, "no file", ", or its last segments are gone"
        if _zeros_behind(log):
            path, position = log.segment_of(log.data_end)
            place = path, position, min(position + 8, log.range_end(log.data_end) - log.data_end + position)
            at, actual = log.data_end, "zeros"
            otherwise = "" if self.proven else ", or its last pages were lost with the machine's power"
        return Finding(
            "queues_copied_later",
            *place,
            phy_offset=at,
            expected=f"{number} that the ConsumeQueues know",
            actual=actual,
            message="the ConsumeQueues were copied after the CommitLog of a running broker"
            f"{otherwise}: they lead to {number} beyond its end",
        )


def _zeros_behind(log: lm.LogMap) -> bool:
    """Whether zeros follow the log's last message."""
    return bool(log.kind_at(np.array([log.data_end]))[0] == lm.UNWRITTEN)


def _full(log: lm.LogMap) -> bool:
    """Whether the last segment holds messages up to its end, or to a filler."""
    return log.start < log.data_end and (
        log.data_end == log.end
        or bool(log.kind_at(np.array([log.data_end]))[0] == lm.FILLER)
        and log.range_end(log.data_end) == log.end
    )


def live_copy(
    results: Iterable[LeftoverResult], log: lm.LogMap, unclean: bool, flushed_further: bool, holes: Finding | None
) -> LiveCopy:
    """Judge the entries that lead beyond the log's data. holes: what is told of zeros in the log.

    flushed_further: the checkpoint tells a later store time of what was flushed than the log's last message has. What was flushed
    outlasts a loss of power, so then it was the copying that left it out.
    """
    beyond = {
        (phy, phy + size)
        for result in results
        for _, phy, size, kind in result.lost
        if kind in (lm.BEYOND, lm.UNWRITTEN) and phy >= log.data_end
    }
    if not unclean:
        return LiveCopy()
    if not beyond:
        return LiveCopy(unwritten=holes)
    covered = union(beyond)
    first = min(log.data_end, covered[0][0])
    with_holes = sum(b - a for a, b in covered) < COVERAGE * (covered[-1][1] - first)
    begins = log.data_end if _zeros_behind(log) else log.end if _full(log) else -1
    return LiveCopy(len(beyond), with_holes, covered[0][0] == begins, flushed_further, holes)
