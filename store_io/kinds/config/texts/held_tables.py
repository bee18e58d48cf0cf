"""Tables of config/ that a release keeps in RocksDB: a key for each topic, group, or topic and group, its value in JSON.

Source: as in store_io/kinds/config/table_places.py (config.md 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from schemas.rows import Row, StoreFile
from store_io.base.errors import StoreError
from store_io.broker.settings.config_rules import ConfigRules
from store_io.broker.texts.fastjson import OTHER_SHAPE, ConfigFault, Pairs, most_values, parse_tolerant, parse_written
from store_io.broker.texts.tables import Offset, SharedSettings, Table, integer, member, time_of
from store_io.broker.texts.values import NotExact
from store_io.kinds.config.table_places import VERSION_KEY, TablePlace
from store_io.kinds.config.texts import records
from store_io.kinds.config.texts.salvage import Layout, put_entry, salvaged
from store_io.rocksdb.database import Batch, Database, DatabaseDamaged, find_database
from store_io.source.byte_source import ByteSource

MAX_TABLE_BYTES = 256 << 20  # keys and values of one table
MAX_TABLE_VALUES = 12_000_000  # in all its texts
OFFSETS = "offsetTable"
_WORDS = {"topicConfigTable": "topic", "subscriptionGroupTable": "group", OFFSETS: "the offsets of"}


@dataclass
class HeldTable:
    """A table of config/ as a database holds it.

    present: a database is there.
    counter, time_ms: of its dataVersion; 0 without one.
    refusal: why the broker ends over it, else empty.
    refused_key: of the entry over which it ends.
    damaged: (file, reason) of bad bytes at which its load ends.
    problem: why nobody knows its content.
    """

    folder: str
    present: bool = False
    entries: dict[Any, Any] = field(default_factory=dict)
    counter: int = 0
    time_ms: int = 0
    refusal: Refusal | None = None
    refused_key: bytes = b""
    damaged: tuple[str, str] | None = None
    problem: Gap | None = None


Decode = Callable[[Any, ConfigRules], Table]


def read_held(
    source: ByteSource, files: Sequence[StoreFile], place: TablePlace, table: tuple[str, Decode], rules: ConfigRules
) -> HeldTable:
    """Never raises over bytes. table: the name of the table in a file, and what decodes such a file."""
    database = find_database(files, place.folder)
    held = HeldTable(place.folder, present=not database.absent, refusal=_folder_refusal(files, place.folder))
    if database.absent:
        if any(file.kind == "unreadable" and file.path == place.folder for file in files):
            held.problem = Gap(Cause.NOT_LISTED, place.folder)
        return held
    try:
        with database.open(source, skips_bad_log=True) as opened:  # ConfigHelper.createConfigDBOptions
            others = set(opened.families) - {place.family}
            if place.other_families_refused and others:
                held.refusal = Refusal(RefusalKind.CONFIG_DATABASE_FAMILIES, place.folder)
                return held
            if place.number:
                _take_records(opened, place, table[1], rules, held)
                return held
            held.counter, held.time_ms = _version(opened, place, rules)
            _take(opened, place, table, rules, held)
    except DatabaseDamaged as why:
        held.refusal = Refusal(RefusalKind.CONFIG_DATABASE, why.path, actual=why.reason)
    except _BadValue as why:
        held.refusal = Refusal(RefusalKind.CONFIG_DATABASE_VALUE, place.folder, actual=str(why))
        held.refused_key = why.key
    except _UnknownValue as why:
        held.problem = Gap(Cause.CONFIG_VALUE_UNKNOWN, place.folder, (str(why),))
    except StoreError as why:
        held.problem = why.gap()
    return held


@dataclass
class ShownTable:
    """A table as its database shows it, whatever a release makes of it.

    entries: nested as in a file.
    broken: the keys whose value cannot be read.
    version: the fields of its dataVersion.
    """

    entries: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    version: Row = field(default_factory=dict)


def show_held(
    source: ByteSource, files: Sequence[StoreFile], place: TablePlace, layout: Layout, rules: ConfigRules
) -> ShownTable | None:
    """Return all that can be read there, up to bad bytes; None without such a table.

    rules: how values are parsed. Raises StoreError.
    """
    database = find_database(files, place.folder)
    if database.absent:
        return None
    shown = ShownTable()
    with database.open(source, skips_bad_log=True) as opened:
        if place.family not in opened.families:
            return None
        records_there = records.Records(place.number, lambda read: read, rules)
        bounds = records.key_range(place.number) if place.number else ()
        size = 0
        try:
            for batch in opened.scan(place.family, *bounds):
                size += len(batch.keys) + len(batch.values)
                if size > MAX_TABLE_BYTES:
                    raise StoreError(f"{place.folder}/: more than is read of a table of config/")
                for key, value in batch.pairs():
                    if place.number:
                        _show_record(shown, records_there, key, value)
                    else:
                        _show_value(shown, layout, key, value)
            if place.versions and place.versions in opened.families:
                text = opened.get(place.versions, VERSION_KEY) or b""
                shown.version = salvaged(b'{"dataVersion":' + text + b"}", (layout,)).version
            if place.number:
                shown.version = records.version_of(opened.get(place.family, records.version_key(place.number)) or b"")
        except DatabaseDamaged as why:
            shown.broken.append(f"what lies after bad bytes of {why.path}")
    for (group, topic, queue), offset in records_there.offsets.items():
        put_entry(shown.entries, (f"{topic}@{group}", queue), offset)
    shown.entries |= records_there.named
    return shown


def _show_record(shown: ShownTable, taken: records.Records, key: bytes, value: bytes) -> None:
    try:
        taken.take(key, value, _parse)
    except (records.BadRecord, _ValueFault):
        shown.broken.append(taken.words(key))


def _show_value(shown: ShownTable, layout: Layout, key: bytes, value: bytes) -> None:
    name = key.decode("utf-8", "replace")
    if layout.fields:
        found = salvaged(b'{"%b":{"":%b}}' % (layout.name.encode(), value), (layout,)).tables.get(layout.name, {}).get("")
    else:
        found = salvaged(value, (Layout(layout.name, layout.levels[1:]),)).tables.get(layout.name)
    if found is None:
        shown.broken.append(name)
    else:
        shown.entries[name] = found


def _folder_refusal(files: Sequence[StoreFile], folder: str) -> Refusal | None:
    """Return why RocksDB refuses a folder that is a file; None if it does not.

    Source: ConfigRocksDBStorage.postLoad, ConfigStorage.postLoad.
    """
    kinds = {entry.kind for entry in files if entry.path == folder}
    if not kinds & {"file", "special"} or any(entry.path.startswith(f"{folder}/") for entry in files):
        return None
    return Refusal(RefusalKind.CONFIG_DATABASE_IS_FILE, folder)


def with_newer(held: HeldTable, newer: HeldTable, offsets: bool) -> HeldTable:
    """Return the table of a database into which a table with a greater version was taken, name by name.

    Faults of the newer table stop no broker.
    """
    if newer.problem or newer.damaged is not None or newer.refusal:
        return replace(held, problem=held.problem or newer.problem or Gap(Cause.CONFIG_TABLE_CUT, newer.folder))
    if held.refusal or newer.counter <= held.counter:
        return held
    kept = held.entries
    if offsets:  # all queues of a topic and group are one entry
        taken = {_name(place) for place in newer.entries}
        kept = {place: offset for place, offset in kept.items() if _name(place) not in taken}
    return replace(held, present=True, entries={**kept, **newer.entries}, counter=newer.counter + 1, time_ms=newer.time_ms)


def _name(place: Offset) -> tuple[str, str]:
    return place[:2]


class _ValueFault(Exception):
    """A value of a table that cannot be taken.

    key: the entry's, if the fault is one entry's.
    """

    def __init__(self, sentence: str, key: bytes = b""):
        super().__init__(sentence)
        self.key = key


class _BadValue(_ValueFault):
    """A value that the release's parser refuses: its load fails."""


class _UnknownValue(_ValueFault):
    """A value of which nobody knows what the release makes."""


def _version(opened: Database, place: TablePlace, rules: ConfigRules) -> tuple[int, int]:
    """Return counter and time of the table's dataVersion."""
    text = opened.get(place.versions, VERSION_KEY) if place.versions else None
    if text is None or not text.strip():
        return 0, 0
    try:
        read = _parse(text, rules, None)
    except _ValueFault as why:
        raise type(why)(f"its dataVersion: {why}", VERSION_KEY) from why
    try:
        fields = read if isinstance(read, dict) else {}
        return integer(member(fields, "counter", rules), 64) if "counter" in fields else 0, time_of(fields)
    except ConfigFault as why:
        raise _BadValue(f"its dataVersion: {why}", VERSION_KEY) from why


def _take(opened: Database, place: TablePlace, table: tuple[str, Decode], rules: ConfigRules, held: HeldTable) -> None:
    name, decode = table
    texts: dict[str, Any] = {}
    hook = SharedSettings() if name != OFFSETS else None
    size = values = 0
    try:
        for batch in opened.scan(place.family):
            size += len(batch.keys) + len(batch.values)
            data = batch.values.tobytes()
            values += most_values(data)
            if size > MAX_TABLE_BYTES or values > MAX_TABLE_VALUES:
                held.problem = Gap(Cause.CONFIG_TABLE_LARGE, place.folder)
                return
            for key, value in batch.pairs():
                text = key.decode("utf-8", "replace")
                try:
                    read = _parse(value, rules, hook)
                except _ValueFault as why:
                    raise type(why)(f"the value of {_WORDS[name]} {text[: records.SHOWN]!r}: {why}", key) from why
                if not isinstance(read, dict):
                    raise _BadValue(f"the value of {_WORDS[name]} {text[: records.SHOWN]!r} is no object", key)
                texts[text] = member(read, name, rules) if name == OFFSETS else read
    except DatabaseDamaged as why:
        held.damaged = why.path, why.reason
        if not place.ends_silently:
            held.refusal = Refusal(RefusalKind.CONFIG_DATABASE_BYTES, why.path, actual=why.reason)
            return
    held.entries = _decoded(decode, {name: texts}, rules)


def _take_records(opened: Database, place: TablePlace, decode: Decode, rules: ConfigRules, held: HeldTable) -> None:
    """Take the entries of a table of the second version.

    The broker looks up the table's version first, and ends if that cannot be read.
    """
    try:
        version = opened.get(place.family, records.version_key(place.number)) or b""
    except DatabaseDamaged as why:
        held.refusal = Refusal(RefusalKind.CONFIG_DATABASE_VERSION, why.path, actual=why.reason)
        return
    held.time_ms = time_of(records.version_of(version))
    taken = records.Records(place.number, SharedSettings(), rules)
    size = values = 0
    try:
        for batch in opened.scan(place.family, *records.key_range(place.number)):
            if taken.are_offsets:  # light queues' are not held, and do not count
                _take_batch(batch, taken)
                size, values = taken.offset_bytes, len(taken.offsets)
            else:
                size += len(batch.keys) + len(batch.values)
                data = batch.values.tobytes()
                values += len(batch) + most_values(data)
            if size > MAX_TABLE_BYTES or values > MAX_TABLE_VALUES:
                held.problem = Gap(Cause.CONFIG_TABLE_LARGE, place.folder)
                return
            if not taken.are_offsets:
                _take_batch(batch, taken)
    except DatabaseDamaged as why:
        held.damaged = why.path, why.reason
    held.entries = taken.offsets if taken.are_offsets else _decoded(decode, {taken.table: taken.named}, rules)


def _take_batch(batch: Batch, taken: records.Records) -> None:
    for key, value in batch.pairs():
        try:
            taken.take(key, value, _parse)
        except records.BadRecord as why:
            raise _BadValue(str(why), key) from why
        except _ValueFault as why:
            raise type(why)(f"the value of {taken.words(key)}: {why}", key) from why


def _decoded(decode: Decode, named: Row, rules: ConfigRules) -> dict[Any, Any]:
    """Return the entries of a table as a file of config/ would name it. Raises _BadValue, _UnknownValue."""
    try:
        return decode(named, rules).entries
    except NotExact as why:
        raise _UnknownValue(str(why)) from why
    except (ArithmeticError, ValueError, TypeError, AttributeError, RecursionError) as why:
        raise _BadValue(str(why) or OTHER_SHAPE) from why


def _parse(data: bytes, rules: ConfigRules, hook: Callable[[Row], Any] | None) -> Any:
    try:
        return parse_written(data, hook)
    except ConfigFault:
        pass
    try:
        read = parse_tolerant(data, rules)
    except ConfigFault as why:
        raise (_BadValue if why.known else _UnknownValue)(str(why)) from why
    if isinstance(read, Pairs) and read.doubt:
        raise _UnknownValue(read.doubt)
    return read
