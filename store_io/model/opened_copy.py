"""A copy before any of its large files is read. It has the listing, the rules that apply, and what load() would make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from schemas.advice import Gap
from schemas.rows import Checkpoint, MappedFile
from store_io.base.java.java_compat import MAX_LONG
from store_io.broker.epochs import Epoch
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import LoadedStore, Tree
from store_io.broker.queues.queue_state import DiskEntries
from store_io.broker.releases import BrokerRules
from store_io.broker.texts.tables import Offset
from store_io.log.entries.queues_in_files import QueuesInFiles, entries_on_disk
from store_io.model.facts.log_place import LogPlace
from store_io.model.facts.size_misfits import Misfit
from store_io.model.kind import Facts, Kind
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

MAX_PHY_OFFSET = MAX_LONG


@dataclass(frozen=True)
class OpenedCopy:
    """The facts of listing, settings and small files.

    no_store: why nothing in the folder shows it to be a store, else empty.
    unmodelled: a gap for each part of it for which there are no rules.
    loaded: the files that the release's load() maps, or why it refuses.
    segment_files: by name, those that load() leaves out too.
    headers: those of the index files that can be read, by path, in the order of their names.
    epochs: those of a replica in controller mode, by number.
    marks: the marks of index and transactions in RocksDB, if a start asks for them.
    batch_topics, compacted_topics, known_topics, write_queues, offsets, delay_offsets, queues_in_files: as in `Opening`.
    facts: what each kind of files has found when it was opened, by the kind's name.
    log_place: the CommitLog's place by broker.conf.
    """

    listing: StoreListing
    no_store: str
    source: ByteSource
    rules: BrokerRules
    misfits: Sequence[Misfit]
    tree: Tree
    unmodelled: Sequence[Gap]
    batch_topics: frozenset[str]
    loaded: LoadedStore
    checkpoint: Checkpoint
    segment_files: list[MappedFile]
    headers: dict[str, IndexHeader]
    queues_in_files: QueuesInFiles
    epochs: tuple[Epoch, ...] = ()
    marks: tuple[int | None, ...] = ()
    compacted_topics: frozenset[str] = frozenset()
    known_topics: frozenset[str] | None = None
    write_queues: Mapping[str, int] | None = None
    offsets: Mapping[Offset, int] = field(default_factory=dict)
    delay_offsets: Mapping[int, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    log_place: LogPlace = field(default_factory=LogPlace)

    def __getitem__(self, kind: Kind[Facts, Any, Any]) -> Facts:
        """Return what listing and small files say of a kind of files."""
        found: Facts = self.facts[kind.name]
        return found

    @property
    def unclean(self) -> bool:
        """Say whether the broker stopped uncleanly: the abort file is there."""
        return self.listing.unclean

    @cached_property
    def log_min(self) -> int:
        """Return the physical offset of the log's first file; -1 without a file."""
        return min((f.start for f in self.segment_files), default=-1)

    @cached_property
    def queue_entries(self) -> DiskEntries:
        """Return what reads a few entries of queues in files."""
        return entries_on_disk(self.source)

    @property
    def ledger_data(self) -> list[MappedFile]:
        """Return the data files of a DLedger group that the audit reads, by name; [] without one."""
        folder = self.loaded.ledger.folder if self.loaded.ledger is not None else None
        return [f for f in self.segment_files if folder is not None and f.path.startswith(folder + "/")]

    def size_of(self, path: str) -> int:
        """Return the length of a file; 0 without such a file."""
        entry = self.listing.get(path)
        return entry.size if entry is not None else 0

    def entry_range(self, path: str) -> tuple[int | None, int | None]:
        """Return the range of a whole file, if no smaller one is known."""
        entry = self.listing.get(path)
        return (0, entry.size) if entry is not None and entry.kind != "directory" else (None, None)
