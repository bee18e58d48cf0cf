"""Files and databases that a start reads and this audit does not judge: which stop a load(), which are visibly broken.

Nothing here says what a sound file holds, or what an entry of such a database means (`start_databases` lists the databases). Each
entry is read, so that bad bytes are found wherever they lie. A verdict over a store that has any of these names them
(`StartFiles.names`). Source: `broker.settings.config_rules`. Timers have checks of their own (`kinds.timers`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from schemas.advice import Advice, Cause, Gap, Overwritten, Refusal, RefusalKind, Step
from schemas.layouts.rocksdb_layout import TABLES_FOLDER
from schemas.layouts.timer_layout import TIMER_CHECK
from store_io.base.errors import StoreError
from store_io.broker.queues.start_databases import OpenedDatabase, keeps_other_tables, opened_databases
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    DATABASE_TABLES,
    DELAY_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    TOPICS,
    ConfigFile,
    config_files,
    config_rules,
)
from store_io.kinds.config.config_reader import Load, StoreConfig
from store_io.kinds.config.table_places import all_places, table_places
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
        """Say whether a start ends over the database."""
        return self.rule.opens and bool(self.refusal)

    @property
    def next_step(self) -> Advice:
        """Return the next step for a database that ends the broker: no repair can read its content."""
        return Advice(Step.NO_DATABASE_REPAIR, (self.rule.folder, self.rule.entries))


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


JUDGED = frozenset({TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS})


def refusal_step(done: Load, rules: BrokerRules, late: bool) -> Advice:
    """Return the next step for a file that ends the broker (config.md 5, 6).

    It names the tables that a start destroys before that step.
    """
    own = config_rules(rules)
    if own.refusal_saves_all and not late:
        lost = Overwritten.ALL_TABLES
    elif late:
        lost = Overwritten.DELAY_OFFSETS
    elif own.topics_of_transactions:
        lost = Overwritten.FILTERS
    else:
        lost = Overwritten.OFFSETS
    if not done.refused:
        return Advice(Step.RESTORE_REFUSED, (lost,))
    return Advice(Step.COPY_REFUSED_BACKUP if done.good_backup else Step.RESTORE_REFUSED_ALONE, (lost,))


@dataclass
class StartFiles:
    """The files besides queues and log that may end a start.

    refusal, late_refusal: why the release ends before, or after, recovery, if it does.
    refused_by, late_refused_by: the file that is to blame.
    broken: sentences about what is visibly broken and not modelled.
    names: files that exist, are read by the release, and were not judged; config/ last.
    databases: those besides queues and tables that the release knows, in the order of a start.
    """

    refusal: Refusal | None = None
    late_refusal: Refusal | None = None
    refused_by: str = ""
    late_refused_by: str = ""
    broken: list[Gap] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    databases: list[DatabaseState] = field(default_factory=list)

    def refuse(self, refusal: Refusal | None, by: str, late: bool) -> None:
        """Note that a start ends there, if nothing before did."""
        if late:
            self.late_refusal, self.late_refused_by = self.late_refusal or refusal, self.late_refused_by or by
        else:
            self.refusal, self.refused_by = self.refusal or refusal, self.refused_by or by


def start_files(source: ByteSource, listing: StoreListing, config: StoreConfig, rules: BrokerRules) -> StartFiles:
    """Never raises over bytes; a file that cannot be opened is in `broken`."""
    found = StartFiles(databases=[_state(source, listing, rule) for rule in opened_databases(rules)])
    _judge_databases([state for state in found.databases if not state.rule.late], found)
    for file in config_files(rules):
        if file.stops:
            _judge(config.loads[file.path], file, config.database, found)
    _judge_databases([state for state in found.databases if state.rule.late], found)
    known = {state.rule.folder for state in found.databases}
    found.names = sorted(_names(source, listing, rules, known), key=lambda name: (name.startswith("config/"), name))
    return found


# ---- config/ -------------------------------------------------------------------------------------------------------


def _judge(loaded: Load, file: ConfigFile, database: str, found: StartFiles) -> None:
    """Note the decision of one loader: a broker ends if neither the file nor its .bak can be parsed.

    A missing .bak is as good as one.
    """
    path = file.path
    if loaded.problems:
        found.broken += loaded.problems
        return
    if loaded.bad and not loaded.name and not loaded.bad[-1].refused:
        found.broken.append(Gap(Cause.CONFIG_TEXT_UNKNOWN, loaded.bad[-1].name))
        return
    if not loaded.refuses:
        return
    refusal = loaded.database_refusal or Refusal(RefusalKind.CONFIG_FILE, path)
    if not loaded.database_refusal and loaded.refused:
        refusal = Refusal(RefusalKind.CONFIG_VERSION, path, database)
    found.refuse(refusal, path, file.late)


def _judge_databases(states: Sequence[DatabaseState], found: StartFiles) -> None:
    """Take in the databases over which the broker ends, and those of which nobody knows whether it does."""
    for state in states:
        if state.problem and state.rule.opens:
            found.broken.append(state.problem)
        if state.stops:
            found.refuse(state.refusal, state.rule.folder, state.rule.late)


# ---- names ---------------------------------------------------------------------------------------------------------


def _matters(source: ByteSource, rules: BrokerRules) -> bool:
    """Say whether a table of rocksdbstore/ is in use, or has entries although none is. Else it is what every broker makes, and a
    start comes out the same whatever lies there: rocksdb.md 10."""
    if rules.timers_in_rocksdb or keeps_other_tables(rules):
        return True
    try:
        files = source.list_tree(TABLES_FOLDER)
    except StoreError:
        return True
    return any(f.path.endswith(".sst") or f.path.endswith(".log") and f.size for f in files)


def _names(source: ByteSource, listing: StoreListing, rules: BrokerRules, known: Set[str]) -> set[str]:
    """Return files and folders with content that this release reads, and of which at most the form was looked at."""
    wanted = {file.path for file in config_files(rules)} - JUDGED - {TIMER_CHECK}
    # Databases of tables that the release does not read are in `other_forms`.
    tables = {place.folder for path in DATABASE_TABLES for place in all_places(path)}
    read = {place.folder for places in table_places(rules).values() for place in places}
    tables = {folder for folder in tables if folder in read or listing.is_file(f"{folder}/CURRENT")}
    found = set()
    for entry in listing.files:
        path, top = entry.path, entry.path.partition("/")[0]
        base = path.removesuffix(".bak")
        if entry.kind == "directory":
            if path == "transaction" or path == TABLES_FOLDER and rules.knows_rocksdb and _matters(source, rules):
                found.add(path)
        elif not entry.size:
            continue
        elif base in wanted:
            found.add(base)
        elif top == "config" and path.count("/") > 1:  # a database of a manager's
            folder = "/".join(path.split("/")[:2])
            if folder not in tables | known:
                found.add(folder)
    return found
