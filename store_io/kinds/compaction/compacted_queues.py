"""The listing of a copy -> the queues of compacted topics that a broker opens. Only names and lengths decide here.

Each queue has two folders with files of the same names: a log of copied messages, and a SparseConsumeQueue that leads into it.
Source: CompactionStore.load and loadAndGetClog, CompactionLog's constructor and getCompactionLogSize, MappedFileQueue.doLoad,
read at 5.1.0 to 5.3.3 (compaction.md 2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from schemas.advice import Refusal, RefusalKind
from schemas.layouts.store_names import COMPACTED_LOG, COMPACTED_QUEUE
from schemas.rows import MappedFile, QueueKey
from store_io.base.java.java_compat import parse_number
from store_io.broker.loading import Tree, is_folder, load_file_queue, numbered_files
from store_io.broker.releases import BrokerRules, compacted_entries_bytes, compacted_log_bytes
from store_io.source.byte_source import name_of
from store_io.source.store_dir import StoreListing


@dataclass
class CompactedQueue:
    """One queue of a compacted topic.

    log, entries: the files as load() maps them, in its order; all_log, all_entries: whatever has a number as its name.
    not_loaded: why the broker starts without this queue, else empty.
    refusal: why it ends here.
    deleted: empty files that load() removes.
    loaded: whether load() looks at the queue at all.
    """

    key: QueueKey
    log: list[MappedFile] = field(default_factory=list)
    entries: list[MappedFile] = field(default_factory=list)
    all_log: list[MappedFile] = field(default_factory=list)
    all_entries: list[MappedFile] = field(default_factory=list)
    not_loaded: Refusal | None = None
    refusal: Refusal | None = None
    deleted: list[str] = field(default_factory=list)
    loaded: bool = True

    @property
    def log_folder(self) -> str:
        return f"{COMPACTED_LOG}/{self.key[0]}/{self.key[1]}"

    @property
    def entries_folder(self) -> str:
        return f"{COMPACTED_QUEUE}/{self.key[0]}/{self.key[1]}"


@dataclass
class CompactedStore:
    """Holds the compacted queues. refusal: of a name that is no queue's, or of the settings. A queue has one too."""

    queues: dict[QueueKey, CompactedQueue] = field(default_factory=dict)
    refusal: Refusal | None = None


def compacted_queues(tree: Tree, rules: BrokerRules) -> CompactedStore:
    """Return the files that the release's load() finds below compaction/, or why it refuses. Nothing if it does not compact."""
    store = CompactedStore()
    if not rules.compacts:
        return store
    for topic, name in _folders(tree, COMPACTED_LOG):
        for child in tree.children(topic):
            if not is_folder(child):
                continue
            queue_id = parse_number(name_of(child.path), 32)
            if queue_id is None:
                store.refusal = store.refusal or Refusal(RefusalKind.COMPACTED_FOLDER_NAME, child.path)
                continue
            queue = store.queues.setdefault((name, queue_id), CompactedQueue((name, queue_id)))
            if not queue.all_log:
                _load(queue, tree, rules)
    for topic, name in _folders(tree, COMPACTED_QUEUE):
        for child in tree.children(topic):
            queue_id = parse_number(name_of(child.path), 32)
            if queue_id is not None and is_folder(child) and (name, queue_id) not in store.queues:
                queue = CompactedQueue((name, queue_id), loaded=False)
                queue.all_entries = numbered_files(tree, child.path)
                if queue.all_entries:
                    queue.not_loaded = Refusal(RefusalKind.COMPACTED_ENTRIES_ALONE, child.path, queue.log_folder)
                    store.queues[queue.key] = queue
    return store


def _folders(tree: Tree, kind: str) -> Iterable[tuple[str, str]]:
    """Return (path, topic) of each topic's folder."""
    return [(entry.path, name_of(entry.path)) for entry in tree.children(kind) if is_folder(entry)]


def _load(queue: CompactedQueue, tree: Tree, rules: BrokerRules) -> None:
    queue.all_log = numbered_files(tree, queue.log_folder)
    queue.all_entries = numbered_files(tree, queue.entries_folder)
    if not tree.is_folder(queue.entries_folder):
        queue.loaded = False
        if queue.all_log:
            queue.not_loaded = Refusal(RefusalKind.COMPACTED_LOG_ALONE, queue.log_folder, queue.entries_folder)
        return
    entries_bytes = compacted_entries_bytes(int(rules.value("compactionCqMappedFileSize")))
    if entries_bytes <= 0:  # the constructor divides by it
        queue.refusal = Refusal(RefusalKind.COMPACTED_SETTING, queue.log_folder)
        return
    log_bytes = compacted_log_bytes(int(rules.value("compactionMappedFileSize")), entries_bytes)
    for folder, size, files in ((queue.log_folder, log_bytes, queue.log), (queue.entries_folder, entries_bytes, queue.entries)):
        found, deleted, refusal = load_file_queue(tree, folder, size, rules)
        files += found
        queue.deleted += deleted
        if refusal is None:
            continue
        if refusal.kind == RefusalKind.FILE_NAME:  # a NumberFormatException ends load(); a wrong length ends this queue alone
            queue.refusal = refusal
        else:
            queue.not_loaded = refusal
        return


def compacted_log(listing: StoreListing) -> str:
    """Return a file of a compacted topic's own log; "" without one."""
    folders = f"{COMPACTED_LOG}/", f"{COMPACTED_QUEUE}/"
    return next((f.path for f in listing.files if f.kind == "file" and f.size and f.path.startswith(folders)), "")
