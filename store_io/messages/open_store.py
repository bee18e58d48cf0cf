"""A store opened to be explored: which files hold what, and the rules by which they are read. Nothing is judged here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from schemas.layouts import commitlog_layout as layout
from schemas.layouts import consumequeue_layout, index_layout
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from schemas.rows import MappedFile, QueueKey, StoreFile
from store_io.base.errors import StoreError, Unreadable
from store_io.base.failed_reads import can_do_without, every_read
from store_io.base.java.java_compat import MAX_LONG
from store_io.broker.loading import Tree, numbered_files, queue_folders, segments_of
from store_io.broker.releases import NEWEST_RELEASE, ROCKSDB_STORE_TYPE, BrokerRules, broker_rules
from store_io.broker.settings.read_settings import read_settings
from store_io.log.records.framing import framing_of
from store_io.log.records.message_decode import names_place, stored_fields
from store_io.messages.message_filter import Range
from store_io.model.other_kinds import unmodelled
from store_io.source.byte_source import ByteSource, StoreLocation, folder_of, open_source
from store_io.source.store_dir import StoreListing, check_names, check_roots, list_store, unreadable_parts
from store_io.wording.gaps import gap_text

CLOCK_MARGIN_MS = 3_600_000
MOST_ASKED = 1000  # files of which the room on disk is asked, too: a broker allocates them long before they are written
_OFFSET_BYTES = len("0:0,")  # of a queue in the JSON of offsets
_IN_LOG = re.compile(r"commitlog|dledger-.+"), layout.MIN_SIZE_V1_BYTES
_HELD_IN = {
    "messages": _IN_LOG,
    "extents": _IN_LOG,
    "transactions": _IN_LOG,
    "consumequeue": (re.compile(r"(batch)?consumequeue(_.*)?"), consumequeue_layout.ENTRY_BYTES),
    "index": (re.compile("index"), index_layout.ENTRY_BYTES),
    "offsets": (re.compile("config"), _OFFSET_BYTES),
}
"""Source -> (the folders that hold its rows, the fewest bytes of a row)."""


@dataclass(frozen=True)
class QueueFiles:
    """One queue's files by name. ext: those of its ConsumeQueueExt."""

    key: QueueKey
    batch: bool
    files: tuple[MappedFile, ...]
    ext: tuple[MappedFile, ...] = ()


class NoQueueFiles(StoreError):
    """The ConsumeQueues are in RocksDB."""


@dataclass(frozen=True)
class OpenStore:
    """A store that `open_store` has opened.

    rules: of the release, under the settings of broker.conf or of the files themselves.
    """

    location: StoreLocation
    rules: BrokerRules
    listing: StoreListing

    def source(self) -> ByteSource:
        """Return the store's bytes."""
        return open_source(self.location)

    def segments(self) -> list[MappedFile]:
        """Return the CommitLog's segments by name. Raises StoreError if one cannot be read, or the log is of another kind."""
        self.readable(COMMITLOG)
        found = [f for f in segments_of(self._tree(), self.rules) if f.start + f.size <= MAX_LONG]
        other = [] if found else unmodelled(self.listing, self.rules)
        if other:
            raise StoreError(gap_text(other[0]))
        return found

    def queues(self) -> list[QueueFiles]:
        """Return all queues in files, by topic and queue id, ordinary ones before BatchConsumeQueues.

        Raises StoreError as above, NoQueueFiles if they are in RocksDB.
        """
        if self.rules.rocksdb_queues:
            raise NoQueueFiles(f"storeType={ROCKSDB_STORE_TYPE}: the ConsumeQueues are in no files")
        self.readable(QUEUES, BATCH_QUEUES, EXT)
        tree, found = self._tree(), []
        for kind in (QUEUES, BATCH_QUEUES):
            folders: Mapping[QueueKey, str] = queue_folders(tree, kind)
            for key, folder in sorted(folders.items()):
                ext = numbered_files(tree, f"{EXT}/{folder.partition('/')[2]}") if kind == QUEUES else []
                found.append(QueueFiles(key, kind == BATCH_QUEUES, tuple(numbered_files(tree, folder)), tuple(ext)))
        other = [] if any(queue.files for queue in found) else unmodelled(self.listing, self.rules)
        if other:
            raise StoreError(gap_text(other[0]))
        return found

    def index_files(self) -> list[MappedFile]:
        """Return the index files by name. Raises StoreError if one cannot be read."""
        self.readable(INDEX)
        return numbered_files(self._tree(), INDEX)

    def _tree(self) -> Tree:
        return Tree(self.listing.files)

    def readable(self, *parts: str) -> None:
        """Raise for the first name below these folders that a broker would read and that cannot be read here."""

        def concerned(entry: StoreFile) -> bool:
            return (folder_of(entry.path) or entry.path).partition("/")[0] in parts

        own = replace(self.listing, files=tuple(filter(concerned, self.listing.files)))
        for gap in unreadable_parts(own):
            raise Unreadable(gap_text(gap))


def check_store(location: StoreLocation) -> None:
    """Raise the errors of `open_store` for a place without a store, without listing its content."""
    check_roots(location)
    check_names(location, open_source(location).names())


def open_store(location: StoreLocation, release: str = NEWEST_RELEASE, broker_conf: str | None = None) -> OpenStore:
    """List the store and settle its rules. broker_conf: the properties file's text.

    Raises StoreError in one sentence: no store, a folder that cannot be listed, a file that shows a setting and cannot be read;
    UsageError for an unknown release or an invalid setting.
    """
    with can_do_without("reading a part later raises for what could not be listed"):
        listing = list_store(location)
    with every_read():
        settings = read_settings(broker_conf, listing, open_source(location))
    return OpenStore(location, broker_rules(release, settings), listing)


def most_rows(location: StoreLocation, source: str) -> int | None:
    """Return how many rows of a source a store can hold, by the lengths of the files that hold them.

    No file is read. None if a name cannot be listed, or there is no such file.
    """
    folders, least = _HELD_IN[source]
    try:
        with can_do_without("the number of rows is an estimate, which plans alone ask for"):
            store = open_source(location)
            tops = [top.path for top in store.names() if top.kind == "directory" and folders.fullmatch(top.path)]
            files = [entry for top in tops for entry in store.walk_tree(top) if entry.kind == "file"]
            sizes = [entry.size for entry in files]
            if store.local and len(files) <= MOST_ASKED:
                for number, entry in enumerate(files):
                    with store.open(entry.path) as file:
                        sizes[number] = min(entry.size, file.allocated)
    except StoreError:
        return None
    return sum(sizes) // least or None


@dataclass(frozen=True)
class SegmentTimes:
    """A segment and two store times, ms: of its first message and of the next segment's.

    A time is None if there is none to be read.
    """

    file: MappedFile
    first: int | None
    next_first: int | None

    def may_hold(self, store_times: Range) -> bool:
        """Say whether it can hold messages of these store times, if clock and stored times are sound.

        The broker's clock must never have gone back by more than an hour, and no stored time may be damaged. Not for a search
        that must miss nothing.
        """
        low, high = store_times
        if self.first is None:
            return True
        if high is not None and self.first - CLOCK_MARGIN_MS >= high:
            return False
        end = self.next_first
        return not (low is not None and end is not None and end >= self.first and end + CLOCK_MARGIN_MS < low)


def segment_times(store: OpenStore) -> list[SegmentTimes]:
    """Return the segments with the times at which they begin; reads the first bytes of each. Raises StoreError."""
    segments, source = store.segments(), store.source()
    firsts = [first_store_time(source, store.rules, file) for file in segments]
    return [SegmentTimes(file, first, after) for file, first, after in zip(segments, firsts, [*firsts, None][1:], strict=True)]


def first_store_time(source: ByteSource, rules: BrokerRules, segment: MappedFile) -> int | None:
    """Return the store time, ms, of the segment's first message; None without one, or if it stores another physical offset."""
    with source.open(segment.path) as file:
        header = framing_of(rules, segment.path).header_bytes
        head = file.read(header, layout.BODY_POSITION)
    if len(head) < layout.BODY_POSITION or not names_place(head, segment.start + header):
        return None
    return stored_fields(head)["STORETIMESTAMP"]
