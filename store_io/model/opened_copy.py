"""A copy as it is before any of its large files is read: the listing, the rules that apply, and what load() would make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from schemas import dledger_layout
from schemas.advice import Refusal, RefusalKind
from schemas.gaps import Cause, Gap
from schemas.rows import MappedFile, QueueKey
from schemas.store_names import BATCH_QUEUES, INDEX, QUEUES
from store_io.base.errors import NotAStore, StoreError
from store_io.base.java_compat import parse_number
from store_io.base.packed import PackedMap, joined
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import LoadedStore, Tree, load_store, numbered_files, queue_folders, segments_of
from store_io.broker.prediction import Checkpoint
from store_io.broker.queues.combination import combination_refusal, late_combination_refusal, light_from_rocksdb, reads_rocksdb
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.start_databases import FOLDER, database_folder, folder_refusal, keeps_other_tables, marked_families
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.broker.settings.config_rules import TOPICS
from store_io.broker.settings.read_settings import read_settings
from store_io.kinds.checkpoint import checkpoint_reader
from store_io.kinds.compaction.compacted_queues import CompactedStore, compacted_queues
from store_io.kinds.config import config_reader
from store_io.kinds.config.config_reader import StoreConfig
from store_io.kinds.config.other_forms import OtherForms, other_forms
from store_io.kinds.controller.controller_files import BrokerIdentity, StoredEpochs, read_epochs, read_identity
from store_io.kinds.dledger.ledger_walks import LedgerTexts
from store_io.kinds.dledger.unit_reader import read_texts
from store_io.kinds.index import index_reader
from store_io.kinds.rocksdb_queues.queue_table import NO_DATABASE, QueueTable, find_database, read_queue_table
from store_io.kinds.rocksdb_tables.stored_marks import StoredMarks, read_marks
from store_io.kinds.rocksdb_tables.table_view import TablesInUse, tables_in_use
from store_io.kinds.timers.timer_files import TimerParts, timer_parts
from store_io.model.audit_request import AuditRequest
from store_io.model.facts.log_place import LogPlace, log_place
from store_io.model.facts.odd_settings import unknown_names
from store_io.model.facts.size_misfits import Misfit, size_misfits
from store_io.model.facts.unjudged import StartFiles, start_files
from store_io.model.found_gaps import Gaps
from store_io.model.other_kinds import unmodelled
from store_io.source import store_dir
from store_io.source.byte_source import ByteSource, name_of, open_source
from store_io.source.store_dir import StoreListing

MAX_PHY_OFFSET = (1 << 63) - 1


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
    index_files: every file whose name is a number, as the broker maps it: an empty one reads as zeros.
    headers: those of the index files that can be read, by path.
    compacted: queues below compaction/.
    timers: the timer store's files; None: there are none, or the release reads none.
    idle_timers: the timer store's files of a broker whose settings keep the timers' service off, if they can be judged.
    ledger_index: a DLedger group's own index files whose names are numbers.
    queue_table: that of queues in RocksDB; None: consumers are served from files.
    twins: those of queues that are written twice.
    marks: the marks of index and transactions in RocksDB, if a start asks for them.
    tables: these two tables, if they are in use.
    log_place: the CommitLog's place by broker.conf.
    unnamed_tables: table files in rocksdbstore/ that its database does not know, if a start asks.
    """

    listing: StoreListing
    no_store: str
    source: ByteSource
    rules: BrokerRules
    misfits: Sequence[Misfit]
    tree: Tree
    unmodelled: Sequence[Gap]
    config: StoreConfig
    batch_topics: frozenset[str]
    loaded: LoadedStore
    start_files: StartFiles
    checkpoint_file: checkpoint_reader.StoredCheckpoint
    segment_files: list[MappedFile]
    queue_folders: Mapping[QueueKey, str]
    queue_files: Mapping[QueueKey, tuple[MappedFile, ...]]
    index_files: list[MappedFile]
    headers: dict[str, IndexHeader]
    compacted: CompactedStore
    ledger_index: tuple[MappedFile, ...]
    ledger_texts: LedgerTexts
    epochs: StoredEpochs = field(default_factory=StoredEpochs)
    identity: BrokerIdentity | None = None
    timers: TimerParts | None = None
    idle_timers: TimerParts | None = None
    queue_table: QueueTable | None = None
    twins: TwinQueues | None = None
    marks: tuple[int | None, ...] = ()
    unnamed_tables: tuple[str, ...] = ()
    tables: TablesInUse | None = None
    log_place: LogPlace = field(default_factory=LogPlace)

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

    @property
    def ledger_data(self) -> list[MappedFile]:
        """The data files of a DLedger group that the audit reads, by name; [] without one."""
        folder = self.loaded.ledger.folder if self.loaded.ledger is not None else None
        return [f for f in self.segment_files if folder is not None and f.path.startswith(folder + "/")]

    @property
    def checkpoint(self) -> Checkpoint:
        return self.checkpoint_file.fields

    @property
    def known_topics(self) -> frozenset[str] | None:
        """Return every topic that the broker knows.

        None if nothing says that a topic was deleted: its tables are not in the copy.
        """
        folder = self.config.database
        if folder and not any(entry.path.startswith(f"{folder}/") for entry in self.listing.files):
            return None
        return self.config.known_topics

    @cached_property
    def other_forms(self) -> OtherForms:
        """Forms of tables of config/ that a start does not take, and that show more, or cannot be read."""
        return other_forms(self)

    @property
    def write_queues(self) -> dict[str, int] | None:
        """Return the number of queues for writing of each known topic; None if the copy does not say."""
        topics = self.config.topics or {}
        return None if self.known_topics is None else {name: int(topic["writeQueueNums"]) for name, topic in topics.items()}

    def entry_range(self, path: str) -> tuple[int | None, int | None]:
        """Return the range of a whole file, if no smaller one is known."""
        entry = self.listing.get(path)
        return (0, entry.size) if entry is not None and entry.kind != "directory" else (None, None)


def open_copy(request: AuditRequest, gaps: Gaps, beside: OpenedCopy | None = None) -> OpenedCopy:
    """Find out all that needs no large file; what is not understood goes to `gaps`. Raises NotAStore.

    beside: the same copy, opened under other rules: it is not listed again.
    """
    listing = beside.listing if beside is not None else store_dir.list_folder(request.location)
    no_store = store_dir.why_no_store(request.location, listing.files)
    if no_store and not request.perhaps_emptied:
        raise NotAStore(no_store)
    source = beside.source if beside is not None else open_source(request.location)
    settings = dict(beside.rules.settings) if beside is not None else read_settings(request.broker_conf, listing, source)
    if request.changed is not None:
        settings[request.changed[0]] = Setting(request.changed[1], "changed")
    rules = broker_rules(request.release, settings)
    unknown = unknown_names(request.broker_conf, rules)
    misfits = size_misfits(request.broker_conf, listing, settings, unknown, lambda: read_settings(None, listing, source))
    place = log_place(request.broker_conf, listing, rules)
    tree = Tree(listing.files)
    not_modelled = unmodelled(listing, rules, request.broker_conf is not None)
    gaps.add([*filter(None, [place.asked]), *not_modelled, *store_dir.unreadable_parts(listing)])
    config = config_reader.read_config(source, listing, rules)
    gaps.add(config.problems)
    batch_topics = _batch_topics(tree, config, listing, rules)
    if rules.combined_queues and batch_topics:
        not_modelled.append(Gap(Cause.DOUBLE_WRITE_BATCH))
    loaded = load_store(tree, rules, batch_topics, (config.topics or {}).keys())
    starting = start_files(source, listing, config, rules)
    gaps.add(starting.broken)
    parts = timer_parts(source, listing, tree, rules)
    timers = parts if rules.timers else None
    of_timers = timers or TimerParts()
    epochs = read_epochs(source, listing) if rules.controller_mode else StoredEpochs()
    table = (
        _queue_table(source, tree, rules, gaps) if rules.rocksdb_queues or rules.combined_queues and not not_modelled else None
    )
    in_folder, of_mark = (folder_refusal(tree, rules), _mark_refusal(table)) if table is not None else (None, None)
    # A broker ends at the first of these that it comes to.
    loaded.refusal = starting.refusal or _mode_refusal(rules) or of_timers.refusal or in_folder or loaded.refusal or of_mark
    loaded.index_refusal = loaded.index_refusal or of_timers.late_refusal or starting.late_refusal or epochs.refusal
    if rules.combined_queues:
        loaded.refusal = combination_refusal(rules) or loaded.refusal
        loaded.index_refusal = loaded.index_refusal or late_combination_refusal(rules)
    gaps.add(problem for problem in (of_timers.problem, epochs.problem) if problem)
    not_modelled += _unmodelled_queues(table, loaded, rules) if table is not None else []
    not_modelled += [Gap(Cause.SEGMENT_OUT_OF_RANGE, f.path, (f.start,)) for f in loaded.segments if not _in_range(f)]
    gaps.add(not_modelled)
    checkpoint_file = _checkpoint(source, listing, gaps)
    folders: PackedMap[QueueKey, str] = queue_folders(tree, QUEUES) if not rules.rocksdb_queues else PackedMap()
    if rules.batch_queues and not rules.rocksdb_queues:
        # 4.x does not know the folder: its queues of these topics are ordinary ones.
        folders = joined(folders, queue_folders(tree, BATCH_QUEUES))
    queue_files = PackedMap.of(((key, tuple(numbered_files(tree, folder))) for key, folder in folders.items()), weigh=len)
    twins = TwinQueues(table, folders, queue_files) if rules.combined_queues and table is not None else None
    if twins is not None and reads_rocksdb(rules):
        folders, queue_files = PackedMap(), PackedMap()
    elif twins is not None:
        table = None
        if light_from_rocksdb(rules):
            folders = PackedMap.of((key, folder) for key, folder in folders.items() if not key[0].startswith(LMQ_PREFIX))
            queue_files = PackedMap.of(((key, queue_files[key]) for key in folders), weigh=len)
    index_files, ledger_index = _index_files(tree), _ledger_index(tree, loaded)
    stored = _marks(source, rules, gaps)
    return OpenedCopy(
        listing=listing,
        no_store=no_store,
        source=source,
        rules=rules,
        misfits=misfits,
        log_place=place,
        tree=tree,
        unmodelled=tuple(not_modelled),
        config=config,
        batch_topics=batch_topics,
        loaded=loaded,
        start_files=starting,
        epochs=epochs,
        identity=read_identity(source, listing) if rules.controller_mode else None,
        checkpoint_file=checkpoint_file,
        segment_files=_all_segments(tree, loaded, rules),
        queue_folders=folders,
        queue_files=queue_files,
        index_files=index_files,
        headers=_headers(source, index_files, gaps),
        compacted=compacted_queues(tree, rules),
        timers=timers,
        idle_timers=parts if not rules.timers and parts is not None and parts.judged else None,
        ledger_index=ledger_index,
        ledger_texts=_ledger_texts(source, listing, loaded, ledger_index, gaps),
        queue_table=table,
        twins=twins,
        marks=stored.marks,
        unnamed_tables=stored.unnamed or (of_timers.table.unnamed if of_timers.table is not None else ()),
        tables=tables_in_use(
            rules, find_database(source.list_tree(FOLDER), FOLDER) if keeps_other_tables(rules) else NO_DATABASE
        ),
    )


def _mode_refusal(rules: BrokerRules) -> Refusal | None:
    """Say why no broker starts in controller mode; "" if one does. Source: BrokerController.initialize of 5.1.2."""
    if not (rules.controller_mode and rules.controller_mode_throws):
        return None
    return Refusal(RefusalKind.CONTROLLER_MODE, expected="5.1.3", actual=rules.release)


def _queue_table(source: ByteSource, tree: Tree, rules: BrokerRules, gaps: Gaps) -> QueueTable:
    folder = database_folder(rules)
    table = read_queue_table(source, find_database(tree.children(folder), folder))
    if table.unread:
        gaps.cannot_read(table.unread)
    return table


def _marks(source: ByteSource, rules: BrokerRules, gaps: Gaps) -> StoredMarks:
    families = marked_families(rules)
    if not families:
        return StoredMarks()
    try:
        return read_marks(source, source.list_tree(FOLDER), families)  # the store's listing has the folder's name alone
    except StoreError as error:
        gaps.cannot_read(error.gap())
        return StoredMarks()


def _mark_refusal(table: QueueTable) -> Refusal | None:
    """Why every release ends over a mark that cannot be read."""
    if table.damaged is None or not table.mark_unreadable:
        return None
    return Refusal(RefusalKind.QUEUE_MARK, table.damaged[0], actual=table.damaged[1])


def _unmodelled_queues(table: QueueTable, loaded: LoadedStore, rules: BrokerRules) -> list[Gap]:
    """Return sentences on queues in RocksDB that the rules do not cover."""
    found = []
    why = table.hidden_unknown
    if rules.combined_queues:
        why = why or "start() writes to such queues where they are written twice as well, and RocksDB then compacts them"
    elif rules.value("enableDLegerCommitLog"):
        why = why or "beside a DLedger CommitLog"
    if table.gaps and table.damaged is not None and not table.mark_unreadable and why:
        file, reason = table.damaged
        found.append(Gap(Cause.ROCKSDB_BAD_ENDS, file, (table.database.folder, reason, why)))
    if not loaded.segments and table.ends.maxima:
        found.append(Gap(Cause.ROCKSDB_WITHOUT_LOG, table.database.folder))
    return found


def _batch_topics(tree: Tree, config: StoreConfig, listing: StoreListing, rules: BrokerRules) -> frozenset[str]:
    """BatchCQ topics by config/topics.json; without that file those with a folder in batchconsumequeue/ (contract.md).

    If the file exists but cannot be used, the release has no topics.
    """
    if not rules.batch_queues or rules.rocksdb_queues:
        return frozenset()
    if config.topics is not None or any(listing.is_file(TOPICS + end) for end in ("", ".bak")):
        return frozenset(config.batch_topics)
    return frozenset(name_of(e.path) for e in tree.children(BATCH_QUEUES) if e.kind == "directory")


def _in_range(file: MappedFile) -> bool:
    """Whether the physical offsets of a segment are some that a log can have."""
    return 0 <= file.start <= MAX_PHY_OFFSET - file.size


def _all_segments(tree: Tree, loaded: LoadedStore, rules: BrokerRules) -> list[MappedFile]:
    """Segments of the listing, and what else the broker loads as such; by name."""
    files = [f for f in segments_of(tree, rules) if _in_range(f)]
    known = {f.path for f in files}
    others = [f for f in loaded.segments if f.path not in known and _in_range(f)]
    return sorted([*files, *others], key=lambda f: (f.start, f.path))


def _ledger_index(tree: Tree, loaded: LoadedStore) -> tuple[MappedFile, ...]:
    if loaded.ledger is None:
        return ()
    return tuple(numbered_files(tree, f"{loaded.ledger.folder}/{dledger_layout.INDEX}"))


def _ledger_texts(
    source: ByteSource, listing: StoreListing, loaded: LoadedStore, index: tuple[MappedFile, ...], gaps: Gaps
) -> LedgerTexts:
    if loaded.ledger is None:
        return LedgerTexts()
    try:
        return read_texts(source, listing, loaded.ledger.folder, index)
    except StoreError as error:
        gaps.cannot_read(error.gap())
        return LedgerTexts()


def _checkpoint(source: ByteSource, listing: StoreListing, gaps: Gaps) -> checkpoint_reader.StoredCheckpoint:
    try:
        return checkpoint_reader.read_checkpoint(source, listing)
    except StoreError as error:
        gaps.cannot_read(error.gap())
        return checkpoint_reader.StoredCheckpoint()


def _index_files(tree: Tree) -> list[MappedFile]:
    numbered = [(e, parse_number(name_of(e.path), 64)) for e in tree.children(INDEX) if e.kind == "file"]
    return [MappedFile(e.path, number or 0, e.size) for e, number in numbered if number is not None]


def _headers(source: ByteSource, files: Sequence[MappedFile], gaps: Gaps) -> dict[str, IndexHeader]:
    found = {}
    for file in files:
        try:
            found[file.path] = index_reader.read_header(source, file.path)
        except StoreError as error:
            gaps.cannot_read(error.gap())
    return found
