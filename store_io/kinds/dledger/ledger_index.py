"""DLedger's index against its data, both ways, and entries that index or checkpoint alone still know (dledger.md 3, 5)."""

from __future__ import annotations

from collections.abc import Iterator

from schemas import dledger_layout as layout
from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.kinds.dledger.ledger_chain import live_stretches
from store_io.kinds.dledger.ledger_walks import FILLER, UnitRun
from store_io.model.evidence import Evidence


def ledger_index(evidence: Evidence) -> list[Finding]:
    """Return the findings on the group's index; none if the log could not be read as a whole."""
    if evidence.copy.loaded.ledger is None or not evidence.log_whole or any(w.problem for w in evidence.units.values()):
        return []
    return [*_units(evidence), *_missing(evidence)]


def _units(evidence: Evidence) -> Iterator[Finding]:
    """Entries whose unit is another one, or not there."""
    live = {one.walk.path: one.stretch.end for one in live_stretches(evidence.ledger.values())}
    absent: set[int] = set()
    for walk in sorted(evidence.ledger.values(), key=lambda w: (w.start, w.path)):
        for units in walk.unequal_units:
            if units.position >= live.get(walk.path, 0):
                continue  # of old entries that a cut has left
            first, count = units.first_index, units.count
            at = first * layout.UNIT_BYTES
            file = next((f for f in evidence.copy.ledger_index if f.start <= at < f.start + f.size), None)
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
    """Entries after the last one: what the index or the checkpoint knows of them."""
    live = live_stretches(evidence.ledger.values())
    end = live[-1].stretch.last_index if live else -1
    committed = evidence.copy.ledger_texts.committed
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
    for walk in sorted(evidence.units.values(), key=lambda w: w.start):
        yield from walk.runs


def _place(evidence: Evidence, data_end: int, rolled: bool) -> tuple[str, int | None, int | None]:
    """(file, start, end) of the first missing entry: in the last data file, or of the file after it."""
    size = evidence.copy.rules.segment_bytes
    base = data_end - data_end % size + (size if rolled and data_end % size else 0)
    file = next((f for f in evidence.copy.ledger_data if f.start == base), None)
    if file is not None:
        low = 0 if rolled else data_end - base
        return file.path, low, min(low + layout.HEADER_BYTES, file.size)
    assert evidence.copy.loaded.ledger is not None
    return f"{evidence.copy.loaded.ledger.folder}/{layout.DATA}/{base:020d}", None, None
