"""Opens a copy: the listing, the rules that apply, what load() makes of it, and what each kind of files says of itself."""

from __future__ import annotations

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from schemas.rows import MappedFile, QueueKey
from schemas.store_names import BATCH_QUEUES, QUEUES
from store_io.base.errors import NotAStore
from store_io.base.packed import PackedMap, joined
from store_io.broker.loading import LoadedStore, Tree, numbered_files, queue_folders, segments_of
from store_io.broker.queues.combination import combination_refusal, late_combination_refusal, light_from_rocksdb, reads_rocksdb
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.start_databases import database_folder, folder_refusal
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.broker.settings.read_settings import read_settings
from store_io.kinds.all_kinds import KINDS
from store_io.kinds.rocksdb_queues.queue_table import QueueTable, read_queue_table
from store_io.model.audit_request import AuditRequest
from store_io.model.facts.log_place import log_place
from store_io.model.facts.odd_settings import unknown_names
from store_io.model.facts.size_misfits import size_misfits
from store_io.model.found_gaps import Gaps
from store_io.model.kind import Opening
from store_io.model.opened_copy import MAX_PHY_OFFSET, OpenedCopy, TwinQueues
from store_io.model.other_kinds import unmodelled
from store_io.rocksdb.database import find_database
from store_io.source import store_dir
from store_io.source.byte_source import ByteSource, open_source


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
    opening = Opening(source, listing, tree, rules, gaps, not_modelled)
    for kind in KINDS:
        opening.facts[kind.name] = kind.open(opening)
    loaded = opening.loaded
    if rules.combined_queues and opening.batch_topics:
        not_modelled.append(Gap(Cause.DOUBLE_WRITE_BATCH))
    refusals = [kind.refusals(opening.facts[kind.name]) for kind in KINDS]
    table = (
        _queue_table(source, tree, rules, gaps) if rules.rocksdb_queues or rules.combined_queues and not not_modelled else None
    )
    in_folder, of_mark = (folder_refusal(tree, rules), _mark_refusal(table)) if table is not None else (None, None)
    # A broker ends at the first of these that it comes to.
    first = [*(each.before_load for each in refusals), in_folder, loaded.refusal, of_mark]
    loaded.refusal = next(filter(None, first), None)
    recovered, started = [each.after_recovery for each in refusals], [each.in_start for each in refusals]
    loaded.index_refusal = next(filter(None, [loaded.index_refusal, *recovered, *started]), None)
    if rules.combined_queues:
        loaded.refusal = combination_refusal(rules) or loaded.refusal
        loaded.index_refusal = loaded.index_refusal or late_combination_refusal(rules)
    not_modelled += _unmodelled_queues(table, loaded, rules) if table is not None else []
    not_modelled += [Gap(Cause.SEGMENT_OUT_OF_RANGE, f.path, (f.start,)) for f in loaded.segments if not _in_range(f)]
    gaps.add(not_modelled)
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
    return OpenedCopy(
        listing=listing,
        no_store=no_store,
        source=source,
        rules=rules,
        misfits=misfits,
        log_place=place,
        tree=tree,
        unmodelled=tuple(not_modelled),
        batch_topics=opening.batch_topics,
        known_topics=opening.known_topics,
        write_queues=opening.write_queues,
        loaded=loaded,
        checkpoint=opening.checkpoint,
        epochs=opening.epochs,
        marks=opening.marks,
        facts=opening.facts,
        segment_files=_all_segments(tree, loaded, rules),
        queue_folders=folders,
        queue_files=queue_files,
        headers=opening.headers,
        queue_table=table,
        twins=twins,
    )


def _queue_table(source: ByteSource, tree: Tree, rules: BrokerRules, gaps: Gaps) -> QueueTable:
    folder = database_folder(rules)
    table = read_queue_table(source, find_database(tree.children(folder), folder))
    if table.unread:
        gaps.cannot_read(table.unread)
    return table


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


def _in_range(file: MappedFile) -> bool:
    """Whether the physical offsets of a segment are some that a log can have."""
    return 0 <= file.start <= MAX_PHY_OFFSET - file.size


def _all_segments(tree: Tree, loaded: LoadedStore, rules: BrokerRules) -> list[MappedFile]:
    """Segments of the listing, and what else the broker loads as such; by name."""
    files = [f for f in segments_of(tree, rules) if _in_range(f)]
    known = {f.path for f in files}
    others = [f for f in loaded.segments if f.path not in known and _in_range(f)]
    return sorted([*files, *others], key=lambda f: (f.start, f.path))
