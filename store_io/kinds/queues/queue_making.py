"""The tasks on queues: for those in files, many in one task; for those in RocksDB, by ranges of keys; and for both compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.rows import MappedFile, QueueKey, QueueSummary
from schemas.store_names import BATCH_QUEUES
from store_io.base.packed import FEW, PackedMap, items_of, keys_of
from store_io.base.tasks import PackedTask, Task
from store_io.broker.queues.combination import light_twice
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.kinds.queues.consumequeue_reader import QueueGroup, QueueTask
from store_io.kinds.rocksdb_queues.double_write_compare import TwinQueue, TwinTask
from store_io.kinds.rocksdb_queues.queue_keys import queue_prefix
from store_io.kinds.rocksdb_queues.queue_pass import KeyRangeTask
from store_io.kinds.rocksdb_queues.queue_table import QueueTable
from store_io.model.audit_request import AuditRequest
from store_io.model.log_map import LogMap
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_leftovers import LeftoverTask
from store_io.model.queue_views import QueueView

QUEUE_GROUP_BYTES = 64 << 20
QUEUE_GROUP_COUNT = 256
QUEUE_GROUP_FILES = 1024
RANGE_ENTRIES = 1_000_000  # of a database, in one task


class QueueMaker:
    """Makes these tasks from the files of an opened copy."""

    def __init__(self, request: AuditRequest, copy: OpenedCopy):
        self._request, self._copy = request, copy
        self._log_min = min((f.start for f in copy.segment_files), default=-1)

    def queues(self) -> list[Task]:
        """Tasks for all queues, small ones together; of a store that combines two kinds for both."""
        copy = self._copy
        if copy.twins is not None:
            files = self._queue_groups(copy.twins.folders, copy.twins.files)
            return [*files, *self._key_ranges(copy.twins.table)]
        if copy.queue_table is not None:
            return self._key_ranges(copy.queue_table)
        return self._queue_groups(copy.queue_folders, copy.queue_files)

    def _queue_groups(self, folders: Mapping[QueueKey, str], files: Mapping[QueueKey, tuple[MappedFile, ...]]) -> list[Task]:
        groups = (QueueGroup(group, self._request.not_after) for group in self._grouped(folders, files))
        many = len(folders) > FEW or isinstance(files, PackedMap) and files.packs
        return [PackedTask.of(group) for group in groups] if many else list(groups)

    def _grouped(
        self, folders: Mapping[QueueKey, str], files: Mapping[QueueKey, tuple[MappedFile, ...]]
    ) -> Iterator[tuple[QueueTask, ...]]:
        group: list[QueueTask] = []
        size = count = 0
        for key, folder in items_of(folders):
            if size >= QUEUE_GROUP_BYTES or len(group) >= QUEUE_GROUP_COUNT or count >= QUEUE_GROUP_FILES:
                yield tuple(group)
                group, size, count = [], 0, 0
            group.append(self._queue(key, folder, files[key]))
            size += sum(f.size for f in group[-1].audit_files)
            count += len(group[-1].audit_files)
        if group:
            yield tuple(group)

    def _key_ranges(self, table: QueueTable) -> list[Task]:
        """Tasks that together read every entry of a database, each about as many. Recovery needs none, nor the quick level."""
        request, maxima = self._request, table.ends.maxima
        if request.quick or table.unread or not table.opened:
            return []
        ordered = sorted((queue_prefix(key), key) for key in maxima)
        groups: list[list[tuple[bytes, QueueKey]]] = [[]]
        sizes = [0]
        for prefix, key in ordered:
            least = table.ends.minima.get(key)
            count = max(1, maxima[key].queue_offset + 1 - (least.queue_offset if least is not None else 0))
            if groups[-1] and sizes[-1] + count > RANGE_ENTRIES:
                groups.append([])
                sizes.append(0)
            groups[-1].append((prefix, key))
            sizes[-1] += count
        firsts = [group[0][0] if number else b"" for number, group in enumerate(groups)]
        return [
            KeyRangeTask(
                request.store,
                request.location,
                table.database,
                first,
                end,
                {key: maxima[key] for _, key in group},
                self._log_min,
                min(size, 1 << 40),
                request.not_after,
            )
            for group, size, first, end in zip(groups, sizes, firsts, [*firsts[1:], None], strict=True)
        ]

    def twins(self, in_files: Mapping[QueueKey, QueueSummary]) -> list[Task]:
        """Tasks that hold queues in files, as they were read, against the same queues in RocksDB."""
        request, twins = self._request, self._copy.twins
        if twins is None or request.quick or not twins.table.opened or twins.table.unread:
            return []
        ends, tags = twins.table.ends, not self._copy.rules.value("enableConsumeQueueExt")
        queues = []
        light = light_twice(self._copy.rules)
        for key in keys_of(twins.files, ends.maxima):
            if key[0].startswith(LMQ_PREFIX) and not light:
                continue
            used = in_files[key].used if key in in_files else []
            numbers = (used[0][0], used[-1][1]) if used else (0, 0)
            queues.append(TwinQueue(key, twins.files.get(key, ()), numbers, ends.maxima.get(key), ends.minima.get(key)))
        return [
            TwinTask(
                request.store,
                request.location,
                twins.table.database,
                tuple(queues[at : at + QUEUE_GROUP_COUNT]),
                self._log_min,
                tags,
                request.not_after,
            )
            for at in range(0, len(queues), QUEUE_GROUP_COUNT)
        ]

    def _queue(self, key: QueueKey, folder: str, files: tuple[MappedFile, ...]) -> QueueTask:
        request, copy = self._request, self._copy
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
            self._log_min,
            first_recovered=copy.rules.first_recovered(len(mapped_files)),
            last_only=request.quick,
            known=request.earlier.queues.get(key, ()) if request.earlier is not None else (),
        )

    def leftovers(self, views: Mapping[QueueKey, QueueView], log: LogMap) -> list[Task]:
        """A task for each queue with entries that no message of it matched."""
        return [
            LeftoverTask(
                self._request.store,
                self._request.location,
                key,
                view.batch,
                view.files,
                tuple(view.leftover),
                tuple(view.missing),
                tuple(view.covered),
                log,
                self._request.not_after,
                table.database if (table := self._copy.table_of(key)) is not None else None,
            )
            for key, view in items_of(views)
            if view.leftover
        ]
