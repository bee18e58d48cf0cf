"""The queues from which a release serves consumers under a store's settings: in files, in RocksDB, or light ones there alone.

As an audit decides it (rocksdb.md 8); of a double write the other kind is not read.
"""

from __future__ import annotations

from dataclasses import dataclass

from store_io.base.errors import StoreError
from store_io.broker.loading import Tree
from store_io.broker.queues.combination import light_from_rocksdb, reads_rocksdb
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.start_databases import database_folder, folder_refusal
from store_io.log.entries.queue_keys import after, queue_prefix, topic_prefix
from store_io.log.entries.queue_table import queue_table
from store_io.messages.message_filter import MessageFilter
from store_io.messages.open_store import OpenStore, QueueFiles
from store_io.rocksdb.database import DatabaseDamaged, StoredDatabase
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_cause

Keys = tuple[bytes, bytes | None]  # half-open; None: no end


@dataclass(frozen=True)
class KeyedQueues:
    """The queues in a database. Picklable. light: no others than light queues are served from there."""

    database: StoredDatabase
    light: bool


@dataclass(frozen=True)
class ServedQueues:
    """The queues of a store by the places where they are read.

    keyed: those in RocksDB, if any.
    ranges: ranges of keys, which together hold all of their entries.
    notes: what is to be said of the database.
    """

    files: tuple[QueueFiles, ...] = ()
    keyed: KeyedQueues | None = None
    ranges: tuple[Keys, ...] = ()
    notes: tuple[str, ...] = ()

    def asked(self, wanted: MessageFilter) -> list[tuple[Keys, ...]]:
        """Return, of each range in which these queues may have entries, the parts with their keys."""
        if wanted.topics is None:
            return [(keys,) for keys in self.ranges]
        prefixes = {
            prefix
            for topic in wanted.topics
            for prefix in (
                [topic_prefix(topic)]
                if wanted.queue_ids is None
                else [queue_prefix((topic, queue_id)) for queue_id in wanted.queue_ids]
            )
        }
        asked = [(prefix, after(prefix)) for prefix in sorted(prefixes)]
        found = (tuple(part for keys in asked if (part := _common(within, keys))) for within in self.ranges)
        return [parts for parts in found if parts]


def _common(one: Keys, other: Keys) -> Keys | None:
    first = max(one[0], other[0])
    end = min((keys[1] for keys in (one, other) if keys[1] is not None), default=None)
    return (first, end) if end is None or first < end else None


def served_queues(store: OpenStore) -> ServedQueues:
    """Find the queues that the release reads. Opens their database and reads the ends of queues; no entry is read.

    Raises StoreError if a file or the database cannot be read, or the settings name another folder than the database's.
    """
    rules = store.rules
    in_rocksdb, light = reads_rocksdb(rules), light_from_rocksdb(rules)
    files = () if in_rocksdb else tuple(q for q in store.queues() if not (light and q.key[0].startswith(LMQ_PREFIX)))
    if not (in_rocksdb or light):
        return ServedQueues(files)
    tree, folder = Tree(store.listing.files), database_folder(rules)
    store.readable(folder)
    refused = folder_refusal(tree, rules)
    if refused is not None:
        raise StoreError(refusal_cause(refused))
    table = queue_table(store.source(), tree, rules)
    if table.unread:
        raise StoreError(gap_text(table.unread))
    if not table.opened and table.damaged is not None:
        raise DatabaseDamaged(*table.damaged)
    keyed = KeyedQueues(table.database, light)
    if table.database.absent:
        return ServedQueues(files, keyed, (), (f"{folder}/ holds no database of ConsumeQueues: a start makes an empty one",))
    notes: tuple[str, ...] = ()
    if table.unnamed:
        notes = (
            f"{folder}/: the database does not know its file {table.unnamed[0]}: it may be an older one, without entries that"
            " were in it",
        )
    return ServedQueues(files, keyed, tuple((keys.first, keys.end) for keys in table.key_ranges()), notes)
