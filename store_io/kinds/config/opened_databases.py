"""Databases that a start opens besides queues and tables (`start_databases`): whether they open, and what they hold.

What an entry of theirs means is not judged. Each entry is read, so that bad bytes are found wherever they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.advice import Advice, Cause, Gap, Refusal, RefusalKind, Step
from store_io.base.errors import StoreError
from store_io.broker.queues.start_databases import OpenedDatabase, opened_databases
from store_io.broker.releases import BrokerRules
from store_io.rocksdb.database import Database, DatabaseDamaged, find_database
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing


@dataclass(frozen=True)
class DatabaseState:
    """The state of one such database in the copy.

    there: a database is in the folder; a broker makes one in a folder without.
    count: the number of entries that could be read.
    refusal: why RocksDB does not open the database, without a full stop.
    damaged: (file, reason) of bad bytes among the entries.
    problem: why nobody knows the content of the database.
    size: the bytes of its files.
    """

    rule: OpenedDatabase
    there: bool = False
    count: int = 0
    refusal: Refusal | None = None
    damaged: tuple[str, str] | None = None
    problem: Gap | None = None

    @property
    def stops(self) -> bool:
        """Whether a start ends over the database."""
        return self.rule.opens and bool(self.refusal)

    @property
    def next_step(self) -> Advice:
        """Return the next step for a database that ends the broker: no repair can read its content."""
        return Advice(Step.NO_DATABASE_REPAIR, (self.rule.folder, self.rule.entries))


def database_states(source: ByteSource, listing: StoreListing, rules: BrokerRules) -> list[DatabaseState]:
    """Returns the state of each such database that the release knows, in the order of a start. Never raises over bytes."""
    return [_state(source, listing, rule) for rule in opened_databases(rules)]


def _state(source: ByteSource, listing: StoreListing, rule: OpenedDatabase) -> DatabaseState:
    entry = listing.get(rule.folder)
    if entry is not None and entry.kind != "directory":
        if entry.kind == "link_out":
            return DatabaseState(rule, there=True, problem=Gap(Cause.DATABASE_LINK_OUT, rule.folder))
        return DatabaseState(rule, there=True, refusal=Refusal(RefusalKind.DATABASE_IS_FILE, rule.folder))
    database = find_database(listing.files, rule.folder)
    if database.absent:
        return DatabaseState(rule)
    count = 0
    opened = False
    try:
        with Database(source, rule.folder, database.files, rule.skips_bad_log, rule.families) as entries:
            opened = True
            for batch in entries.scan(rule.family):
                count += len(batch)
    except DatabaseDamaged as why:
        if opened:
            return DatabaseState(rule, True, count, damaged=(why.path, why.reason))
        return DatabaseState(rule, True, refusal=Refusal(RefusalKind.DATABASE, why.path, rule.folder, why.reason))
    except StoreError as why:
        return DatabaseState(rule, True, problem=why.gap())
    return DatabaseState(rule, True, count)
