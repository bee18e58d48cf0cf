"""Evidence made by hand, in memory: a copy of which only names, lengths and a few bytes are told. No store, no task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from schemas.rows import EXTENT_MESSAGE, RUN_DTYPE, WALK_BOTH, Checkpoint, Extent, MappedFile, QueueKey, SegmentSummary, StoreFile
from store_io.audit.rounds.store_rounds import Collected
from store_io.base.errors import Unreadable
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import Tree, load_store, numbered_files, queue_folders, segments_of
from store_io.broker.releases import Setting, broker_rules
from store_io.kinds.all_kinds import KINDS
from store_io.kinds.checkpoint.checkpoint_kind import CHECKPOINT
from store_io.kinds.checkpoint.checkpoint_reader import StoredCheckpoint
from store_io.kinds.compaction.compacted_queues import CompactedStore
from store_io.kinds.compaction.compaction_kind import COMPACTION
from store_io.kinds.config.config_kind import CONFIG, ConfigFiles
from store_io.kinds.config.config_reader import StoreConfig
from store_io.kinds.controller.controller_kind import CONTROLLER, ControllerFiles
from store_io.kinds.dledger.ledger_kind import LEDGER, LedgerParts
from store_io.kinds.index.index_kind import INDEX, IndexResults
from store_io.kinds.queues.queue_kind import QUEUES
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES, QueueDatabase
from store_io.kinds.rocksdb_tables.table_kind import TABLES, TableFiles
from store_io.kinds.timers.timer_kind import TIMERS, TimerStore
from store_io.kinds.unread.unread_kind import UNREAD
from store_io.log.entries.queues_in_files import QueuePlaces, QueuesInFiles
from store_io.model.audit_request import AuditRequest
from store_io.model.earlier_segments import EarlierSegments
from store_io.model.evidence import Evidence
from store_io.model.found_gaps import Gaps
from store_io.model.kind import Kind
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import ByteSource, StoreLocation
from store_io.source.store_dir import StoreListing, in_path_order

SEGMENT = 1000
QUEUE_FILE = 200  # ten entries
LOCATION = StoreLocation("/copies/s")
SETTINGS = {
    "mappedFileSizeCommitLog": Setting(SEGMENT, "broker.conf"),
    "mappedFileSizeConsumeQueue": Setting(QUEUE_FILE, "broker.conf"),
}


def log_path(base: int) -> str:
    return f"commitlog/{base:020d}"


def queue_path(start: int, topic: str = "T", queue_id: int = 0) -> str:
    return f"consumequeue/{topic}/{queue_id}/{start:020d}"


class FakeFile:
    def __init__(self, data: bytes):
        self.data, self.size = data, len(data)

    def __enter__(self) -> FakeFile:
        return self

    def __exit__(self, *fault: object) -> None:
        pass

    def read(self, position: int, count: int) -> bytes:
        return self.data[position : position + count]


class FakeSource:
    """Files by path; what is not there is unreadable."""

    def __init__(self, files: Mapping[str, bytes]):
        self.files = files

    def open(self, path: str) -> FakeFile:
        if path not in self.files:
            raise Unreadable(f"{path}: refused")
        return FakeFile(self.files[path])

    def read_small(self, path: str, limit: int) -> bytes:
        return self.open(path).data


def tree_of(files: Mapping[str, int]) -> Tree:
    """A copy's names with their lengths; the folders above them are there too."""
    return Tree(listing_of(files).files)


def listing_of(files: Mapping[str, int]) -> StoreListing:
    folders = {path.rsplit("/", depth)[0] for path in files for depth in range(1, path.count("/") + 1)}
    entries = [StoreFile(folder, "directory") for folder in folders]
    entries += [StoreFile(path, "file", size, 7) for path, size in files.items()]
    return StoreListing(LOCATION, in_path_order(entries))


def copy_of(
    files: Mapping[str, int] | None = None,
    data: Mapping[str, bytes] | None = None,
    release: str = "5.3.3",
    of_kinds: Mapping[Kind[Any, Any, Any], Any] | None = None,
    config: StoreConfig | None = None,
    **facts: Any,
) -> OpenedCopy:
    """A copy with these files. data: the bytes of those that can be read. of_kinds: what kinds have found in small files. config:
    the tables."""
    lengths = {**(files or {}), **{path: len(content) for path, content in (data or {}).items()}}
    listing = listing_of(lengths)
    tree, rules = Tree(listing.files), broker_rules(release, SETTINGS)
    config = config or StoreConfig()
    folders = dict(queue_folders(tree, "consumequeue"))
    places = QueuePlaces(folders, {key: tuple(numbered_files(tree, folder)) for key, folder in folders.items()})
    source = cast(ByteSource, FakeSource(data or {}))
    index = [MappedFile(e.path, int(e.path.rpartition("/")[2]), e.size) for e in tree.children("index") if e.path[6:].isdecimal()]
    known: dict[str, Any] = {
        "listing": listing,
        "no_store": "",
        "source": source,
        "rules": rules,
        "misfits": (),
        "tree": tree,
        "unmodelled": (),
        "batch_topics": frozenset(),
        "loaded": load_store(tree, rules, frozenset()),
        "checkpoint": Checkpoint(),
        "segment_files": sorted(segments_of(tree, rules), key=lambda f: f.start),
        "offsets": config.offsets,
        "delay_offsets": config.delay_offsets,
        "queues_in_files": QueuesInFiles(places, places),
        "headers": {file.path: IndexHeader() for file in index},
    }
    own = {
        CONFIG.name: ConfigFiles(source, listing, rules, config),
        INDEX.name: index,
        QUEUES.name: None,
        ROCKS_QUEUES.name: QueueDatabase(source),
        LEDGER.name: LedgerParts(),
        COMPACTION.name: CompactedStore(),
        CHECKPOINT.name: StoredCheckpoint(True, 4096),
        CONTROLLER.name: ControllerFiles(),
        TIMERS.name: TimerStore(None, idle=False),
        TABLES.name: TableFiles(),
        UNREAD.name: (),
    }
    kinds = {kind.name: found for kind, found in (of_kinds or {}).items()}
    return OpenedCopy(**{**known, "facts": {**own, **kinds}, **facts})


def request_of(**asked: Any) -> AuditRequest:
    return AuditRequest("s", LOCATION, "5.3.3", **asked)


def evidence_of(
    copy: OpenedCopy | None = None,
    request: AuditRequest | None = None,
    found: Mapping[Kind[Any, Any, Any], Any] | None = None,
    **facts: Any,
) -> Evidence:
    """These facts about the copy, and nothing else.

    edges, queues and index are what the earlier run is held against. found: the results of kinds' tasks.
    """
    copy, request = copy or copy_of(), request or request_of()
    collected = Collected(Gaps())
    collected.edges = facts.get("edges", {})
    index = facts.pop("index", {})
    collected.results(INDEX).files.update(index)
    known: dict[str, Any] = {
        "request": request,
        "copy": copy,
        "broken": False,
        "segments": [],
        "queues": {},
        "edges": {},
        "leftovers": {},
        "late": frozenset(),
        "unread": (),
        "views": {},
        "earlier": EarlierSegments(request, copy, collected),
        "prediction": None,
        "loss": None,
        "bytes_read": 0,
    }
    results = {kind.name: kind.nothing_found() for kind in KINDS} | {INDEX.name: IndexResults(index)}
    results[QUEUES.name].summaries.add(facts.get("queues", {}))
    results |= {kind.name: of_kind for kind, of_kind in (found or {}).items()}
    return Evidence(**{**known, "found": results, **facts})


def segment(base: int, *runs: Mapping[str, int], queues: list[QueueKey] | None = None, **facts: Any) -> SegmentSummary:
    """A segment full of messages. runs: fields that differ from one sound record of 100 bytes at its own place."""
    rows = np.zeros(len(runs), RUN_DTYPE)
    for number, given in enumerate(runs):
        at = given.get("first_position", 100 * number)
        usual = {"walk": WALK_BOTH, "match": 1, "regular": 1, "records": 1, "messages": given.get("records", 1), "bytes": 100}
        places = {"first_position": at, "first_phy_offset": base + at, "last_phy_offset": base + at}
        sizes = {"first_size": 100, "last_size": 100}
        for name, value in {**usual, **places, **sizes, **given}.items():
            rows[number][name] = value
    known = {"extents": [Extent(EXTENT_MESSAGE, 0, SEGMENT, len(runs))], "runs": rows, "queues": queues or [("T", 0)]}
    return SegmentSummary(log_path(base), base, SEGMENT, **{**known, **facts})
