"""Findings on a start of this copy: it would refuse, drop messages, wait without end, or leave consumers beyond the log's end."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.advice import Advice, Refusal, Step
from schemas.finding_codes import SETTING_OF_STOP, Code
from schemas.layouts import dledger_layout
from schemas.layouts.checkpoint_layout import ABORT_FILE
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import LOSS, RUN_QUEUE, Finding, QueueKey
from store_io.base.wording import count_text
from store_io.broker.loading import queue_folder, when_dispatch_ends, why_no_folder
from store_io.broker.prediction import BrokerQueue, Prediction
from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.kinds.all_kinds import KINDS, ROOMS
from store_io.model.evidence import Evidence
from store_io.model.loss import Loss
from store_io.model.queue_runs import matched
from store_io.wording.refusals import refusal_sentence


def broker_findings(evidence: Evidence) -> list[Finding]:
    """Return the findings on the effect of a start; none if that is not known. Those of kinds are listed in their `Room`."""
    prediction, loss = evidence.prediction, evidence.loss
    if prediction is None:
        return []
    if not prediction.starts:
        return [_refused(evidence, prediction.refusal)] if prediction.refusal is not None else []
    assert loss is not None
    found = [
        *_dropped(evidence, prediction, loss), *_skipped(evidence, prediction, loss),
        *_cut_by_crash(evidence, prediction, loss),
    ]  # fmt: skip
    if prediction.hangs_at >= 0:
        message = "a start waits here and never ends"
        if prediction.election_hangs:
            message = "the election waits here and never ends, and the broker stays fenced"
        message += f": {refusal_sentence(prediction.hangs_why)}" if prediction.hangs_why else ""
        found.append(Finding(Code.BROKER_HANGS, COMMITLOG, phy_offset=prediction.hangs_at, message=message))
    return [*found, *(finding for room in ROOMS for check in room.start_checks for finding in check(evidence))]


def _refused(evidence: Evidence, refusal: Refusal) -> Finding:
    """Return the finding that says why the broker does not start, with the next step against this cause."""
    cure = next((cure for kind in KINDS if (cure := kind.cure(evidence.copy, refusal)) is not None), None)
    actual, step = (cure.actual, cure.step) if cure is not None else (None, refusal.correct_line)
    return Finding(Code.BROKER_REFUSES, refusal.path, actual=actual, message=str(refusal_sentence(refusal)), next=step)


def _dropped(evidence: Evidence, prediction: Prediction, loss: Loss) -> Iterator[Finding]:
    cut = sum(queue.cut for queue in loss.by_queue.values())
    if not cut:
        return
    if prediction.end < prediction.log_end:
        at = prediction.end % evidence.copy.rules.segment_bytes
        path = f"commitlog/{prediction.end - at:020d}"
        there = any(f.path == path for f in evidence.copy.segment_files)  # else the log has a gap there
        yield Finding(
            Code.BROKER_DROPS_MESSAGES,
            path,
            at if there else None,
            at + 8 if there else None,
            phy_offset=prediction.end,
            expected="a record that dispatch can read",
            actual="none",
            count=cut,
            message=f"an election cuts the log at {prediction.end:,} and loses {count_text(cut, 'valid message')}",
        )
    else:
        yield Finding(
            Code.BROKER_DROPS_MESSAGES,
            prediction.stop_segment or COMMITLOG,
            prediction.stop_position,
            prediction.stop_position + 8,
            phy_offset=prediction.log_end,
            expected="the scan continues",
            actual=prediction.stop_reason,
            count=cut,
            message=f"a start cuts the log at {prediction.log_end:,} and loses {count_text(cut, 'valid message')}",
            next=_switch_off(evidence, prediction),
        )


def _switch_off(evidence: Evidence, prediction: Prediction) -> Advice | None:
    """Return the next step for a setting that was switched on later; None if that is not the likely cause.

    A record without the property that the setting asks for may be damaged if it comes after messages that have it; if it has a
    finding of its own, it is.
    """
    before = prediction.start_segment and prediction.log_end > int(prediction.start_segment)
    at = (f for s in evidence.segments for f in s.findings if f.phy_offset == prediction.log_end)
    damaged = any(f.weight == LOSS for f in at)
    setting = SETTING_OF_STOP.get(prediction.stop_reason)
    return None if before or damaged or setting is None else Advice(Step.SWITCH_OFF, (setting,))


def _skipped(evidence: Evidence, prediction: Prediction, loss: Loss) -> Iterator[Finding]:
    queues = prediction.settled.queues if prediction.settled is not None else {}
    first_left_out = _first_left_out(evidence, loss)
    for key, lost in sorted(loss.by_queue.items()):
        if lost.messages > lost.cut:
            count = count_text(lost.messages - lost.cut, "message")
            queue = queues.get(key)
            left = f"a start leaves {count} without a queue entry"
            lasting = not evidence.copy.rules.rocksdb_queues and not isinstance(queue, RocksQueue) and why_no_folder(key[0])
            again = when_dispatch_ends(key[0], evidence.copy.rules, False) if lasting and not prediction.skips else ""
            yield Finding(
                Code.BROKER_SKIPS_MESSAGES,
                evidence.views[key].folder if key in evidence.views else queue_folder(False, key),
                topic=key[0],
                queue_id=key[1],
                count=lost.messages - lost.cut,
                message=_end_unread(queue, count)
                or _below_minimum(evidence, queue, key, count)
                or left + (_why_skipped(prediction, queue) or first_left_out) + (f": {lasting}; {again}" if again else ""),
                next=Advice(Step.NO_QUEUE) if lasting else _start_without_crash(evidence) if prediction.ledger_cut >= 0 else None,
            )


def _first_left_out(evidence: Evidence, loss: Loss) -> str:
    """Explain the loss of a controlled replica's first message after confirmOffset.

    A start after a clean exit leaves it out (P2).
    """
    copy, skipped = evidence.copy, sum(queue.messages - queue.cut for queue in loss.by_queue.values())
    if skipped != 1 or copy.unclean or not (copy.rules.controller_mode and copy.rules.dispatches_after_clean_exit):
        return ""
    return ": after a clean exit dispatch continues after the first message that was not confirmed, not with it"


def _end_unread(queue: BrokerQueue | None, count: str) -> str:
    """Explain the loss in a queue in RocksDB whose ends a broker cannot read (rocksdb.md 3)."""
    if not isinstance(queue, RocksQueue) or not (queue.maximum_bad or queue.minimum_bad):
        return ""
    if queue.maximum_bad:
        return f"bad bytes hold the queue's maximum: consumers get nothing, {count} here, and each new message is refused"
    return f"bad bytes hold the queue's minimum: consumers get nothing, {count} here"


def _below_minimum(evidence: Evidence, queue: BrokerQueue | None, key: QueueKey, count: str) -> str:
    """Explain the loss in a queue in RocksDB whose minimum passes over messages that have entries.

    An undamaged queue can do so (rocksdb.md 4).
    """
    if not isinstance(queue, RocksQueue) or queue.cut_back or key not in evidence.views:
        return ""
    rows = evidence.views[key].runs.rows
    rows = rows[rows["kind"] == RUN_QUEUE]
    below = rows["queue_offset"] < queue.min_offset
    held = matched(rows[below])
    if len(queue.puts):
        held |= rows["first_phy_offset"][below] >= queue.puts["first_phy"].min()
    if not below.any() or not (rows["messages"] > rows["records"]).any() or not held.all():
        return ""
    return (
        f"the queue's minimum becomes {queue.min_offset:,}, above {count}: the broker searches for it by bisection, and takes a"
        " queue offset inside an inner batch, which has no entry, for one that is gone; consumers are sent on to the minimum"
    )


def _why_skipped(prediction: Prediction, queue: BrokerQueue | None) -> str:
    """Explain a silent loss of queues in RocksDB, and of a double write (rocksdb.md 3, 8)."""
    if isinstance(queue, RocksQueue) and queue.cut_back:
        again = f"queue offsets from {queue.max_offset:,} on are given again, and the entries there are overwritten"
        return f": its maximum is set back to {queue.max_offset:,}; {again}"
    return "".join(f": {why}" for why in prediction.skips[:1])


def _cut_by_crash(evidence: Evidence, prediction: Prediction, loss: Loss) -> Iterator[Finding]:
    """dledgerRecoverAbnormally from 5.2.0 on cuts queues at a place that it counts without the headers (dledger.md 4)."""
    skipped = sum(queue.messages - queue.cut for queue in loss.by_queue.values())
    if prediction.ledger_cut >= 0 and skipped:
        message = (
            f"recovery cuts ConsumeQueues at {prediction.ledger_cut:,}, although the log ends at {prediction.log_end:,}:"
            f" {count_text(skipped, 'message')} would be in no queue, and {'its' if skipped == 1 else 'their'} queue"
            f" {'offset' if skipped == 1 else 'offsets'} given again"
        )
        where = ABORT_FILE, *evidence.copy.entry_range(ABORT_FILE)
        step = _start_without_crash(evidence)
        yield Finding(Code.LEDGER_CRASH_CUT, *where, next=step, phy_offset=prediction.ledger_cut, message=message, count=skipped)


def _start_without_crash(evidence: Evidence) -> Advice:
    """Return the next step if the rules of an unclean exit alone cut queues of a DLedger broker (dledger.md 7)."""
    assert evidence.copy.loaded.ledger is not None
    checkpoint = f"{evidence.copy.loaded.ledger.folder}/{dledger_layout.CHECKPOINT}"
    return Advice(Step.REMOVE_CRASH_MARKS, (checkpoint,))
