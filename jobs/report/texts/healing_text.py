"""One change that makes a damaged record whole, in a sentence. Rendering only."""

from __future__ import annotations

from schemas.rows import Row
from store_io.audit.healing.changes import Change, Healing
from store_io.audit.healing.judgement import risk_text


def healing_text(healing: Healing) -> str:
    """For `explain`: what the change is, what speaks for it, and whether `repair --heal` makes it."""
    if healing.change is None:
        return f"none: {healing.why_not}"
    text = f"{_change_text(healing.change)} makes the record at {healing.phy_offset:,} whole"
    if healing.others:
        text += "; so would " + ", or ".join(_change_text(change) for change in healing.others[:3])
    if healing.why_not:
        return f"{text}. Not made: {healing.why_not}"
    risk = f"risk that other damage looks like this: {risk_text(healing.risk)}"
    return f"{text}: {healing.reason}; {risk}. repair --heal makes this change"


def healed_row_text(row: Row) -> str:
    """One row of a repair's report."""
    where = f"{row['file']} {row['position']:,}, {row['field']}: {row['old']} becomes {row['new']}"
    queue = f" ({row['topic']}, queue {row['queue_id']}, offset {row['queue_offset']:,})" if row["topic"] is not None else ""
    return f"{where}{queue}, as {row['reason']}; risk {risk_text(row['risk'])}"


def not_healed_row_text(row: Row) -> str:
    """One damaged record that a repair left as it is."""
    return f"{row['file']} {row['start']:,} to {row['end']:,}: {row['reason']}"


def _change_text(change: Change) -> str:
    place = f"position {change.position:,} ({change.field})"
    return (
        f"{change.new.hex(' ')} in the place of {change.old.hex(' ')} at {place}" if change.new else f"another value at {place}"
    )
