"""The audit of one store, without Spark: rounds of independent tasks, and a fold between them.

`run_audit` runs one here; `run_rounds` runs many, wherever their tasks run.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.advice import Cause, Gap
from schemas.outcome import Outcome
from schemas.replicas import NO_GROUP, Group
from schemas.rows import Finding, FurthestRun, MappedFile, QueueKey, SegmentSummary
from store_io.audit.open_copy import open_copy
from store_io.audit.rounds.store_rounds import StoreRounds
from store_io.base.errors import NotAStore, StoreError, UsageError
from store_io.base.failed_reads import failed_reads
from store_io.base.packed import PackedList
from store_io.base.tasks import HERE, Task, Workers
from store_io.broker.prediction import Prediction, ScanId
from store_io.broker.releases import BrokerRules
from store_io.checks.all_checks import run_checks
from store_io.checks.broker_start import broker_findings
from store_io.checks.changed_bytes import FirstRead, Seen, changed_findings, first_reads
from store_io.checks.emptied import Begins, shows_a_store, shrunk_findings
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.found_gaps import Gaps
from store_io.model.loss import Loss
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_views import QueueView
from store_io.outcome.store_outcome import Judged, failed_outcome, start_outcome, store_outcome
from store_io.rocksdb.kept_open import databases_kept_open
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import changes_since


def run_local(request: AuditRequest) -> Outcome:
    """Return the whole audit in this process."""
    return run_audit(request).outcome()


def run_audit(request: AuditRequest, workers: Workers = HERE) -> StoreAudit:
    """Run the audit and return it with all it knows. workers: they run its tasks if the log is large enough."""
    audit = StoreAudit(request)
    with databases_kept_open():
        asking = [(audit, audit.first_tasks())]
        if audit.failed or not workers.at_once(sum(file.size for file in audit.segment_files)):
            workers = HERE
        run_rounds(asking, lambda tasks: workers.run(tasks, "audit"))
    return audit


def run_rounds(asking: list[tuple[StoreAudit, list[Task]]], run_tasks: Callable[[list[Task]], Sequence[Any]]) -> None:
    """Run the tasks that the audits ask for, all of a round together, until none asks for more. asking: with their first ones;
    it is empty afterwards."""
    waiting = [(audit, own) for audit, own in asking if own]
    asking.clear()
    while waiting:
        answers = list(reversed(run_tasks([task for _, own in waiting for task in own])))
        counts = [(audit, len(own)) for audit, own in waiting]
        waiting.clear()  # an audit keeps the tasks that it still needs, and lets go of each answer that it has taken
        for audit, count in counts:
            tasks = audit.next_tasks([answers.pop() for _ in range(count)])
            if tasks:
                waiting.append((audit, tasks))


@dataclass
class StoreAudit:
    """One store's audit as a machine that asks for tasks. After the last round `outcome()` has everything."""

    request: AuditRequest
    findings: PackedList[Finding] = field(default_factory=PackedList)
    failed: bool = False
    first: list[Task] = field(default_factory=list)  # the first round, for a runner of many stores
    furthest: FurthestRun | None = None  # of earlier audits; known once the store was read
    held: Mapping[str, FirstRead] = field(default_factory=dict)  # earlier readings of its segments
    replicas: Group = NO_GROUP  # once its copies were compared
    bytes_compared: int = 0  # read once more for that
    beside: OpenedCopy | None = None  # the copy as another audit has opened it, which looks for changes and at the index

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self.gaps = Gaps()
        self._opened: OpenedCopy | None = None
        self._asking: StoreRounds | None = None

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def first_tasks(self) -> list[Task]:
        """Return the tasks that read everything once; [] if nothing can be audited."""
        try:
            with self._telling_failed_reads():
                self._opened = open_copy(self.request, self.gaps, self.beside)
                self._asking = StoreRounds(self.request, self._opened, self.gaps, index=self.beside is None)
        except UsageError:
            raise
        except StoreError as error:
            self.failed = True
            self.gaps.add([error.gap()])
            return []
        except Exception as fault:
            self.failed = True
            self._fault(fault)
            return []
        return self._advance(None)

    def begin(self) -> None:
        """Start the clock of the audit: its first tasks are run now, after it may have waited for other stores."""
        self._began = time.monotonic()

    def next_tasks(self, results: list[Any]) -> list[Task]:
        """Take in one round's results, in the order of its tasks; the next round's tasks, [] when all is known.

        A gap in the place of a result says why there is none; the audit is then incomplete. `results` is empty afterwards.
        """
        return self._advance(results)

    def _advance(self, results: list[Any] | None) -> list[Task]:
        try:
            with self._telling_failed_reads():
                tasks = self._rounds.following(results)
            if not tasks:
                self._judge()
            return tasks
        except StoreError as error:
            self.gaps.add([error.gap()])
            return []
        except Exception as fault:  # one store's must not end the others' audit
            self._fault(fault)
            return []

    def _fault(self, fault: Exception) -> None:
        where = traceback.extract_tb(fault.__traceback__)[-1]
        sentence = f"{type(fault).__name__}: {fault} ({where.name}, line {where.lineno})"
        self.gaps.cannot_read(Gap(Cause.AUDIT_FAULT, values=(sentence,)))
        if self._asking is not None:
            self._asking.prediction = None

    @contextlib.contextmanager
    def _telling_failed_reads(self) -> Iterator[None]:
        """Surround all that reads the copy here: a read that fails inside makes the audit incomplete, whoever caught its
        error."""
        with failed_reads() as failed:
            try:
                yield
            finally:
                self.gaps.add_failed(failed)

    @contextlib.contextmanager
    def no_fault_beyond(self) -> Iterator[None]:
        """Surround work on this one store: an error in it makes this audit incomplete, and ends no other's."""
        try:
            with self._telling_failed_reads():
                yield
        except StoreError as error:
            self.gaps.add([error.gap()])
        except Exception as fault:
            self._fault(fault)

    def _judge(self) -> None:
        evidence = self.evidence
        with self._telling_failed_reads():
            self.findings = run_checks(evidence)
            if self.beside is None and not self.request.living:
                self.gaps.add(changes_since(evidence.copy.listing))
        if not self.gaps.faults:
            with self._telling_failed_reads():
                self.findings += broker_findings(evidence)

    # ---- what follows ----------------------------------------------------------------------------------------------

    def hold_against(self, furthest: FurthestRun | None, named: bool, begins_before: Callable[[FurthestRun], Begins]) -> None:
        """Add the findings of a copy that has less than an earlier audit of the same store saw. See `shrunk_findings`."""
        self.furthest = furthest
        if not self.failed:
            self.findings += shrunk_findings(self.evidence, furthest, named, begins_before)

    def hold_bytes_against(self, seen: Seen, named: bool) -> None:
        """Add the findings of segments whose bytes changed under the same time. See `changed_bytes`."""
        if not self.failed:
            self.held = first_reads(self.evidence, seen, named)
            self.findings += changed_findings(self.evidence, self.held)

    def settle(self) -> None:
        """End the audit of a folder that is no store and shows no sign of having been one. It could not be audited."""
        if not self.failed and self.copy.no_store and not self.copy.log_place.asked and not shows_a_store(self.findings):
            self.failed = True
            self.gaps.found[:] = [NotAStore(self.copy.no_store).gap()]

    def outcome(self) -> Outcome:
        """Return all results. The same bytes give the same, but for `seconds`."""
        reasons = len(self.gaps.found)
        try:
            with self._telling_failed_reads():
                out = self._outcome()
            if len(self.gaps.found) == reasons:
                return out
        except StoreError as error:
            self.failed = True
            self.gaps.add([error.gap()])
        except Exception as fault:  # one store's must not end the others' audit
            self.failed = True
            self._fault(fault)
        return self._outcome()

    def _outcome(self) -> Outcome:
        seconds = time.monotonic() - self._began
        if self.failed:
            out = failed_outcome(self.request, self.gaps.faults)
        else:
            judged = Judged(self.findings, self.gaps, self.furthest, self.held, self.replicas)
            out = (store_outcome if self.beside is None else start_outcome)(self.evidence, judged)
        cost = replace(out.cost, bytes_read=out.cost.bytes_read + self.bytes_compared, seconds=seconds)
        return replace(out, cost=cost, replica_group=self.request.replica_group)

    # ---- what is known ---------------------------------------------------------------------------------------------

    @property
    def failed_reads(self) -> Mapping[str, Gap]:
        """Return reads of the copy that failed, and that another try may do, by path."""
        return self.gaps.failed

    @property
    def evidence(self) -> Evidence:
        """Return all facts as they are known now."""
        return self._rounds.evidence()

    def segment_addresses(self) -> list[tuple[str, str, int]]:
        """Return (path in the store, address on its file system, size) of each segment, for a second listing."""
        if self.failed:
            return []
        return [(f.path, self.source.address(f.path), f.size) for f in self.segment_files]

    def view_queues(self) -> None:
        """Set `views`, which are there already if a start was predicted."""
        self._rounds.view_queues()

    @property
    def base_task(self) -> SegmentTask:
        """Return a segment's task without a segment, from which scans of single segments are made."""
        return self._rounds.tasks.base

    @property
    def copy(self) -> OpenedCopy:
        """Return the facts of listing, settings and small files. Only for a copy that could be opened."""
        assert self._opened is not None, "the copy was not opened"
        return self._opened

    @property
    def _rounds(self) -> StoreRounds:
        assert self._asking is not None, "the copy was not opened"
        return self._asking

    # Shortcuts for other packages: to facts of the copy, then of the rounds so far.

    @property
    def source(self) -> ByteSource:
        return self.copy.source

    @property
    def rules(self) -> BrokerRules:
        return self.copy.rules

    @property
    def batch_topics(self) -> frozenset[str]:
        return self.copy.batch_topics

    @property
    def unclean(self) -> bool:
        return self.copy.unclean

    @property
    def segment_files(self) -> list[MappedFile]:
        return self.copy.segment_files

    @property
    def prediction(self) -> Prediction | None:
        return self._asking.prediction if self._asking is not None else None

    @property
    def loss(self) -> Loss | None:
        return self._rounds.loss

    @property
    def views(self) -> Mapping[QueueKey, QueueView]:
        return self._rounds.views

    @property
    def segments(self) -> list[SegmentSummary]:
        return self._rounds.collected.segments

    @property
    def unread(self) -> list[MappedFile]:
        return self._rounds.unread

    @property
    def scans(self) -> dict[ScanId, SegmentSummary]:
        return self._rounds.collected.scans
