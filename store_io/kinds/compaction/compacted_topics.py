"""The logs of compacted topics: their files, their records and entries, and how far they reach.

Consumers of such a topic read this log alone, and nothing makes it anew from the CommitLog but a recovery that dispatches all of
it (compaction.md 5, 6).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.base.wording import count_text
from store_io.kinds.compaction.compaction_kind import COMPACTION
from store_io.model.evidence import Evidence
from store_io.wording.refusals import refusal_sentence


def compacted_topics(evidence: Evidence) -> list[Finding]:
    """Return every finding on them."""
    found = [*_files(evidence)]
    for summary in evidence[COMPACTION].files:
        found += summary.findings
    return [*found, *_ahead(evidence)]


def _files(evidence: Evidence) -> Iterator[Finding]:
    logs = evidence[COMPACTION]
    start = logs.start
    left_out = [queue.not_loaded for _, queue in sorted(logs.store.queues.items()) if queue.not_loaded]
    for refusal in (*start.refusals, *left_out):
        path = refusal.path
        ends = "the broker ends" if refusal in start.refusals else "the broker starts without this queue's log"
        topic, queue_id = _queue_of(path)
        step = Advice(Step.SET_REPLACED_ASIDE) if _left_over(evidence, path, topic, queue_id) else None
        yield Finding(
            Code.COMPACTED_FILES_DIFFER,
            path,
            topic=topic,
            queue_id=queue_id,
            message=f"{refusal_sentence(refusal)}; {ends}",
            next=step,
        )


def _left_over(evidence: Evidence, path: str, topic: str | None, queue_id: int | None) -> bool:
    """Say whether a compaction has replaced this file and not removed it. All other files are sound and agree without it."""
    if not path.endswith(".delete") or topic is None or queue_id is None or not evidence.all_read:
        return False
    queue = evidence[COMPACTION].store.queues.get((topic, queue_id))
    sound = not any(summary.findings for summary in evidence[COMPACTION].files if summary.key == (topic, queue_id))
    return sound and queue is not None and {f.start for f in queue.all_log} == {f.start for f in queue.all_entries}


def _queue_of(path: str) -> tuple[str | None, int | None]:
    parts = path.split("/")
    known = len(parts) > 3 and parts[3].isascii() and parts[3].isdigit() and len(parts[3]) < 10
    return (parts[2], int(parts[3])) if known else (None, None)


def _ahead(evidence: Evidence) -> Iterator[Finding]:
    prediction = evidence.prediction
    if prediction is None or prediction.after_dispatch is None:
        return
    topics = evidence.copy.compacted_topics
    for key, recovery in evidence[COMPACTION].start.queues.items():
        if key[0] not in topics:
            continue
        queue = prediction.after_dispatch.queues.get(key)
        end = queue.max_offset if queue is not None else 0
        if recovery.next_offset > end:
            yield Finding(
                Code.COMPACTED_LOG_AHEAD,
                evidence[COMPACTION].store.queues[key].entries[-1].path,
                topic=key[0],
                queue_id=key[1],
                queue_offset=end,
                expected=f"at most {end}",
                actual=str(recovery.next_offset),
                message=f"{count_text(recovery.next_offset - end, 'new message')} of this queue would not be put into it",
                count=recovery.next_offset - end,
            )
