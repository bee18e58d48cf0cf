"""Tables of config/ of which another form in the copy shows topics, groups or offsets that a start does not hold.

A sound store has older forms, too: the .bak, a file from before its tables went into a database. So a form counts only where a
start holds no entry of the table at all, or where the form is known to be newer than what a start takes (config.md 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas.layouts.store_names import BRIDGE_TOPIC
from schemas.rows import FROM_VERSION
from store_io.broker.settings.built_in_topics import (
    ONLY_INHERITED,
    SYSTEM_GROUPS,
    built_in_groups,
    built_in_topics,
    is_brokers_own,
)
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DATABASE_TABLES, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS
from store_io.kinds.config.config_reader import BACKUP, HALF_WRITTEN, Load, StoreConfig
from store_io.kinds.config.table_places import TablePlace, all_places, table_places
from store_io.kinds.config.texts.salvage import LAYOUTS, entries_of
from store_io.kinds.config.texts.table_forms import OTHER_FILE, Copy, Form, file_forms, of_database, of_file
from store_io.wording.gaps import gap_text

_OFFSETS = (CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS)


class ReadCopy(Copy, Protocol):
    """A copy with the tables that its managers hold after their load."""

    @property
    def tables(self) -> StoreConfig: ...


@dataclass(frozen=True)
class FullerForm:
    """A form of a table that shows entries which a start does not hold.

    form: the form that shows the entries.
    lacking: how many of them a start does not hold, without those that a broker makes itself.
    older: how many offsets a start holds that are smaller in what it takes.
    other_setting: a start with other settings takes this form; else it is a file beside the one that is taken, or damaged.
    held_some: a start holds other entries of the table, so that the form is known to be newer.
    """

    form: Form
    lacking: int
    other_setting: bool
    held_some: bool = False
    older: int = 0


@dataclass
class OtherForms:
    """Other forms of tables in a copy.

    fuller: file -> the form that shows most of its table, if a start holds less.
    unread: form -> why nobody knows its content.
    """

    fuller: dict[str, FullerForm] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def databases(self, path: str) -> list[Form]:
        """Return the known databases with the table of that file.

        They are the one that shows most, and those whose content nobody knows.
        """
        fuller = self.fuller.get(path)
        found = [fuller.form] if fuller is not None and fuller.form.name.endswith("/") else []
        names = [f"{place.folder}/" for place in all_places(path)]
        unread = [Form(name, path, whole=False, unread=[self.unread[name]]) for name in names if name in self.unread]
        return [*found, *(form for form in unread if form.name not in [each.name for each in found])]


def other_forms(copy: ReadCopy) -> OtherForms:
    """Compare the tables that a start takes with their other forms, which are read only if the copy has some."""
    found = OtherForms()
    for path in (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS):
        done = copy.tables.loads.get(path)
        if done is None or done.problems or done.refuses:
            continue
        forms = list(_others(copy, path, done))
        held = _own(copy, path, done.entries) if forms else {}
        shown = [fuller for form in forms if (fuller := _fuller(copy, form, done, held)) is not None]
        found.unread |= {form.name: form.unread[0] for form in forms if form.unread}
        if shown:
            found.fuller[path] = max(shown, key=lambda each: (not each.other_setting, each.lacking, each.older))
    return found


@dataclass(frozen=True)
class NewestTable:
    """The newest content of a table that a copy shows.

    entries: as managers hold them, without those that a broker makes itself.
    form: the file or folder that shows them; "" without one.
    unread: sentences on why nobody knows the rest of the content.
    """

    entries: Mapping[Any, Any]
    form: str
    unread: Sequence[str] = ()


def newest_table(copy: ReadCopy, path: str) -> NewestTable:
    """Return one table as the copy shows it. A start's entries come first, and over them the fullest form that is known to be
    newer.

    A table of which a start takes nothing is shown by its fullest form, whatever its age.
    """
    done = copy.tables.loads.get(path, Load())
    sound = path in copy.tables.loads and not done.problems and not done.refuses
    held = _own(copy, path, done.entries) if sound else {}
    forms = list(_others(copy, path, done)) if sound else [*file_forms(copy, path), *_databases(copy, path, all_places(path))]
    shown = [(form, _own(copy, path, _entries(form))) for form in forms]
    newer = [each for each in shown if each[1] and (not held or _is_newer(copy, each[0], each[1], done, held))]
    unread = [*map(gap_text, done.problems), *(f"{form.name}: {form.unread[0]}" for form in forms if form.unread)]
    if newer:
        form, entries = max(newer, key=lambda each: len(each[1]))
        return NewestTable({**held, **entries}, form.name, unread)
    database = copy.tables.held.get(path)
    folder = f"{database.folder}/" if database is not None and database.present else ""
    return NewestTable(held, (done.name or folder) if held else "", unread)


# ---- which forms there are -----------------------------------------------------------------------------------------------


def _others(copy: ReadCopy, path: str, done: Load) -> Iterator[Form]:
    """Yield the forms that a start does not take, and that may be newer."""
    listing, config = copy.listing, copy.tables
    names = [] if done.name == path and not done.hollow else [path]
    if not config.database or path not in DATABASE_TABLES:
        if done.name != path + BACKUP and (names or config.backup_versions.get(path, 0) > done.counter):
            names.append(path + BACKUP)
    elif names and not _there(copy, path):
        names = [path + BACKUP]
    names.append(path + HALF_WRITTEN)
    other = OTHER_FILE.get(path)
    if other is not None:
        names += [other if _there(copy, other) else other + BACKUP, other + HALF_WRITTEN]
    for name in names:
        form = of_file(copy, path, name)
        if form is not None:
            yield form
    # What a start takes out of another database into the one that it reads, it holds.
    read = {place.folder for place in table_places(copy.rules).get(path, ())[:1]}
    others = (place for place in all_places(path) if place.folder not in read)
    yield from _databases(copy, path, (place for place in others if listing.is_file(f"{place.folder}/CURRENT")))


def _databases(copy: ReadCopy, path: str, places: Iterable[TablePlace]) -> Iterator[Form]:
    for place in places:
        if (form := of_database(copy, path, place)) is not None:
            yield form


def _there(copy: Copy, name: str) -> bool:
    entry = copy.listing.get(name)
    return entry is not None and entry.kind == "file" and entry.size > 0


# ---- what they show ------------------------------------------------------------------------------------------------------


def _fuller(copy: ReadCopy, form: Form, done: Load, held: Mapping[Any, Any]) -> FullerForm | None:
    shown = _own(copy, form.path, _entries(form))
    lacking = sum(1 for key in shown if key not in held)
    older = sum(1 for key, offset in shown.items() if key in held and held[key] < offset) if form.path in _OFFSETS else 0
    if not (lacking or older) or held and not _is_newer(copy, form, shown, done, held):
        return None
    database = copy.tables.database if form.path in DATABASE_TABLES else ""
    other = not database and form.name not in (form.path, form.path + BACKUP, form.path + HALF_WRITTEN)
    return FullerForm(form, lacking, other or bool(database), bool(held), older)


def _entries(form: Form) -> dict[Any, Any]:
    """Return entries as managers hold them: an offset by group, topic and queue id, or by delay level."""
    layout = LAYOUTS[form.path][0]
    if form.path in (TOPICS, GROUPS):
        return form.own
    if form.path == DELAY_OFFSETS:
        return {level: offset for (level,), offset in entries_of(form.own, layout)}
    found = {}
    for (name, queue_id), offset in entries_of(form.own, layout):
        topic, _, group = name.partition("@")
        found[group, topic, queue_id] = offset
    return found


def _own(copy: Copy, path: str, entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the entries without topics and groups that a broker makes itself, whatever its release and its name."""
    if path == TOPICS:
        known = {*built_in_topics(copy.rules), BRIDGE_TOPIC}
        return {
            name: row
            for name, row in entries.items()
            if name not in known and not is_brokers_own(name) and not _is_inherited(row)
        }
    if path == GROUPS:
        known_groups = built_in_groups(copy.rules)
        return {name: row for name, row in entries.items() if name not in known_groups and not name.startswith(SYSTEM_GROUPS)}
    return entries


def _is_inherited(row: Any) -> bool:
    """Say whether new topics take its settings over: TBW102, and topics with the name of a cluster or a broker."""
    perm = row.get("perm") if isinstance(row, dict) else None
    return type(perm) is int and bool(perm & ONLY_INHERITED)


# ---- which of two is newer -----------------------------------------------------------------------------------------------


def _is_newer(copy: ReadCopy, form: Form, shown: Mapping[Any, Any], done: Load, held: Mapping[Any, Any]) -> bool:
    """Say whether the form is known to be newer than what a start takes."""
    path = form.path
    if not copy.tables.database or path not in DATABASE_TABLES:
        if form.name == path:  # a broker writes its .bak before the file, which can only be taken in part
            return len(shown) >= len(held)
        if form.name == path + BACKUP and done.name == path:
            return path == TOPICS and copy.tables.backup_versions.get(path, 0) > done.counter
    if path in _OFFSETS:
        ahead = {offset - held[place] for place, offset in shown.items() if place in held} - {0}
        if ahead:  # a group's offset grows, but where somebody resets it
            return bool(min(ahead) > 0)
    time, taken = _version_time(form), _version_time(_taken(copy, path, done))
    return time is not None and taken is not None and time > taken


def _taken(copy: ReadCopy, path: str, done: Load) -> Form | None:
    """Return the form that a start takes: a file that it takes into a database is newer than that."""
    if done.name:
        return of_file(copy, path, done.name)
    read = {place.folder for place in table_places(copy.rules).get(path, ())[:1]}
    return next((of_database(copy, path, place) for place in all_places(path) if place.folder in read), None)


def _version_time(form: Form | None) -> int | None:
    return form.time_ms if form is not None and form.time_from == FROM_VERSION else None
