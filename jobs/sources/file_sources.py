"""The Spark data sources on what lies on disk beside the messages: rocketmq.consumequeue, index and extents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from jobs.cli.stores import StoreArgument
from jobs.messages.message_arguments import open_named
from jobs.sources.store_source import StoreReader, StoreSource, longest_first
from schemas.rows import NAMED, MappedFile
from store_io.messages.open_store import OpenStore, QueueFiles
from store_io.messages.scans import EntryScan
from store_io.messages.served_queues import Keys, ServedQueues, served_queues
from store_io.model.premises import assumed_sentence

GROUP_BYTES = 64 << 20  # of ConsumeQueue files that one task reads
GROUP_QUEUES = 256


@dataclass(frozen=True)
class KeyRanges:
    """The part of one task in RocksDB."""

    ranges: tuple[Keys, ...]


class ConsumeQueueSource(StoreSource):
    """The entries that ConsumeQueues and BatchConsumeQueues hold on disk, of a double write those that the release reads."""

    source = "consumequeue"

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.said: dict[str, list[str]] = {}  # of each store that was checked

    def check(self, store: StoreArgument) -> None:
        super().check(store)
        self.said[store.key] = self._notes(served_queues(open_named(store)), store)

    def notes(self) -> list[str]:
        self.schema()
        return [note for notes in self.said.values() for note in notes]

    def _notes(self, queues: ServedQueues, argument: StoreArgument) -> list[str]:
        """Return what is to be said of queues in RocksDB. It takes the release to know that they are read there."""
        if queues.keyed is None:
            return []
        assumed = [] if argument.release_from == NAMED else [assumed_sentence(argument.release, argument.release_from)]
        return [f"{self.name()}: {note}" for note in (*assumed, *queues.notes)]

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        queues = served_queues(store)
        return QueuesReader(arrow, EntryScan(store.location, store.rules), queues, self._notes(queues, argument))


class QueuesReader(StoreReader):
    def __init__(self, arrow: pa.Schema, scan: EntryScan, queues: ServedQueues, said: list[str]) -> None:
        super().__init__(arrow)
        self.scan, self.keyed, self.listed, self.said = scan, queues.keyed, [queues], said

    def notes(self) -> list[str]:
        return self.said

    def parts(self) -> list[InputPartition]:
        (queues,) = self.listed
        chosen = [q for q in queues.files if self.wanted.holds_queue(*q.key)]
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
        in_files = [g for g in [*groups, tuple(group)] if g]
        return [InputPartition(part) for part in (*map(KeyRanges, queues.asked(self.wanted)), *in_files)]

    def batches(self, part: tuple[QueueFiles, ...] | KeyRanges) -> Iterator[pa.RecordBatch]:
        from store_io.messages.stored_entry_rows import scan_keyed_entries, scan_queue_entries

        scan = replace(self.scan, phy_offsets=self.wanted.phy_offsets)
        if isinstance(part, KeyRanges):
            assert self.keyed is not None
            yield from scan_keyed_entries(scan, self.keyed, part.ranges, self.wanted)
            return
        for queue in part:
            yield from scan_queue_entries(scan, queue)


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
