"""Copies of one broker's log, compared by physical offset: where they part, what each lacks, which one to start as master.

A master and its slaves write the same bytes at the same physical offsets (HAService, AutoSwitchHAClient), so a copy that ends
earlier, or that retention has shortened, differs in its bounds only. Differences between these bounds are damage of one copy, or
messages that were written to a copy after it had been cut off from the others. Segments with equal digests are not read again,
nor are those of which another copy has nothing.

    group = ReplicaGroup(name, audits)
    group.finish([run_task(task) for task in group.tasks()])
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.replicas import NO_GROUP
from schemas.rows import EXTENT_MESSAGE, MappedFile, SegmentSummary
from store_io.base.tasks import PartlyRead
from store_io.model.queue_runs import message_runs
from store_io.replicas.behind import behind_findings
from store_io.replicas.compared_copies import ComparedCopies, ReplicaFindings, copy_of
from store_io.replicas.group_of_copies import group_of
from store_io.replicas.replica_compare import OtherCopy, ReplicaTask
from store_io.replicas.replica_parts import MAX_COPIES, QueueTotal, ReplicaPart, ReplicaRange, State
from store_io.replicas.tables_ahead import tables_ahead, topics_named_elsewhere
from store_io.wording.gaps import gap_text

if TYPE_CHECKING:
    from store_io.audit.audit_store import StoreAudit


def replica_groups(audits: Sequence[StoreAudit], absent: Sequence[tuple[str, str]] = ()) -> list[ReplicaGroup]:
    """Return the groups of two and more of these audits, in the order of their first copies. Each audit has ended.

    absent: (group, name) of stores without an audit. Like audits that failed at once, they are named and not compared.
    """
    members: dict[str, list[StoreAudit]] = defaultdict(list)
    missing: dict[str, list[str]] = defaultdict(list)
    for name, store in absent:
        missing[name].append(store)
    for audit in audits:
        if audit.failed:
            missing[audit.request.replica_group].append(audit.request.name)
        elif audit.request.replica_group:
            members[audit.request.replica_group].append(audit)
    groups = [ReplicaGroup(name, own) for name, own in members.items() if len(own) > 1]
    for group in groups:
        group.problems += [f"{name}: not compared, it could not be audited" for name in sorted(missing[group.name])]
    return groups


class ReplicaGroup:
    """One group: asks for tasks once, then adds findings to its audits and has `result`."""

    def __init__(self, name: str, audits: Sequence[StoreAudit]):
        self.name = name
        self.copies = [copy_of(audit) for audit in audits[:MAX_COPIES]]
        self.parts: list[ReplicaPart] = []
        self.problems = [
            f"{audit.request.name}: not compared, the group has {len(audits)} copies" for audit in audits[MAX_COPIES:]
        ]
        self.result = NO_GROUP

    # ---- what has to be read -----------------------------------------------------------------------------------------

    def tasks(self) -> list[ReplicaTask]:
        """Return a task for each segment that another copy may have otherwise. All else follows from what the audits know."""
        tasks = []
        for number, copy in enumerate(self.copies):
            for segment in copy.segments:
                others = [self._other(other, segment) for other in range(len(self.copies)) if other != number]
                known = [self._known(other, segment) for other in others]
                if all(state is not None for state in known):
                    states: list[int] = [State.EQUAL] * len(self.copies)
                    for other, state in zip(others, known, strict=True):
                        states[other.copy] = state or State.EQUAL
                    self.parts.append(_whole_part(number, segment, tuple(states)))
                    continue
                request = copy.audit.request
                tasks.append(
                    ReplicaTask(
                        request.store,
                        number,
                        segment.path,
                        segment.base_offset,
                        segment.size,
                        request.location,
                        tuple((e.start, e.end) for e in segment.extents if e.kind == EXTENT_MESSAGE),
                        copy.audit.rules,
                        tuple(others),
                        request.window_bytes,
                        request.decoder,
                    )
                )
        return tasks

    def _other(self, number: int, segment: SegmentSummary) -> OtherCopy:
        copy = self.copies[number]
        low, high = segment.base_offset, segment.base_offset + segment.size
        near = [s for s in copy.segments if s.base_offset < high and low < s.base_offset + s.size]
        twin = segment.digest and [(s.base_offset, s.size, s.digest) for s in near] == [(low, segment.size, segment.digest)]
        first = max(0, int(np.searchsorted(copy.log.starts, low, "right")) - 1)
        last = int(np.searchsorted(copy.log.starts, high, "left"))
        return OtherCopy(
            number,
            copy.audit.request.location,
            bool(twin),
            tuple(MappedFile(s.path, s.base_offset, s.size) for s in near),
            copy.log.starts[first:last],
            copy.log.kinds[first:last],
            copy.log.start,
            copy.log.data_end,
            tuple((a, b) for a, b in copy.unreadable if a < high and low < b),
        )

    def _known(self, other: OtherCopy, segment: SegmentSummary) -> int | None:
        """Return the state of another copy for all messages of a segment, if no byte is needed to know it."""
        messages = [e for e in segment.extents if e.kind == EXTENT_MESSAGE]
        if other.equal or not messages:
            return State.EQUAL
        low, high = segment.base_offset + messages[0].start, segment.base_offset + messages[-1].end
        if any(a <= low and high <= b for a, b in other.unreadable):
            return State.UNKNOWN
        if other.unreadable or any(finding.code == Code.COMMITLOG_BRIDGED for finding in segment.findings):
            return None
        if low >= other.end:
            return State.BEYOND
        if high <= other.start:
            return State.EXPIRED
        return State.MISSING if not other.files and other.start <= low and high <= other.end else None

    # ---- what came of it ---------------------------------------------------------------------------------------------

    def compared(self, results: Iterable[ReplicaPart | PartlyRead | Gap]) -> ComparedCopies:
        """Take in the tasks' results, or a gap in the place of one, and return what they found."""
        for part in results:
            if isinstance(part, PartlyRead):
                failed, part = part.failed, part.result
                part = part if part.problem else replace(part, problem=next(iter(failed.values())), problem_copy=part.copy)
            if isinstance(part, Gap):
                self.problems.append(gap_text(part))
            elif part.problem:
                self._failed(part, part.problem)
            else:
                self.parts.append(part)
        return ComparedCopies(self.copies, self.parts)

    def finish(self, results: Iterable[ReplicaPart | PartlyRead | Gap]) -> None:
        """Take in the tasks' results, or a gap in the place of one; add findings to the audits."""
        compared = self.compared(results)
        for number, copy in enumerate(self.copies):
            copy.audit.bytes_compared += sum(part.bytes_read for part in self.parts if part.copy == number)
        findings = ReplicaFindings(compared)
        for number, copy in enumerate(self.copies):
            copy.audit.findings += findings.of(number)
        for copy, finding in topics_named_elsewhere(self.copies):
            copy.audit.findings += [finding]
        tables, unread = tables_ahead(self.copies)
        self.result = replace(group_of(self.name, compared, [*self.problems, *unread]), config=tuple(tables))
        for copy in self.copies:
            copy.audit.replicas = self.result

    def blame(self) -> None:
        """Add the findings on copies that must not become master as they are."""
        for copy in self.copies:
            copy.audit.findings += behind_findings(self.result, copy.name)

    def _failed(self, part: ReplicaPart, gap: Gap) -> None:
        audit = self.copies[part.problem_copy].audit
        self.problems.append(f"{audit.request.name}: {gap_text(gap)}")
        audit.gaps.add([gap])


def _whole_part(copy: int, segment: SegmentSummary, states: tuple[int, ...]) -> ReplicaPart:
    """Return a part whose messages all have the same states: from the segment's runs, without reading it again."""
    part = ReplicaPart(copy, segment.base_offset)
    messages = [e for e in segment.extents if e.kind == EXTENT_MESSAGE]
    runs = message_runs(segment)
    if not any(states) or not messages or not len(runs):
        return part
    for run in runs:
        first = int(run["queue_offset"])
        times = int(run["first_store_time"]), int(run["last_store_time"])
        total = QueueTotal(
            int(run["records"]), int(run["bytes"]), first, first + int(run["messages"]) - 1, min(times), max(times)
        )
        part.totals.setdefault((states, segment.queues[run["queue"]]), QueueTotal()).add(total)
    head = runs[np.argmin(runs["first_position"])]
    topic, queue_id = segment.queues[head["queue"]]
    part.pieces.append(
        ReplicaRange(
            segment.base_offset + messages[0].start,
            segment.base_offset + messages[-1].end,
            int(runs["records"].sum()),
            int(runs["bytes"].sum()),
            segment.first_store_time,
            segment.last_store_time,
            states,
            False,
            topic,
            queue_id,
            int(head["queue_offset"]),
            int(head["first_size"]),
        )
    )
    return part
