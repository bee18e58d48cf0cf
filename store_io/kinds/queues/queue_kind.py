"""ConsumeQueues in files, as an audit asks for them: small queues together in one task, and entries that no message matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from schemas.advice import LeftOut
from schemas.rows import MappedFile, QueueKey, QueueSummary
from schemas.store_names import BATCH_QUEUES, EXT
from schemas.store_names import QUEUES as QUEUES_FOLDER
from store_io.base.packed import FEW, PackedMap, items_of
from store_io.base.tasks import PackedTask, Task
from store_io.broker.loading import numbered_files
from store_io.broker.queues.combination import light_expected
from store_io.kinds.queues.consumequeue_reader import QueueGroup, QueueTask
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_leftovers import LeftoverResult, LeftoverTask

QUEUE_GROUP_BYTES = 64 << 20
QUEUE_GROUP_COUNT = 256
QUEUE_GROUP_FILES = 1024

Folders = Mapping[QueueKey, str]
Files = Mapping[QueueKey, tuple[MappedFile, ...]]


@dataclass
class QueueResults:
    """Holds what was read of queues in files.

    problems: how many of them could not be read.
    leftovers: of queues of every kind, what their entries are that no message matched.
    """

    summaries: PackedMap[QueueKey, QueueSummary] = field(default_factory=lambda: PackedMap(weigh=QueueSummary.weight))
    leftovers: PackedMap[QueueKey, LeftoverResult] = field(default_factory=lambda: PackedMap(weigh=LeftoverResult.weight))
    problems: int = 0


class Queues(Kind[None, QueueResults, QueueResults]):
    """ConsumeQueues in files: ordinary, batch, with extensions."""

    name = "queues"
    task_types = (QueueGroup, LeftoverTask)
    left_out = ((LeftoverTask, LeftOut.LEFTOVERS),)
    looks_again = (LeftoverTask,)

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan look up each message's entries in files."""
        has_extensions = copy.tree.is_folder(EXT)
        extensions = (
            (key, tuple(numbered_files(copy.tree, f"{EXT}/{folder.partition('/')[2]}")))
            for key, folder in (copy.queue_folders.items() if has_extensions else ())
        )
        return replace(
            task,
            queue_files=_files_below(copy, QUEUES_FOLDER),
            batch_queue_files=_files_below(copy, BATCH_QUEUES),
            ext_files=PackedMap.of(((key, files) for key, files in extensions if files), weigh=len),
            lmq=light_expected(copy.rules),
        )

    def nothing_found(self) -> QueueResults:
        return QueueResults()

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        """Yield tasks for all queues in files, also for those beside queues in RocksDB."""
        if copy.twins is not None:
            folders, files = copy.twins.folders, copy.twins.files
        elif copy.queue_table is None:
            folders, files = copy.queue_folders, copy.queue_files
        else:
            return
        groups = (QueueGroup(group, request.not_after) for group in _grouped(request, copy, folders, files))
        many = len(folders) > FEW or isinstance(files, PackedMap) and files.packs
        yield from (PackedTask.of(group) for group in groups) if many else groups

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterator[Task]:
        """Yield a task for each queue with entries that no message of the queue matched."""
        request, copy = evidence.request, evidence.copy
        for key, view in items_of(evidence.views):
            if view.leftover:
                table = copy.table_of(key)
                yield LeftoverTask(
                    request.store,
                    request.location,
                    key,
                    view.batch,
                    view.files,
                    tuple(view.leftover),
                    tuple(view.missing),
                    tuple(view.covered),
                    evidence.log,
                    request.not_after,
                    table.database if table is not None else None,
                )

    def take(self, found: QueueResults, result: list[QueueSummary] | LeftoverResult) -> None:
        if isinstance(result, LeftoverResult):
            found.leftovers.add({result.key: result})
        else:
            found.summaries.add({summary.key: summary for summary in result})
            found.problems += sum(bool(summary.problem) for summary in result)

    def start_is_unknown(self, copy: OpenedCopy, found: QueueResults, late: Set[str]) -> bool:
        unread = any(file.path in late for queue in copy.loaded.queues.values() for file in queue.files)
        return unread or bool(found.problems)


QUEUES = Queues()


def _files_below(copy: OpenedCopy, kind: str) -> Files:
    items = ((key, copy.queue_files[key]) for key, folder in copy.queue_folders.items() if folder.startswith(kind + "/"))
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
