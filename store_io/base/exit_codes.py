"""The exit codes of the contract (docs/contract.md, 2): which counts for more, and what a store and a run earn."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.advice import MEANINGS, USUAL, Gap
from schemas.finding_codes import LOSS, NOTE, REBUILDABLE

CONSISTENT, DERIVED, INCOMPLETE, LOST = 0, 10, USUAL.exit_code, 20
# Those that say that an audit is incomplete: the usual one, and what single causes of gaps earn instead.
GAP_CODES = tuple(dict.fromkeys([INCOMPLETE, *sorted({m.exit_code for m in MEANINGS.values()} - {CONSISTENT, DERIVED, LOST})]))
_RANKS = {CONSISTENT: 0, DERIVED: 1, **dict.fromkeys(GAP_CODES, 2), LOST: 3}
_OF_SEVERITY = {LOSS: LOST, REBUILDABLE: DERIVED, NOTE: CONSISTENT}
SEVERITIES = tuple(_OF_SEVERITY)  # the most severe first


def of_severity(severity: str) -> int:
    """Return the exit code of a finding. An unknown severity, in tables of a later version, counts as the most severe."""
    return _OF_SEVERITY.get(severity, LOST)


def severity_rank(severity: str) -> int:
    """Return 0 for the most severe, which an unknown one counts as."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def of_store(severities: Iterable[str], gaps: Iterable[Gap]) -> int:
    """Return the exit code of a store by its findings' severities and its completeness.

    gaps: why the audit is incomplete.
    """
    return worst([*map(of_severity, severities), *(gap.exit_code for gap in gaps)])


def of_run(of_stores: Iterable[int], problems: Iterable[str]) -> int:
    """Return the most severe exit code of a run's stores.

    problems: why results were not written: the run is incomplete then.
    """
    return worst([*of_stores, *(INCOMPLETE for _ in problems)])


def worst(codes: Iterable[int]) -> int:
    """Return the one that counts; 0 for none."""
    return max(codes, key=lambda code: (rank(code), code == INCOMPLETE), default=CONSISTENT)


def rank(code: int) -> int:
    """Return the larger, the more severe; an unknown one counts as the most severe."""
    return _RANKS.get(code, _RANKS[LOST])
