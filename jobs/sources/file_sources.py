"""The Spark data sources on what lies on disk beside the messages: rocketmq.consumequeue, index and extents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from jobs.cli.stores import StoreArgument
from jobs.sources.store_source import StoreReader, StoreSource, longest_first
from schemas.rows import MappedFile
from store_io.messages.open_store import OpenStore, QueueFiles
from store_io.messages.scans import EntryScan

GROUP_BYTES = 64 << 20  # of ConsumeQueue files that one task reads
GROUP_QUEUES = 256


class ConsumeQueueSource(StoreSource):
    """The entries that ConsumeQueues and BatchConsumeQueues hold on disk."""

    source = "consumequeue"

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        return QueuesReader(arrow, EntryScan(store.location, store.rules), store.queues())


class QueuesReader(StoreReader):
    def __init__(self, arrow: pa.Schema, scan: EntryScan, queues: list[QueueFiles]) -> None:
        super().__init__(arrow)
        self.scan, self.listed = scan, queues

    def parts(self) -> list[InputPartition]:
        chosen = [q for q in self.listed if self.wanted.holds_queue(*q.key)]
        chosen.sort(key=lambda q: (-sum(f.size for f in q.files), q.key, q.batch))
        groups: list[tuple[QueueFiles, ...]] = []
        group: list[QueueFiles] = []
        size = 0
        for queue in chosen:
            group.append(queue)
            size += sum(f.size for f in queue.files)
            if size >= GROUP_BYTES or len(group) >= GROUP_QUEUES:
                groups.append(tuple(group))
                group, size = [], 0
        return [InputPartition(g) for g in [*groups, tuple(group)] if g]

    def batches(self, part: tuple[QueueFiles, ...]) -> Iterator[pa.RecordBatch]:
        from store_io.messages.stored_entry_rows import scan_queue_entries

        for queue in part:
            yield from scan_queue_entries(replace(self.scan, phy_offsets=self.wanted.phy_offsets), queue)


class IndexSource(StoreSource):
    """The entries that index files hold on disk."""

    source = "index"

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        return FilesReader(arrow, EntryScan(store.location, store.rules), store.index_files(), index=True)


class ExtentsSource(StoreSource):
    """The byte ranges of segments by what they are."""

    source = "extents"
    by_release = True  # as of the messages

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        return FilesReader(arrow, EntryScan(store.location, store.rules), store.segments(), index=False)


class FilesReader(StoreReader):
    """Index files or segments, one a task."""

    def __init__(self, arrow: pa.Schema, scan: EntryScan, files: list[MappedFile], index: bool) -> None:
        super().__init__(arrow)
        self.scan, self.listed, self.index = scan, files, index

    def parts(self) -> list[InputPartition]:
        return longest_first(f for f in self.listed if self.index or self.wanted.may_be_in(f.start, f.size))

    def batches(self, part: MappedFile) -> Iterator[pa.RecordBatch]:
        from store_io.messages.stored_entry_rows import scan_extents, scan_index_entries

        if self.index:
            return scan_index_entries(replace(self.scan, phy_offsets=self.wanted.phy_offsets), part)
        return scan_extents(self.scan, part)
