"""The part of a store's page about config/: which files a start takes, and what its managers then hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from jobs.report.pages.page import View
from schemas.rows import AuditOutcome, ConfigTables, Row

MAX_ROWS = 100


@dataclass(frozen=True)
class TakenFile:
    name: str
    taken: str


def config_view(outcome: AuditOutcome, tables: ConfigTables) -> View:
    """Return the data of config.html: the first entries of each table; config.json has all."""
    config: Row = (outcome.plan.get("broker") or {}).get("config") or {}
    own = {"topic": sum(1 for _ in tables.own_topics), "group": sum(1 for _ in tables.own_groups)}
    built_in = {"topic": len(tables.topics) - own["topic"], "group": len(tables.groups) - own["group"]}
    return {
        "config": config,
        "files": list(_files(config)),
        "own": own,
        "built_in": built_in if tables.lists_built_in else {},
        "topics": list(islice(tables.own_topics, MAX_ROWS)),
        "groups": [name for name, _ in islice(tables.own_groups, MAX_ROWS)],
        "offsets": [(*place, offset) for place, offset in islice(tables.offsets.items(), MAX_ROWS)],
        "levels": sorted(tables.delay_offsets.items())[:MAX_ROWS],
    }


def _files(config: Row) -> Iterator[TakenFile]:
    for name, taken in sorted((config.get("read") or {}).items()):
        yield TakenFile(name, taken or "none")
