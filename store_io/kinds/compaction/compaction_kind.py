"""The logs of compacted topics, as an audit asks for them, and the effect of a start on them (compaction.md 5, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from schemas.advice import Advice, LeftOut, Refusal, Step
from schemas.layouts.store_names import COMPACTION as COMPACTION_FOLDER
from schemas.rows import Finding, MappedFile, PlanStep, QueueKey
from store_io.base.packed import items_of
from store_io.base.tasks import Task
from store_io.broker.loading import LoadedStore
from store_io.broker.releases import BrokerRules
from store_io.kinds.compaction.compacted_file import CompactedFileSummary, CompactedFileTask
from store_io.kinds.compaction.compacted_queues import CompactedStore, compacted_log, compacted_queues
from store_io.kinds.compaction.log_messages import LogFiles
from store_io.kinds.compaction.sparse_recovery import SparseRecovery, recovered
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Cure, Kind, Opening
from store_io.model.opened_copy import OpenedCopy

Files = list[CompactedFileSummary]


@dataclass
class CompactedStart:
    """The effect of compacted topics on a start.

    refusals: why load() ends, by the first name; which of several a broker meets first is the file system's order.
    deleted: files that load() removes.
    queues: recovery of each queue that load() opens and none refuses.
    """

    refusals: list[Refusal] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    queues: Mapping[QueueKey, SparseRecovery] = field(default_factory=dict)

    @property
    def refusal(self) -> Refusal | None:
        return self.refusals[0] if self.refusals else None


def compacted_start(store: CompactedStore, read: Iterable[CompactedFileSummary], rules: BrokerRules) -> CompactedStart:
    """Return the effect of load() on the logs of compacted topics.

    read: at least the files of each queue that recovery reads.
    """
    ends = {summary.entries_path: summary.ends for summary in read if summary.ends is not None}
    start = CompactedStart([store.refusal] if store.refusal else [])
    queues = {}
    for key, queue in sorted(store.queues.items()):
        start.deleted += queue.deleted
        if queue.refusal:
            start.refusals.append(queue.refusal)
        elif queue.loaded and not queue.not_loaded:
            queues[key] = recovered(queue, ends, rules)
            start.deleted += queues[key].deleted
            if refusal := queues[key].refusal:
                start.refusals.append(refusal)
    start.queues = queues
    return start


@dataclass(frozen=True)
class CompactedLogs:
    """The logs of compacted topics: names, what was read of the files, and the effect of a start."""

    store: CompactedStore
    files: Sequence[CompactedFileSummary]
    start: CompactedStart


class Compaction(Kind[CompactedStore, Files, CompactedLogs]):
    """The logs of compacted topics, below compaction/."""

    name = "compaction"
    task_types = (CompactedFileTask,)
    left_out = ((CompactedFileTask, LeftOut.COMPACTED),)
    nothing_found = list

    def open(self, opening: Opening) -> CompactedStore:
        return compacted_queues(opening.tree, opening.rules)

    def cure(self, copy: OpenedCopy, refusal: Refusal) -> Cure | None:
        return Cure(Advice(Step.SEE_COMPACTED)) if refusal.path.startswith(f"{COMPACTION_FOLDER}/") else None

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        return Advice(Step.NO_COMPACTED_REPAIR) if compacted_log(copy.listing) else None

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        """Yield a task for each file of a compacted log and the entries of that name.

        At the quick level they are those that recovery reads.
        """
        queues, topics = copy[self].queues, copy.compacted_topics  # looked for among all topics
        if copy.rules.compacts and not request.quick:
            for key, files in items_of(copy.queues_in_files.served.files) if topics else ():
                if key[0] in topics and key[0] not in copy.batch_topics and key not in queues:
                    yield _without_log(request, copy, key, files)
        for key, queue in sorted(queues.items()):
            log, entries = ({f.start: f for f in reversed(files)} for files in (queue.all_log, queue.all_entries))
            names = sorted(log.keys() | entries.keys())
            queue_files = () if key[0] in copy.batch_topics else copy.queues_in_files.served.files.get(key, ())
            for start in names[copy.rules.first_recovered(len(names)) :] if request.quick else names:
                yield CompactedFileTask(
                    request.store,
                    request.location,
                    copy.rules,
                    key,
                    log.get(start),
                    entries.get(start),
                    LogFiles(tuple(copy.segment_files), queue_files),
                    last=start == names[-1],
                    unclean=copy.unclean,
                    records=not request.quick,
                    put_here=key[0] in topics,
                    window_bytes=request.window_bytes,
                    decoder=request.decoder,
                    not_after=request.not_after,
                )

    def take(self, found: Files, result: CompactedFileSummary) -> None:
        found.append(result)

    def start_is_unknown(self, copy: OpenedCopy, found: Files, late: Set[str]) -> bool:
        unread = any(file.path in late for queue in copy[self].queues.values() for file in queue.entries)
        return unread or any(summary.problem for summary in found)

    def after_load(self, copy: OpenedCopy, found: Files, loaded: LoadedStore) -> LoadedStore:
        """Return what load() makes of the store: these logs are opened after the ConsumeQueues, before recovery."""
        store = copy[self]
        if not store.queues and not store.refusal:
            return loaded
        start = compacted_start(store, found, copy.rules)
        return replace(loaded, refusal=loaded.refusal or start.refusal, deleted=[*loaded.deleted, *start.deleted])

    def view(self, evidence: Evidence) -> CompactedLogs:
        store, files = evidence.copy[self], evidence.results(self)
        return CompactedLogs(store, files, compacted_start(store, files, evidence.copy.rules))

    def left_by_start(self, evidence: Evidence, serious: Sequence[Finding]) -> Iterator[PlanStep]:
        deleted = evidence.prediction.deleted_files if evidence.prediction is not None else []
        reason = "the compacted topic has no entry for it"
        yield from (PlanStep.whole("delete", path, reason) for path in deleted if path.startswith(COMPACTION_FOLDER + "/"))

    def digests(self, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        for summary in evidence.results(self):
            yield from ((path, evidence.copy.size_of(path), digest) for path, digest in summary.digests.items())


def _without_log(request: AuditRequest, copy: OpenedCopy, key: QueueKey, files: tuple[MappedFile, ...]) -> CompactedFileTask:
    """Return the task for a queue of a compacted topic without a log of its own: are there messages which it should hold?"""
    return CompactedFileTask(
        request.store,
        request.location,
        copy.rules,
        key,
        None,
        None,
        LogFiles(tuple(copy.segment_files), files),
        last=True,
        unclean=copy.unclean,
        put_here=True,
        not_after=request.not_after,
    )


COMPACTION = Compaction()
