"""The files below config/, as an audit asks for them, and the tables that the managers hold after the load (config.md).

Which topics a broker knows decides what it loads and dispatches, so this kind is opened before all others. The tables are
plan.json's `broker.config`, and config.json. Source: ScheduleMessageService.correctDelayOffset (config.md 1, 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from schemas.advice import Advice, Refusal, RefusalKind, Step
from schemas.layouts import commitlog_layout
from schemas.layouts.store_names import BATCH_QUEUES
from schemas.outcome import Outcome
from schemas.rows import ConfigTables
from schemas.start_effect import ConfigLoad, StartEffect
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.built_in_topics import is_asked_for
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    GROUPS,
    LMQ_OFFSETS,
    TIMER_COUNTERS,
    TOPICS,
    config_rules,
)
from store_io.kinds.config.config_reader import StoreConfig, read_config
from store_io.kinds.config.offsets_beyond import offsets_beyond
from store_io.kinds.config.other_forms import OtherForms, other_forms
from store_io.kinds.config.start_files import StartFiles, refusal_step, start_files
from store_io.model.evidence import Evidence
from store_io.model.kind import Cure, Kind, Moment, Opening, Refusals
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import ByteSource, name_of
from store_io.source.store_dir import StoreListing

MAX_KEY_BYTES = 80  # of a key in a finding


@dataclass(frozen=True)
class ConfigFiles:
    """The files of config/ in a copy.

    tables: what the release's managers hold after their load.
    start_files: the files over which a start may end, and those that nobody judges.
    """

    source: ByteSource
    listing: StoreListing
    rules: BrokerRules
    tables: StoreConfig = field(default_factory=StoreConfig)
    start_files: StartFiles = field(default_factory=StartFiles)

    @cached_property
    def other_forms(self) -> OtherForms:
        """Return forms of tables that a start does not take, and that show more, or cannot be read."""
        return other_forms(self)


class Config(Kind[ConfigFiles, None, ConfigTables]):
    """Topics, groups and offsets: small files, which need no task. The view is what the managers hold after a start's load."""

    name = "config"

    def open(self, opening: Opening) -> ConfigFiles:
        """Return the tables. What recovery and loading ask for goes to `opening`."""
        source, listing, rules = opening.source, opening.listing, opening.rules
        tables = read_config(source, listing, rules)
        opening.gaps.add(tables.problems)
        opening.topics = (tables.topics or {}).keys()
        opening.batch_topics, opening.compacted_topics = _batch_topics(opening, tables), tables.compacted_topics
        opening.offsets, opening.delay_offsets = tables.offsets, tables.delay_offsets
        # Tables in a database that is not in the copy say of no topic that it was deleted.
        folder = tables.database
        if not folder or any(entry.path.startswith(f"{folder}/") for entry in listing.files):
            opening.known_topics = tables.known_topics
        if opening.known_topics is not None:
            opening.write_queues = {name: int(topic["writeQueueNums"]) for name, topic in (tables.topics or {}).items()}
        starting = start_files(source, listing, tables, rules)
        opening.gaps.add(starting.broken)
        return ConfigFiles(source, listing, rules, tables, starting)

    def refusals(self, facts: ConfigFiles) -> Refusals:
        return {Moment.BEFORE_LOAD: facts.start_files.refusal, Moment.IN_START: facts.start_files.late_refusal}

    def cure(self, copy: OpenedCopy, refusal: Refusal) -> Cure | None:
        """Return the step against a refusal over a table, over a database, or over a topic that no table names; else None."""
        tables, starting = copy[self].tables, copy[self].start_files
        held = next((held for held in tables.held.values() if held.refusal == refusal), None)
        if held is not None:
            key = f"key {held.refused_key[:MAX_KEY_BYTES].hex(' ')}" if held.refused_key else None
            return Cure(Advice(Step.RESTORE_TABLES, (held.folder,)), key)
        stopping = next((state for state in starting.databases if state.stops and state.refusal == refusal), None)
        if stopping is not None:
            return Cure(stopping.next_step)
        if refusal.kind == RefusalKind.TOPIC_NOT_NAMED:
            return Cure(Advice(Step.RESTORE_TOPICS))
        if refusal.path == TIMER_COUNTERS:
            return Cure(Advice(Step.REMOVE_COUNTERS, (refusal.path,)))
        if refusal.path in tables.loads:
            late = bool(starting.late_refused_by and not starting.refused_by)
            return Cure(refusal_step(tables.loads[refusal.path], copy.rules, late))
        return None

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        stopping = next((state for state in copy[self].start_files.databases if state.stops), None)
        return stopping.next_step if stopping is not None else None

    def view(self, evidence: Evidence) -> ConfigTables:
        return config_tables(evidence, evidence.copy[self].tables, evidence.copy[self].start_files)

    def plan_inputs(self, copy: OpenedCopy) -> Iterator[str]:
        return (entry.path for entry in copy.tree.children("config") if entry.kind == "file")

    def add_to_effect(self, evidence: Evidence, effect: StartEffect) -> StartEffect:
        files = evidence.copy[self]
        return replace(effect, config=config_load(evidence[self], files.tables, files.start_files))

    def add_to_outcome(self, evidence: Evidence, outcome: Outcome) -> Outcome:
        tables, loss = evidence.copy[self].tables, outcome.loss
        if outcome.effect is not None:
            beyond = offsets_beyond(evidence, tables)
            loss = replace(loss, groups=beyond.groups, delay_levels=beyond.delays)
        holds = replace(outcome.holds, config=evidence[self], config_database=tables.database)
        return replace(outcome, holds=holds, loss=loss)


CONFIG = Config()


def _batch_topics(opening: Opening, tables: StoreConfig) -> frozenset[str]:
    """Return BatchCQ topics by config/topics.json; without that file those with a folder in batchconsumequeue/ (contract.md).

    If the file exists but cannot be used, the release has no topics.
    """
    if not opening.rules.batch_queues or opening.rules.rocksdb_queues:
        return frozenset()
    if tables.topics is not None or any(opening.listing.is_file(TOPICS + end) for end in ("", ".bak")):
        return tables.batch_topics
    return frozenset(name_of(e.path) for e in opening.tree.children(BATCH_QUEUES) if e.kind == "directory")


def config_tables(evidence: Evidence, config: StoreConfig, starting: StartFiles) -> ConfigTables:
    """Return the tables; those of loaders that a refused start does not reach are empty."""
    reached = _reached(config, starting)
    offsets = config.offsets if {CONSUMER_OFFSETS, LMQ_OFFSETS} & reached else {}
    return ConfigTables(
        topics=(config.topics or {}) if TOPICS in reached else {},
        groups=config.groups if GROUPS in reached else {},
        offsets=offsets,
        delay_offsets=_delay_offsets(evidence, config) if DELAY_OFFSETS in reached else {},
        built_in_topics=config.built_in_topics,
        built_in_groups=config.built_in_groups,
        lists_built_in=config.lists_built_in,
        absent=_absent(evidence, config),
    )


def _absent(evidence: Evidence, config: StoreConfig) -> str:
    """Return the name of the folder or file of config/ that was not copied. "" if nothing is known to be absent.

    A broker writes the topics before a topic's first message, and the other tables later. A slave gets them from its master.
    """
    copy, prediction = evidence.copy, evidence.prediction
    if not copy.listing.has_config:
        return "config/"
    if copy.rules.is_slave or not config.is_absent(TOPICS) or prediction is None or prediction.after_dispatch is None:
        return ""
    built_in = config.built_in_topics
    queues = prediction.after_dispatch.queues.items()
    own = (topic for (topic, _), queue in queues if queue.max_offset > 0 and is_asked_for(topic) and topic not in built_in)
    return TOPICS if any(own) else ""


def config_load(tables: ConfigTables, config: StoreConfig, starting: StartFiles) -> ConfigLoad:
    """Return what the loaders take, and at which file a start ends."""
    reached = _reached(config, starting)
    return ConfigLoad(
        name_of(starting.refused_by or starting.late_refused_by),
        starting.refusal or starting.late_refusal,
        {name_of(path): _read(config, path, path in reached) for path in sorted(config.loads)},
        sum(1 for _ in tables.listed_topics),
        sum(1 for _ in tables.listed_groups),
        len(tables.offsets),
    )


def _read(config: StoreConfig, path: str, reached: bool) -> str | None:
    name = config.read_from.get(path, "") if reached else ""
    return name_of(name) or None


def _reached(config: StoreConfig, starting: StartFiles) -> set[str]:
    """Return files whose loader a start comes to, and that it takes."""
    found = set()
    for path in config.loads:
        if path in (starting.refused_by, starting.late_refused_by):
            break
        found.add(path)
    return found


def _delay_offsets(evidence: Evidence, config: StoreConfig) -> dict[int, int]:
    """Return level -> offset, set into its queue by a release that does that."""
    copy, prediction = evidence.copy, evidence.prediction
    held = config.delay_offsets
    if prediction is None or prediction.after_load is None or not config_rules(copy.rules).clamps_delay_offsets:
        return held
    queues = prediction.after_load.queues
    found = {}
    for level, offset in held.items():
        queue = queues.get((commitlog_layout.SCHEDULE_TOPIC, level - 1))
        low, high = (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)
        found[level] = min(max(offset, low), high) if level in copy.rules.delays else offset
    return found
