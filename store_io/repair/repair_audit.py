"""The audits of a repair: of the copy, held against the plan; of the repaired log; of the new store.

`Audited` is all that the other steps know of an audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from schemas.rows import EXTENT_MESSAGE, NOTE, AuditOutcome, Finding, QueueKey, SegmentSummary
from store_io.audit.audit_request import AuditRequest
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.audit.checks import given_up
from store_io.audit.loss import Loss
from store_io.audit.queue_leftovers import LeftoverResult
from store_io.audit.queue_views import QueueView
from store_io.base.errors import StoreError
from store_io.formats.config_reader import StoreConfig
from store_io.repair import repair_plan
from store_io.repair.repair_work import Work
from store_io.rules.loading import Tree
from store_io.rules.prediction import Checkpoint, Prediction
from store_io.rules.releases import BrokerRules
from store_io.scan.segment_scan import SegmentTask
from store_io.source.byte_source import StoreLocation


class Audited:
    """What an audit found. outcome: its results, worked out once."""

    def __init__(self, audit: StoreAudit):
        self._audit = audit
        self.outcome: AuditOutcome = audit.outcome()

    @property
    def failed(self) -> bool:
        """Whether the store could not be audited at all."""
        return self._audit.failed

    @property
    def complete(self) -> bool:
        return self.outcome.complete

    @property
    def why_incomplete(self) -> str:
        return self.outcome.incomplete[0]

    @property
    def findings(self) -> Sequence[Finding]:
        return self.outcome.findings

    @property
    def serious(self) -> list[Finding]:
        """Findings above a note."""
        return [f for f in self.findings if f.severity != NOTE]

    @property
    def rules(self) -> BrokerRules:
        return self._audit.rules

    @property
    def segments(self) -> Sequence[SegmentSummary]:
        return self._audit.segments

    @property
    def tree(self) -> Tree:
        return self._audit.copy.tree

    @property
    def prediction(self) -> Prediction | None:
        return self._audit.prediction

    @property
    def starts(self) -> bool:
        """Whether the release would start."""
        return self.prediction is not None and self.prediction.starts

    @property
    def unclean(self) -> bool:
        """Whether the abort marker is there."""
        return self._audit.unclean

    @property
    def checkpoint(self) -> Checkpoint:
        return self._audit.copy.checkpoint

    @property
    def config(self) -> StoreConfig:
        return self._audit.copy.config

    @property
    def loss(self) -> Loss | None:
        return self._audit.loss

    @property
    def leftovers(self) -> Mapping[QueueKey, LeftoverResult]:
        return self._audit.evidence.leftovers

    @property
    def queue_folders(self) -> Mapping[QueueKey, str]:
        return self._audit.queue_folders

    @property
    def views(self) -> Mapping[QueueKey, QueueView]:
        """Each queue seen from the log and from its files."""
        self._audit.view_queues()
        return self._audit.views

    @property
    def last_store_time(self) -> int:
        return max((s.last_store_time for s in self.segments), default=0)

    @property
    def last_message(self) -> int:
        """Physical offset of the last message, a bridge or not; 0 without one."""
        return max((int(s.index_runs["last_phy_offset"].max()) for s in self.segments if len(s.index_runs)), default=0)

    @property
    def holding(self) -> set[str]:
        """Paths of the segments that hold a message."""
        return {s.path for s in self.segments if any(e.kind == EXTENT_MESSAGE for e in s.extents)}

    def told_by(self, location: StoreLocation) -> list[Finding]:
        """The note of an earlier repair, where the report beside the store at `location`, of which this is a copy, has one."""
        return given_up.repaired_findings(self._audit.evidence, location)

    def scan_of(self, segment: SegmentSummary) -> SegmentTask:
        """A scan of the segment alone, for a sink that takes its messages."""
        return replace(
            self._audit.base_task,
            path=segment.path,
            base_offset=segment.base_offset,
            size=segment.size,
            queue_files={},
            batch_queue_files={},
            ext_files={},
            index_files=(),
            expect_queues=False,
            probe=False,
            digest=False,
        )


def audit(work: Work, conf: str | None) -> Audited:
    """The audit of the new store as it is now, under those settings."""
    request = work.request
    asked = AuditRequest(request.name, work.location, request.plan.release, conf, window_bytes=request.window_bytes)
    run = StoreAudit(asked)
    run_rounds([(run, run.first_tasks())], lambda tasks: work.run_tasks(tasks, "audit"))
    return Audited(run)


def audit_copy(work: Work) -> Audited:
    """The audit of the copy, which must find what the plan promises; it settles rules and settings. Raises StoreError."""
    work.progress("auditing the copy")
    first = audit(work, work.request.plan.broker_conf)
    wrong = repair_plan.differences(work.request.plan, first.outcome.plan)
    if wrong:
        more = f" (and {len(wrong) - 1} more differences)" if len(wrong) > 1 else ""
        raise StoreError(f"the store is not the one that the plan was made from: {wrong[0]}{more}")
    if not first.complete or first.failed:
        raise StoreError(f"the copy could not be audited: {first.why_incomplete}")
    work.rules = first.rules
    work.conf = repair_plan.properties_text({k: s.value for k, s in first.rules.settings.items()})
    return first


def audit_changed(work: Work, what: str) -> Audited:
    """The audit of the copy after a change. Raises StoreError where it is not complete. what: "the copy"."""
    found = audit(work, work.conf)
    if not found.complete:
        raise StoreError(f"{what} could not be audited: {found.why_incomplete}")
    return found


def audit_repaired_log(work: Work) -> Audited:
    """The audit that tells what is to be rebuilt from the log as it is now."""
    work.progress("auditing the repaired log")
    return audit(work, work.conf)


def audit_new_store(work: Work) -> Audited:
    """The audit of the new store, while what was written goes to the disk."""
    work.progress("auditing the new store")
    with ThreadPoolExecutor(1) as threads:
        flushed = threads.submit(work.writer.flush)
        final = audit(work, work.conf)
        flushed.result()
    return final
