"""Which files of config/ a repair replaces, by what, and why: the best of the file, its .bak and what the copy shows.

A file that the release reads as it was written stays. Source: ConfigManager.load, loadBak and persist (docs/config.md 2, 4, 9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas import commitlog_layout
from schemas.rows import Row
from store_io.audit.checks.config.against_queues import delay_levels_lost, table_is_wrong
from store_io.audit.checks.config.lost_tables import is_lost
from store_io.audit.queue_views import QueueView
from store_io.base.wording import count_text
from store_io.formats.config.written import config_text, group_row, topic_row, version_row
from store_io.formats.config_reader import BACKUP, Load, held_by, read_bounded
from store_io.repair.config.shown_tables import held_queues, shown_groups, shown_topics
from store_io.repair.repair_audit import Audited
from store_io.rules.config.files import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS
from store_io.rules.config.reading import config_rules

LOG = "log"  # what a file was made of, beside names of files
MOST_NAMES = 1000
_UNPROVEN = {
    TOPICS: "of added topics: queues beyond the last one with messages, permissions, attributes; topics without messages",
    GROUPS: "the settings of groups: those that are added have a broker's defaults",
    CONSUMER_OFFSETS: "what groups had consumed: nothing else in a store says it, so they begin as new groups do",
    DELAY_OFFSETS: "deliveries whose copies are no longer in the log: those messages come again",
}
_UNPROVEN[LMQ_OFFSETS] = _UNPROVEN[CONSUMER_OFFSETS]
_OLDER = "what changed after its .bak was written"
_OTHER = "what it held: a start begins without it"


@dataclass
class ConfigChange:
    """One file, and what it is replaced by. data: its new content; None: it is removed.

    taken_from: the files that give entries, and `LOG`.  entries: how many it has then.  added: names that no file had.
    unproven: what could not be found out, a clause.
    """

    path: str
    data: bytes | None
    reason: str
    taken_from: list[str] = field(default_factory=list)
    entries: int = 0
    added: list[str] = field(default_factory=list)
    unproven: str = ""

    @property
    def row(self) -> Row:
        """As NEW.repair.json has it."""
        return {
            "file": self.path, "removed": self.data is None, "reason": self.reason, "taken_from": self.taken_from,
            "entries": self.entries, "added": self.added[:MOST_NAMES], "added_count": len(self.added), "unproven": self.unproven,
        }  # fmt: skip


def config_changes(audit: Audited, delivered: Mapping[int, int]) -> Iterator[ConfigChange]:
    """The changes, file by file. Raises StoreError where a file that is to be taken cannot be read.

    delivered: delay level -> the position after the last message of its queue whose delivery the log shows.
    """
    config = audit.config
    if config.database:
        return
    for path, done in config.loads.items():
        if done.problems:
            continue
        changes = list(_of_file(audit, path, done, delivered))
        yield from changes
        if not changes and path + BACKUP in config.useless_backups:
            data = read_bounded(audit.copy.source, path)
            yield ConfigChange(path + BACKUP, data, "it cannot be used; the file itself is good", [path])


def _of_file(audit: Audited, path: str, done: Load, delivered: Mapping[int, int]) -> Iterator[ConfigChange]:
    change = _change(audit, path, done, delivered)
    if change is None:
        return
    if change.data is not None or audit.copy.listing.is_file(path):
        yield change
    backup = path + BACKUP
    if audit.copy.listing.is_file(backup) and backup not in change.taken_from:  # else the next fault finds nothing good
        yield ConfigChange(backup, change.data, "it cannot be used either", change.taken_from, change.entries)


def _change(audit: Audited, path: str, done: Load, delivered: Mapping[int, int]) -> ConfigChange | None:
    state = _state(audit, path, done)
    if path == TOPICS:
        return _topics(audit, done, state)
    if path == GROUPS:
        return _groups(audit, done, state) if state else None
    if path == DELAY_OFFSETS:
        return _delays(audit, done, state, delivered)
    if not state:
        return None
    backup = _good_backup(done)
    if backup:
        data = read_bounded(audit.copy.source, backup)
        return ConfigChange(path, data, state, [backup], len(done.entries), unproven=_OLDER)
    if path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        return ConfigChange(path, _text(audit, "offsetTable", {}, done.counter), state, unproven=_UNPROVEN[path])
    return ConfigChange(path, None, state, unproven=_OTHER)


def _state(audit: Audited, path: str, done: Load) -> str:
    """Why the file is to be replaced, a clause; "" where a start takes what the broker had."""
    if done.refuses:
        return "neither the file nor its .bak can be used, so that the release does not start"
    if path in (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS) and not any(each.files for each in audit.config.loads.values()):
        return "the copy has no topics, groups or offsets in config/"
    if is_lost(audit.config, path):
        return "a start begins without this table"
    if done.name.endswith(BACKUP):
        return "a start takes its .bak, which the next write may replace by this file"
    if _is_older(audit, path, done):
        return "it is older than its .bak"
    return ""


def _good_backup(done: Load) -> str:
    """The .bak where a start would take it, else ""."""
    return done.name if done.name.endswith(BACKUP) and not done.hollow else ""


# ---- tables ------------------------------------------------------------------------------------------------------------


def _held(audit: Audited, path: str, done: Load) -> tuple[dict[str, Row], list[str]]:
    """(entries of the better of file and .bak, the files that give them). Of a file that the manager fails with after it has
    added its entries, these stay, and the .bak's are on top."""
    backup = path + BACKUP
    names: Sequence[str] = (path, backup)
    if done.name == path and not done.hollow:
        names = (backup,) if _is_older(audit, path, done) else (path,)
    found: dict[str, Row] = {}
    taken = []
    for name in names:
        rows = held_by(audit.copy.source, name, config_rules(audit.copy.rules)) if audit.copy.listing.is_file(name) else None
        if rows is not None:
            found |= rows
            taken.append(name)
    return found, taken


def _is_older(audit: Audited, path: str, done: Load) -> bool:
    """Whether it is older than a .bak that can be read."""
    version = audit.config.backup_versions.get(path)
    if path != TOPICS or done.name != path or version is None or version <= done.counter:
        return False
    return held_by(audit.copy.source, path + BACKUP, config_rules(audit.copy.rules)) is not None


def _topics(audit: Audited, done: Load, state: str) -> ConfigChange | None:
    held = held_queues(audit.views)
    if not state and not table_is_wrong(audit.copy, held):
        return None
    rules = config_rules(audit.copy.rules)
    rows, names = _held(audit, TOPICS, done)
    shown = shown_topics(audit.config, audit.views)
    added = []
    for name, topic in shown.items():
        if name not in rows:
            rows[name] = topic_row(name, topic.queues, topic.attributes, rules)
            added.append(name)
            continue
        if topic.queues > _queues(rows[name]):
            rows[name] = {**rows[name], "readQueueNums": topic.queues}
        if topic.attributes:
            rows[name] = {**rows[name], "attributes": {**(rows[name].get("attributes") or {}), **topic.attributes}}
    if not state and not added:
        return None
    text = _text(audit, "topicConfigTable", rows, _counter(audit, TOPICS))
    reason = state or "it does not name topics that have messages"
    sources = [*names, LOG] if added else names
    return ConfigChange(TOPICS, text, reason, sources, len(rows), added, _UNPROVEN[TOPICS])


def _queues(row: Row) -> int:
    numbers = [row.get("readQueueNums", 16), row.get("writeQueueNums", 16)]
    return max((int(number) for number in numbers if number is not None), default=0)


def _groups(audit: Audited, done: Load, state: str) -> ConfigChange:
    rules = config_rules(audit.copy.rules)
    rows, names = _held(audit, GROUPS, done)
    shown = shown_topics(audit.config, audit.views)
    added = [name for name in shown_groups(audit.config, {*shown, *(audit.config.topics or {})}) if name not in rows]
    rows |= {name: group_row(name, rules) for name in added}
    text = _text(audit, "subscriptionGroupTable", rows, _counter(audit, GROUPS))
    return ConfigChange(GROUPS, text, state, [*names, LOG] if added else names, len(rows), added, _UNPROVEN[GROUPS])


def _delays(audit: Audited, done: Load, state: str, delivered: Mapping[int, int]) -> ConfigChange | None:
    """Delay levels begin after the last message whose delivery is shown, else at their queue's first entry: what comes twice
    harms less than what never comes."""
    missing = levels_without_offset(audit)
    if not state and not missing:
        return None
    backup = _good_backup(done)
    levels = dict(done.entries)
    levels |= {level: max(first, delivered.get(level, 0)) for level, first in missing.items()}
    if backup and not missing:
        data = read_bounded(audit.copy.source, backup)
        return ConfigChange(DELAY_OFFSETS, data, state, [backup], len(levels), unproven=_UNPROVEN[DELAY_OFFSETS])
    text = _text(audit, "offsetTable", dict(sorted(levels.items())), done.counter)
    reason = state or f"{count_text(len(missing), 'level')} with messages without an offset"
    sources = [done.name] if done.name else []
    added = [f"level {level}: {levels[level]}" for level in missing]
    return ConfigChange(DELAY_OFFSETS, text, reason, [*sources, LOG], len(levels), added, _UNPROVEN[DELAY_OFFSETS])


def levels_without_offset(audit: Audited) -> dict[int, int]:
    """Delay level -> the first entry of its queue, of levels with messages whose offset is lost."""
    done = audit.config.loads[DELAY_OFFSETS]
    if audit.config.database and done.name or done.problems or not delay_levels_lost(audit.copy):
        return {}
    found = {}
    for level in sorted(audit.rules.delays):
        view = audit.views.get((commitlog_layout.SCHEDULE_TOPIC, level - 1))
        if view is not None and level not in done.entries and (view.covered or view.missing):
            found[level] = _first_entry(view)
    return found


def _first_entry(view: QueueView) -> int:
    return min(start for start, _ in [*view.covered, *view.missing])


# ---- texts -------------------------------------------------------------------------------------------------------------


def _counter(audit: Audited, path: str) -> int:
    """One beyond those of the file and its .bak, so that nobody takes an older table for a newer one."""
    return 1 + max(audit.config.loads[path].counter, audit.config.backup_versions.get(path, 0))


def _text(audit: Audited, table: str, rows: Mapping[Any, Any], counter: int) -> bytes:
    """A whole file. The time of its version is that of the log's last message, so that each run writes the same bytes."""
    rules = config_rules(audit.copy.rules)
    versioned = rules.attributes or table != "offsetTable"
    version = {"dataVersion": version_row(counter, audit.last_store_time, rules)} if versioned else {}
    return config_text({**version, table: rows}, rules)
