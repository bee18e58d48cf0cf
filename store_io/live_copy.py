"""Whether ConsumeQueues and CommitLog of a copy are of different moments: what lies beyond the log's end then is no damage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from schemas.rows import Finding
from store_io import log_map as lm
from store_io.queue_leftovers import LeftoverResult
from store_io.ranges import union
from store_io.rules.loading import COMMITLOG

# Entries beyond the log's end that cover less than this part of the bytes there are of different moments.
COVERAGE = 0.8


@dataclass(frozen=True)
class LiveCopy:
    """What entries beyond the log's data say of a copy that an unclean exit, or none, preceded.

    holes: they do not cover the bytes there.  A broker dispatches in physical order, so in a copy of one moment they do, but for
    messages that have no entry.  later: they begin exactly behind the log's last message, which is whole, and lead into zeros:
    the queues are of a later moment than the log.  proven: so they are; a lost last page of the log would not do the same.
    """

    messages: int = 0
    holes: bool = False
    later: bool = False
    proven: bool = False

    def __bool__(self) -> bool:
        return self.holes or self.later

    def finding(self, log: lm.LogMap) -> Finding:
        """How it is told. Only for one that is true."""
        if not self.later:
            return Finding("live_copy", COMMITLOG, message="the ConsumeQueues lead beyond the log, but with holes")
        path, position = log.segment_of(log.data_end)
        number = "a message" if self.messages == 1 else f"{self.messages} messages"
        power = "" if self.proven else ", or its last pages were lost with the machine's power"
        return Finding(
            "queues_copied_later",
            path,
            position,
            min(position + 8, log.range_end(log.data_end) - log.data_end + position),
            phy_offset=log.data_end,
            expected=f"{number} that the ConsumeQueues know",
            actual="zeros",
            message="the ConsumeQueues were copied after the CommitLog of a running broker"
            f"{power}: they lead to {number} beyond its end",
        )


def live_copy(results: Iterable[LeftoverResult], log: lm.LogMap, unclean: bool, flushed_further: bool) -> LiveCopy:
    """Judge the entries that lead beyond the log's data.

    flushed_further: the checkpoint tells a later store time of what was flushed than the log's last message has. What was flushed
    outlasts a loss of power, so then it was the copying that left it out.
    """
    beyond = {
        (phy, phy + size)
        for result in results
        for _, phy, size, kind in result.lost
        if kind in (lm.BEYOND, lm.UNWRITTEN) and phy >= log.data_end
    }
    if not unclean or not beyond:
        return LiveCopy()
    covered = union(beyond)
    first = min(log.data_end, covered[0][0])
    holes = sum(b - a for a, b in covered) < COVERAGE * (covered[-1][1] - first)
    zeros = log.kind_at(np.array([log.data_end]))[0] == lm.UNWRITTEN
    return LiveCopy(len(beyond), holes, bool(zeros) and covered[0][0] == log.data_end, flushed_further)
