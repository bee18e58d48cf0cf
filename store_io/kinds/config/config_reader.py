"""Files in config/ as the release's managers load them: topics, groups, how far consumers and delay levels have come.

A broker keeps the state before the last as .bak and takes that where the file itself is empty or cannot be decoded.
Source: ConfigManager.load and loadBak, RocksDBTopicConfigManager.merge (config.md 2, 6).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas.advice import Advice, Cause, Gap, Refusal, Step
from schemas.finding_codes import Code
from schemas.rows import Finding, Row
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreError
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.built_in_topics import built_in_groups, built_in_topics
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    MAX_FILE_BYTES,
    SECOND_VERSION_FOLDER,
    TIMER_COUNTERS,
    TOPICS,
    ConfigRules,
    config_files,
    config_rules,
    imports_files,
    record_rules,
    tables_database,
)
from store_io.broker.texts.beans import LeftOut
from store_io.broker.texts.fastjson import (
    ANYWHERE,
    NOWHERE,
    OF_NUMBERS,
    OTHER_SHAPE,
    ConfigFault,
    Pairs,
    most_values,
    never_closed,
    parse_tolerant,
    parse_written,
)
from store_io.broker.texts.tables import (
    PLAIN_GROUP,
    Offset,
    SharedSettings,
    delays_of,
    form_of,
    groups_of,
    integer,
    lmq_offsets_of,
    member,
    offsets_of,
    topics_of,
)
from store_io.broker.texts.values import NotExact
from store_io.kinds.config.table_places import table_places
from store_io.kinds.config.texts.held_tables import OFFSETS, Decode, HeldTable, read_held, with_newer
from store_io.source.byte_source import ByteSource, name_of
from store_io.source.store_dir import StoreListing

MAX_TOPIC_VALUES, MAX_VALUES = 24_000_000, 12_000_000  # of a file of `MAX_FILE_BYTES`
BACKUP = ".bak"
HALF_WRITTEN = ".tmp"  # what a broker writes before it renames it; no release reads it
MAX_BACKUP_BYTES = 16 << 20  # of one that nobody needs
_VERSION = re.compile(rb'"dataVersion"\s*:\s*\{[^{}]*?"counter"\s*:\s*([0-9]{1,18})\b')


@dataclass
class BadFile:
    """A file that is not what a broker writes.

    start: the first byte that no broker writes there.
    refused: the release's parser refuses the file; else it is not known what the release makes of it.
    """

    name: str
    size: int
    reason: str
    start: int
    refused: bool = True


@dataclass
class Load:
    """The load of one file.

    name: the name of the file taken, else empty.
    empty: files of no byte.
    bad: refused files.
    odd: the file taken, if no broker writes it so.
    problems: why the content of a file is not known.
    counter, time_ms: those of the dataVersion of the file, or database, taken; 0 without one.
    hollow: the file taken does not name the table that it should hold.
    refused: whatever the .bak holds; good_backup: the .bak could be taken.
    left_out: the number of entries that a database, or the release, does not take in.
    database_refusal: why the broker ends over the database itself, else empty.
    """

    name: str = ""
    files: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    bad: list[BadFile] = field(default_factory=list)
    odd: BadFile | None = None
    problems: list[Gap] = field(default_factory=list)
    counter: int = 0
    time_ms: int = 0
    hollow: bool = False
    entries: dict[Any, Any] = field(default_factory=dict)
    refused: bool = False
    good_backup: bool = False
    left_out: int = 0
    database_refusal: Refusal | None = None

    @property
    def refuses(self) -> bool:
        """Say whether the manager's load fails: the file and its .bak are there, and neither can be parsed. No .bak is as good as
        one."""
        if self.database_refusal:
            return True
        if self.problems or self.name or not self.bad:
            return False
        return self.refused or self.bad[-1].name.endswith(BACKUP) and self.bad[-1].refused

    @property
    def unusable(self) -> bool:
        """Say whether something is there, and nothing of it is taken, though the load succeeds."""
        return not self.name and bool(self.bad or self.empty) and not self.refuses and not self.problems


@dataclass
class StoreConfig:
    """The tables that the managers hold after their load.

    offsets: (group, topic, queue id) -> offset; `offsets_file` says so.  delay_offsets: level -> offset,
    as stored.  read_from: file -> itself, or the .bak that was read in its place.  files: all that were read.  loads: file ->
    how that went, of each file over which a start may end.  rules: by which.  database: the folder of the database that holds
    the tables instead; "" where files do.  imports_files: a database takes newer files in.  held: file -> what a database has
    in its place.  built_in_topics, built_in_groups: those that the broker has without a file.  lists_built_in: a database holds
    them as any other entry.  useless_backups: .bak files beside a file that is taken, which no release could take.
    backup_versions: file -> counter of the dataVersion of its .bak, where that could be taken.
    """

    topics: dict[str, Row] | None = None
    groups: dict[str, Row] = field(default_factory=dict)
    offsets: dict[Offset, int] = field(default_factory=dict)
    offsets_file: str = ""
    delay_offsets: dict[int, int] = field(default_factory=dict)
    read_from: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    loads: dict[str, Load] = field(default_factory=dict)
    rules: ConfigRules = field(default_factory=ConfigRules)
    findings: list[Finding] = field(default_factory=list)
    problems: list[Gap] = field(default_factory=list)
    database: str = ""
    imports_files: bool = True
    held: dict[str, HeldTable] = field(default_factory=dict)
    useless_backups: list[str] = field(default_factory=list)
    backup_versions: dict[str, int] = field(default_factory=dict)
    built_in_topics: frozenset[str] = frozenset()
    built_in_groups: frozenset[str] = frozenset()
    lists_built_in: bool = False

    def is_absent(self, path: str) -> bool:
        """Say whether the copy has the table of that file in no form that a start looks at, sound or not."""
        done, held = self.loads.get(path), self.held.get(path)
        return done is None or not (done.files or done.problems or done.entries or held is not None and held.present)

    def is_taken(self, path: str) -> bool:
        """Say whether a start takes a table of this file, from whichever form."""
        done, held = self.loads.get(path, Load()), self.held.get(path)
        return not (done.problems or done.refuses or done.hollow) and bool(done.name or held is not None and held.present)

    @property
    def known_topics(self) -> frozenset[str] | None:
        """Return every topic that the broker knows; None if the table cannot say that a topic was deleted."""
        done = self.loads.get(TOPICS)
        if self.topics is None or done is not None and (done.hollow or done.problems):
            return None
        return self.built_in_topics.union(self.topics)

    @property
    def batch_topics(self) -> frozenset[str]:
        """Return topics of type BatchCQ (attribute queue.type)."""
        return frozenset(
            name for name, topic in (self.topics or {}).items() if topic.get("attributes", {}).get("queue.type") == "BatchCQ"
        )

    @property
    def compacted_topics(self) -> frozenset[str]:
        """Return topics whose consumers read a compacted log (attribute cleanup.policy)."""
        topics = (self.topics or {}).items()
        return frozenset(name for name, topic in topics if topic.get("attributes", {}).get("cleanup.policy") == "COMPACTION")


_TABLE_NAMES = {
    TOPICS: "topicConfigTable", GROUPS: "subscriptionGroupTable", CONSUMER_OFFSETS: OFFSETS, LMQ_OFFSETS: OFFSETS,
}  # fmt: skip
_TABLES: dict[str, Decode] = {
    TOPICS: topics_of,
    GROUPS: groups_of,
    CONSUMER_OFFSETS: offsets_of,
    LMQ_OFFSETS: lmq_offsets_of,
    DELAY_OFFSETS: delays_of,
}
_INTEGER_KEYS = {
    **dict.fromkeys((CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS), OF_NUMBERS),
    **dict.fromkeys(("config/consumerOrderInfo.json", "config/topicQueueMapping.json"), ANYWHERE),
}


def bare_name(name: str) -> str:
    """Return the name of the file whose .bak or .tmp this is, or which it is itself."""
    return name.removesuffix(BACKUP).removesuffix(HALF_WRITTEN)


def read_bounded(source: ByteSource, name: str) -> bytes:
    """Return a file of config/, or a .bak. Raises StoreError, also if the file holds more than is read of such a file."""
    data = source.read_small(name, MAX_FILE_BYTES)
    values = most_values(data)
    most = MAX_TOPIC_VALUES if bare_name(name) == TOPICS else MAX_VALUES
    if values > most:
        raise StoreError(f"{name}: {values} values, more than the {most} that are read of such a file")
    return data


def read_object(source: ByteSource, name: str, rules: ConfigRules) -> Row:
    """Return the object that a file holds; {} if the release's parser finds none. Raises ConfigFault or StoreError."""
    read, _ = _parse(name, read_bounded(source, name), rules)
    return read if isinstance(read, dict) else {}


def held_by(source: ByteSource, name: str, rules: ConfigRules) -> dict[str, Row] | None:
    """Return the entries of a file of topics or groups, with all their settings; None if the release takes none."""
    path = bare_name(name)
    table = _TABLE_NAMES[path]
    try:
        read = read_object(source, name, rules)
        if not _TABLES[path](read, rules).written:
            return None
    except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError, StoreError):
        return None
    return dict(member(read, table, rules))


def load(source: ByteSource, listing: StoreListing, path: str, rules: ConfigRules) -> Load:
    """Load a file, or its .bak if the file is empty or cannot be decoded (ConfigManager.load).

    Never raises over bytes. Nobody knows the content of a file that could not be read: then its .bak is not taken either.
    """
    done = Load()
    for name in (path, path + BACKUP):
        if not listing.is_file(name):
            entry = listing.get(name)
            if entry is not None and entry.kind in ("directory", "special"):  # other kinds: store_dir.unreadable_parts
                kind = "a directory" if entry.kind == "directory" else "a FIFO, socket or device"
                done.problems.append(Gap(Cause.CONFIG_NO_FILE, name, (kind,)))
            continue
        try:
            data = read_bounded(source, name)
        except StoreError as error:
            done.problems.append(error.gap(name))
            break
        done.files.append(name)
        if not data:  # as if it were not there
            done.empty.append(name)
            continue
        if _take(done, name, data, rules):
            break
        if not done.bad[-1].refused:
            break
    return done


def taken_from(name: str, data: bytes, rules: ConfigRules) -> Load:
    """Return the load of such a text by the release; `Load.name` is empty if it takes nothing. Never raises over bytes."""
    done = Load()
    if data:
        _take(done, name, data, rules)
    return done


def _take(done: Load, name: str, data: bytes, rules: ConfigRules) -> bool:
    """Say whether this file is the one that is taken. The entries of one that fails after it was added stay."""
    path = name.removesuffix(BACKUP)
    hook = SharedSettings() if path in (TOPICS, GROUPS) else None if path in _TABLES else LeftOut(name_of(path), rules)
    decode = _TABLES.get(path) or form_of(name_of(path))
    try:
        read, odd = _parse(name, data, rules, hook)
        try:
            table = decode(read, rules)
        except NotExact:
            read = parse_tolerant(data, rules)
            table = decode(read, rules)
        if isinstance(read, Pairs) and read.doubt:
            raise ConfigFault(read.doubt, known=False)
    except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError) as error:
        done.bad.append(_bad_file(name, data, error))
        return False
    done.entries = table.entries if table.replaces or not done.entries else {**done.entries, **table.entries}
    if table.fails:
        done.bad.append(BadFile(name, len(data), table.fails, max(0, data.find(b'"dataVersion"'))))
        return False
    if odd is None and not table.written:
        odd = BadFile(name, len(data), "the table that it should hold is not in it", 0)
    done.name, done.odd, done.counter, done.hollow = name, odd, table.counter, not table.written
    done.left_out, done.time_ms = table.left_out, table.time_ms
    return True


def _bad_file(name: str, data: bytes, error: Exception) -> BadFile:
    """Return what is wrong with the file. Who keeps the error itself keeps the text, several times, with its frames."""
    if isinstance(error, ConfigFault):
        return BadFile(name, len(data), str(error), error.start, error.known)
    return BadFile(name, len(data), OTHER_SHAPE, 0)


def _parse(name: str, data: bytes, rules: ConfigRules, hook: Callable[[Row], Any] | None = None) -> tuple[Any, BadFile | None]:
    """Return (what the release's parser reads, what is odd about the text). hook: of `parse_written`. Raises ConfigFault."""
    try:
        read = parse_written(data, hook, _INTEGER_KEYS.get(name.removesuffix(BACKUP), NOWHERE))
        if isinstance(read, dict):
            return read, None
        odd = BadFile(name, len(data), OTHER_SHAPE, 0)
    except ConfigFault as error:
        odd = BadFile(name, len(data), str(error), error.start)
    try:
        read = parse_tolerant(data, rules)
    except ConfigFault as error:
        raise ConfigFault(odd.reason, odd.start, error.known) from error
    return read, odd


def read_config(source: ByteSource, listing: StoreListing, rules: BrokerRules) -> StoreConfig:
    """Return all that the release loads of config/. Never raises over bytes; a file that cannot be opened is in `problems`."""
    own = config_rules(rules)
    loads = {file.path: load(source, listing, file.path, own) for file in config_files(rules) if file.stops}
    config = StoreConfig(rules=own, database=tables_database(rules), imports_files=imports_files(rules), loads=loads)
    if config.database:
        config.held = _held_tables(source, listing, rules)
        _import_files(config, rules)
    for path, done in config.loads.items():
        config.files += done.files
        config.problems += done.problems
        if done.name:
            config.read_from[path] = done.name
    for path, done in config.loads.items():
        _look_at_backup(source, listing, config, path)
        backup = listing.get(path + BACKUP)
        there = backup is not None and backup.kind == "file" and backup.size > 0 and path + BACKUP not in config.useless_backups
        helps = done.good_backup or there and done.name in (path, path + BACKUP)
        step = Advice(Step.RESTORE if config.database else Step.RESTORE_OR_FIX)
        if path == TIMER_COUNTERS:
            step = Advice(Step.REMOVE_COUNTERS, (path,))
        _find_damaged(config, done, None if helps else step)
    topics, groups, delays = (config.loads[path] for path in (TOPICS, GROUPS, DELAY_OFFSETS))
    offsets_path = LMQ_OFFSETS if LMQ_OFFSETS in config.loads else CONSUMER_OFFSETS
    config.offsets = config.loads[offsets_path].entries
    held = config.held.get(offsets_path)
    config.offsets_file = config.read_from.get(offsets_path, held.folder if held is not None and held.present else offsets_path)
    config.delay_offsets, config.groups = delays.entries, groups.entries
    config.topics = topics.entries if topics.name or topics.entries or config.database else None
    if config.database and config.database != SECOND_VERSION_FOLDER:
        # There they are made after the load, and are put into the database as any other.
        config.topics = {**topics.entries, **built_in_topics(rules)}
        config.groups = {**dict.fromkeys(sorted(built_in_groups(rules)), PLAIN_GROUP), **groups.entries}
        config.lists_built_in = True
    config.built_in_topics = frozenset(built_in_topics(rules))
    config.built_in_groups = built_in_groups(rules)
    return config


def _import_files(config: StoreConfig, rules: BrokerRules) -> None:
    """Take newer files into the database in which a release keeps its tables.

    A file is newer if its version is greater than the database's, which is 0 without a database. The file itself is read for its
    version first: its .bak does not help then.
    """
    for path in (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS):
        done = config.loads.get(path)
        held = config.held.get(path, HeldTable(config.database))
        if done is None or done.problems:
            continue
        if held.problem:
            config.loads[path] = Load(problems=[held.problem])
        elif held.refusal:
            config.loads[path] = Load(database_refusal=held.refusal)
        elif not imports_files(rules):
            left_out = 0 if held.present or not done.name else len(done.entries)
            files = [done.name] if left_out else []
            config.loads[path] = Load(files=files, entries=held.entries, time_ms=held.time_ms, left_out=left_out)
        elif done.bad and done.bad[0].name == path:
            config.loads[path] = Load(files=done.files, bad=done.bad[:1], refused=True, good_backup=bool(done.name))
        elif done.counter <= held.counter or done.name != path:
            left_out = 0 if held.present else len(done.entries)
            config.loads[path] = Load(files=done.files, entries=held.entries, time_ms=held.time_ms, left_out=left_out)
        elif path in (TOPICS, GROUPS):
            done.entries = {**held.entries, **done.entries}


def _held_tables(source: ByteSource, listing: StoreListing, rules: BrokerRules) -> dict[str, HeldTable]:
    found = {}
    held_rules = record_rules(rules) if tables_database(rules) == SECOND_VERSION_FOLDER else config_rules(rules)
    for path, places in table_places(rules).items():
        table = _TABLE_NAMES[path], _TABLES[path]
        held, *others = (read_held(source, listing.files, place, table, held_rules) for place in places)
        for other in others:
            if other.present or other.refusal:
                held = with_newer(held, other, table[0] == OFFSETS)
        found[path] = held
    return found


def _look_at_backup(source: ByteSource, listing: StoreListing, config: StoreConfig, path: str) -> None:
    """Note a .bak that no release could take, beside a file that is taken.

    No release opens it then, so a large one is not read here either.
    """
    name, done = path + BACKUP, config.loads.get(path)
    entry = listing.get(name)
    if done is None or done.name != path:
        return
    if entry is None or entry.kind != "file" or not 0 < entry.size <= MAX_BACKUP_BYTES:
        return
    try:
        data = source.read_small(name, MAX_BACKUP_BYTES)
    except StoreError as error:
        config.problems.append(error.gap(name))
        return
    config.files.append(name)
    if not data.strip(b"\0") or never_closed(data):
        config.useless_backups.append(name)
        return
    version = _VERSION.search(data)
    if version is not None:
        config.backup_versions[path] = int(version[1])


def _find_damaged(config: StoreConfig, done: Load, step: Advice | None) -> None:
    """Add findings on files that are not as a broker writes them.

    step: the next step if the .bak does not help.
    """
    for bad in done.bad:
        config.findings.append(_finding(bad, severity_in(Code.CONFIG_DAMAGED, Case.NOT_TAKEN, bool(done.name)), step))
    if done.odd is not None:
        config.findings.append(_finding(done.odd, severity_in(Code.CONFIG_DAMAGED, Case.TAKEN_AS_IT_IS, not done.hollow), step))


def _finding(bad: BadFile, severity: str, step: Advice | None) -> Finding:
    """Return the finding on a bad file, from its first byte that no broker writes to its end."""
    message = f"{bad.name}: does not hold what a broker writes ({bad.reason})."
    return Finding(
        Code.CONFIG_DAMAGED,
        bad.name,
        bad.start,
        bad.size,
        severity,
        expected="JSON as a broker writes it",
        actual=bad.reason,
        message=message,
        next=step,
    )


def is_offset(value: Any, offset: int) -> bool:
    """Say whether a value of such a file is this offset. fastjson takes a text for a number as well."""
    try:
        return integer(value, 64) == offset
    except ConfigFault:
        return False
