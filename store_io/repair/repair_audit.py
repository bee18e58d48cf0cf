"""The audits of a repair: of the copy, held against the plan; of the repaired log; of the new store.

`Audited` is all that the other steps know of an audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from schemas.first_day import StartMoment
from schemas.outcome import Outcome
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, NOTE, WALK_AUDIT, QueueKey, SegmentSummary
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.base.errors import StoreError, Unreadable
from store_io.base.tasks import PartlyRead, Task
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.queue_views import QueueView
from store_io.repair import repair_plan
from store_io.repair.copy_under_way import CopyUnderWay
from store_io.repair.derived.kept_rows import KeepingTask, KeptRows, KeptScan
from store_io.repair.repair_work import KEPT_ROWS, RunTasks, Work
from store_io.rocksdb.kept_open import databases_kept_open
from store_io.source.byte_source import StoreLocation
from store_io.wording.steps import advice_text


class Audited:
    """Holds what an audit found.

    unclean: whether the abort marker is there.
    serious: findings above a note.
    """

    def __init__(self, audit: StoreAudit, outcome: Outcome, kept: Mapping[str, KeptRows]):
        self.kept = kept
        self._audit, self.outcome, self.evidence = audit, outcome, audit.evidence
        self.complete, self.findings = outcome.complete, outcome.found.findings
        self.serious = [f for f in outcome.found.findings if f.severity != NOTE]
        self.copy = copy = self.evidence.copy
        evidence = self.evidence
        self.rules, self.tree, self.unclean, self.checkpoint = copy.rules, copy.tree, copy.unclean, copy.checkpoint
        self.segments, self.prediction, self.loss = evidence.segments, evidence.prediction, evidence.loss

    @property
    def starts(self) -> bool:
        """Say whether the release would start."""
        return self.prediction is not None and self.prediction.starts

    @property
    def views(self) -> Mapping[QueueKey, QueueView]:
        """Return each queue seen from the log and from its files."""
        self._audit.view_queues()
        return self._audit.views

    @property
    def last_store_time(self) -> int:
        return max((s.last_store_time for s in self.segments), default=0)

    @property
    def end_time(self) -> int:
        """Store time of the log's last message, which one message with a wild time before it does not change. 0 without one."""
        for segment in reversed(self.segments):
            runs = segment.runs[segment.runs["walk"] & WALK_AUDIT != 0]
            if len(runs):
                return int(runs["last_store_time"][runs["last_phy_offset"].argmax()])
        return 0

    @property
    def last_message(self) -> int:
        """Return physical offset of the last message, a bridge or not; 0 without one."""
        return max((int(s.index_runs["last_phy_offset"].max()) for s in self.segments if len(s.index_runs)), default=0)

    @property
    def holding(self) -> set[str]:
        """Return paths of the segments that hold a message."""
        return {s.path for s in self.segments if any(e.kind == EXTENT_MESSAGE for e in s.extents)}

    def scan_of(self, segment: SegmentSummary) -> SegmentTask:
        """Return a scan of the segment alone, for a sink that takes its messages.

        If this audit found no damage, every checksum of a body was right and is not taken again: the audit of the new store does
        that.
        """
        damaged = any(e.kind == EXTENT_DAMAGED for e in segment.extents)
        return replace(
            self._audit.base_task,
            path=segment.path,
            base_offset=segment.base_offset,
            size=segment.size,
            queue_files={},
            batch_queue_files={},
            ext_files={},
            index=None,
            expect_queues=False,
            probe=False,
            digest=False,
            sums=damaged or self.copy.loaded.ledger is not None,  # DLedger's files end where its index says
        )


def audit(
    work: Work,
    conf: str | None,
    what: str,
    copy: StoreLocation | None = None,
    keep: bool = False,
    run_here: RunTasks | None = None,
    digests: bool = False,
    start: StartMoment | None = None,
) -> Audited:
    """Return the audit of the new store as it is now, under those settings.

    what: "the copy".
    copy: where the copy is read; None audits the new store.
    digests: for a plan, of this store or to be held against.
    start: of the broker whose first day is asked for.
    Raises StoreError if the audit fails, Unreadable if a read fails: a repair follows from an audit that has read everything.
    """
    request = work.request
    asked = AuditRequest(request.name, copy or work.location, request.plan.release, conf, digests=digests, start=start)
    run = StoreAudit(asked)
    work.forget_rows()
    kept: dict[str, KeptRows] = {}
    scanned: set[str] = set()

    def run_tasks(tasks: list[Task]) -> list[Any]:
        keeping = [_keeping(task, work, scanned) if keep and work.keeps else task for task in tasks]
        return [_without_rows(result, kept) for result in (run_here or work.run_tasks)(keeping, "audit")]

    with databases_kept_open():
        run_rounds([(run, run.first_tasks())], run_tasks)
    outcome = run.outcome()
    for gap in run.failed_reads.values():
        raise Unreadable.again(gap)
    if run.failed:
        raise _not_audited(what, outcome)
    return Audited(run, outcome, kept)


def _keeping(task: Task, work: Work, scanned: set[str]) -> Task:
    """Return the task as a scan that keeps what it meets, if it is the segment's first.

    scanned: paths of segments that had one.
    """
    if not isinstance(task, SegmentTask) or task.only is not None or not task.walk_audit or task.path in scanned:
        return task
    scanned.add(task.path)
    return KeepingTask.of(task, work.writer.aside, KEPT_ROWS)


def _without_rows(result: Any, kept: dict[str, KeptRows]) -> Any:
    """Return the result as the audit takes it. kept: gets the rest."""
    if isinstance(result, PartlyRead):
        return replace(result, result=_without_rows(result.result, {}))
    if not isinstance(result, KeptScan):
        return result
    if result.kept is not None:
        kept[result.summary.path] = result.kept
    return result.summary


def _not_audited(what: str, outcome: Outcome) -> StoreError:
    return StoreError(f"{what} could not be audited: {outcome.incomplete[0]}")


def audit_copy(work: Work, copying: CopyUnderWay) -> Audited:
    """Return the audit of the copy, which must find what the plan promises; it settles rules and settings. Raises StoreError,
    also what the copy raises."""
    work.progress("auditing the copy")
    first = _audit_while_copied(work, copying)
    copying.finish()
    if first is None:  # what is refused is refused by what lies there
        first = audit(work, work.request.plan.broker_conf, "the copy", work.location, digests=True)
    if first.outcome.no_repair:
        raise StoreError(advice_text(first.outcome.no_repair))
    wrong = repair_plan.differences(work.request.plan, first.outcome)
    if wrong:
        more = f" (and {len(wrong) - 1} more differences)" if len(wrong) > 1 else ""
        raise StoreError(f"the store is not the one that the plan was made from: {wrong[0]}{more}")
    if not first.complete:
        raise _not_audited("the copy", first.outcome)
    work.rules = first.rules
    own = {k: s.value for k, s in first.rules.settings.items()}
    work.conf = repair_plan.properties_text({**own, **work.request.plan.day})
    return first


def _audit_while_copied(work: Work, copying: CopyUnderWay) -> Audited | None:
    """Return the audit of the copy while it is made; None where it finds anything else than the plan promises."""
    try:
        keep = not work.request.edits_log  # by the plan: another audit follows then
        found = audit(work, work.request.plan.broker_conf, "the copy", copying.location, keep, copying.run_here, True)
    except StoreError:
        return None
    return found if found.complete and not repair_plan.differences(work.request.plan, found.outcome) else None


def audit_changed(work: Work, what: str) -> Audited:
    """Return the audit of the copy after a change. Raises StoreError where it is not complete."""
    found = audit(work, work.conf, what, keep=True)
    if not found.complete:
        raise _not_audited(what, found.outcome)
    return found


def audit_new_store(work: Work) -> Audited:
    """Return the audit of the new store, while what was written goes to the disk."""
    work.progress("auditing the new store")
    with ThreadPoolExecutor(1) as threads:
        flushed = threads.submit(work.writer.flush)
        final = audit(work, work.conf, "the new store", start=work.request.start, digests=True)
        flushed.result()
    return final
