"""Checks a DLedger log: its chain of entries, its index against its data, its terms (dledger.md 1, 3, 5).

Each entry's index is one more than the one before, and no term falls. Index and data are compared both ways; entries that index
or checkpoint alone still know are named. A node whose entries have newer terms than it remembers could vote twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schemas.finding_codes import Code
from schemas.layouts import dledger_layout as layout
from schemas.rows import Finding
from store_io.kinds.dledger.ledger_chain import PlacedStretch, live_stretches
from store_io.kinds.dledger.ledger_kind import LEDGER
from store_io.kinds.dledger.ledger_walks import FILLER, UnitRun
from store_io.model.evidence import Evidence


def entry_chain(evidence: Evidence) -> list[Finding]:
    """Return findings on breaks of the chain between headers that are plausible by themselves.

    Damaged headers are the segment scan's findings.
    """
    if evidence.copy.loaded.ledger is None:
        return []
    stretches = live_stretches(evidence[LEDGER].data.values())
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
    """Say whether this one entry alone does not fit: what follows it continues what is before it."""
    whole = one.stretch.start == one.stretch.last_start and after.follows_at_once(one)
    fits = after.stretch.first_index == before.stretch.last_index + 2
    return whole and fits and after.stretch.first_term >= before.stretch.last_term


def _rose_for_one(before: PlacedStretch, one: PlacedStretch) -> bool:
    """Say whether the last entry before alone has a term above those on both its sides."""
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


def torn_entry(evidence: Evidence, finding: Finding) -> Finding:
    """Return the finding on an entry that was cut short, as that on one that a start keeps if it does.

    Recovery reads headers alone (dledger.md 3).
    """
    end = evidence.prediction.ledger_end if evidence.prediction is not None else None
    if finding.code != Code.COMMITLOG_TORN_TAIL or finding.phy_offset is None or end is None or finding.phy_offset >= end:
        return finding
    walk = evidence[LEDGER].data.get(finding.file)
    entry = next((s for s in walk.stretches if s.last_start == finding.start), None) if walk is not None else None
    if entry is None or finding.start is None or finding.end is None:
        return finding
    return Finding(
        Code.LEDGER_ENTRY_TORN,
        finding.file,
        entry.last_start,
        entry.end,
        phy_offset=finding.phy_offset,
        expected=f"entry {entry.last_index} of {entry.end - entry.last_start:,} bytes",
        actual=f"{finding.end - finding.start:,} bytes, then zeros",
    )


def ledger_index(evidence: Evidence) -> list[Finding]:
    """Return the findings on the group's index; none if the log could not be read as a whole."""
    if evidence.copy.loaded.ledger is None or not evidence.log_whole or any(w.problem for w in evidence[LEDGER].units.values()):
        return []
    return [*_units(evidence), *_missing(evidence)]


def _units(evidence: Evidence) -> Iterator[Finding]:
    """Yield entries whose unit is another one, or not there."""
    live = {one.walk.path: one.stretch.end for one in live_stretches(evidence[LEDGER].data.values())}
    absent: set[int] = set()
    for walk in sorted(evidence[LEDGER].data.values(), key=lambda w: (w.start, w.path)):
        for units in walk.unequal_units:
            if units.position >= live.get(walk.path, 0):
                continue  # of old entries that a cut has left
            first, count = units.first_index, units.count
            at = first * layout.UNIT_BYTES
            file = next((f for f in evidence.copy[LEDGER].index if f.start <= at < f.start + f.size), None)
            if file is None:
                absent.add(at - at % layout.INDEX_FILE_BYTES)
                continue
            low = at - file.start
            high = min(low + count * layout.UNIT_BYTES, file.size)
            yield Finding(
                Code.LEDGER_UNIT_WRONG,
                file.path,
                low,
                high,
                expected=f"the units of entries {first} to {first + count - 1}",
                actual="other ones, or zeros",
                count=count,
            )
    assert evidence.copy.loaded.ledger is not None
    for start in sorted(absent):
        path = f"{evidence.copy.loaded.ledger.folder}/{layout.INDEX}/{start:020d}"
        yield Finding(Code.LEDGER_INDEX_MISSING, path, expected="an index file", actual="no file")


def _missing(evidence: Evidence) -> Iterator[Finding]:
    """Yield entries after the last one: what the index or the checkpoint knows of them."""
    live = live_stretches(evidence[LEDGER].data.values())
    end = live[-1].stretch.last_index if live else -1
    committed = evidence.copy[LEDGER].texts.committed
    known = committed if committed is not None else -1
    # Units without a break: stale ones, left by a cut, have other positions or a lower term.
    beyond = (r for r in _runs(evidence) if r.first_index <= end + 1 <= r.last_index)
    run = next((r for r in beyond if r.first_index <= end or not live), None)
    if run is not None:
        known = max(known, run.last_index)
    if known <= end:
        return
    data_end = live[-1].end if live else run.start if run is not None else 0
    path, low, high = _place(evidence, data_end, bool(live) and live[-1].stretch.ended_by == FILLER)
    says = [f"committedIndex {committed}"] if committed is not None and committed > end else []
    says += [f"index units up to entry {run.last_index}"] if run is not None and run.last_index > end else []
    yield Finding(
        Code.LEDGER_ENTRIES_MISSING,
        path,
        low,
        high,
        phy_offset=data_end,
        expected=f"entries up to {known}: {', '.join(says)}",
        actual=f"the last entry is {end}" if live else "no entry",
        count=known - end,
    )


def _runs(evidence: Evidence) -> Iterator[UnitRun]:
    for walk in sorted(evidence[LEDGER].units.values(), key=lambda w: w.start):
        yield from walk.runs


def _place(evidence: Evidence, data_end: int, rolled: bool) -> tuple[str, int | None, int | None]:
    """Return (file, start, end) of the first missing entry: in the last data file, or of the file after it."""
    size = evidence.copy.rules.segment_bytes
    base = data_end - data_end % size + (size if rolled and data_end % size else 0)
    file = next((f for f in evidence.copy.ledger_data if f.start == base), None)
    if file is not None:
        low = 0 if rolled else data_end - base
        return file.path, low, min(low + layout.HEADER_BYTES, file.size)
    assert evidence.copy.loaded.ledger is not None
    return f"{evidence.copy.loaded.ledger.folder}/{layout.DATA}/{base:020d}", None, None


def ledger_terms(evidence: Evidence) -> list[Finding]:
    """Return the finding on a currterm that is older than the log."""
    ledger = evidence.copy.loaded.ledger
    live = live_stretches(evidence[LEDGER].data.values()) if ledger is not None else []
    if ledger is None or not live:
        return []
    term, own = live[-1].stretch.last_term, evidence.copy[LEDGER].texts.term
    if term <= (own or 0):
        return []
    path = f"{ledger.folder}/{layout.TERM}"
    actual = f"currTerm={own}" if own is not None else "no term"
    return [Finding(Code.LEDGER_TERM_OLD, path, *evidence.copy.entry_range(path), expected=f"at least {term}", actual=actual)]
