"""The files of config/ that a repair replaces, with the form of their table, the log's share, and the reason.

A file that the release reads as it was written stays; so does one of which nothing can be read. Source: ConfigManager.load,
loadBak and persist (config.md 2, 4, 9).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.layouts import commitlog_layout
from schemas.repair import ConfigFile, FormLeft
from schemas.rows import FROM_LOG, Row
from store_io.base.wording import count_text
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    DATABASE_TABLES,
    DELAY_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    TIMER_COUNTERS,
    TOPICS,
    config_rules,
)
from store_io.broker.texts.written import config_text, group_row, topic_row, version_row
from store_io.kinds.config.against_queues import delay_levels_lost, table_is_wrong
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import BACKUP, Load, held_by, read_bounded
from store_io.kinds.config.lacking_topics import Sign, lacking_topics, lost_topics
from store_io.kinds.config.lost_tables import is_lost
from store_io.kinds.config.rebuild.shown_tables import held_queues, shown_groups, shown_topics
from store_io.kinds.config.rebuild.written_tables import written_tables
from store_io.kinds.config.texts.salvage import LAYOUTS, entries_of
from store_io.kinds.config.texts.table_forms import MOST_NAMES, Form, chosen_form, database_forms, file_forms, not_kept, own_forms
from store_io.repair.repair_audit import Audited

_UNPROVEN = {
    TOPICS: "the added topics' numbers of queues, guessed by their last queue with a message, and their permissions, guessed as"
    " reading and writing; their attributes; topics without messages",
    GROUPS: "the settings of groups: those that are added have a broker's defaults",
    CONSUMER_OFFSETS: "what groups had consumed: nothing else in a store says it, so they begin as new groups do",
    DELAY_OFFSETS: "deliveries whose copies are no longer in the log: those messages come again",
}
_UNPROVEN[LMQ_OFFSETS] = _UNPROVEN[CONSUMER_OFFSETS]
_OF_EVERY_BROKER = (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS)
CONFIG_GONE = "config/ is not in this copy"
_OLDER = "what changed after this form was written"
_LEFT_OUT = "what it held. Take the file from another copy of this broker, or let the table begin empty with --empty-config"
_COUNTERS = "how many timers of each topic wait, numbers that no broker needs: it counts anew"
_OTHER = "what it held. A start begins without it"


@dataclass
class ConfigChange:
    """One file, and what it is replaced by.

    data: its new content; None: it is removed, or stays as it is with `left_out`.
    taken_from: the forms that give entries, and `FROM_LOG`; form: the one that was taken.
    entries: how many it has then.
    added: names that no form had.
    not_kept: what forms show and the new file lacks.
    unproven: what could not be found out, a clause.
    emptied: the table begins empty, as was asked for.
    keeps_backup: the .bak stays, as a start can take it.
    backup_entries: how many can be read in the .bak.
    """

    path: str
    data: bytes | None
    reason: str
    taken_from: list[str] = field(default_factory=list)
    entries: int = 0
    added: list[str] = field(default_factory=list)
    unproven: str = ""
    form: Form | None = None
    not_kept: list[FormLeft] = field(default_factory=list)
    left_out: bool = False
    emptied: bool = False
    keeps_backup: bool = False
    backup_entries: int = 0

    @property
    def lost(self) -> int:
        """Return how many entries a form shows of a table that begins empty."""
        return max((form.count for form in self.not_kept), default=0) if self.emptied else 0

    @property
    def reported(self) -> ConfigFile:
        """Return the change as the report has it."""
        form = self.form
        time_ms, time_from = (form.time_ms or None, form.time_from) if form is not None else (None, None)
        return ConfigFile(
            self.path, self.data is None and not self.left_out, self.left_out, self.emptied, self.lost, self.reason,
            tuple(self.taken_from), time_ms, time_from, self.entries, tuple(self.added[:MOST_NAMES]), len(self.added),
            tuple(self.not_kept), self.unproven,
        )  # fmt: skip


def config_changes(
    audit: Audited, delivered: Mapping[int, int], may_empty: bool = False, told_only: bool = False
) -> Iterator[ConfigChange]:
    """Yield the changes, file by file; also those that are left out, as nothing of the table can be read. Raises StoreError if a
    file that is to be taken cannot be read.

    delivered: delay level -> the position after the last message of its queue whose delivery the log shows.
    may_empty: a table of which nothing can be read begins empty.
    told_only: nobody writes them, so of databases there is only what the audit says of those that no setting uses.
    """
    config = audit.copy[CONFIG].tables
    for path, done in config.loads.items():
        if done.problems or config.database and path in DATABASE_TABLES:
            continue
        change = _change(audit, path, done, delivered, told_only)
        if change is not None:
            if change.left_out and path == TIMER_COUNTERS:
                change = replace(change, left_out=False, unproven=_COUNTERS)
            yield from _with_backup(audit, _emptied(audit, change) if change.left_out and may_empty else change)
        elif path + BACKUP in config.useless_backups:
            yield from _good_copy(audit, path)


def _with_backup(audit: Audited, change: ConfigChange) -> Iterator[ConfigChange]:
    """Yield the change of a file, and that of a .bak that cannot be used. Else the next fault would find nothing good."""
    listing, backup = audit.copy.listing, change.path + BACKUP
    fuller = change.backup_entries > change.entries and not change.emptied
    if change.left_out or change.data is not None or listing.is_file(change.path):
        yield change
    if listing.is_file(backup) and not (change.left_out or change.keeps_backup or fuller):
        yield replace(change, path=backup, reason="it cannot be used either", added=[], not_kept=[], unproven="", emptied=False)


def _good_copy(audit: Audited, path: str) -> Iterator[ConfigChange]:
    """Yield the file's content for a .bak that cannot be used.

    Nothing if more entries can be read in the .bak than the file has.
    """
    data = read_bounded(audit.copy.source, path)
    own, backup = own_forms(audit.copy, path)
    if backup.count > own.count:
        return
    rows = not_kept([backup], own.tables)
    reason = "it cannot be used; the file itself is good"
    yield ConfigChange(path + BACKUP, data, reason, [path], own.count, form=own, not_kept=rows)


def _change(audit: Audited, path: str, done: Load, delivered: Mapping[int, int], told_only: bool) -> ConfigChange | None:
    levels = levels_without_offset(audit) if path == DELAY_OFFSETS else {}
    wrong_topics = path == TOPICS and table_is_wrong(audit.copy)
    lost = _lost_topics(audit) if path == TOPICS and not wrong_topics else {}
    forms: list[Form] = []
    fuller = audit.copy[CONFIG].other_forms.fuller.get(path)
    reason = _state(audit, path, done)
    if not reason and fuller is not None:
        less = f"{fuller.lacking:,} entries less than {fuller.form.name} shows"
        reason = f"a start holds {less}" if fuller.lacking else f"{fuller.form.name} has greater offsets and is newer"
    if not reason and not done.name and not done.entries and path in _UNPROVEN:
        forms = _forms(audit, path, told_only)
        held = chosen_form(forms)
        reason = f"a start begins without this table, which {held.name} holds" if held is not None else ""
    if not (reason or levels or wrong_topics or lost):
        return None
    forms = forms or _forms(audit, path, told_only)
    form = chosen_form(forms, _is_older(audit, path, done))
    if fuller is not None and fuller.form.name not in (path, path + BACKUP):
        form = next((each for each in forms if each.name == fuller.form.name), fuller.form)
    table, sources = _taken(form, forms)
    own = LAYOUTS[path][0].name
    added: list[str] = []
    if path == TOPICS:
        added = _add_topics(audit, table.setdefault(own, {}), None if reason or wrong_topics else lost)
        reason = reason or ("it does not name topics that have messages" if added else "")
        if not reason:
            return None
    elif path == GROUPS:
        added = _add_groups(audit, table.setdefault(own, {}))
    elif levels:
        reason = reason or f"{count_text(len(levels), 'level')} with messages without an offset"
        known = {**done.entries, **table.get(own, {})}
        found = {level: max(first, delivered.get(level, 0)) for level, first in levels.items() if level not in known}
        table[own] = dict(sorted({**known, **found}.items()))
        added = [f"level {level}: {table[own][level]}" for level in found]
    return _made(audit, path, reason, _Sources(forms, form, sources), table, added)


def _forms(audit: Audited, path: str, told_only: bool) -> list[Form]:
    """Return all forms of the table, its files first."""
    others = audit.copy[CONFIG].other_forms.databases(path) if told_only else database_forms(audit.copy, path)
    return [*file_forms(audit.copy, path), *others]


@dataclass(frozen=True)
class _Sources:
    forms: list[Form]
    form: Form | None
    names: list[str]


def _made(
    audit: Audited, path: str, reason: str, sources: _Sources, table: dict[str, dict[Any, Any]], added: list[str]
) -> ConfigChange:
    """Return the change that writes this table; one that is left out if it would be empty."""
    form, forms = sources.form, sources.forms
    own = LAYOUTS[path][0]
    count = sum(1 for _ in entries_of(table.get(own.name, {}), own))
    by_log = bool(added)
    backup = next((each for each in forms if each.name == path + BACKUP and each.taken), None)
    if form is not None and form is backup and sources.names == [form.name] and table == form.tables:
        data, held = read_bounded(audit.copy.source, form.name), dict[str, Mapping[Any, Any]](table)
    else:
        rules = config_rules(audit.copy.rules)
        version = version_row(_counter(audit, path), audit.last_store_time, rules)
        written = written_tables(path, table, version, rules) if count or by_log else None
        if written is None:
            why = "the release takes nothing that can be read of it" if count else "no form of it in the copy can be read"
            rows, gone = not_kept(forms, {}), _is_gone(audit, path)
            return ConfigChange(
                path, None, reason if gone else f"{reason}; {why}", unproven=_LEFT_OUT, not_kept=rows, left_out=True
            )
        data, held = written.data, dict(written.tables)
    names = [*sources.names, FROM_LOG] if by_log else sources.names
    unproven = _UNPROVEN[path] if by_log or path in (TOPICS, GROUPS, DELAY_OFFSETS) else _OLDER
    return ConfigChange(
        path, data, reason, names, count, added, unproven, form, not_kept(forms, held),
        keeps_backup=backup is not None and bool(backup.count),
        backup_entries=max((each.count for each in forms if each.name == path + BACKUP), default=0),
    )  # fmt: skip


def _emptied(audit: Audited, change: ConfigChange) -> ConfigChange:
    """Return the table of which nothing can be read, empty."""
    path, rules = change.path, config_rules(audit.copy.rules)
    data = None
    if path in _UNPROVEN:
        own = LAYOUTS[path][0].name
        version = {"dataVersion": version_row(_counter(audit, path), audit.last_store_time, rules)}
        data = config_text({**(version if rules.attributes or own != "offsetTable" else {}), own: {}}, rules)
    return replace(change, data=data, left_out=False, emptied=True, unproven=_UNPROVEN.get(path, _OTHER))


def _taken(form: Form | None, forms: list[Form]) -> tuple[dict[str, dict[Any, Any]], list[str]]:
    """Return (the tables of the form, the files that give them).

    If a manager fails after adding entries of the file, it keeps them and adds those of the .bak, which replace entries of the
    same name.
    """
    if form is None:
        return {}, []
    own = LAYOUTS[form.path][0].name
    tables, names = {**form.tables, own: dict(form.own)}, [form.name]
    backup = next((each for each in forms if each.name == form.path + BACKUP and each.taken), None)
    if form.added and backup is not None:
        tables[own], names = {**form.own, **backup.own}, [form.name, backup.name]
    return tables, names


def _state(audit: Audited, path: str, done: Load) -> str:
    """Return a clause on why the file is to be replaced; "" if a start takes the broker's own."""
    if done.refuses:
        return "neither the file nor its .bak can be used, so that the release does not start"
    if path in _OF_EVERY_BROKER and not any(each.files for each in audit.copy[CONFIG].tables.loads.values()):
        return CONFIG_GONE if _is_gone(audit, path) else "the copy has no topics, groups or offsets in config/"
    if is_lost(audit.copy[CONFIG].tables, path):
        return "a start begins without this table"
    if done.name.endswith(BACKUP):
        return "a start takes its .bak, which the next write may replace by this file"
    if _is_older(audit, path, done):
        return "it is older than its .bak"
    return ""


def _is_gone(audit: Audited, path: str) -> bool:
    """Say whether the copy lacks the file because it lacks all of config/."""
    return path in _OF_EVERY_BROKER and not audit.copy.listing.has_config


def _is_older(audit: Audited, path: str, done: Load) -> bool:
    """Say whether it is older than a .bak that can be read."""
    version = audit.copy[CONFIG].tables.backup_versions.get(path)
    if path != TOPICS or done.name != path or version is None or version <= done.counter:
        return False
    return held_by(audit.copy.source, path + BACKUP, config_rules(audit.copy.rules)) is not None


# ---- what the log shows ------------------------------------------------------------------------------------------------


def _lost_topics(audit: Audited) -> dict[str, Sign]:
    """Return the topics that a sound table lacks and that were not deleted."""
    copy, views = audit.copy, audit.views
    keys = [*held_queues(views), *(key for key, view in views.items() if view.deleted_topic)]
    return lost_topics(copy, views, lacking_topics(copy[CONFIG].tables, keys))


def _add_topics(audit: Audited, rows: dict[str, Row], wanted: Collection[str] | None = None) -> list[str]:
    """Add topics that the rest of the copy shows, and queues and types of known ones. Returns the names of new topics.

    wanted: these topics alone.
    """
    rules, added = config_rules(audit.copy.rules), []
    for name, topic in shown_topics(audit.copy[CONFIG].tables, audit.views).items():
        if wanted is not None and name not in wanted:
            continue
        if name not in rows:
            rows[name] = topic_row(name, topic.queues, topic.attributes, rules)
            added.append(name)
            continue
        if topic.queues > _queues(rows[name]):
            rows[name] = {**rows[name], "readQueueNums": topic.queues}
        if topic.attributes:
            held = rows[name].get("attributes")
            rows[name] = {**rows[name], "attributes": {**(held if isinstance(held, dict) else {}), **topic.attributes}}
    return added


def _queues(row: Row) -> int:
    """Return the larger number of queues; one that is no number counts as 0."""
    numbers = [str(row.get(name, 16)) for name in ("readQueueNums", "writeQueueNums")]
    return max((int(number) for number in numbers if number.isdecimal() and len(number) < 20), default=0)


def _add_groups(audit: Audited, rows: dict[str, Row]) -> list[str]:
    """Add groups that the rest of the copy shows: their names."""
    rules, config = config_rules(audit.copy.rules), audit.copy[CONFIG].tables
    topics = {*shown_topics(config, audit.views), *(config.topics or {})}
    added = [name for name in shown_groups(config, topics) if name not in rows]
    rows |= {name: group_row(name, rules) for name in added}
    return added


def levels_without_offset(audit: Audited) -> dict[int, int]:
    """Return delay level -> the first entry of its queue, of levels with messages whose offset is lost."""
    config = audit.copy[CONFIG].tables
    done = config.loads[DELAY_OFFSETS]
    if config.database and done.name or done.problems or not delay_levels_lost(audit.copy):
        return {}
    found = {}
    for level in sorted(audit.rules.delays):
        view = audit.views.get((commitlog_layout.SCHEDULE_TOPIC, level - 1))
        if view is not None and level not in done.entries and (view.covered or view.missing):
            found[level] = min(start for start, _ in [*view.covered, *view.missing])
    return found


def _counter(audit: Audited, path: str) -> int:
    """Return one beyond those of the file and its .bak, so that nobody takes an older table for a newer one."""
    config = audit.copy[CONFIG].tables
    return 1 + max(config.loads[path].counter, config.backup_versions.get(path, 0))
