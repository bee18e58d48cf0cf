"""The chain of DLedger's entries: each index is one more than the one before, and no term falls (dledger.md 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schemas import dledger_layout as layout
from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.kinds.dledger.ledger_chain import PlacedStretch, live_stretches
from store_io.model.evidence import Evidence


def entry_chain(evidence: Evidence) -> list[Finding]:
    """Return findings on breaks of the chain between headers that are plausible by themselves.

    Damaged headers are the segment scan's findings.
    """
    if evidence.copy.loaded.ledger is None:
        return []
    stretches = live_stretches(evidence.ledger.values())
    return list(_breaks(stretches))


def _breaks(stretches: Sequence[PlacedStretch]) -> Iterator[Finding]:
    trusted: PlacedStretch | None = None  # the last stretch that fits
    skip = False
    for number, one in enumerate(stretches):
        if skip:  # it continues what is before an odd entry
            trusted, skip = one, False
            continue
        if trusted is None or one.continues(trusted) or not one.follows_at_once(stretches[number - 1]):
            trusted = one
            continue
        if _rose_for_one(trusted, one):
            yield _too_high(trusted)
            trusted = one
            continue
        after = stretches[number + 1] if number + 1 < len(stretches) else None
        if after is not None and _is_odd(one, trusted, after):
            skip = True
            yield _broken(one, trusted, 1)
            continue
        yield _broken(one, trusted, max(1, one.stretch.first_index - trusted.stretch.last_index - 1))
        trusted = one


def _is_odd(one: PlacedStretch, before: PlacedStretch, after: PlacedStretch) -> bool:
    """Whether this one entry alone does not fit: what follows it continues what is before it."""
    whole = one.stretch.start == one.stretch.last_start and after.follows_at_once(one)
    fits = after.stretch.first_index == before.stretch.last_index + 2
    return whole and fits and after.stretch.first_term >= before.stretch.last_term


def _rose_for_one(before: PlacedStretch, one: PlacedStretch) -> bool:
    """Whether the last entry before alone has a term above those on both its sides."""
    last = before.stretch
    alone = last.last_term_start == last.last_start and last.first_index < last.last_index
    return alone and one.stretch.first_index == last.last_index + 1 and last.term_before <= one.stretch.first_term


def _too_high(one: PlacedStretch) -> Finding:
    last, low = one.stretch, one.stretch.last_start + layout.TERM_POSITION
    return Finding(
        Code.LEDGER_CHAIN_BROKEN,
        one.walk.path,
        low,
        low + 8,
        phy_offset=one.walk.start + last.last_start,
        expected=f"a term of at least {last.term_before}, and not above that of the entries after it",
        actual=f"term {last.last_term}",
        message="this entry's term is above that of the entries around it",
    )


def _broken(one: PlacedStretch, before: PlacedStretch, count: int) -> Finding:
    start, expected = one.stretch.start, before.stretch.last_index + 1
    index_fits = one.stretch.first_index == expected
    low = start + (layout.TERM_POSITION if index_fits else layout.INDEX_POSITION)
    return Finding(
        Code.LEDGER_CHAIN_BROKEN,
        one.walk.path,
        low,
        low + 8,
        phy_offset=one.start,
        expected=f"index {expected}, a term of at least {before.stretch.last_term}",
        actual=f"index {one.stretch.first_index}, term {one.stretch.first_term}",
        message="this entry's header does not continue the entries before it",
        count=count,
    )
