"""A copy as it is before any of its large files is read: the listing, the rules that apply, and what load() would make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from schemas.advice import Gap
from schemas.rows import MappedFile, QueueKey
from store_io.base.java_compat import MAX_LONG
from store_io.broker.controller_mode.epochs import Epoch
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import LoadedStore, Tree
from store_io.broker.prediction import Checkpoint
from store_io.broker.queues.combination import light_from_rocksdb
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.releases import BrokerRules
from store_io.kinds.rocksdb_queues.queue_table import QueueTable
from store_io.model.facts.log_place import LogPlace
from store_io.model.facts.size_misfits import Misfit
from store_io.model.kind import Facts, Kind
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

MAX_PHY_OFFSET = MAX_LONG


@dataclass(frozen=True)
class TwinQueues:
    """Both kinds of queues of a store that combines them. The kind that is read is in `OpenedCopy`'s own fields as well."""

    table: QueueTable
    folders: Mapping[QueueKey, str]
    files: Mapping[QueueKey, tuple[MappedFile, ...]]


@dataclass(frozen=True)
class OpenedCopy:
    """The facts of listing, settings and small files.

    no_store: why nothing in the folder shows it to be a store, else empty.
    unmodelled: a sentence for each part of it for which there are no rules.
    loaded: the files that the release's load() maps, or why it refuses.
    segment_files: by name, those that load() leaves out too.
    headers: those of the index files that can be read, by path, in the order of their names.
    queue_table: that of queues in RocksDB; None: consumers are served from files.
    twins: those of queues that are written twice.
    epochs: those of a replica in controller mode, by number.
    marks: the marks of index and transactions in RocksDB, if a start asks for them.
    known_topics, write_queues: as in `Opening`.
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
    queue_folders: Mapping[QueueKey, str]
    queue_files: Mapping[QueueKey, tuple[MappedFile, ...]]
    headers: dict[str, IndexHeader]
    queue_table: QueueTable | None = None
    twins: TwinQueues | None = None
    epochs: tuple[Epoch, ...] = ()
    marks: tuple[int | None, ...] = ()
    known_topics: frozenset[str] | None = None
    write_queues: Mapping[str, int] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    log_place: LogPlace = field(default_factory=LogPlace)

    def __getitem__(self, kind: Kind[Facts, Any, Any]) -> Facts:
        """Return what listing and small files say of a kind of files."""
        found: Facts = self.facts[kind.name]
        return found

    @property
    def light_table(self) -> QueueTable | None:
        """Return the table of light queues in RocksDB, if consumers are served from files but for these."""
        return self.twins.table if self.twins is not None and light_from_rocksdb(self.rules) else None

    def table_of(self, key: QueueKey) -> QueueTable | None:
        """The database from which consumers of this queue are served; None: they are served from files."""
        light = self.light_table
        return light if light is not None and key[0].startswith(LMQ_PREFIX) else self.queue_table

    @property
    def database_table(self) -> QueueTable | None:
        """Return the table of queues in RocksDB, whether consumers are served from them or only from their twins in files."""
        return self.twins.table if self.twins is not None else self.queue_table

    @property
    def unclean(self) -> bool:
        """Whether the broker stopped uncleanly: the abort file is there."""
        return self.listing.unclean

    @cached_property
    def log_min(self) -> int:
        """Return the physical offset of the log's first file; -1 without a file."""
        return min((f.start for f in self.segment_files), default=-1)

    @property
    def ledger_data(self) -> list[MappedFile]:
        """The data files of a DLedger group that the audit reads, by name; [] without one."""
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
