"""The parts of a store's page about what the audit rests on: the settings, and how much was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report.pages.page import View
from jobs.report.texts.text import count_text, not_read_texts, value_text
from schemas.rows import DEFAULT, AuditOutcome, Row


@dataclass(frozen=True)
class Setting:
    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class AuditedPart:
    """Files of one kind.

    size: in bytes, None if it is not known.
    """

    name: str
    found: str
    rows: Sequence[Row]
    size: int | None

    @property
    def read(self) -> int:
        return sum(int(row.get("bytes_read") or 0) for row in self.rows)

    @property
    def problems(self) -> int:
        return sum(1 for row in self.rows if row.get("problem"))


def settings_view(outcome: AuditOutcome) -> View:
    """Return the data of settings.html: the release's defaults apart."""
    own: list[Setting] = []
    defaults: list[Setting] = []
    for name, row in sorted(outcome.plan["settings"].items()):
        (defaults if row["from"] == DEFAULT else own).append(Setting(name, _value(row["value"]), row["from"]))
    return {"own": own, "defaults": defaults}


def _value(value: object) -> str:
    """Return a value as broker.conf has it; a large number as people read it, too."""
    read = f" ({value:,})" if isinstance(value, int) and abs(value) >= 10_000 else ""
    return value_text(value) + read


def limits_view(outcome: AuditOutcome) -> View:
    """Return the data of limits.html."""
    segments, queues, files = outcome.segments, outcome.queues, outcome.index_files
    queue_files = count_text(sum(int(q.get("file_count") or 0) for q in queues), "file")
    return {
        "parts": [
            AuditedPart("CommitLog", count_text(outcome.segment_count, "segment"), segments, _bytes_of(segments)),
            AuditedPart("ConsumeQueues", f"{count_text(len(queues), 'queue')}, {queue_files}", queues, None),
            AuditedPart("index", count_text(len(files), "file"), files, _bytes_of(files)),
        ],
        "inputs": len(outcome.plan.get("inputs", ())),
        "dropped": sum(outcome.findings_dropped.values()),
        "not_read": not_read_texts(outcome),
    }


def _bytes_of(rows: Sequence[Row]) -> int:
    return sum(int(row.get("size_bytes") or 0) for row in rows)
