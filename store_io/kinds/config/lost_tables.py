"""The checks of config/: tables that a start takes from a .bak, begins without, or holds less of than another form shows.

Also damaged files, and offsets that a start leaves beyond the end of their queue (config.md 2, 6, 7, 8).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rows import FROM_VERSION, Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.times import time_text
from store_io.base.wording import count_text
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    DATABASE_TABLES,
    DELAY_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    TABLE_NOUNS,
    TOPICS,
    config_rules,
)
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.config.config_reader import BACKUP, Load, StoreConfig
from store_io.kinds.config.offsets_beyond import beyond_findings
from store_io.kinds.config.other_forms import FullerForm
from store_io.kinds.config.table_places import all_places, setting_of
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import OpenedCopy
from store_io.wording.refusals import refusal_cause

_MAIN = (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS)
_MEANING = {
    TOPICS: "a start knows no topic: clients cannot find their queues",
    GROUPS: "a start knows no group: each comes back with default settings, or not at all",
    CONSUMER_OFFSETS: "a start knows no consumer's offset: groups get all messages again, or skip to the end",
    DELAY_OFFSETS: "a start begins each delay level at its queue's first entry",
}
_NOT_TAKEN = severity_in(Code.CONFIG_DAMAGED, Case.NOT_TAKEN)
_MEANING[LMQ_OFFSETS] = _MEANING[CONSUMER_OFFSETS]


def damaged_files(evidence: Evidence) -> list[Finding]:
    """Return the findings on files that are not as a broker writes them."""
    return evidence.copy[CONFIG].tables.findings


def offsets_after_start(evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings on offsets beyond the end that their queue has after a start."""
    return beyond_findings(evidence, evidence.copy[CONFIG].tables)


def files_not_judged(evidence: Evidence, names: list[str]) -> list[str]:
    """Return the names and those of files that a start reads beside tables, queues and log."""
    return [*evidence.copy[CONFIG].start_files.names, *names]


def lost_tables(evidence: Evidence) -> list[Finding]:
    """Return findings on files of config/, whatever their content means for single topics."""
    config = evidence.copy[CONFIG].tables
    found = []
    for path, done in config.loads.items():
        held, fuller = config.held.get(path), evidence.copy[CONFIG].other_forms.fuller.get(path)
        if held is not None and held.damaged is not None and not held.refusal:
            where, reason = held.damaged
            message = f"{where}: bad bytes ({reason}): a start takes the entries before them alone, and {_MEANING[path]}"
            found.append(Finding(Code.CONFIG_TABLE_LOST, where, message=message))
        if done.problems or done.refuses or evidence.was_not_opened(path):
            continue
        of_backup = done.name.endswith(BACKUP)
        if of_backup:
            found.append(_backup_taken(evidence, path, done, fuller))
        if path == LMQ_OFFSETS and config.rules.skips_light_offsets:
            found += _skipped(evidence, done, fuller)
        elif fuller is not None:
            found.append(_fewer(evidence, path, fuller))
        elif path in _MEANING and not of_backup and is_lost(config, path):
            severity = severity_in(Code.CONFIG_TABLE_LOST, Case.NEW_STORE, not _in_use(evidence))
            if config.database and path in DATABASE_TABLES:
                folder = config.held[path].folder
                message, step = f"{folder}/: missing, and {_MEANING[path]}", Advice(Step.COPY_DATABASE, ("", folder))
                found.append(Finding(Code.CONFIG_TABLE_LOST, folder, severity=severity, message=message, next=step))
            else:
                message = f"{path}: {_state(done)}, and {_MEANING[path]}"
                found.append(Finding(Code.CONFIG_TABLE_LOST, path, *evidence.copy.entry_range(path), severity, message=message))
    return [*found, *_older_file(evidence), *_useless_backups(evidence), *_opened_databases(evidence)]


def _fewer(evidence: Evidence, path: str, fuller: FullerForm) -> Finding:
    """Return entries that another form shows and a start does not hold."""
    copy, form = evidence.copy, fuller.form
    named = evidence.request.broker_conf is not None or not fuller.other_setting
    severity = severity_in(Code.CONFIG_TABLE_LOST, Case.SHOWN)
    if copy.rules.is_slave or not named:  # its master sends it the tables; its own settings may be others
        begins_empty = bool(copy[CONFIG].tables.loads[path].left_out) or is_lost(copy[CONFIG].tables, path)
        severity = severity_in(Code.CONFIG_TABLE_LOST, Case.SENT_BY_MASTER, not begins_empty)
    held = copy[CONFIG].tables.held.get(path)
    reads = f"{held.folder}/" if held is not None else copy[CONFIG].tables.loads[path].name or path
    when = f", of {time_text(form.time_ms)} by its dataVersion," if form.time_from == FROM_VERSION else ""
    message = f"a start begins {_without(path, fuller)} {form.name}{when} shows: it reads {reads}"
    file = form.name if copy[CONFIG].tables.database and form.name.removesuffix(BACKUP) == path else path
    step = _way_back(copy, path, fuller) if named else Advice(Step.NAME_CONF)
    count = fuller.lacking + fuller.older
    return Finding(
        Code.CONFIG_TABLE_LOST, file, *evidence.copy.entry_range(file), severity, count=count, message=message, next=step
    )  # fmt: skip


def _without(path: str, fuller: FullerForm) -> str:
    """Return the words on what a start does not hold of a form, up to the form's name."""
    noun = TABLE_NOUNS[path]
    if not fuller.older:
        return f"without {count_text(fuller.lacking, noun)} that"
    older = f"with {count_text(fuller.older, f'smaller {noun}')} than"
    return f"without {count_text(fuller.lacking, noun)} and {older}" if fuller.lacking else older


def _skipped(evidence: Evidence, done: Load, fuller: FullerForm | None) -> Iterator[Finding]:
    """Yield offsets that the copy shows, under the release that takes none from the file in which it looks for them."""
    name, count = done.name, done.left_out
    if fuller is not None and fuller.lacking > count:
        name, count = fuller.form.name, fuller.lacking
    if count:
        release, severity = (
            evidence.request.release,
            severity_in(Code.CONFIG_TABLE_LOST, Case.SHOWN, not evidence.copy.rules.is_slave),
        )
        message = (
            f"a start begins without {count_text(count, 'offset')} that {name} shows: {release} takes none from {LMQ_OFFSETS}"
        )
        yield Finding(
            Code.CONFIG_TABLE_LOST,
            name,
            *evidence.copy.entry_range(name),
            severity,
            count=count,
            message=message,
            next=Advice(Step.OLDER_LIGHT_OFFSETS),
        )


def _way_back(copy: OpenedCopy, path: str, fuller: FullerForm) -> Advice:
    """Return the step by which a start holds these entries.

    It names the settings with which a start takes the form, or the ways to take the entries over.
    """
    config, form = copy[CONFIG].tables, fuller.form
    if not fuller.other_setting:
        return Advice(Step.TAKE_FORM, (form.name,))
    setting = setting_of(form.name, path, copy.rules)
    if not config.database:
        if path == LMQ_OFFSETS and form.name.startswith(CONSUMER_OFFSETS):
            return Advice(Step.TAKE_OVER_OR_COPY, (setting, form.name, path))
        exported = form.name.removesuffix("/") in {each.folder for each in all_places(path)[:1]}
        return Advice(Step.TAKE_OVER_OR_EXPORT if exported else Step.TAKE_OVER, (setting,))
    if config.imports_files and form.name.removesuffix(BACKUP) == path:
        copied = "" if form.name == path else form.name
        return Advice(Step.RAISE_COUNTER, (setting, copied, path, config.held[path].counter + 1))
    return Advice(Step.COPY_DATABASE, (setting, config.held[path].folder))


def is_lost(config: StoreConfig, path: str) -> bool:
    """Say whether a start begins without this table although there was one."""
    done = config.loads.get(path)
    if done is None or done.problems or done.refuses:
        return False
    if config.database and path in DATABASE_TABLES:
        return _is_gone(config, path)
    if done.hollow or done.unusable:
        return True
    return not done.name and not done.entries and _was_there(config, path)


def _is_gone(config: StoreConfig, path: str) -> bool:
    """Say whether a database that a broker made is missing: a broker makes those of all tables at its first start. One that kept
    its tables in files before has these still."""
    done, others = config.loads[path], [config.loads[each] for each in DATABASE_TABLES if each in config.loads]
    held = config.held.get(path)
    if held is None or held.present or done.entries or done.left_out:
        return False
    if any(each.present for each in config.held.values()):
        return True
    return not any(each.files for each in others) and any(each.name for each in config.loads.values())


def _was_there(config: StoreConfig, path: str) -> bool:
    """Say whether a file that is missing with its .bak once existed.

    A file that a broker writes late, or never, does not count: the groups' file comes with the first group, the delay levels'
    with the first delivery.
    """
    others = [each for each in _MAIN if each != path and each in config.loads and config.loads[each].name]
    if path == TOPICS:
        return GROUPS in others and len(others) > 1
    if path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        return TOPICS in others and bool(config.groups.keys() - config.built_in_groups)
    return path == GROUPS and TOPICS in others and any(group not in config.built_in_groups for group, _, _ in config.offsets)


def _backup_taken(evidence: Evidence, path: str, done: Load, fuller: FullerForm | None) -> Finding:
    rules = config_rules(evidence.copy.rules)
    overwritten = not rules.backup_is_moved and evidence.copy.listing.is_file(path)
    step = Advice(Step.COPY_BACKUP_FIRST) if overwritten else None
    if fuller is not None:  # the .bak is not the best form that the copy has
        step = _way_back(evidence.copy, path, fuller)
    message = f"{path}: {_state(done)}, so a start takes {done.name}, an older state, and only its log says so"
    return Finding(Code.CONFIG_BACKUP_TAKEN, path, *evidence.copy.entry_range(path), message=message, next=step)


def _state(done: Load) -> str:
    if done.hollow:
        return "what is in it is taken, but holds no table"
    if done.bad and not done.bad[0].name.endswith(BACKUP):
        return "cannot be used"
    if any(not name.endswith(BACKUP) for name in done.empty):
        return "empty"
    return "missing"


def _older_file(evidence: Evidence) -> Iterator[Finding]:
    """Yield a table of topics with a lower version than its own .bak: the file was put back. Other tables may count anew."""
    version = evidence.copy[CONFIG].tables.backup_versions.get(TOPICS)
    done = evidence.copy[CONFIG].tables.loads.get(TOPICS)
    if done is not None and done.name == TOPICS and version is not None and version > done.counter and not done.hollow:
        message = f"{TOPICS}: version {done.counter}, its .bak has {version}: an older file was put in its place"
        place = evidence.copy.entry_range(TOPICS)
        yield Finding(Code.CONFIG_OLDER, TOPICS, *place, expected=str(version), actual=str(done.counter), message=message)


def _useless_backups(evidence: Evidence) -> Iterator[Finding]:
    for name, why in evidence.copy[CONFIG].other_forms.unread.items():
        message = f"{name}: a start does not take it, and what it shows is not known: {why}"
        yield Finding(Code.CONFIG_DAMAGED, name.rstrip("/"), severity=_NOT_TAKEN, message=message)
    for name in evidence.copy[CONFIG].tables.useless_backups:
        message = f"{name}: cannot be used; a start takes the file itself and does not look at it"
        yield Finding(Code.CONFIG_DAMAGED, name, *evidence.copy.entry_range(name), _NOT_TAKEN, message=message)


def _opened_databases(evidence: Evidence) -> Iterator[Finding]:
    """Yield what is wrong with databases besides those of tables; a refused start is a finding of its own."""
    for state in evidence.copy[CONFIG].start_files.databases:
        rule = state.rule
        if state.damaged is not None:
            path, reason = state.damaged
            message = f"{path}: bad bytes ({reason}) among the {rule.entries} of {rule.folder}/; {state.count:,} could be read."
            severity = severity_in(Code.OPENED_DATABASE_DAMAGED, Case.NOT_TAKEN, not rule.opens)
            yield Finding(Code.OPENED_DATABASE_DAMAGED, path, severity=severity, actual=reason, message=message)
        elif state.refusal and not rule.opens:
            severity = severity_in(Code.OPENED_DATABASE_DAMAGED, Case.NOT_TAKEN)
            yield Finding(
                Code.OPENED_DATABASE_DAMAGED, rule.folder, severity=severity, message=f"{refusal_cause(state.refusal)}."
            )
        if state.count and not rule.opens:
            message = f"{rule.folder}/: holds {state.count:,} {rule.entries}; a start reads them only with {rule.setting}."
            yield Finding(Code.OPENED_DATABASE_UNUSED, rule.folder, message=message)
        if rule.opens and not state.there and _in_use(evidence):
            message = f"{rule.folder}/: missing; a start makes an empty database, without any {rule.entries}."
            yield Finding(Code.OPENED_DATABASE_GONE, rule.folder, message=message)


def _in_use(evidence: Evidence) -> bool:
    """Say whether the store is more than a new one: it holds messages, or config/ knows topics, groups or offsets."""
    config = evidence.copy[CONFIG].tables
    own = (config.topics or {}).keys() - config.built_in_topics or config.groups.keys() - config.built_in_groups
    return bool(own or config.offsets or config.delay_offsets or any(s.runs.size for s in evidence.segments))
