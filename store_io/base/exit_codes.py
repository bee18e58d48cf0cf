"""The exit codes of the contract (docs/contract.md, 2): which counts for more, and what a store and a run earn."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.base.errors import StoreError

CONSISTENT, DERIVED, INCOMPLETE, LOST = 0, 10, StoreError.exit_code, 20
_RANKED = (CONSISTENT, DERIVED, INCOMPLETE, LOST)  # the most severe last
_OF_SEVERITY = {LOSS: LOST, REBUILDABLE: DERIVED, NOTE: CONSISTENT}
SEVERITIES = tuple(_OF_SEVERITY)  # the most severe first


def of_severity(severity: str) -> int:
    """Return the exit code of a finding. An unknown severity, in tables of a later version, counts as the most severe."""
    return _OF_SEVERITY.get(severity, LOST)


def severity_rank(severity: str) -> int:
    """0 for the most severe, which an unknown one counts as."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def of_store(severities: Iterable[str], complete: bool) -> int:
    """What a store earns by the severities of its findings and by whether all of it was read and is modelled."""
    return worst([*map(of_severity, severities), CONSISTENT if complete else INCOMPLETE])


def of_run(of_stores: Iterable[int], problems: Iterable[str]) -> int:
    """The most severe of its stores'. problems: what kept results from being written: such a run is incomplete."""
    return worst([*of_stores, *(INCOMPLETE for _ in problems)])


def worst(codes: Iterable[int]) -> int:
    """The one that counts; 0 for none."""
    return max(codes, key=rank, default=CONSISTENT)


def rank(code: int) -> int:
    """The larger, the more severe; an unknown one counts as the most severe."""
    return _RANKED.index(code) if code in _RANKED else _RANKED.index(LOST)
