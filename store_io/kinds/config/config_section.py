"""The tables that the managers of config/ hold after the load: plan.json's `broker.config`, and config.json.

Source: ScheduleMessageService.correctDelayOffset (config.md 1, 2).
"""

from __future__ import annotations

from schemas import commitlog_layout
from schemas.rows import ConfigTables, Row
from store_io.broker.settings.config_rules import CONSUMER_OFFSETS, DELAY_OFFSETS, GROUPS, LMQ_OFFSETS, TOPICS, config_rules
from store_io.kinds.config.built_in_topics import is_asked_for
from store_io.kinds.config.config_reader import StoreConfig
from store_io.kinds.config.start_files import StartFiles
from store_io.model.evidence import Evidence
from store_io.source.byte_source import name_of
from store_io.wording.refusals import refusal_sentence


def config_tables(evidence: Evidence, config: StoreConfig, starting: StartFiles) -> ConfigTables:
    """The tables; those of loaders that a refused start does not reach are empty."""
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
    """Return the name of the folder or file of config/ that was not copied; "" if nothing is known to be absent.

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


def config_row(tables: ConfigTables, config: StoreConfig, starting: StartFiles) -> Row:
    """plan.json's `broker.config`."""
    reached = _reached(config, starting)
    by = starting.refused_by or starting.late_refused_by
    refusal = starting.refusal or starting.late_refusal
    return {
        "starts": not by,
        "refused_by": name_of(by) if by else None,
        "refusal": str(refusal_sentence(refusal)) if refusal is not None else None,
        "read": {name_of(path): _read(config, path, path in reached) for path in sorted(config.loads)},
        "topics": sum(1 for _ in tables.listed_topics),
        "groups": sum(1 for _ in tables.listed_groups),
        "offsets": len(tables.offsets),
    }


def _read(config: StoreConfig, path: str, reached: bool) -> str | None:
    name = config.read_from.get(path, "") if reached else ""
    return name_of(name) or None


def _reached(config: StoreConfig, starting: StartFiles) -> set[str]:
    """Files whose loader a start comes to, and that it takes."""
    found = set()
    for path in config.loads:
        if path in (starting.refused_by, starting.late_refused_by):
            break
        found.add(path)
    return found


def _delay_offsets(evidence: Evidence, config: StoreConfig) -> dict[int, int]:
    """Level -> offset, set into its queue by a release that does that."""
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
