"""The state in which a start of the release leaves each file: `steps` of plan.json. They are not the steps of a repair, which
`repair.plan_repair_section` works out.

First what the release itself leaves of the CommitLog, then what would have to be rebuilt from there (pitfalls.md): a queue or an
index file with a disagreement is rebuilt from the log, not patched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import fields, replace

from schemas.advice import Step
from schemas.checkpoint_layout import CHECKPOINT_FILE
from schemas.finding_codes import STOP_REASONS
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, NOTE, Finding, PlanStep, Row
from schemas.store_names import BATCH_QUEUES, COMMITLOG, COMPACTION, EXT, INDEX, QUEUES
from store_io.audit.outcome.safety import has_step
from store_io.base.packed import items_of
from store_io.base.wording import clause, count_text
from store_io.broker.queues.queue_state import QueueState
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.model.evidence import Evidence
from store_io.model.queue_runs import message_runs, messages_in
from store_io.source.store_dir import UNREAD_KINDS
from store_io.wording.refusals import refusal_sentence

_STEP = [each.name for each in fields(PlanStep)]


def release_leaves(evidence: Evidence, findings: Sequence[Finding]) -> list[Row]:
    """The CommitLog file by file, then queues, index files, checkpoint; each with its reason and loss."""
    if evidence.log_not_opened:  # where the log ends is not known, so nothing is cut or deleted for it
        evidence = replace(evidence, prediction=None)
    serious = [f for f in findings if f.severity != NOTE]
    steps = [*_log_steps(evidence, serious), *_queue_steps(evidence, serious), *_index_steps(evidence, serious)]
    steps += _compacted_steps(evidence)
    steps += _rebuilds(serious, lambda file: file if file == CHECKPOINT_FILE else "").values()
    kept = (step for step in steps if step.action != "delete" or not _was_not_opened(evidence, step.file))
    return [{name: getattr(step, name) for name in _STEP} for step in kept]


def _was_not_opened(evidence: Evidence, path: str) -> bool:
    """Say whether the content at this path is not known, as in place of a link. It may hold messages, and is not given up."""
    entry = evidence.copy.listing.get(path)
    return entry is not None and entry.kind in UNREAD_KINDS


def _compacted_steps(evidence: Evidence) -> list[PlanStep]:
    deleted = evidence.prediction.deleted_files if evidence.prediction is not None else []
    reason = "the compacted topic has no entry for it"
    return [_whole("delete", path, reason) for path in deleted if path.startswith(COMPACTION + "/")]


def _whole(action: str, file: str, reason: str) -> PlanStep:
    return PlanStep(action, file, None, None, reason)


def _rebuilds(serious: Sequence[Finding], place: Callable[[str], str]) -> dict[str, PlanStep]:
    """A step for each place that is blamed, in their order. place: a finding's file -> what is rebuilt for it, or ""."""
    blamed: dict[str, set[str]] = defaultdict(set)
    for finding in serious:
        blamed[place(finding.file)].add(finding.code)
    blamed.pop("", None)
    return {file: _whole("rebuild", file, "from the CommitLog: " + ", ".join(sorted(blamed[file]))) for file in sorted(blamed)}


def _log_steps(evidence: Evidence, serious: Sequence[Finding]) -> list[PlanStep]:
    p = evidence.prediction
    steps = []
    if p is None or not p.starts or p.after_load is None:
        return _blocked_steps(evidence)
    wrote = {f.file.path: f.wrote for f in p.after_load.log}
    deleted = set(p.deleted_files)
    why = clause(STOP_REASONS.get(p.stop_reason, p.stop_reason))
    cut = f"recovery by RocketMQ {evidence.request.release} ends at physical offset {p.log_end:,}: {why}"
    for segment in evidence.segments:
        end = segment.size
        if segment.path in deleted:
            messages, size = _valid_from(evidence, segment.base_offset)
            reason = cut if messages else "lies beyond the log's end"
            steps.append(PlanStep("delete", segment.path, 0, end, reason, messages, size))
        elif segment.path in wrote:
            kept = wrote[segment.path]
            used = max((e.end for e in segment.extents if e.kind in (EXTENT_MESSAGE, EXTENT_DAMAGED)), default=0)
            if kept < used:
                messages, size = _valid_from(evidence, segment.base_offset + kept, segment.base_offset + segment.size)
                steps.append(PlanStep("truncate", segment.path, kept, end, cut, messages, size))
            else:
                damaged = sum(1 for e in segment.extents if e.kind == EXTENT_DAMAGED)
                reason = f"has {count_text(damaged, 'damaged range')} that recovery does not read" if damaged else "sound"
                steps.append(PlanStep("keep", segment.path, 0, kept, reason))
    for file in evidence.unread:
        if file.path not in deleted:
            steps.append(PlanStep("keep", file.path, 0, wrote.get(file.path, file.size), "not read by this audit"))
    steps.sort(key=lambda step: step.file)
    blamed = {f.file for f in serious}
    known = {s.path for s in evidence.segments} | {f.path for f in evidence.unread}
    for path in sorted(deleted):
        if path not in known and path.startswith(COMMITLOG + "/"):
            steps.append(_whole("delete", path, "an empty file, which a start deletes"))
    for entry in evidence.copy.tree.children(COMMITLOG):
        if entry.path in blamed and entry.path not in known and entry.path not in deleted:
            steps.append(_whole("delete", entry.path, "not a segment: no release writes such a name"))
    return steps


def _blocked_steps(evidence: Evidence) -> list[PlanStep]:
    """Return the steps if the broker would not start, or its start is not known.

    No file that holds a message is given up.
    """
    refusal = evidence.prediction.refusal if evidence.prediction is not None else None
    blocking, why = (refusal.path, f": {refusal_sentence(refusal)}") if refusal is not None else ("", "")
    size = evidence.copy.rules.segment_bytes
    steps = []
    for segment in evidence.segments:
        if segment.path != blocking:
            steps.append(PlanStep("keep", segment.path, 0, segment.size, "kept whole: where a start would cut is not known"))
        elif not any(extent.kind in (EXTENT_MESSAGE, EXTENT_DAMAGED) for extent in segment.extents):
            steps.append(_whole("delete", segment.path, f"it stops the start and holds no message{why}"))
        elif segment.size > size:
            messages, lost = _valid_from(evidence, segment.base_offset + size, segment.base_offset + segment.size)
            steps.append(PlanStep("truncate", segment.path, size, segment.size, f"it stops the start{why}", messages, lost))
        else:
            steps.append(PlanStep("keep", segment.path, 0, segment.size, f"it stops the start, but it holds messages{why}"))
    if blocking.startswith(COMMITLOG + "/") and all(segment.path != blocking for segment in evidence.segments):
        steps.append(_whole("delete", blocking, f"not a segment, and it stops the start{why}"))
    return steps


def _valid_from(evidence: Evidence, start: int, end: int | None = None) -> tuple[int, int]:
    """(messages, bytes) of valid messages with a position in [start, end)."""
    messages = size = 0
    for segment in evidence.segments:
        if segment.base_offset + segment.size <= start or end is not None and segment.base_offset >= end:
            continue
        if end is None and segment.base_offset != start:
            continue
        rows = message_runs(segment, start - segment.base_offset)
        messages += messages_in(rows)
        size += int(rows["bytes"].sum())
    return messages, size


def _queue_steps(evidence: Evidence, serious: Sequence[Finding]) -> list[PlanStep]:
    table = evidence.copy[ROCKS_QUEUES].served_table
    if table is not None:
        folder = table.database.folder
        steps = _rebuilds(serious, lambda file: folder if file == folder or file.startswith(f"{folder}/") else "")
        return [*steps.values()]
    rebuilt = _rebuilds([finding for finding in serious if not has_step(finding, Step.NO_QUEUE)], _queue_folder)
    return [*rebuilt.values(), *_queue_cuts(evidence, rebuilt.keys())]


def _queue_folder(file: str) -> str:
    """The folder of the queue that a file belongs to; of an ext file too. "" for any other file."""
    top, *parts = file.split("/")
    if top not in (QUEUES, BATCH_QUEUES, EXT) or len(parts) < 2:
        return ""
    return f"{BATCH_QUEUES if top == BATCH_QUEUES else QUEUES}/{parts[0]}/{parts[1]}"


def _queue_cuts(evidence: Evidence, rebuilt: Set[str]) -> list[PlanStep]:
    """Return the steps of queues that are sound and lose entries by the cut of the CommitLog."""
    p = evidence.prediction
    if p is None or p.after_load is None:
        return []
    steps = []
    for key, queue in items_of(p.after_load.queues):
        summary = evidence.queues.get(key)
        if queue.folder in rebuilt or summary is None or not isinstance(queue, QueueState):
            continue
        reason = f"its entries lead past the cut of the CommitLog at {p.log_end:,}"
        steps += [_whole("delete", path, reason) for path in sorted(queue.deleted)]
        end = summary.used_end * queue.unit
        steps += [
            PlanStep("truncate", file.path, file.wrote, file.size, reason)
            for file in queue.files
            if file.path is not None and file.start + file.wrote < min(end, file.start + file.size)
        ]
    return steps


def _index_steps(evidence: Evidence, serious: Sequence[Finding]) -> list[PlanStep]:
    p = evidence.prediction
    steps = _rebuilds(serious, lambda file: file if file.partition("/")[0] == INDEX else "")
    for path in p.deleted_files if p is not None else ():
        if path.startswith(INDEX + "/"):
            steps[path] = _whole(
                "rebuild", path, "newer than the checkpoint's index time: a start deletes it and rebuilds a part of it"
            )
    return [steps[path] for path in sorted(steps)]
