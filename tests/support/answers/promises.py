"""What each result of an audit promises, whatever the store: its schema, ranges inside of files, numbers that agree, orders."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.report.files.result_files import RunInfo, config_json, findings_jsonl, plan_parts, result_json
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from schemas.layouts.checkpoint_layout import ABORT_FILE, CHECKPOINT_FILE
from schemas.layouts.rocksdb_layout import SEPARATE_FOLDER, TABLES_FOLDER
from schemas.layouts.store_names import (
    BATCH_QUEUES,
    COMMITLOG,
    COMPACTION,
    CONFIG,
    EPOCH_FILE,
    EXT,
    IDENTITY_FILE,
    INDEX,
    POP_RECORDS,
    QUEUES,
    TIMER_LOG,
)
from schemas.layouts.timer_layout import TIMER_WHEEL
from schemas.outcome import Outcome
from schemas.rows import Finding
from store_io.outcome.plan_writer import audit_plan
from tests.support.texts.json_schemas import faults

RUN = RunInfo("run-1", "1.2.3", "7", datetime(2026, 11, 21, 8, 0, 5, tzinfo=UTC), 2.5, "/out/tables")


def schema_faults(outcome: Outcome) -> list[str]:
    """What the files of this outcome's run hold against schemas/json."""
    found = faults("plan", "".join(plan_parts(outcome))) + faults("result", result_json(RUN, [outcome]))
    if outcome.holds.config is not None:
        found += faults("config", "".join(config_json(outcome.holds.config)))
    for line in findings_jsonl(outcome.found.findings):
        found += faults("finding", line)
    return found


def broken_promises(root: Path, outcome: Outcome) -> list[str]:
    """Sentences, one for each promise that the results of the store at `root` break; root holds what was audited."""
    found = schema_faults(outcome)
    for finding in outcome.found.findings:
        found += _of_finding(root, finding)
    places = [
        (f.file, -1 if f.start is None else f.start, -1 if f.end is None else f.end, f.code) for f in outcome.found.findings
    ]
    if places != sorted(places):
        found.append(f"findings are not in order: {places}")
    return [*found, *_of_plan(root, audit_plan(outcome)), *_of_repairs(root, outcome), *_of_numbers(outcome)]


def _size(root: Path, path: str) -> int | None:
    """Length of the regular file of this path; None of anything else."""
    target = os.path.join(os.fsencode(root), os.fsencode(path))
    return os.path.getsize(target) if os.path.isfile(target) else None


def _of_range(root: Path, what: str, file: str, start: int | None, end: int | None) -> Iterator[str]:
    if (start is None) != (end is None):
        yield f"{what}: half a range"
    elif start is not None and end is not None:
        size = _size(root, file)
        if not 0 <= start <= end or size is not None and end > size:
            yield f"{what}: {start} to {end} of {size} bytes"


# What a store may lack and a finding may yet name, beside whatever lies there.
_NAMES = {
    COMMITLOG, QUEUES, BATCH_QUEUES, EXT, INDEX, CONFIG, TIMER_LOG, COMPACTION, POP_RECORDS, EPOCH_FILE, IDENTITY_FILE,
    CHECKPOINT_FILE, ABORT_FILE, TIMER_WHEEL, TABLES_FOLDER, SEPARATE_FOLDER,
}  # fmt: skip


def _of_file(root: Path, path: str) -> Iterator[str]:
    """A finding's file is a path below the store; "", which is written as null, if no file is to blame."""
    top = path.partition("/")[0]
    there = bool(top) and os.path.lexists(os.path.join(os.fsencode(root), os.fsencode(top)))
    if path and (path != posixpath.normpath(path) or top == ".." or not there and top not in _NAMES):
        yield f"file {path!r} is no path below the store"


def _of_finding(root: Path, finding: Finding) -> Iterator[str]:
    yield from _of_file(root, finding.file)
    yield from _of_range(root, f"{finding}", finding.file, finding.start, finding.end)
    if finding.code not in CATALOGUE:
        yield f"{finding}: not in the catalogue"


def _of_plan(root: Path, plan: dict[str, Any]) -> Iterator[str]:
    names = [entry["file"] for entry in plan["inputs"]]
    if names != sorted(set(names)):
        yield f"inputs are not sorted, or one is there twice: {names}"
    for entry in plan["inputs"]:
        if _size(root, entry["file"]) not in (None, entry["size"]):
            yield f"inputs: {entry}, of {_size(root, entry['file'])} bytes"
    for step in plan["steps"]:
        yield from _of_range(root, f"step {step}", step["file"], step["start"], step["end"])
    broker = plan["broker"]
    if broker is None or not broker["starts"]:
        return
    if broker["stop_reason"] not in STOP_REASONS:
        yield f"stop_reason {broker['stop_reason']}"
    for path in broker["deleted_files"]:
        if not os.path.lexists(root / path):
            yield f"deleted_files: {path} is not there"
    if broker["deleted_files"] != sorted(broker["deleted_files"]):
        yield f"deleted_files are not sorted: {broker['deleted_files']}"
    for moment in ("after_load", "after_dispatch", "after_election"):
        state = broker[moment]
        for queues in [state["queues"], state.get("queues_files", [])] if state is not None else []:
            keys = [(row["topic"], row["queue_id"]) for row in queues]
            if keys != sorted(set(keys)):
                yield f"{moment}: queues are not sorted, or one is there twice: {keys}"


def _of_repairs(root: Path, outcome: Outcome) -> Iterator[str]:
    for repair in outcome.repairs or ():
        for step in repair.steps:
            yield from _of_range(root, f"repair {repair.policy} {step}", step.file, step.start, step.end)
        before, after = repair.messages_before, repair.messages_after
        if repair.refused is None and (repair.lost.messages > before or after > before + repair.healed):
            yield f"repair {repair.policy}: {before} messages before, {after} after, {repair.lost} lost"


def _of_numbers(outcome: Outcome) -> Iterator[str]:
    """Counts that are parts of others."""
    lost = (audit_plan(outcome)["broker"] or {}).get("lost")
    if lost is not None:
        queues = [row["messages"] for row in lost["by_queue"]]
        if sum(queues) != lost["messages"]:
            yield f"lost: {lost['messages']} messages, by queue {sum(queues)}"
        if outcome.complete and lost["messages"] > outcome.holds.messages:
            yield f"lost: {lost['messages']} messages of {outcome.holds.messages}"
        if lost["bytes"] > sum(row.get("size_bytes") or 0 for row in outcome.rows.segments):
            yield f"lost: {lost['bytes']} bytes of a smaller log"
        keys = [(row["topic"], row["queue_id"]) for row in lost["by_queue"]]
        if keys != sorted(set(keys)):
            yield f"lost: queues are not sorted, or one is there twice: {keys}"
    for row in outcome.rows.segments:
        if (row.get("damaged_bytes") or 0) > (row.get("size_bytes") or 0):
            yield f"segment {row['file']}: {row['damaged_bytes']} of {row['size_bytes']} bytes damaged"
