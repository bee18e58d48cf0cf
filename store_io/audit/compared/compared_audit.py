"""Audits one copy under several releases, and under changed settings, with one scan.

`compare` does all of it in this process; a runner of many stores drives the audit as any other (`audit_store.run_rounds`).
`detect_release` gives commands the release of a copy's broker if the copy leaves no choice, so that they need not ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.outcome import Outcome
from schemas.rows import NAMED, Comparison, SegmentSummary, Start
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.audit.compared.comparison import Answer, answer_of, comparison, not_known, older_than_its_writer
from store_io.audit.compared.shared_tasks import SharedRound
from store_io.audit.compared.variants import Variant, changed_settings, same_rules
from store_io.audit.open_copy import open_copy
from store_io.base.errors import StoreError
from store_io.base.tasks import Task, run_task
from store_io.broker.releases import KNOWN_RELEASES, NEWEST_RELEASE, broker_rules, parse_known
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.model.premises import heads_of
from store_io.model.written_by import WrittenBy, written_by
from store_io.outcome.final_findings import completed
from store_io.source.byte_source import StoreLocation

MOST_AT_ONCE = 200_000  # runs, damaged ranges and queues that are folded at once, counted once for each audit


def compare(request: AuditRequest) -> Comparison | None:
    """Compare the request's releases in this process; None if the copy cannot be opened."""
    return run_compared(request).outcome().comparison


def run_compared(request: AuditRequest) -> ComparedAudit:
    """Run the compared audit in this process and return it with all it knows."""
    audit = ComparedAudit(request)
    run_rounds([(audit, audit.first_tasks())], lambda tasks: [run_task(task) for task in tasks])
    return audit


class ComparedAudit(StoreAudit):
    """The audit of `request.release`, and beside it one of each other release, and of each changed setting.

    All share the round that reads everything. After it those beside it live as long as they ask for tasks, and a row of the
    table is left of each; of a store with many queues or much damage few are folded at once, the others wait.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._variants: list[Variant] = []
        self._same: dict[str, str] = {}  # by release, the one that has the same rules
        self._running: dict[Variant | None, StoreAudit] = {}  # None: this audit itself
        self._answers: dict[Variant, Answer] = {}
        self._round: SharedRound | None = None
        self._asked: list[Variant | None] = []
        self._waiting: deque[tuple[Variant | None, list[Any]]] = deque()  # with what the first round answered
        self._at_once = 0  # audits that are folded at once; 0 until the first round has ended
        self._whole = True  # no error of this program has ended the comparison
        self._settled = (0, 0)  # findings and gaps when the rounds had ended: what comes later others have added

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def first_tasks(self) -> list[Task]:
        own = super().first_tasks()
        if self.failed:
            return own
        try:
            return self._first_tasks(own)
        except Exception as fault:  # one store's must not end the others' audit
            return self._broken_off(fault)

    def _first_tasks(self, own: list[Task]) -> list[Task]:
        wanted: dict[Variant | None, list[Task]] = {None: own}
        for variant in self._beside():
            audit = StoreAudit(self._request_of(variant), beside=self.copy)
            try:
                wanted[variant] = audit.first_tasks()
            except StoreError as problem:  # of a setting that such a release does not take
                self._answers[variant] = not_known(variant, problem.gap())
                continue
            self._running[variant] = audit
            if not wanted[variant]:
                self._end(variant)
        return self._share(wanted)

    def next_tasks(self, results: list[Any]) -> list[Task]:
        try:
            return self._next_tasks(results)
        except Exception as fault:
            return self._broken_off(fault)

    def _broken_off(self, fault: Exception) -> list[Task]:
        self._fault(fault)
        self._whole = False
        return []

    def _next_tasks(self, results: Sequence[Any]) -> list[Task]:
        assert self._round is not None
        again = self._round.take(results)
        if again:
            return list(again)
        answered = deque(zip(self._asked, self._round.answers, strict=True))
        self._round = None
        if not self._at_once:
            self._at_once = max(1, MOST_AT_ONCE // _weight(answered[0][1], len(self.copy.queues_in_files.served.folders)))
            self._waiting, answered = answered, deque()
        wanted: dict[Variant | None, list[Task]] = {}
        while answered or self._waiting and len(wanted) < self._at_once:
            variant, answers = (answered or self._waiting).popleft()
            tasks = self._tasks_after(variant, answers)
            if tasks:
                wanted[variant] = tasks
        return self._share(wanted)

    def _tasks_after(self, variant: Variant | None, answers: list[Any]) -> list[Task]:
        """Return the tasks that one of the audits wants after these answers; it has ended if there are none."""
        if variant is None:
            return super().next_tasks(answers)
        tasks = self._running[variant].next_tasks(answers)
        if not tasks:
            self._end(variant)
        return tasks

    def _share(self, wanted: dict[Variant | None, list[Task]]) -> list[Task]:
        """Return one round of the audits that want tasks; [] when none does."""
        self._asked = [variant for variant, tasks in wanted.items() if tasks]
        self._round = SharedRound([wanted[variant] for variant in self._asked]) if self._asked else None
        if self._round is None:
            self._settled = len(self.findings), len(self.gaps.found)
            return []
        return list(self._round.tasks)

    def _beside(self) -> list[Variant]:
        """Return the variants to try beside the request's own release: each set of rules once."""
        known = {same_rules(self.rules): self.request.release}
        for release in self.request.releases:
            rules = broker_rules(release, self.rules.settings)
            self._same[release] = known.setdefault(same_rules(rules), release)
            if self._same[release] == release != self.request.release:
                self._variants.append(Variant(release))
        self._variants += changed_settings(self.copy)
        return self._variants

    def _request_of(self, variant: Variant) -> AuditRequest:
        asked = self.request
        return replace(asked, release=variant.release, release_from=NAMED, releases=(), changed=variant.changed, start=None)

    def _end(self, variant: Variant) -> None:
        """Keep of an audit that has ended its row."""
        self._answers[variant] = answer_of(self._running.pop(variant).outcome(), variant)

    # ---- what follows ----------------------------------------------------------------------------------------------

    def _outcome(self) -> Outcome:
        out = super()._outcome()
        if not self.failed and self._whole:
            return replace(out, comparison=self._comparison(answer_of(out, Variant(self.request.release))))
        return out

    def _comparison(self, own: Answer) -> Comparison:
        findings, gaps = self._settled
        counts: dict[str, int] = {}
        for finding in map(completed, self.findings[findings:]):
            counts[finding.severity] = counts.get(finding.severity, 0) + 1
        since = self.gaps.found[gaps:]
        written = self.evidence.written_by()
        rows: list[Start] = []
        for release in dict.fromkeys(self.request.releases):
            same = self._same[release]
            row = own.start if same == self.request.release else self._answers[Variant(same)].with_more(counts, since)
            rows.append(replace(row, release=release, doubt=older_than_its_writer(release, written)))
        settings = [self._answers[variant].with_more(counts, since) for variant in self._variants if variant.changed]
        return comparison(rows, settings, own.start)


def _weight(answers: Sequence[Any], queues: int) -> int:
    """Return how much there is to fold for one audit: it says how much memory that takes."""
    segments = [answer for answer in answers if isinstance(answer, SegmentSummary)]
    return 1 + queues + sum(len(segment.runs) + len(segment.extents) for segment in segments)


@dataclass(frozen=True)
class Detected:
    """The release of a copy as its files show it.

    release: the release whose rules to apply; "" if that is not sure.
    among: the releases that are possible then, all of which do the same with this copy.
    written: the traces in the files.
    """

    written: WrittenBy
    release: str = ""
    among: tuple[str, ...] = ()


def detect_release(location: StoreLocation, broker_conf: str | None) -> Detected:
    """Detect a copy's release by names, checkpoint and tables; no large file is read. Raises NotAStore.

    Only one fact is sure: which releases are too old. So a release follows if all that are not too old have the same rules.
    """
    copy = open_copy(AuditRequest("", location, NEWEST_RELEASE, broker_conf), Gaps())
    written = written_by(copy.listing.files, copy.checkpoint, heads_of(copy.source, copy.listing))
    if not written.surely_since:
        return Detected(written)
    among = tuple(r for r in KNOWN_RELEASES if parse_known(r) >= parse_known(written.surely_since))
    if len({same_rules(broker_rules(release, copy.rules.settings)) for release in among}) > 1:
        return Detected(written)
    return Detected(written, among[0], among)
