"""Damaged records of the copy made whole by a single change that everything else leads to (heal.md): --heal.

The changes are written into the copy, before it is decided where the log ends: so the audits that follow, the broker's cut and
whatever is rebuilt are those of a log in which these records were never damaged.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.repair import HealReport, SearchedRecord
from schemas.rows import EXTENT_MESSAGE, SegmentSummary
from store_io.audit.healing.changes import Healing
from store_io.audit.healing.heal_task import search_of
from store_io.audit.healing.judgement import judged
from store_io.base.errors import StoreError
from store_io.repair.log.donor import Healed
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_steps import HEAL
from store_io.repair.repair_work import Work

MOST_ROWS = 1000  # of what is not healed


def heal_records(work: Work, audit: Audited) -> Healed:
    """Heal what can be healed below the request's risk. Raises StoreError."""
    risk = work.request.heal_risk
    if risk is None:
        return Healed(audit)
    work.progress("looking for damaged records that one change makes whole")
    found, more = _search(work, audit, risk)
    made, left = [h for h in found if h.heals], [h for h in found if not h.heals]
    records, not_healed = (tuple(map(_searched, each)) for each in (made, left[:MOST_ROWS]))
    done = HealReport(risk, min(1.0, sum(h.risk for h in made)), records, len(left), not_healed, more)
    for healing in made:
        _write(work, healing)
    if not made:
        return Healed(audit, by_change=done)
    after = audit_changed(work, "the copy with healed records")
    _check(after.segments, made)
    return Healed(after, by_change=done)


def _search(work: Work, audit: Audited, risk: float) -> tuple[list[Healing], int]:
    """Return (what is decided of each damaged record, how many more places were not searched)."""
    wanted = search_of(audit.copy, work.location, work.rules, audit.segments)
    answers = work.run(wanted.tasks, "healing") if wanted.tasks else []
    found = [judged(t, each, wanted.order, risk) for t, founds in zip(wanted.tasks, answers, strict=True) for each in founds]
    return found, wanted.more


def _write(work: Work, healing: Healing) -> None:
    change = healing.change
    assert change is not None
    end = change.position + len(change.new)
    kept = {"messages": 1} if healing.topic is not None else {"bytes": len(change.new)}
    reason = f"{change.field} was wrong: {change.old.hex()} becomes {change.new.hex()}"
    work.steps.add(HEAL, healing.file, start=change.position, end=end, reason=reason, kept=kept)
    work.writer.write(healing.file, change.position, change.new)


def _check(segments: Sequence[SegmentSummary], made: Sequence[Healing]) -> None:
    """Raise StoreError if a healed record is not valid now, which would be a fault of this program."""
    whole = {s.path: [(e.start, e.end) for e in s.extents if e.kind == EXTENT_MESSAGE] for s in segments}
    for healing in made:
        inside = any(start <= healing.start and healing.end <= end for start, end in whole.get(healing.file, []))
        if healing.topic is not None and not inside:
            raise StoreError(f"{healing.file}: the record at position {healing.start} is not whole with the change that was made")


def _searched(healing: Healing) -> SearchedRecord:
    change = healing.change
    return SearchedRecord(
        healing.file, healing.start, healing.end, healing.phy_offset,
        change.field if change is not None else None,
        change.position if change is not None else None,
        change.old.hex() if change is not None else None,
        change.new.hex() if change is not None else None,
        healing.why_not or healing.reason, healing.risk if change is not None else None,
        healing.topic, healing.queue_id, healing.queue_offset,
    )  # fmt: skip
