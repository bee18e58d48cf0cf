"""Which exit code and which store counts for more (contract.md: 20 outranks 3, 3 outranks 10)."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.rows import LOSS, NOTE, REBUILDABLE, AuditOutcome

EXIT_RANK = {0: 0, 10: 1, 3: 2, 20: 3}
EXIT_WORDS = {0: "consistent", 10: "derived data differ", 3: "incomplete", 20: "loss"}
SEVERITIES = (LOSS, REBUILDABLE, NOTE)


def worst_exit_code(codes: Iterable[int]) -> int:
    """The one that counts for a run of several stores; 0 for none."""
    return max(codes, key=lambda code: EXIT_RANK[code], default=0)


def lost_of(outcome: AuditOutcome) -> tuple[int, int]:
    """(messages, bytes) that a start would cut."""
    return int(outcome.loss.get("messages", 0)), int(outcome.loss.get("bytes", 0))


def worst_first(outcomes: Iterable[AuditOutcome]) -> list[AuditOutcome]:
    """By exit code, then by what would be lost, then by the number of findings, then by name."""
    return sorted(
        outcomes,
        key=lambda o: (
            -EXIT_RANK[o.exit_code],
            -lost_of(o)[0],
            *(-o.counts.get(severity, 0) for severity in SEVERITIES),
            o.name,
        ),
    )
