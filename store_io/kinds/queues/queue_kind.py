"""ConsumeQueues in files, as an audit asks for them: small queues together in one task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from schemas.advice import Cause, Gap, Step
from schemas.layouts.store_names import BATCH_QUEUES, EXT
from schemas.layouts.store_names import QUEUES as QUEUES_FOLDER
from schemas.rows import EarlierRun, Finding, MappedFile, PlanStep, QueueKey, QueueSummary
from store_io.base.packed import FEW, PackedMap, items_of, joined
from store_io.base.tasks import PackedTask, Task
from store_io.broker.loading import numbered_files, queue_folders
from store_io.broker.queues.combination import light_expected, light_from_rocksdb, reads_rocksdb
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.recovery import AskedRecovery
from store_io.kinds.queues.consumequeue_reader import QueueGroup, QueueTask
from store_io.log.entries.queues_in_files import Files, Folders, QueuePlaces, QueuesInFiles
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Opening, rebuilt
from store_io.model.opened_copy import OpenedCopy

QUEUE_GROUP_BYTES = 64 << 20
QUEUE_GROUP_COUNT = 256
QUEUE_GROUP_FILES = 1024


@dataclass
class QueueResults:
    """Holds what was read of queues in files. problems: how many of them could not be read."""

    summaries: PackedMap[QueueKey, QueueSummary] = field(default_factory=lambda: PackedMap(weigh=QueueSummary.weight))
    problems: int = 0


class Queues(Kind[None, QueueResults, QueueResults]):
    """ConsumeQueues in files: ordinary, batch, with extensions."""

    name = "queues"
    task_types = (QueueGroup,)
    nothing_found = QueueResults

    def open(self, opening: Opening) -> None:
        """Say where the queues lie; that goes to `opening`."""
        rules, tree = opening.rules, opening.tree
        if rules.combined_queues and opening.batch_topics:
            opening.unmodelled.append(Gap(Cause.DOUBLE_WRITE_BATCH))
        if rules.rocksdb_queues:
            opening.queues_in_files = QueuesInFiles(serves=False)
            return
        folders = queue_folders(tree, QUEUES_FOLDER)
        if rules.batch_queues:  # 4.x does not know the folder: its queues of these topics are ordinary ones
            folders = joined(folders, queue_folders(tree, BATCH_QUEUES))
        files = PackedMap.of(((key, tuple(numbered_files(tree, folder))) for key, folder in folders.items()), weigh=len)
        written = served = QueuePlaces(folders, files)
        double_write = rules.combined_queues and not opening.unmodelled
        serves = not (double_write and reads_rocksdb(rules))
        if not serves:
            served = QueuePlaces()
        elif double_write and light_from_rocksdb(rules):
            served = written.without_light()
        opening.queues_in_files = QueuesInFiles(served, written, double_write, serves)

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan look up each message's entries in files."""
        has_extensions = copy.tree.is_folder(EXT)
        extensions = (
            (key, tuple(numbered_files(copy.tree, f"{EXT}/{folder.partition('/')[2]}")))
            for key, folder in (copy.queues_in_files.served.folders.items() if has_extensions else ())
        )
        return replace(
            task,
            queue_files=_files_below(copy.queues_in_files.served, QUEUES_FOLDER),
            batch_queue_files=_files_below(copy.queues_in_files.served, BATCH_QUEUES),
            ext_files=PackedMap.of(((key, files) for key, files in extensions if files), weigh=len),
            lmq=light_expected(copy.rules),
        )

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        """Yield tasks for all queues in files, also for those beside queues in RocksDB."""
        folders, files = copy.queues_in_files.written.folders, copy.queues_in_files.written.files
        groups = (QueueGroup(group, request.not_after) for group in _grouped(request, copy, folders, files))
        many = len(folders) > FEW or isinstance(files, PackedMap) and files.packs
        yield from (PackedTask.of(group) for group in groups) if many else groups

    def take(self, found: QueueResults, result: list[QueueSummary]) -> None:
        found.summaries.add({summary.key: summary for summary in result})
        found.problems += sum(bool(summary.problem) for summary in result)

    def start_is_unknown(self, copy: OpenedCopy, found: QueueResults, late: Set[str]) -> bool:
        unread = any(file.path in late for queue in copy.loaded.queues.values() for file in queue.files)
        return unread or bool(found.problems)

    def add_to_recovery(self, copy: OpenedCopy, found: QueueResults, asked: AskedRecovery) -> None:
        asked.queue_summaries, asked.disk = found.summaries, copy.queue_entries

    def read_queues(self, copy: OpenedCopy, found: QueueResults, served: bool) -> Mapping[QueueKey, QueueSummary]:
        """Return the queues that were read: those from which consumers are served, or the others of a double write."""
        own, every = copy.queues_in_files.served.folders, copy.queues_in_files.written.folders
        if not own or own is every:
            return found.summaries if served is bool(own) else {}
        return {key: summary for key, summary in found.summaries.items() if (key in own) is served}

    def unchanged(self, copy: OpenedCopy, found: QueueResults, before: EarlierRun, gone: bool) -> bool:
        queues = found.summaries
        return all(
            key in queues
            and not queues[key].changed
            and not queues[key].problem
            and (gone or all(entries == 0 or path in queues[key].digests for path, entries, _ in files))
            for key, files in before.queues.items()
            if files and not (gone and key not in copy.queues_in_files.served.folders)
        )

    def left_by_start(self, evidence: Evidence, serious: Sequence[Finding]) -> Iterator[PlanStep]:
        """Yield a step for each queue to be rebuilt, then for each sound queue that the log's cut takes entries from."""
        if not evidence.copy.queues_in_files.serves:
            return
        blamed = rebuilt([finding for finding in serious if not finding.has_step(Step.NO_QUEUE)], queue_folder_of)
        yield from blamed.values()
        p = evidence.prediction
        if p is None or p.after_load is None:
            return
        for key, queue in items_of(p.after_load.queues):
            summary = evidence.queues.get(key)
            if queue.folder in blamed or summary is None or not isinstance(queue, QueueState):
                continue
            reason = f"its entries lead past the cut of the CommitLog at {p.log_end:,}"
            yield from (PlanStep.whole("delete", path, reason) for path in sorted(queue.deleted))
            end = summary.used_end * queue.unit
            for file in queue.files:
                if file.path is not None and file.start + file.wrote < min(end, file.start + file.size):
                    yield PlanStep("truncate", file.path, file.wrote, file.size, reason)

    def digests(self, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        """Yield each file; one that was not read has no digest."""
        copy = evidence.copy
        for files in copy.queues_in_files.served.files.values():
            yield from ((file.path, file.size, "") for file in files)
        for queue in evidence.results(self).summaries.values():
            yield from ((path, copy.size_of(path), digest) for path, digest in queue.digests.items())


QUEUES = Queues()


def queue_folder_of(file: str) -> str:
    """Return the folder of the queue that a file or ext file belongs to; "" for any other file."""
    top, *parts = file.split("/")
    if top not in (QUEUES_FOLDER, BATCH_QUEUES, EXT) or len(parts) < 2:
        return ""
    return f"{BATCH_QUEUES if top == BATCH_QUEUES else QUEUES_FOLDER}/{parts[0]}/{parts[1]}"


def _files_below(places: QueuePlaces, kind: str) -> Files:
    items = ((key, places.files[key]) for key, folder in places.folders.items() if folder.startswith(kind + "/"))
    return PackedMap.of(((key, own) for key, own in items if own), weigh=len)


def _grouped(request: AuditRequest, copy: OpenedCopy, folders: Folders, files: Files) -> Iterator[tuple[QueueTask, ...]]:
    group: list[QueueTask] = []
    size = count = 0
    for key, folder in items_of(folders):
        if size >= QUEUE_GROUP_BYTES or len(group) >= QUEUE_GROUP_COUNT or count >= QUEUE_GROUP_FILES:
            yield tuple(group)
            group, size, count = [], 0, 0
        group.append(_queue(request, copy, key, folder, files[key]))
        size += sum(f.size for f in group[-1].audit_files)
        count += len(group[-1].audit_files)
    if group:
        yield tuple(group)


def _queue(request: AuditRequest, copy: OpenedCopy, key: QueueKey, folder: str, files: tuple[MappedFile, ...]) -> QueueTask:
    loaded = copy.loaded.queues.get(key)
    mapped = loaded if loaded is not None and not copy.loaded.refusal else None
    mapped_files = tuple(mapped.files) if mapped else ()
    return QueueTask(
        request.store,
        key,
        request.location,
        mapped_files,
        files,
        tuple(mapped.ext_files) if mapped else (),
        folder.startswith(BATCH_QUEUES + "/"),
        bool(copy.rules.value("enableConsumeQueueExt")),
        copy.log_min,
        first_recovered=copy.rules.first_recovered(len(mapped_files)),
        last_only=request.quick,
        known=request.earlier.queues.get(key, ()) if request.earlier is not None else (),
    )
