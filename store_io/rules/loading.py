"""The listing of a copy -> the files that a broker of the release maps, or the sentence with which its load() refuses.

Only names and lengths decide here; nothing is opened. Source: MappedFileQueue.load and doLoad, DefaultMappedFile.init,
ConsumeQueueStore.loadConsumeQueues and queueTypeShouldBe, IndexService.load (recovery.md 1, 2, 8.1).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.dledger_layout import DATA
from schemas.dledger_layout import INDEX as UNITS
from schemas.rows import MappedFile, QueueKey, StoreFile
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from store_io.base.java_compat import parse_number
from store_io.rules.dledger.ledger_files import LedgerFiles, ledger_folder, load_ledger
from store_io.rules.releases import BrokerRules
from store_io.source.byte_source import folder_of, name_of

NO_NUMBER = "the name is not a number"  # how the sentence about such a file ends


@dataclass(slots=True)
class LoadedQueue:
    """One ConsumeQueue as load() finds it. `folder`: its path below the store root."""

    key: QueueKey
    batch: bool
    folder: str
    files: list[MappedFile] = field(default_factory=list)
    ext_files: list[MappedFile] = field(default_factory=list)


@dataclass
class LoadedStore:
    """What load() maps. `refusal`: the first reason to fail, in the order in which load() meets them; else empty.

    index_refusal is a reason that only counts after recovery (5.1.0+). deleted: zero-length files that load() removes.
    ledger: the DLedger group's files, whose data files are the last of `segments`; None without one.
    """

    segments: list[MappedFile] = field(default_factory=list)
    queues: dict[QueueKey, LoadedQueue] = field(default_factory=dict)
    index: list[StoreFile] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    refusal: str = ""
    index_refusal: str = ""
    ledger: LedgerFiles | None = None


def queue_folder(batch: bool, key: QueueKey) -> str:
    """The folder below the store root that a queue has, or would have. A topic that is no name of a folder, such as "a/b" or
    "..", is escaped: what a store calls a topic never leads elsewhere."""
    topic = key[0]
    if "/" in topic or "\0" in topic or topic in ("", ".", ".."):
        topic = topic.replace("%", "%25").replace("/", "%2F").replace("\0", "%00").replace(".", "%2E")
    return f"{BATCH_QUEUES if batch else QUEUES}/{topic}/{key[1]}"


# The type of a topic that is not in the table is the default (QueueTypeUtils.getCQType).
NOT_NAMED = "config/topics.json does not name this topic, so the broker takes it for one of type ConsumeQueue"


class Tree:
    """The copy's names by folder, in the order in which a broker sorts them."""

    def __init__(self, files: Sequence[StoreFile], by_path: Mapping[str, StoreFile] | None = None):
        """by_path: the same files, where somebody has them so already."""
        self.all = files
        self.by_path = by_path if by_path is not None else {entry.path: entry for entry in reversed(files)}
        self._children: dict[str, list[StoreFile]] = {}
        for entry in self.all:
            self._children.setdefault(folder_of(entry.path), []).append(entry)
        for entries in self._children.values():
            entries.sort(key=lambda e: (name_of(e.path), e.path))

    def children(self, folder: str) -> list[StoreFile]:
        """What lies directly in the folder, by name; [] where there is none. A name twice (two paths) is listed twice."""
        return self._children.get(folder, [])

    def is_folder(self, path: str) -> bool:
        entry = self.by_path.get(path)
        return entry is not None and entry.kind == "directory" or path in self._children

    def exists(self, path: str) -> bool:
        return path in self.by_path

    def blamed(self, sentence: str) -> str:
        """The path with which a sentence begins, up to its colon; names may hold colons themselves."""
        at = sentence.find(":")
        while at >= 0:
            if self.exists(sentence[:at]):
                return sentence[:at]
            at = sentence.find(":", at + 1)
        return sentence.partition(":")[0]


def is_folder(entry: StoreFile) -> bool:
    return entry.kind == "directory"


def load_file_queue(tree: Tree, folder: str, file_bytes: int, rules: BrokerRules) -> tuple[list[MappedFile], list[str], str]:
    """(files mapped, files deleted, refusal) of one folder of mapped files (recovery.md 2).

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
        if is_folder(entry) or entry.size != file_bytes:
            if rules.ignores_misfits:
                break
            what = "a directory" if is_folder(entry) else f"length {entry.size:,}"
            return files, deleted, f"{entry.path}: {what}, where the broker expects a file of {file_bytes:,} bytes"
        start = parse_number(name_of(entry.path), 64)
        if start is None:
            return files, deleted, f"{entry.path}: {NO_NUMBER}"
        files.append(MappedFile(entry.path, start, entry.size))
    return files, deleted, ""


def load_store(tree: Tree, rules: BrokerRules, batch_topics: frozenset[str], named: Container[str] = frozenset()) -> LoadedStore:
    """What the release's load() maps and deletes, or why it refuses, by names and lengths alone. named: topics in the table."""
    loaded = LoadedStore()

    def refuse(sentence: str) -> None:
        loaded.refusal = loaded.refusal or sentence

    loaded.segments, deleted, refusal = load_file_queue(tree, COMMITLOG, rules.segment_bytes, rules)
    loaded.deleted += deleted
    refuse(refusal)
    for kind, batch in ((QUEUES, False), (BATCH_QUEUES, True)):
        if batch and not rules.batch_queues or rules.rocksdb_queues:
            continue
        for topic in tree.children(kind):
            if not is_folder(topic):
                continue
            name = name_of(topic.path)
            for child in tree.children(topic.path):
                queue_id = parse_number(name_of(child.path), 32)
                if queue_id is None:
                    continue
                if rules.batch_queues and batch != (name in batch_topics):
                    wanted = "BatchConsumeQueue" if name in batch_topics else "ConsumeQueue"
                    known = name in batch_topics or name in named
                    why = f"the topic is of type {wanted} (config/topics.json)"
                    refuse(f"{topic.path}: {why if known else NOT_NAMED}")
                queue = LoadedQueue((name, queue_id), batch, child.path)
                size = rules.batch_file_bytes if batch else rules.queue_file_bytes
                queue.files, deleted, refusal = load_file_queue(tree, child.path, size, rules)
                if not loaded.refusal:
                    loaded.deleted += deleted
                refuse(refusal)
                if rules.value("enableConsumeQueueExt") and not batch:
                    folder = f"{EXT}/{name}/{name_of(child.path)}"
                    queue.ext_files, deleted, refusal = load_file_queue(tree, folder, rules.ext_file_bytes, rules)
                    if not loaded.refusal:
                        loaded.deleted += deleted
                    refuse(refusal)
                loaded.queues[queue.key] = queue
    for entry in tree.children(INDEX):
        if parse_number(name_of(entry.path), 64) is None:
            continue
        if is_folder(entry):
            # Mapping a directory is an IOException: 5.1.0+ makes it load()'s result, before that it only ends the index load.
            if rules.folder_in_index_refuses:
                loaded.index_refusal = f"{entry.path}: a directory, where the broker expects an index file"
            break
        loaded.index.append(entry)
    folder = ledger_folder(rules)
    if folder:
        data, units = (tree.children(f"{folder}/{part}") for part in (DATA, UNITS))
        loaded.ledger = load_ledger(folder, data, units, rules)
        loaded.ledger.old_segments = len(loaded.segments)
        loaded.segments += loaded.ledger.data
    return loaded


def segments_of(tree: Tree, rules: BrokerRules) -> list[MappedFile]:
    """Every file of the log whose name is a number, whatever its length: what the audit reads. DLedger's data files come last."""
    folder = ledger_folder(rules)
    data = numbered_files(tree, f"{folder}/{DATA}") if folder else []
    return [*numbered_files(tree, COMMITLOG), *data]


def numbered_files(tree: Tree, folder: str) -> list[MappedFile]:
    """The folder's regular files whose names are numbers >= 0, by name; empty ones left out."""
    found = []
    for entry in tree.children(folder):
        start = parse_number(name_of(entry.path), 64)
        if entry.kind == "file" and start is not None and start >= 0 and entry.size > 0:
            found.append(MappedFile(entry.path, start, entry.size))
    return found


def queue_folders(tree: Tree, kind: str) -> Mapping[QueueKey, str]:
    """(topic, queue id) -> folder, for each folder below `kind` whose name is a queue id."""
    found: dict[QueueKey, str] = {}
    for topic in tree.children(kind):
        name = name_of(topic.path)
        for child in tree.children(topic.path) if is_folder(topic) else []:
            queue_id = parse_number(name_of(child.path), 32)
            if queue_id is not None and is_folder(child):
                found[name, queue_id] = child.path
    return found
