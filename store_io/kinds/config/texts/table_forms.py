"""The forms in which a copy holds one table of config/, which of them a repair takes, and what only the others show.

A form is a file, its .bak, a text that a kill left as .tmp, the file that takes its place with other settings, or a table in a
database. One is taken, never a mixture: what is in the file itself, else in its .bak, else in another form. What no parser
takes is read by `kinds.config.texts.salvage` (config.md 9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas.advice import Gap
from schemas.repair import FormLeft
from schemas.rows import FROM_FILE, FROM_VERSION, Row
from store_io.base.errors import FormUnread, StoreError
from store_io.base.failed_reads import failed_reads, noted_unless
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    TOPICS,
    config_rules,
    record_rules,
)
from store_io.broker.texts.tables import time_of
from store_io.kinds.config.config_reader import BACKUP, HALF_WRITTEN, bare_name, held_by, read_bounded, taken_from
from store_io.kinds.config.table_places import TablePlace, all_places
from store_io.kinds.config.texts.held_tables import show_held
from store_io.kinds.config.texts.salvage import (
    LAYOUTS,
    LIGHT_OFFSETS,
    OFFSETS,
    UNKNOWN_TABLE,
    Layout,
    entries_of,
    entry_at,
    entry_name,
    put_entry,
    salvaged,
)
from store_io.rocksdb.database import DatabaseUnread
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

_MOST_SEEN = 100_000
MOST_NAMES = 1000  # of entries that a report lists, for each form
OTHER_FILE = {CONSUMER_OFFSETS: LMQ_OFFSETS, LMQ_OFFSETS: CONSUMER_OFFSETS}


class Copy(Protocol):
    """The parts of a copy from which forms are read: its bytes, its names, and a release's rules."""

    @property
    def source(self) -> ByteSource: ...
    @property
    def listing(self) -> StoreListing: ...
    @property
    def rules(self) -> BrokerRules: ...


@dataclass
class Form:
    """One form of a table.

    tables: name -> entries, nested as in a file; offsets of light queues lie there as those of a queue 0.
    path: of the file whose table it is.
    taken: a start of the release takes this very file; added: it refuses the file when it has added its entries to the manager's
    own.
    whole: nothing in it is unread.
    before: how many entries of its own table precede the first damage; None: all.
    broken, broken_count: (table, keys) of entries that it names and that cannot be read, the first of them.
    unread: what else cannot be read of it, in words.
    failed: reads that another try may do, path to sentence.
    """

    name: str
    path: str
    tables: dict[str, dict[Any, Any]] = field(default_factory=dict)
    taken: bool = False
    added: bool = False
    whole: bool = True
    before: int | None = None
    broken: list[tuple[Layout, tuple[Any, ...]]] = field(default_factory=list)
    broken_count: int = 0
    unread: list[str] = field(default_factory=list)
    failed: Mapping[str, Gap] = field(default_factory=dict)
    time_ms: int = 0
    time_from: str = FROM_FILE

    @property
    def own(self) -> dict[Any, Any]:
        """Return the file's own table."""
        return self.tables.get(LAYOUTS[self.path][0].name, {})

    @property
    def count(self) -> int:
        """Return entries of the file's own table."""
        return sum(1 for _ in entries_of(self.own, LAYOUTS[self.path][0]))


def own_forms(copy: Copy, path: str) -> list[Form]:
    """Return the file and its .bak. Never raises over bytes."""
    return _of_files(copy, path, (path, path + BACKUP))


def file_forms(copy: Copy, path: str) -> list[Form]:
    """Return all forms that are files, the file and its .bak first. Never raises over bytes."""
    other = OTHER_FILE.get(path)
    others = (other, other + BACKUP, other + HALF_WRITTEN) if other else ()
    return [*own_forms(copy, path), *_of_files(copy, path, (path + HALF_WRITTEN, *others))]


def database_forms(copy: Copy, path: str) -> list[Form]:
    """Return all forms that are databases. Never raises over bytes."""
    found = []
    for place in all_places(path):
        with failed_reads() as failed:
            form = of_database(copy, path, place)
        if form is not None:
            form.failed = failed
            found.append(form)
    return found


def _of_files(copy: Copy, path: str, names: Sequence[str]) -> list[Form]:
    return [form for name in names if (form := of_file(copy, path, name)) is not None]


def chosen_form(forms: Sequence[Form], backup_first: bool = False) -> Form | None:
    """Choose the form that a repair takes; None if no form has an entry. backup_first: the file is older than its .bak.

    A file that is whole is taken, whatever the .bak has. If it is damaged, the fuller one of it and its .bak is: else a repair
    would make a table emptier than a start does, which takes the .bak. Beside a .bak that the release takes, entries of the file
    count only up to its first damage. Raises FormUnread if no own form has an entry and another form could not be read this time.
    """
    own = [form for form in forms if form.name in (form.path, form.path + BACKUP) and form.count]
    if not own:
        for form in forms:
            for gap in form.failed.values():
                raise FormUnread.again(gap)
    if backup_first:
        own.reverse()
    if own and (own[0].whole or len(own) == 1):
        return own[0]
    rest = [form for form in forms if form.name not in (form.path, form.path + BACKUP) and form.count]
    backup_taken = any(form.taken and form.name != form.path for form in own)
    return max(own or rest, key=lambda form: _sure_count(form) if backup_taken else form.count, default=None)


def _sure_count(form: Form) -> int:
    return form.count if form.before is None else form.before


def not_kept(forms: Sequence[Form], written: Mapping[str, Mapping[Any, Any]]) -> list[FormLeft]:
    """Return the entries of each form that the written tables lack, or that cannot be read.

    Entries that an earlier form shows as well are not named again.
    """
    found, seen = list[FormLeft](), set[str]()
    for form in forms:
        names, count = list[str](), 0
        for name in _lacking(form, written):
            if name in seen:
                continue
            if len(seen) < _MOST_SEEN:
                seen.add(name)
            count += 1
            if len(names) < MOST_NAMES:
                names.append(name)
        gone = [_broken_name(*each) for each in form.broken if not _is_written(*each, written)]
        names += [*gone, *(f"{sentence} (cannot be read)" for sentence in form.unread)]
        count += form.broken_count - len(form.broken) + len(gone) + len(form.unread)
        if count:
            found.append(FormLeft(form.name, form.time_ms or None, form.time_from, tuple(names[:MOST_NAMES]), count))
    return found


def _broken_name(layout: Layout, keys: Sequence[Any]) -> str:
    return f"{entry_name(layout, keys)} ({'an offset of an unknown table' if layout is UNKNOWN_TABLE else 'cannot be read'})"


def _is_written(layout: Layout, keys: Sequence[Any], written: Mapping[str, Mapping[Any, Any]]) -> bool:
    tables = list(written.values()) if layout is UNKNOWN_TABLE else [written.get(layout.name, {})]
    return any(entry_at(table, keys) is not None for table in tables)


def _lacking(form: Form, written: Mapping[str, Mapping[Any, Any]]) -> Iterator[str]:
    for layout in LAYOUTS[form.path]:
        held = written.get(layout.name, {})
        for keys, value in entries_of(form.tables.get(layout.name, {}), layout):
            if entry_at(held, keys) is None:
                text = entry_name(layout, keys) + ("" if layout.fields else f": {value}")
                yield text if layout is LAYOUTS[form.path][0] else f"{layout.name} {text}"


# ---- reading -------------------------------------------------------------------------------------------------------------


def of_file(copy: Copy, path: str, name: str) -> Form | None:
    entry = copy.listing.get(name)
    if entry is None or entry.kind != "file" or not entry.size:
        return None
    form = Form(name, path, time_ms=entry.mtime_ns // 1_000_000, whole=False)
    try:
        data = read_bounded(copy.source, name)
    except StoreError as why:
        form.unread = [str(why)]
        return form
    found = salvaged(data, LAYOUTS[path])
    form.tables, form.whole, form.before = found.tables, found.whole, found.before
    form.broken, form.broken_count = found.broken, found.broken_count
    _take_time(form, found.version)
    _take_as_the_release(copy, form, data)
    _join_light_offsets(form)
    return form


def _take_as_the_release(copy: Copy, form: Form, data: bytes) -> None:
    """Take entries as the release reads them, if it takes the file. It may take entries of topics and groups alone."""
    rules, own = config_rules(copy.rules), LAYOUTS[form.path][0].name
    bare = bare_name(form.name)
    read = taken_from(bare, data, rules)
    if read.name and not read.hollow:
        form.taken, form.whole = bare == form.path and form.name != form.path + HALF_WRITTEN, True
        form.broken, form.broken_count, form.before = [], 0, None
    form.added = bool(read.entries) and not read.name
    if form.path in (TOPICS, GROUPS):
        rows = held_by(copy.source, form.name, rules)
        if rows is not None:
            form.tables[own], form.before = rows, None
    elif form.whole and read.entries:
        table: dict[Any, Any] = {}
        for key, offset in read.entries.items():
            put_entry(table, (key,) if form.path == DELAY_OFFSETS else (f"{key[1]}@{key[0]}", key[2]), offset)
        form.tables[own] = table
        form.tables.pop(LIGHT_OFFSETS, None)


def _join_light_offsets(form: Form) -> None:
    for key, offset in form.tables.pop(LIGHT_OFFSETS, {}).items():
        form.tables.setdefault(OFFSETS, {})[key] = {0: offset}


def of_database(copy: Copy, path: str, place: TablePlace) -> Form | None:
    form, layout = Form(f"{place.folder}/", path), LAYOUTS[path][0]
    files = [file for file in copy.listing.files if file.path.startswith(form.name)]
    if not files:
        return None
    form.time_ms = max(file.mtime_ns for file in files) // 1_000_000
    rules = record_rules(copy.rules) if place.number else config_rules(copy.rules)
    try:
        with noted_unless(DatabaseUnread):
            shown = show_held(copy.source, copy.listing.files, place, layout, rules)
    except StoreError as why:
        form.unread, form.whole = [str(why)], False
        return form
    if shown is None:
        return None
    form.tables = {layout.name: shown.entries}
    form.unread, form.whole = shown.broken, not shown.broken
    _take_time(form, shown.version)
    return form


def _take_time(form: Form, version: Row) -> None:
    time = time_of(version)
    if time:
        form.time_ms, form.time_from = time, FROM_VERSION
