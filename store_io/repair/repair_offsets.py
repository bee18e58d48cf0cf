"""Positions of consumers, delay levels and timers that are beyond the new ends of the queues: the last step of a repair."""

from __future__ import annotations

from schemas.rows import Row
from store_io.kinds.all_repairs import REPAIRS
from store_io.kinds.config.rebuild.offsets import unknown_topics
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import CORRECT_OFFSETS
from store_io.repair.repair_work import Work


def correct_offsets(work: Work, final: Audited, log_end: int) -> Row:
    """Find the positions beyond the new ends, and set them back with --fix-offsets or --fix-config; return the report's part.

    final: the audit of the new store. Raises StoreError if a file with such positions cannot be read.
    """
    p = final.prediction
    if p is None or p.settled is None:
        return {}
    ends = {key: queue.max_offset for key, queue in p.settled.queues.items()}
    rows = [row for kind in REPAIRS for row in kind.offsets_beyond(work, final, ends, log_end)]
    changed: dict[str, int] = {}
    if work.request.fix_offsets or work.request.fix_config:
        for kind in REPAIRS:
            changed |= kind.set_back(work, final, rows)
    for path, count in changed.items():
        reason = "consumers, delay levels or the timer lie beyond the new ends"
        work.steps.add(CORRECT_OFFSETS, path, reason=reason, kept={"positions": count})
    return {
        "offsets": rows, "offsets_set_back": list(changed), "positions_set_back": sum(changed.values()),
        "topics_unknown": unknown_topics(final, ends),
    }  # fmt: skip
