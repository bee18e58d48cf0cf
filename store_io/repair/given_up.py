"""The messages that a repair gives up: the copy shows that they were there, and the new store does not hold them.

An audit of the new store says so again (`store_io/audit/checks/repaired_store.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from schemas.finding_codes import CATALOGUE, Code
from schemas.rows import NOTE, Finding, QueueKey, Row
from store_io.audit.checks.repaired_store import NOT_KNOWN
from store_io.base.ranges import Ranges, union
from store_io.model.facts.missing_messages import places_missing
from store_io.model.queue_leftovers import LeftoverResult


def given_up(
    leftovers: Mapping[QueueKey, LeftoverResult],
    answered: Sequence[Row],
    dropped: Sequence[Row],
    cut: int,
    findings: Iterable[Finding],
    is_cut: Callable[[int], bool] = lambda phy_offset: False,
) -> Row:
    """Return the report's row on messages that are given up.

    messages: all of them.
    missing: those that the copy does not hold.
    cut: valid ones that it holds.
    earlier: those that the repair which made the copy had given up.
    signs: codes of findings that show missing messages without a number; named only if nothing gives one.

    leftovers, findings: of the copy's audit.
    answered, dropped: the repair's rows.
    is_cut: whether the message with a physical offset, to which an entry leads, is among those that are cut.
    """
    missing = places_missing(leftovers, missing_offsets(answered, dropped), is_cut)
    signs, earlier = set(), 0
    for finding in findings:
        if CATALOGUE[finding.code].shows_missing and finding.severity != NOTE:
            signs.add(finding.code)
        elif finding.code == Code.STORE_REPAIRED and finding.actual == NOT_KNOWN:
            signs.add(Code.STORE_REPAIRED)
        elif finding.code == Code.STORE_REPAIRED:
            earlier = finding.count
    return {
        "messages": missing + cut + earlier,
        "missing": missing,
        "cut": cut,
        "earlier": earlier,
        "signs": [] if missing or earlier else sorted(signs),
    }


def missing_offsets(answered: Sequence[Row], dropped: Sequence[Row]) -> dict[QueueKey, Ranges]:
    """By queue, the queue offsets at which these rows of a repair say that a message is missing."""
    found: dict[QueueKey, Ranges] = defaultdict(list)
    for row in answered:
        found[row["topic"], row["queue_id"]].append((row["first"], row["end"]))
    for row in dropped:
        found[row["topic"], row["queue_id"]].append((row["queue_offset"], row["queue_offset"] + 1))
    return {key: union(ranges) for key, ranges in found.items()}
