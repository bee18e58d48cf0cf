"""The listing of a copy -> the files that a broker of the release maps, or why its load() refuses.

Only names and lengths decide here; nothing is opened. Source: MappedFileQueue.load and doLoad, DefaultMappedFile.init,
ConsumeQueueStore.loadConsumeQueues and queueTypeShouldBe, IndexService.load (recovery.md 1, 2, 8.1).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from operator import attrgetter

from schemas.advice import Refusal, RefusalKind
from schemas.layouts.dledger_layout import DATA
from schemas.layouts.dledger_layout import INDEX as UNITS
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, PARTS, QUEUES
from schemas.rows import MappedFile, QueueKey, StoreFile
from store_io.base.java.java_compat import parse_number
from store_io.base.packed import FEW, PackedMap, joined
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.ledger_files import LedgerFiles, ledger_folder, load_ledger
from store_io.source.byte_source import TWIN, name_of
from store_io.source.store_dir import in_path_order

_AFTER_SLASH = chr(ord("/") + 1)  # a folder's name and this: after all that is in the folder, and before what follows
_NAME_BYTES = 255  # of a name in a folder, in every file system that brokers run on
_PATH_BYTES = 4096 - 64  # of a topic in a path, beside the store's own folder and the queue's file
_SHOWN = 50  # letters of a topic that is no folder's name


@dataclass(slots=True)
class LoadedQueue:
    """One ConsumeQueue as load() finds it. `folder`: its path below the store root."""

    key: QueueKey
    batch: bool
    folder: str
    files: list[MappedFile] = field(default_factory=list)
    ext_files: list[MappedFile] = field(default_factory=list)

    def file_count(self) -> int:
        return len(self.files) + len(self.ext_files)


@dataclass
class LoadedStore:
    """Lists the files that load() maps. `refusal`: the first reason to fail, in the order in which load() meets them.

    later_refusal is a reason that only counts after recovery (5.1.0+). deleted: zero-length files that load() removes.
    ledger: the DLedger group's files, whose data files are the last of `segments`; None without one.
    """

    segments: list[MappedFile] = field(default_factory=list)
    queues: Mapping[QueueKey, LoadedQueue] = field(default_factory=dict)
    index: list[StoreFile] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    refusal: Refusal | None = None
    later_refusal: Refusal | None = None
    ledger: LedgerFiles | None = None


@lru_cache(1024)
def why_no_folder(topic: str) -> str:
    """Say why a topic's name is that of no folder, so that no start finds its queues; else ""."""
    if not topic:
        return "an empty topic is no folder's name"
    if "\0" in topic:
        return "a topic with a zero byte is no folder's name"
    if "/" in topic or topic in (".", ".."):
        return "a topic with '/', or '.' or '..', names a folder elsewhere"
    size = len(topic.encode("utf-8", "surrogatepass"))
    return f"a topic of {size:,} bytes is longer than a folder's name, {_NAME_BYTES} bytes" if size > _NAME_BYTES else ""


def why_not_made(topic: str, rules: BrokerRules) -> str:
    """Say why a broker fails to make the first file of a queue of this topic; else "" (recovery.md 7.3)."""
    return _why_not_made(topic, rules.splits_folder_names)


@lru_cache(1024)
def _why_not_made(topic: str, splits: bool) -> str:
    path = topic.encode("utf-8", "surrogatepass")
    if len(path) > _PATH_BYTES or len(path) > _NAME_BYTES and max(map(len, path.split(b"/"))) > _NAME_BYTES:
        return f"a topic of {len(path):,} bytes is too long for a folder's name"
    if b"\0" in path:
        return why_no_folder(topic)
    if splits and b"," in path:
        return "this release takes a topic with a comma for the names of several folders"
    return ""


def when_dispatch_ends(topic: str, rules: BrokerRules, at_next_start: bool) -> str:
    """Return a clause on a broker that puts a message of this topic into its queue. "" if dispatch continues.

    No repair can make such a queue.
    at_next_start: the next start does so; else one that reads the message again.
    """
    if not why_no_folder(topic) or not why_not_made(topic, rules):
        return ""
    which = "the next start" if at_next_start else "a start that reads it again, as the first one after a crash may,"
    return f"{which} puts nothing into queues from there on and refuses new messages"


def queue_folder(batch: bool, key: QueueKey) -> str:
    """Return the folder below the store root that a queue has, or would have. A topic that is no name of a folder, such as "a/b"
    or "..", is escaped, and a long one cut: what a store calls a topic never leads elsewhere."""
    topic = key[0]
    if why_no_folder(topic):
        topic = topic.replace("%", "%25").replace("/", "%2F").replace("\0", "%00").replace(".", "%2E") or "(empty)"
        raw = topic.encode("utf-8", "surrogatepass")
        if len(raw) > _NAME_BYTES:
            topic = f"{topic[:_SHOWN]}({hashlib.sha256(raw).hexdigest()[:16]})"
    return f"{BATCH_QUEUES if batch else QUEUES}/{topic}/{key[1]}"


class Tree:
    """The copy's names by folder, in the order in which a broker sorts them."""

    def __init__(self, files: Sequence[StoreFile]):
        """files: of two with the same path the first one counts."""
        self.all = in_path_order(reversed(files))
        self._children: dict[str, list[StoreFile]] = {}  # of the folders that were looked at first, FEW names in all
        self._remembered = 0

    @cached_property
    def by_path(self) -> dict[str, StoreFile]:
        return {entry.path: entry for entry in self.all}

    def children(self, folder: str) -> list[StoreFile]:
        """Return the entries directly in the folder, by name; [] without a folder. A name twice (two paths) is listed twice.

        In the store itself, "", files in a folder without a name are left out: only an object store can hold them.
        """
        found = self._children.get(folder)
        if found is None:
            found = [entry for place in self._places_of(folder) for entry in self._directly_in(place)]
            found.sort(key=lambda entry: (name_of(entry.path), entry.path))
            if self._remembered < FEW:
                self._children[folder] = found
                self._remembered += 1 + len(found)
        return found

    def _places_of(self, folder: str) -> list[str]:
        """Return the beginnings of paths of files in this folder.

        There are several if a part of the store lies in several folders.
        """
        if not folder:
            return [""]
        top, slash, rest = folder.partition("/")
        if TWIN.fullmatch(top):
            return []  # `folder_of` has no such folder
        return [f"{one}{slash}{rest}/" for one in (top, *self._twins.get(top, ()))]

    @cached_property
    def _twins(self) -> dict[str, list[str]]:
        """Return further folders of a part, by its name."""
        found: dict[str, list[str]] = {}
        for part in PARTS:
            place = self._place(part + "[")
            while place < len(self.all) and self.all[place].path.startswith(part + "["):
                top = self.all[place].path.partition("/")[0]
                if TWIN.fullmatch(top):
                    found.setdefault(part, []).append(top)
                place = max(place + 1, self._place(top + _AFTER_SLASH))
        return found

    def _place(self, path: str) -> int:
        """Return the place of the first file whose path is not below this one; their number if there is none."""
        return bisect_left(self.all, path, key=attrgetter("path"))

    def _directly_in(self, start: str) -> Iterator[StoreFile]:
        """Yield files whose paths are this and a name."""
        files = self.all
        place = self._place(start)
        while place < len(files):
            entry = files[place]
            if not entry.path.startswith(start):
                return
            name, slash, _ = entry.path[len(start) :].partition("/")
            if slash:  # in a folder of this folder: on to what follows it
                place = self._place(start + name + _AFTER_SLASH)
                continue
            yield entry
            place += 1

    def is_folder(self, path: str) -> bool:
        entry = self.by_path.get(path)
        return entry is not None and entry.kind == "directory" or bool(self.children(path))

    def exists(self, path: str) -> bool:
        return path in self.by_path


def is_folder(entry: StoreFile) -> bool:
    return entry.kind == "directory"


def is_skipped(entry: StoreFile, rules: BrokerRules) -> bool:
    """Say whether load() passes over a folder among mapped files, and no file will ever need its name (recovery.md 2)."""
    return is_folder(entry) and rules.skips_folders and parse_number(name_of(entry.path), 64) is None


def load_file_queue(
    tree: Tree, folder: str, file_bytes: int, rules: BrokerRules
) -> tuple[list[MappedFile], list[str], Refusal | None]:
    """Return (files mapped, files deleted, refusal) of one folder of mapped files (recovery.md 2).

    The length test precedes the name test. 4.9.2 alone ignores a file of wrong length and all that follow.
    """
    listing = tree.children(folder)
    files: list[MappedFile] = []
    deleted: list[str] = []
    for i, entry in enumerate(listing):
        if is_folder(entry) and rules.skips_folders:
            continue
        if not is_folder(entry) and entry.size == 0 and i == len(listing) - 1 and rules.deletes_empty_last:
            deleted.append(entry.path)
            continue
        start = parse_number(name_of(entry.path), 64)
        misfit = _misfit(entry, start, file_bytes)
        if misfit is not None and misfit.kind != RefusalKind.FILE_NAME and rules.ignores_misfits:
            break
        if misfit is not None or start is None:
            return files, deleted, misfit
        files.append(MappedFile(entry.path, start, entry.size))
    return files, deleted, None


def _misfit(entry: StoreFile, start: int | None, file_bytes: int) -> Refusal | None:
    """Return why no folder of mapped files is loaded that holds this entry; None if it fits. start: its name's number."""
    if is_folder(entry):
        return Refusal(RefusalKind.FILE_IS_FOLDER, entry.path, file_bytes)
    if entry.size != file_bytes:
        return Refusal(RefusalKind.FILE_LENGTH, entry.path, file_bytes, entry.size)
    return Refusal(RefusalKind.FILE_NAME, entry.path) if start is None else None


def misfits(tree: Tree, folder: str, file_bytes: int, rules: BrokerRules) -> Iterator[Refusal]:
    """Yield every entry over which `load_file_queue` would refuse the folder, if those before it were not there."""
    listing = tree.children(folder)
    for i, entry in enumerate(listing):
        if is_folder(entry) and rules.skips_folders or entry.size == 0 and i == len(listing) - 1 and rules.deletes_empty_last:
            continue
        misfit = _misfit(entry, parse_number(name_of(entry.path), 64), file_bytes)
        if misfit is not None and misfit.kind != RefusalKind.FILE_NAME and rules.ignores_misfits:
            return
        if misfit is not None:
            yield misfit


def load_store(tree: Tree, rules: BrokerRules, batch_topics: frozenset[str], named: Container[str] = frozenset()) -> LoadedStore:
    """Return the files that the release's load() maps and deletes, or why it refuses, by names and lengths alone.

    named: topics in the table.
    """
    loaded = LoadedStore()
    loaded.segments, loaded.deleted, loaded.refusal = load_file_queue(tree, COMMITLOG, rules.segment_bytes, rules)
    for batch in (False, True):
        if batch and not rules.batch_queues or rules.rocksdb_queues:
            continue
        found = PackedMap.of(_loaded_queues(tree, rules, batch, (batch_topics, named), loaded), weigh=LoadedQueue.file_count)
        loaded.queues = joined(loaded.queues, found)
    for entry in tree.children(INDEX):
        if parse_number(name_of(entry.path), 64) is None:
            continue
        if is_folder(entry):
            # Mapping a directory is an IOException: 5.1.0+ makes it load()'s result, before that it only ends the index load.
            if rules.folder_in_index_refuses:
                loaded.later_refusal = Refusal(RefusalKind.INDEX_IS_FOLDER, entry.path)
            break
        loaded.index.append(entry)
    folder = ledger_folder(rules)
    if folder:
        data, units = (tree.children(f"{folder}/{part}") for part in (DATA, UNITS))
        loaded.ledger = load_ledger(folder, data, units, rules)
        loaded.ledger.old_segments = len(loaded.segments)
        loaded.segments += loaded.ledger.data
    return loaded


def _loaded_queues(
    tree: Tree, rules: BrokerRules, batch: bool, topics: tuple[frozenset[str], Container[str]], loaded: LoadedStore
) -> Iterator[tuple[QueueKey, LoadedQueue]]:
    """Yield the queues below consumequeue/, or batchconsumequeue/, by key.

    topics: those of type BatchCQ, and all in the table.
    loaded: gets the files that load() deletes there, and why it refuses.
    """
    batch_topics, named = topics

    def load(folder: str, size: int) -> list[MappedFile]:
        files, deleted, refusal = load_file_queue(tree, folder, size, rules)
        if not loaded.refusal:
            loaded.deleted += deleted
        loaded.refusal = loaded.refusal or refusal
        return files

    for name, folders in _by_topic(tree, BATCH_QUEUES if batch else QUEUES):
        found: dict[int, LoadedQueue] = {}
        for topic, child, queue_id in folders:
            if rules.batch_queues and batch != (name in batch_topics):
                wanted = "BatchConsumeQueue" if name in batch_topics else "ConsumeQueue"
                known = name in batch_topics or name in named
                kind = RefusalKind.TOPIC_TYPE if known else RefusalKind.TOPIC_NOT_NAMED
                loaded.refusal = loaded.refusal or Refusal(kind, topic.path, wanted)
            queue = found[queue_id] = LoadedQueue((name, queue_id), batch, child.path)
            queue.files = load(child.path, rules.batch_file_bytes if batch else rules.queue_file_bytes)
            if rules.value("enableConsumeQueueExt") and not batch:
                queue.ext_files = load(f"{EXT}/{name}/{name_of(child.path)}", rules.ext_file_bytes)
        for queue_id in sorted(found):
            yield found[queue_id].key, found[queue_id]


def _by_topic(tree: Tree, kind: str) -> Iterator[tuple[str, list[tuple[StoreFile, StoreFile, int]]]]:
    """Yield (topic, [(folder of the topic, a child of it, the queue id that the child's name is)]), by topic.

    Several folders may have one topic's name.
    """
    folders = [topic for topic in tree.children(kind) if is_folder(topic)]
    for name, topics in groupby(folders, key=lambda topic: name_of(topic.path)):
        numbered = [
            (topic, child, parse_number(name_of(child.path), 32)) for topic in topics for child in tree.children(topic.path)
        ]
        yield name, [(topic, child, queue_id) for topic, child, queue_id in numbered if queue_id is not None]


def segments_of(tree: Tree, rules: BrokerRules) -> list[MappedFile]:
    """Return every file of the log whose name is a number, whatever its length: what the audit reads.

    DLedger's data files come last.
    """
    folder = ledger_folder(rules)
    data = numbered_files(tree, f"{folder}/{DATA}") if folder else []
    return [*numbered_files(tree, COMMITLOG), *data]


def numbered_files(tree: Tree, folder: str) -> list[MappedFile]:
    """Return the folder's regular files whose names are numbers >= 0, by name; empty ones left out."""
    found = []
    for entry in tree.children(folder):
        start = parse_number(name_of(entry.path), 64)
        if entry.kind == "file" and start is not None and start >= 0 and entry.size > 0:
            found.append(MappedFile(entry.path, start, entry.size))
    return found


def files_up_to(end: int, files: Sequence[MappedFile], deleted: list[str]) -> list[MappedFile]:
    """Return the files that MappedFileQueue.truncateDirtyFiles leaves: those that begin up to there.

    deleted: gets the paths of the others.
    """
    deleted += [file.path for file in files if file.start > end]
    return [file for file in files if file.start <= end]


def queue_folders(tree: Tree, kind: str) -> PackedMap[QueueKey, str]:
    """Yield (topic, queue id) -> folder, for each folder below `kind` whose name is a queue id."""

    def found() -> Iterator[tuple[QueueKey, str]]:
        for name, folders in _by_topic(tree, kind):
            own = {queue_id: child.path for _, child, queue_id in folders if is_folder(child)}
            yield from (((name, queue_id), own[queue_id]) for queue_id in sorted(own))

    return PackedMap.of(found())
