"""Whether ConsumeQueues and CommitLog were copied at different moments: then entries beyond the log's end are no damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import Finding
from store_io.base.wording import count_text
from store_io.model import log_map as lm
from store_io.model.lost_entries import lost_places
from store_io.model.queue_leftovers import LeftoverResult

COVERAGE = 0.8  # of the bytes beyond the log's end; entries that cover less were copied at different moments
MANY = 20  # messages side by side beyond the log's end: no damage of entries looks so


@dataclass(frozen=True)
class LiveCopy:
    """The facts that entries beyond the log's end show of a copy with an abort file.

    holes: they leave gaps. A broker dispatches in physical order, so in a copy of one moment they leave none, except for messages
    without an entry.
    later: they begin right after the log's last message, with zeros there, or with a segment due after a full last one: the
    queues were copied after the log.
    proven: no loss of power explains this.
    unwritten: the finding on zeros in the log before later messages.
    """

    messages: int = 0
    holes: bool = False
    later: bool = False
    proven: bool = False
    unwritten: Finding | None = None

    def __bool__(self) -> bool:
        return self.holes or self.later

    def findings(self, log: lm.LogMap) -> Iterator[Finding]:
        """Yield findings: first what the log itself shows."""
        if self.unwritten is not None:
            yield self.unwritten
        if self.later:
            yield self._copied_later(log)
        elif self.holes and self.unwritten is None:
            message = "probably copied while the broker ran: the ConsumeQueues lead beyond the CommitLog, but with holes"
            yield Finding(Code.LIVE_COPY, COMMITLOG, message=message)

    def _copied_later(self, log: lm.LogMap) -> Finding:
        number = count_text(self.messages, "message")
        place: tuple[str, int | None, int | None] = (log.segment_name(log.end), None, None)
        at, actual, otherwise = log.end, "no file", ", or its last segments are gone"
        if _zeros_after(log):
            path, position = log.segment_of(log.data_end)
            place = path, position, min(position + 8, log.range_end(log.data_end) - log.data_end + position)
            at, actual = log.data_end, "zeros"
            otherwise = "" if self.proven else ", or its last pages were lost with the machine's power"
        return Finding(
            Code.QUEUES_COPIED_LATER,
            *place,
            phy_offset=at,
            expected=f"{number} that the ConsumeQueues know",
            actual=actual,
            message="the ConsumeQueues were copied after the CommitLog of a running broker"
            f"{otherwise}: they lead to {number} beyond its end",
        )


def _zeros_after(log: lm.LogMap) -> bool:
    """Say whether zeros follow the log's last message."""
    return bool(log.kind_at(np.array([log.data_end]))[0] == lm.UNWRITTEN)


def _full(log: lm.LogMap) -> bool:
    """Say whether the last segment holds messages up to its end, or to a filler."""
    return log.start < log.data_end and (
        log.data_end == log.end
        or bool(log.kind_at(np.array([log.data_end]))[0] == lm.FILLER)
        and log.range_end(log.data_end) == log.end
    )


@dataclass(frozen=True)
class QueuesAhead:
    """The entries that lead beyond the log's last message.

    messages: to how many they lead.
    holes: they leave gaps.
    follow: they begin right after the log's last message, with zeros there, or with a segment due after a full last one.
    """

    messages: int
    holes: bool
    follow: bool

    @property
    def shows_more(self) -> bool:
        """Say whether the log was longer: a few damaged entries neither begin at its end nor lie side by side."""
        return self.follow or self.messages >= MANY and not self.holes


def queues_ahead(results: Iterable[LeftoverResult], log: lm.LogMap) -> QueuesAhead | None:
    """Return what entries beyond the log's last message show; None without such entries."""
    places = lost_places(results, log, (lm.BEYOND, lm.UNWRITTEN)).values()
    beyond = [at for at in places if at.bounds[0] >= log.data_end]
    if not beyond:
        return None
    first, end = min(at.bounds[0] for at in beyond), max(at.bounds[1] for at in beyond)
    with_holes = sum(at.bytes for at in beyond) < COVERAGE * (end - min(log.data_end, first))
    begins = log.data_end if _zeros_after(log) else log.end if _full(log) else -1
    return QueuesAhead(sum(at.count for at in beyond), with_holes, first == begins)


def live_copy(ahead: QueuesAhead | None, unclean: bool, flushed_further: bool, holes: Finding | None) -> LiveCopy:
    """Judge the entries that lead beyond the log's last message. holes: the finding on zeros in the log.

    flushed_further: the checkpoint says that later messages than the log's last one were flushed. These outlast a loss of power,
    so the copying left them out.
    """
    if not unclean:
        return LiveCopy()
    if ahead is None:
        return LiveCopy(unwritten=holes)
    return LiveCopy(ahead.messages, ahead.holes, ahead.follow, flushed_further, holes)
