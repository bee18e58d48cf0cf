"""Positions of consumers, delay levels and timers that are beyond the new ends of the queues: the last step of a repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.repair import PositionBeyond
from store_io.kinds.all_repairs import REPAIRS
from store_io.kinds.config.rebuild.offsets import unknown_topics
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import CORRECT_OFFSETS
from store_io.repair.repair_work import Work


@dataclass(frozen=True)
class CorrectedOffsets:
    """The positions beyond the new ends, what was done about them, and topics that config/ does not know.

    set_back: files; positions: how many in all of them.
    """

    beyond: Sequence[PositionBeyond] = ()
    set_back: Sequence[str] = ()
    positions: int = 0
    topics_unknown: Sequence[str] = ()


def correct_offsets(work: Work, final: Audited, log_end: int) -> CorrectedOffsets:
    """Find the positions beyond the new ends, and set them back with --fix-offsets or --fix-config.

    final: the audit of the new store. Raises StoreError if a file with such positions cannot be read.
    """
    p = final.prediction
    if p is None or p.settled is None:
        return CorrectedOffsets()
    ends = {key: queue.max_offset for key, queue in p.settled.queues.items()}
    beyond = [each for kind in REPAIRS for each in kind.offsets_beyond(work, final, ends, log_end)]
    changed: dict[str, int] = {}
    if work.request.fix_offsets or work.request.fix_config:
        for kind in REPAIRS:
            changed |= kind.set_back(work, final, beyond)
    for path, count in changed.items():
        reason = "consumers, delay levels or the timer lie beyond the new ends"
        work.steps.add(CORRECT_OFFSETS, path, reason=reason, kept={"positions": count})
    return CorrectedOffsets(beyond, list(changed), sum(changed.values()), unknown_topics(final, ends))
