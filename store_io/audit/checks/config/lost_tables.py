"""Tables that a start takes from a .bak, or begins without (docs/config.md 2, 6, 7, 8)."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.rows import NOTE, Finding
from store_io.audit.evidence import Evidence
from store_io.formats.config_reader import BACKUP, Load, StoreConfig
from store_io.rules.config.files import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS
from store_io.rules.config.reading import config_rules

_MAIN = (TOPICS, GROUPS, CONSUMER_OFFSETS, LMQ_OFFSETS, DELAY_OFFSETS)
_MEANING = {
    TOPICS: "a start knows no topic: clients cannot find their queues",
    GROUPS: "a start knows no group: each comes back with default settings, or not at all",
    CONSUMER_OFFSETS: "a start knows no consumer's offset: groups get all messages again, or skip to the end",
    DELAY_OFFSETS: "a start begins each delay level at its queue's first entry",
}
_MEANING[LMQ_OFFSETS] = _MEANING[CONSUMER_OFFSETS]


def lost_tables(evidence: Evidence) -> list[Finding]:
    """Findings on files of config/, whatever their content means for single topics."""
    config = evidence.copy.config
    found = []
    for path, done in config.loads.items():
        held = config.held.get(path)
        if done.left_out:
            found.append(_left_out(evidence, path, done, held.folder if held is not None else config.database))
        if held is not None and held.damaged is not None and not held.refusal:
            where, reason = held.damaged
            message = f"{where}: bad bytes ({reason}): a start takes the entries before them alone, and {_MEANING[path]}"
            found.append(Finding("config_table_lost", where, message=message))
        if done.problems or done.refuses or config.database and path in _MAIN[:4]:
            continue
        if done.name.endswith(BACKUP):
            found.append(_backup_taken(evidence, path, done))
        elif path in _MEANING and is_lost(config, path):
            severity = "" if _in_use(evidence) else NOTE
            message = f"{path}: {_state(done)}, and {_MEANING[path]}"
            found.append(Finding("config_table_lost", path, *_range(evidence, path), severity, message=message))
    return [*found, *_older_file(evidence), *_useless_backups(evidence), *_opened_databases(evidence)]


def _left_out(evidence: Evidence, path: str, done: Load, folder: str) -> Finding:
    """A table that no database holds yet, and whose file is not taken into a new one (docs/config.md 6)."""
    config = evidence.copy.config
    if not config.imports_files:
        name = done.files[0]
        return Finding(
            "config_table_lost",
            name,
            *_range(evidence, name),
            message=f"{name}: a start takes none of its {done.left_out:,} entries: it reads {folder}/ alone, which is not there",
            next=f"Before a start copy {folder}/ of this broker back, or make topics and groups again with mqadmin after it;"
            " where the broker never kept its tables there, correct its broker.conf.",
        )
    missing = done.files[0] != path
    name, why = (path + BACKUP, f"{path} is missing") if missing else (path, "the counter in its dataVersion is 0")
    copied = f"copy {name} to {path}, and " if missing else ""
    return Finding(
        "config_table_lost",
        name,
        *_range(evidence, name),
        message=f"{name}: a start takes none of its {done.left_out:,} entries into {folder}/, as {why}",
        next=f"Before a start {copied}set the counter in the dataVersion of {path} to 1: a start takes the file in then alone.",
    )


def is_lost(config: StoreConfig, path: str) -> bool:
    """Whether a start begins without this table although there was one."""
    done = config.loads.get(path)
    if done is None or done.problems or done.refuses:
        return False
    if done.hollow or done.unusable:
        return True
    return not done.name and not done.entries and _was_there(config, path)


def _was_there(config: StoreConfig, path: str) -> bool:
    """Whether a file that is missing with its .bak once was there. What a broker writes late, or never, does not count: the
    groups' file comes with the first group, the delay levels' with the first delivery."""
    others = [each for each in _MAIN if each != path and each in config.loads and config.loads[each].name]
    if path == TOPICS:
        return GROUPS in others and len(others) > 1
    if path in (CONSUMER_OFFSETS, LMQ_OFFSETS):
        return TOPICS in others and bool(config.groups.keys() - config.built_in_groups)
    return path == GROUPS and TOPICS in others and any(group not in config.built_in_groups for group, _, _ in config.offsets)


def _backup_taken(evidence: Evidence, path: str, done: Load) -> Finding:
    rules = config_rules(evidence.copy.rules)
    step = "Copy the .bak over the file before a start"
    if not rules.backup_is_moved and evidence.copy.listing.is_file(path):
        step += ": the first write after a start puts the damaged file over this .bak, the only good one"
    message = f"{path}: {_state(done)}, so a start takes {done.name}, an older state, and only its log says so"
    return Finding("config_backup_taken", path, *_range(evidence, path), message=message, next=f"{step}.")


def _state(done: Load) -> str:
    if done.hollow:
        return "what is in it is taken, but holds no table"
    if done.bad and not done.bad[0].name.endswith(BACKUP):
        return "cannot be used"
    if any(not name.endswith(BACKUP) for name in done.empty):
        return "empty"
    return "missing"


def _older_file(evidence: Evidence) -> Iterator[Finding]:
    """A table of topics with a lower version than its own .bak: the file was put back. Other tables may count anew."""
    version = evidence.copy.config.backup_versions.get(TOPICS)
    done = evidence.copy.config.loads.get(TOPICS)
    if done is not None and done.name == TOPICS and version is not None and version > done.counter and not done.hollow:
        message = f"{TOPICS}: version {done.counter}, its .bak has {version}: an older file was put in its place"
        yield Finding("config_older", TOPICS, *_range(evidence, TOPICS), expected=str(version), actual=str(done.counter),
                      message=message)  # fmt: skip


def _useless_backups(evidence: Evidence) -> Iterator[Finding]:
    for name in evidence.copy.config.useless_backups:
        message = f"{name}: cannot be used; a start takes the file itself and does not look at it"
        yield Finding("config_damaged", name, *_range(evidence, name), NOTE, message=message)


def _opened_databases(evidence: Evidence) -> Iterator[Finding]:
    """Yields what is wrong with databases besides those of tables; a refused start is a finding of its own."""
    for state in evidence.copy.start_files.databases:
        rule = state.rule
        if state.damaged is not None:
            path, reason = state.damaged
            message = f"{path}: bad bytes ({reason}) among the {rule.entries} of {rule.folder}/; {state.count:,} could be read."
            yield Finding("opened_database_damaged", path, severity="" if rule.opens else NOTE, actual=reason, message=message)
        elif state.refusal and not rule.opens:
            yield Finding("opened_database_damaged", rule.folder, severity=NOTE, message=f"{state.refusal}.")
        if state.count and not rule.opens:
            message = f"{rule.folder}/: holds {state.count:,} {rule.entries}; a start reads them only with {rule.setting}."
            yield Finding("opened_database_unused", rule.folder, message=message)
        if rule.opens and not state.there and _in_use(evidence):
            message = f"{rule.folder}/: missing; a start makes an empty database, without any {rule.entries}."
            yield Finding("opened_database_gone", rule.folder, message=message)


def _in_use(evidence: Evidence) -> bool:
    """Whether the store is more than a new one: it holds messages, or config/ knows topics, groups or offsets."""
    config = evidence.copy.config
    own = (config.topics or {}).keys() - config.built_in_topics or config.groups.keys() - config.built_in_groups
    return bool(own or config.offsets or config.delay_offsets or any(s.runs.size for s in evidence.segments))


def _range(evidence: Evidence, path: str) -> tuple[int | None, int | None]:
    return evidence.copy.entry_range(path)
