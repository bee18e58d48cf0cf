"""result.json, one object for the whole run; plan.json, findings.jsonl and config.json of a store; replicas.json of its run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from jobs.report.files.json_text import document, document_parts
from jobs.report.texts.commands import words_of
from jobs.report.texts.next_steps import ShownStep, shown_steps
from schemas.finding_codes import Code
from schemas.losses import ALL_READ
from schemas.outcome import Outcome
from schemas.replicas import Group, TableEntry
from schemas.rows import ConfigTables, Finding, Row
from schemas.tables import FINDINGS, OF_RUN
from store_io.answer.answers import answer_of
from store_io.answer.headline import verdict_text
from store_io.base.exit_codes import SEVERITIES, of_run
from store_io.outcome.safety import counted, decide, is_emptied, lacks_of
from store_io.outcome.segments_read import segments_read
from store_io.repair.repair_documents import plan_document
from store_io.wording.gaps import gap_rows
from store_io.wording.steps import next_text

SCHEMA_VERSION = 1
_EARLIER = ("run_id", "started_at", "messages", "log_end")
_EXTENT = ("segments", "messages", "commitlog_bytes", "damaged_extents", "damaged_bytes", "unverified_bytes")
FIELDS = [column.name for column in FINDINGS if column not in OF_RUN and column.name != "number"]
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


@dataclass(frozen=True)
class RunInfo:
    """The facts that belong to the run and not to a store.

    started_at: UTC.
    tables: the place of the Delta tables; empty: not written.
    out: the folder of the run's files.
    problems: sentences on results that could not be written: these make the run incomplete.
    copies: sentences about copies of one log that were found although no group was named.
    """

    run_id: str
    tool_version: str
    rules_version: str
    started_at: datetime
    seconds: float = 0.0
    tables: str = ""
    out: str = ""
    problems: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    unwritten: frozenset[str] = frozenset()  # result.json, and names of stores of which files could not be written
    finished_at: datetime | None = None  # UTC; None as long as stores are audited
    taken_over: int = 0  # stores that were finished before the run was killed, and were not read again

    def plan_of(self, store: str) -> str:
        """Return the path of a store's plan.json; "" if it was not written."""
        return "" if store in self.unwritten else f"{self.out}/{store}/plan.json"


_OF_TOPICS = ("read_queues", "write_queues", "batch")


def result_json(run: RunInfo, outcomes: Sequence[Outcome], words: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """Return the text of result.json. words: store -> those with which another command reads it (`commands.store_words`)."""
    return document(
        {
            "schema_version": SCHEMA_VERSION,
            "exit_code": of_run((o.exit_code for o in outcomes), run.problems),
            "complete": not run.problems and all(o.complete for o in outcomes),
            "run_id": run.run_id,
            "tool_version": run.tool_version,
            "rules_version": run.rules_version,
            "started_at": run.started_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": round(run.seconds, 3),
            "bytes_read": sum(o.cost.bytes_read for o in outcomes),
            "tables": run.tables or None,
            "problems": run.problems,
            "taken_over": run.taken_over,
            "stores": [_store(o, run, words.get(o.name) or words_of(o)) for o in outcomes],
        }
    )


def _store(outcome: Outcome, run: RunInfo, words: Sequence[str]) -> Row:
    messages, size = outcome.loss.messages, outcome.loss.bytes
    effect, started = outcome.effect, outcome.started
    lacks, diverged = lacks_of(outcome)
    return {
        "name": outcome.name,
        "complete": outcome.complete,
        "incomplete": outcome.incomplete,
        "verdict": verdict_text(outcome),
        "release": outcome.release,
        "release_from": outcome.assumed.release_from,
        "settings_from": outcome.assumed.settings_from,
        "level": outcome.covered.level,
        "bytes_read": outcome.cost.bytes_read,
        "gaps": gap_rows(outcome.gaps),
        "code": outcome.exit_code,
        "location": outcome.location_text,
        "safety": decide(outcome).safety,
        "answer": answer_of(outcome),
        "steps": [_step(step) for step in shown_steps(outcome, words, run.plan_of(outcome.name))],
        "starts": None if effect is None else effect.starts,
        "refusal_kind": None if outcome.refusal is None else str(outcome.refusal.kind),
        "truncate_at": None if started is None else started.truncate_at,
        "not_read": asdict(outcome.covered.not_read) if outcome.covered.not_read != ALL_READ else None,
        **_extent_of(outcome),
        "lost_messages": messages,
        "lost_bytes": size,
        "missing_messages": outcome.whole.missing and outcome.whole.missing.messages,
        "missing_at_least": outcome.whole.missing and outcome.whole.missing.at_least,
        "changed_segments": counted(outcome, Code.SEGMENT_CHANGED) if outcome.complete or outcome.rows.segments else None,
        "emptied": is_emptied(outcome) or (False if outcome.complete or outcome.rows.segments else None),
        "earlier": outcome.whole.furthest and {name: getattr(outcome.whole.furthest, name) for name in _EARLIER},
        "lacks_messages": lacks if outcome.replicas.copies else None,
        "diverged": diverged if outcome.replicas.copies else None,
        "counts": {severity: outcome.found.counts.get(severity, 0) for severity in SEVERITIES},
        "findings_dropped": sum(outcome.found.dropped.values()),
        "seconds": round(outcome.cost.seconds, 3),
        "task_seconds": round(outcome.cost.task_seconds, 3),
    }


def _step(step: ShownStep) -> Row:
    gives_up = None if step.gives_up is None else asdict(step.gives_up)
    return {"step": step.name, "text": step.text, "command": step.command or None, "gives_up": gives_up}


def _extent_of(outcome: Outcome) -> Row:
    """Return the figures of a store's log and of its sound part. They are null if the store could not even be listed."""
    segments = segments_read(outcome.rows.segments)
    if not outcome.complete and not segments:
        return dict.fromkeys(_EXTENT)
    size = sum(segment.size for segment in segments)
    unread = sum(segment.size for segment in segments if segment.problem or not segment.digest)
    damaged = sum(segment.damaged_bytes for segment in segments)
    values = (outcome.holds.segment_count, outcome.holds.messages, size, outcome.holds.damaged_extents, damaged, unread)
    return dict(zip(_EXTENT, values, strict=True))


def plan_parts(outcome: Outcome) -> Iterator[str]:
    """Return plan.json in parts: a store may have a million queues. Its steps have no commands: these belong to one run."""
    to_do = [{"step": step.name, "text": step.text} for step in shown_steps(outcome, words_of(outcome), "")]
    return document_parts({**plan_document(outcome), "answer": answer_of(outcome), "to_do": to_do})


def finding_row(finding: Finding) -> Row:
    """Return all fields of a finding, in the order in which they are written."""
    row = {name: getattr(finding, name) for name in FIELDS}
    return row | {"code": str(finding.code), "file": finding.file or None, "next": next_text(finding.next)}


def findings_jsonl(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line for each finding, with its line end. A badly damaged store has very many."""
    for finding in findings:
        yield _ENCODE(finding_row(finding)) + "\n"


def config_json(tables: ConfigTables) -> Iterator[str]:
    """Yield the tables of config/ as results list them, entry by entry: there may be a million topics."""
    yield "{\n"
    yield from _object("topics", tables.listed_topics)
    yield ",\n"
    yield from _object("groups", tables.listed_groups)
    yield ",\n"
    yield from _object("offsets", _offsets(tables.offsets))
    yield ",\n"
    yield from _object("delay_offsets", ((str(level), offset) for level, offset in tables.delay_offsets.items()))
    yield "\n}\n"


def _object(key: str, entries: Iterable[tuple[str, Any]]) -> Iterator[str]:
    before = "\n  "
    yield f"{_ENCODE(key)}: {{"
    for name, value in entries:
        yield f"{before}{_ENCODE(name)}: {_ENCODE(value)}"
        before = ",\n  "
    yield "}"


def _offsets(offsets: Mapping[tuple[str, str, int], int]) -> Iterator[tuple[str, Row]]:
    """Yield the offsets by topic and group, whose queues are beside one another."""
    for (group, topic), queues in itertools.groupby(offsets.items(), key=lambda item: item[0][:2]):
        yield f"{topic}@{group}", {str(place[2]): offset for place, offset in queues}


def groups_of(outcomes: Sequence[Outcome]) -> list[Group]:
    """Return each replica group once, in the order of the stores."""
    return list({outcome.replica_group: outcome.replicas for outcome in outcomes if outcome.replicas.copies}.values())


def replicas_json(outcomes: Sequence[Outcome]) -> str:
    """Return the text of replicas.json."""
    return document({"schema_version": 1, "groups": list(map(_group, groups_of(outcomes)))})


def _group(group: Group) -> Row:
    tables = [{**asdict(ahead), "entries": list(map(_entry, ahead.entries))} for ahead in group.config]
    row = {("group" if key == "name" else key): value for key, value in asdict(replace(group, config=())).items()}
    return {**row, "config": tables}


def _entry(entry: TableEntry) -> Row:
    """Return an entry of a table; only a topic's says something of queues."""
    return {key: value for key, value in asdict(entry).items() if entry.batch is not None or key not in _OF_TOPICS}
