"""The state in which a start of the release leaves each file: `steps` of plan.json. They are not the steps of a repair, which
`repair.plan_repair_section` works out.

First what the release itself leaves of the CommitLog, then what would have to be rebuilt from there (pitfalls.md): a queue or an
index file with a disagreement is rebuilt from the log, not patched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from schemas.finding_codes import STOP_REASONS
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, NOTE, Finding, PlanStep
from store_io.base.wording import clause, count_text
from store_io.kinds.all_kinds import KINDS
from store_io.model.evidence import Evidence
from store_io.model.queue_runs import message_runs, messages_in
from store_io.wording.refusals import refusal_sentence

_begin = attrgetter("base_offset")


def release_leaves(evidence: Evidence, findings: Sequence[Finding]) -> list[PlanStep]:
    """Return the CommitLog file by file, then the files of each kind; each with its reason and loss."""
    if evidence.log_not_opened:  # where the log ends is not known, so nothing is cut or deleted for it
        evidence = replace(evidence, prediction=None)
    serious = [f for f in findings if f.severity != NOTE]
    steps = [*_log_steps(evidence, serious), *(step for kind in KINDS for step in kind.left_by_start(evidence, serious))]
    # What was not opened may hold messages, and is not given up.
    return [step for step in steps if step.action != "delete" or not evidence.was_not_opened(step.file)]


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
            steps.append(PlanStep.whole("delete", path, "an empty file, which a start deletes"))
    for entry in evidence.copy.tree.children(COMMITLOG):
        if entry.path in blamed and entry.path not in known and entry.path not in deleted:
            steps.append(PlanStep.whole("delete", entry.path, "not a segment: no release writes such a name"))
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
            steps.append(PlanStep.whole("delete", segment.path, f"it stops the start and holds no message{why}"))
        elif segment.size > size:
            messages, lost = _valid_from(evidence, segment.base_offset + size, segment.base_offset + segment.size)
            steps.append(PlanStep("truncate", segment.path, size, segment.size, f"it stops the start{why}", messages, lost))
        else:
            steps.append(PlanStep("keep", segment.path, 0, segment.size, f"it stops the start, but it holds messages{why}"))
    if blocking.startswith(COMMITLOG + "/") and all(segment.path != blocking for segment in evidence.segments):
        steps.append(PlanStep.whole("delete", blocking, f"not a segment, and it stops the start{why}"))
    return steps


def _valid_from(evidence: Evidence, start: int, end: int | None = None) -> tuple[int, int]:
    """Return (messages, bytes) of valid messages with a position in [start, end); without an end, in one segment."""
    messages = size = 0
    segments = evidence.segments  # by their begin
    low = bisect_left(segments, start, key=_begin) if end is None else 0
    for segment in segments[low : bisect_left(segments, start + 1 if end is None else end, key=_begin)]:
        if segment.base_offset + segment.size <= start:
            continue
        rows = message_runs(segment, start - segment.base_offset)
        messages += messages_in(rows)
        size += int(rows["bytes"].sum())
    return messages, size
