"""The fenced broker -> the master of the next epoch, alone in its syncStateSet: what is dispatched and cut then.

The controller's answer sets confirmOffset to the log's end (5.1.1 and later). Where that is more than was dispatched,
truncateInvalidMsg reads on from there without checksums and cuts log and queues at the first record that it refuses. Before the
cut it waits for the dispatching thread, which continues after that record as start() does. Source:
ReplicasManager.changeToMaster, AutoSwitchHAService.setSyncStateSet, changeToMaster, truncateInvalidMsg,
DefaultMessageStore.truncateDirtyFiles, ReputMessageService.shutdown and doReput (controller.md 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from schemas.advice import Refusal
from schemas.rows import SegmentSummary
from store_io.broker.controller_mode.confirm_offset import ConfirmOffset
from store_io.broker.controller_mode.epochs import Epoch, elect
from store_io.broker.dispatch import EVERYTHING, Dispatch
from store_io.broker.prediction import Fenced, LogFile, Memory, Needs, Prediction, Refused, ScanId
from store_io.broker.queues.queue_state import QueueRefusal
from store_io.broker.releases import BrokerRules


class FencedBroker(Protocol):
    """The parts that an election needs of the fold that has brought the broker to here."""

    rules: BrokerRules
    log: list[LogFile]
    dispatch: Dispatch
    needs: Needs
    scans: Mapping[ScanId, SegmentSummary]
    confirm: ConfirmOffset
    epochs: tuple[Epoch, ...]
    dispatched_to: int
    prediction: Prediction

    def memory(self) -> Memory: ...
    def min_offset(self) -> int: ...
    def max_offset(self) -> int: ...
    def find_segment(self, phy_offset: int) -> tuple[int, LogFile] | None: ...
    def truncate(self, end: int, queues: bool) -> None: ...
    def dispatch_on(self, at: int) -> int: ...
    def correct_minimums(self) -> None: ...


@dataclass(frozen=True)
class _Part:
    """One segment of the walk: the scan that shows its records."""

    scan: ScanId
    summary: SegmentSummary


def elected(broker: FencedBroker) -> Fenced:
    """Hold the election. Missing scans are put into the broker's `needs`, and the answer is not final then."""
    rules, at, end = broker.rules, broker.dispatched_to, broker.max_offset()
    confirm = broker.confirm.value if rules.controlled else -1
    if broker.prediction.hangs_at >= 0:  # start() never returns, and nobody asks the controller
        return Fenced(confirm, broker.epochs)
    truncated = waits = None
    if rules.controlled and at < end:
        truncated, waits = _dispatch(broker, max(at, broker.min_offset()), end)
    cut_at = truncated if truncated is not None and truncated < end else None
    if cut_at is not None and waits is None:
        with suppress(Refused):  # the dispatching thread throws at this message; after five seconds the log is cut all the same
            broker.dispatch_on(cut_at)
    broker.dispatch.puts.settle()
    if cut_at is not None:
        broker.truncate(cut_at, True)
    if waits is not None:  # for the dispatching thread, once the new epoch is written
        broker.prediction.hangs_at, broker.prediction.hangs_why = waits.phy_offset, waits
    else:
        with suppress(QueueRefusal):  # the broker logs it, asks the controller again, and is not fenced then
            broker.correct_minimums()
    outcome = elect(broker.epochs, broker.max_offset(), truncated)
    return Fenced(confirm, broker.epochs, outcome, broker.memory(), cut_at)


def _dispatch(broker: FencedBroker, at: int, end: int) -> tuple[int, Refusal | None]:
    """Dispatch from `at` on; the physical offset where the check ends: `end`, or that of what it refuses; and the message at
    which the dispatching thread throws again and again. The check passes that one."""
    waits: Refusal | None = None
    while at < end:
        found = broker.find_segment(at)
        if found is None or at - found[1].file.start >= found[1].wrote:
            return at, waits
        number, file = found
        part = _read(broker, number, file, at)
        if part is None:
            return end, waits
        if waits is None:
            try:
                broker.dispatch.put(part.scan, part.summary, EVERYTHING)
            except Refused as why:
                waits = why.refusal
        stop = part.summary.broker
        if stop.kind != "end" and stop.position < file.wrote:
            return file.file.start + stop.position, waits
        at = file.file.start + (file.file.size if stop.kind == "end" else file.wrote)
    return end, waits


def _read(broker: FencedBroker, number: int, file: LogFile, at: int) -> _Part | None:
    """Return the part of a segment that the election reads from `at` on; None: it is asked for.

    Recovery's own scan serves if it met no fault.
    """
    whole = broker.scans.get(ScanId("segment", number))
    if whole is not None and at == file.file.start:
        stop = whole.broker
        if stop.kind == "end" or stop.position == file.wrote:
            return _Part(ScanId("segment", number), whole)
    scan = ScanId("elect", number, at - file.file.start, file.wrote)
    summary = broker.scans.get(scan)
    if summary is None:
        broker.needs.scans.add(scan)
        return None
    return _Part(scan, summary)
