"""What controller mode adds to a start: confirmOffset, the messages after it, and the controller's answer.

`ConfirmOffset`: the place up to which a fenced broker dispatches, as load() leaves it. Source: CommitLog.recoverNormally,
recoverAbnormally, getConfirmOffset; 5.1.1 and later (controller.md 3). `last_read` is that of a store with duplicationEnable,
5.0.0 and later (recovery.md 7).

`elected`: the fenced broker becomes the master of the next epoch, alone in its syncStateSet. The controller's answer sets
confirmOffset to the log's end (5.1.1 and later). If that is more than was dispatched, truncateInvalidMsg reads on from there
without checksums and cuts log and queues at the first record that it refuses. Before the cut it waits for the dispatching thread,
which continues after that record as start() does. Source: ReplicasManager.changeToMaster, AutoSwitchHAService.setSyncStateSet,
changeToMaster, truncateInvalidMsg, DefaultMessageStore.truncateDirtyFiles, ReputMessageService.shutdown and doReput
(controller.md 4).

`compensate`: load() reads the messages after confirmOffset for the queues' next numbers, and throws over some. Source:
ConsumeQueueStore.compensateForHA, 5.2.0 and later in controller mode, 5.0.0 and later with duplicationEnable;
DefaultMessageStore.selectOneMessageByOffset (controller.md 3, recovery.md 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout
from schemas.rows import WALK_BROKER, SegmentSummary
from store_io.broker.dispatch import EVERYTHING, Choice, Dispatch
from store_io.broker.epochs import Epoch, elect
from store_io.broker.prediction import Fenced, LogFile, Memory, Needs, Prediction, Refused, ScanId
from store_io.broker.queues.queue_puts import end_of
from store_io.broker.releases import BrokerRules


@dataclass
class ConfirmOffset:
    """The value in the broker's memory. dispatched_to: lastConfirmValidMsgPhyOffset of recoverAbnormally."""

    value: int
    dispatched_to: int = 0
    last_read: int = -1  # lastValidMsgPhyOffset; -1: none was read

    def begin(self, phy_offset: int) -> None:
        """Begin the scan in the segment of this base offset."""
        self.dispatched_to = phy_offset

    def read(self, summary: SegmentSummary) -> None:
        """Take in what a scan read, dispatched or not."""
        rows = summary.runs[summary.runs["walk"] & WALK_BROKER != 0]
        if len(rows):
            self.last_read = int(np.max(_places(summary, rows)))  # where it lies, whatever it stores

    def confirm_last(self, begin: int, unclean: bool) -> None:
        """Set the value that recovery leaves with duplicationEnable: the start of the last message read, else its begin."""
        if self.last_read >= 0:
            self.value = self.last_read
        elif unclean:
            self.value = begin

    def met(self, scan: ScanId, summary: SegmentSummary, choice: Choice, needs: Needs) -> None:
        """Take in what a scan after an unclean exit dispatched, messages without a queue entry too."""
        rows = summary.runs[summary.runs["walk"] & WALK_BROKER != 0]
        if not len(rows):
            return
        ends = end_of(rows["last_phy_offset"], rows["last_size"])
        first_ends = end_of(rows["first_phy_offset"], rows["first_size"])
        yes, inside = choice.accepts(rows["first_phy_offset"], rows["last_phy_offset"], first_ends, ends)
        if inside.any():
            needs.phy_cuts[scan].add(choice.threshold)
        if yes.any():  # the end that the last of them stores
            self.dispatched_to = int(ends[yes][np.argmax(_places(summary, rows)[yes])])

    def settle(self, minimum: int, end: int, unclean: bool) -> None:
        """Clamp the value as recovery does. minimum, end: of the log."""
        if self.value < minimum:
            self.value = minimum
        else:
            self.value = min(self.value, self.dispatched_to if unclean else end)
        self.value = min(self.value, end)


def _places(summary: SegmentSummary, rows: np.ndarray) -> np.ndarray:
    """Return the place of the last record of each of these runs. A run with another physical offset in it is one record."""
    places: np.ndarray = np.where(rows["regular"], rows["last_phy_offset"], summary.base_offset + rows["first_position"])
    return places


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
        with suppress(Refused):  # the broker logs it, asks the controller again, and is not fenced then
            broker.correct_minimums()
    outcome = elect(broker.epochs, broker.max_offset(), truncated)
    cut_log = cut_at is not None and cut_at >= 0  # else there is no log: only queues are cut
    return Fenced(confirm, broker.epochs, outcome, broker.memory(), cut_at if cut_log else None)


def _dispatch(broker: FencedBroker, at: int, end: int) -> tuple[int, Refusal | None]:
    """Dispatch from `at` on, and return where the check ends: at `end`, or at the physical offset that it refuses.

    The second value is the message at which the dispatching thread throws again and again, although the check accepts it.
    """
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


THROWS = "throws"  # how such a walk ends where the broker throws; elsewhere it just ends
LONGEST_V1_TOPIC = 127  # bytes; a broker writes V2 for longer names


def compensate(broker: FencedBroker) -> None:
    """Follow the walk to its end. Raises Refused if load() fails over it."""
    at = max(broker.confirm.value, 0)
    while (found := broker.find_segment(at)) is not None:
        number, file = found
        at = max(at, file.file.start)  # 0 finds the first segment, wherever that begins, and the walk begins there
        position = at - file.file.start
        if position + 4 > file.wrote:
            return
        if not position and _is_plain(broker, number, file):
            at = file.file.start + file.file.size
            continue
        scan = ScanId("ha", number, position, file.wrote)
        summary = broker.scans.get(scan)
        if summary is None:
            broker.needs.scans.add(scan)
            return
        stop = summary.broker
        if stop.kind == THROWS:
            confirmed, at = broker.confirm.value, file.file.start + stop.position
            raise Refused(
                Refusal(
                    RefusalKind.CONFIRMED_RECORD, file.file.path, confirmed, stop.reason, position=stop.position, phy_offset=at
                )
            )
        if stop.kind != "end":
            return
        at = file.file.start + file.file.size


def _is_plain(broker: FencedBroker, number: int, file: LogFile) -> bool:
    """Say whether recovery's own scan shows that the walk passes the whole segment."""
    whole: SegmentSummary | None = broker.scans.get(ScanId("segment", number))
    if whole is None or not broker.rules.check_crc or broker.rules.checks_phy_offset:
        return False
    passed = whole.broker.kind == "end" or whole.broker.position == file.wrote
    if any(finding.code == Code.FILLER_WRONG_SIZE for finding in whole.findings):
        return False  # this walk goes by the size
    return passed and not any(len(topic.encode("utf-8", "replace")) > LONGEST_V1_TOPIC for topic, _ in whole.queues)


def judged(head: bytes, left: int) -> str:
    """Say why the broker throws over a frame that its check refuses; empty if it does not.

    left: bytes up to the log's end.
    """
    size = int.from_bytes(head[:4], "big", signed=True)
    if len(head) < 4 or size > left:
        return ""
    if size < commitlog_layout.FRAME_BYTES:
        return f"its size is {size}"
    magic = int.from_bytes(head[4:8], "big", signed=True)
    if magic == commitlog_layout.MAGIC_V2:
        return "it is of the form V2, as messages with a long topic name are"
    if magic not in (commitlog_layout.MAGIC_V1, commitlog_layout.MAGIC_BLANK):
        return f"its magic is 0x{magic & 0xFFFFFFFF:08x}"
    return ""
