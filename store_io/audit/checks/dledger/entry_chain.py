"""The chain of DLedger's entries: each index is one more than the one before, and no term falls (dledger.md 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas import dledger_layout as layout
from schemas.rows import Finding
from store_io.audit.evidence import Evidence
from store_io.rules.dledger.ledger_walks import FILLER, DataWalk, Stretch


@dataclass(frozen=True)
class PlacedStretch:
    """A stretch and its data file."""

    walk: DataWalk
    stretch: Stretch

    @property
    def start(self) -> int:
        """The physical offset of its first entry."""
        return self.walk.start + self.stretch.start

    @property
    def end(self) -> int:
        """The physical offset after its last entry."""
        return self.walk.start + self.stretch.end

    def continues(self, before: PlacedStretch) -> bool:
        """Whether its first entry is the one after the other's last."""
        return self.stretch.first_index == before.stretch.last_index + 1 and self.stretch.first_term >= before.stretch.last_term

    def follows_at_once(self, before: PlacedStretch) -> bool:
        """Whether nothing lies between the two, in one file or from one file to the next."""
        if self.walk is before.walk:
            return self.stretch.start == before.stretch.end
        ended = before.stretch.ended_by == FILLER or before.stretch.end == before.walk.size
        return self.stretch.start == 0 and ended and before.walk.start + before.walk.size == self.walk.start


def placed(walks: Sequence[DataWalk]) -> list[PlacedStretch]:
    """All stretches of the log, in its order."""
    return [PlacedStretch(w, s) for w in sorted(walks, key=lambda w: (w.start, w.path)) for s in w.stretches]


def is_leftover(stretch: PlacedStretch, before: PlacedStretch) -> bool:
    """Whether these are old entries after a cut that was written over: a lower term, or indexes that were given again.

    A cut leaves its bytes, and new entries are written over them from its place on (MmapFileList.truncateOffset).
    """
    if stretch.walk is not before.walk or stretch.follows_at_once(before):
        return False
    return stretch.stretch.first_term < before.stretch.last_term or stretch.stretch.first_index <= before.stretch.last_index


def live_stretches(walks: Sequence[DataWalk]) -> list[PlacedStretch]:
    """Those of the log as it is now, without what a cut has left after its new end."""
    found: list[PlacedStretch] = []
    for one in placed(walks):
        if found and is_leftover(one, found[-1]):
            continue
        found.append(one)
    return found


def entry_chain(evidence: Evidence) -> list[Finding]:
    """Where the chain breaks although each header is plausible by itself; damaged headers are the segment scan's findings."""
    if evidence.copy.loaded.ledger is None:
        return []
    stretches = live_stretches(list(evidence.ledger.values()))
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


def _broken(one: PlacedStretch, before: PlacedStretch, count: int) -> Finding:
    start, expected = one.stretch.start, before.stretch.last_index + 1
    index_fits = one.stretch.first_index == expected
    low = start + (layout.TERM_POSITION if index_fits else layout.INDEX_POSITION)
    return Finding(
        "ledger_chain_broken",
        one.walk.path,
        low,
        low + 8,
        phy_offset=one.start,
        expected=f"index {expected}, a term of at least {before.stretch.last_term}",
        actual=f"index {one.stretch.first_index}, term {one.stretch.first_term}",
        message="this entry's header does not continue the entries before it",
        count=count,
    )
