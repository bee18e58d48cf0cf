"""Which exit code and which store counts for more (contract.md: 20 outranks 3, 3 outranks 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from schemas.rows import DEFAULT, LOSS, NOTE, REBUILDABLE, AuditOutcome
from store_io.base.wording import count_text

EXIT_RANK = {0: 0, 10: 1, 3: 2, 20: 3}
EXIT_WORDS = {0: "consistent", 10: "derived data differ", 3: "incomplete", 20: "loss"}
SEVERITIES = (LOSS, REBUILDABLE, NOTE)


def severity_rank(severity: str) -> int:
    """0 for the gravest. One that this version does not know, in tables that a later one wrote, counts as that."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def worst_exit_code(codes: Iterable[int]) -> int:
    """The one that counts for a run of several stores; 0 for none."""
    return max(codes, key=lambda code: EXIT_RANK[code], default=0)


def exit_words(code: int, outcomes: Iterable[AuditOutcome]) -> str:
    """What an exit code says of the stores that earned it; of 20, whether messages are concerned or the start."""
    grave = [o.plan.get("broker") for o in outcomes if o.exit_code == code == 20]
    words = {EXIT_WORDS[20] if broker is None or broker.get("starts") else "no start" for broker in grave}
    return " or ".join(sorted(words, reverse=True)) or EXIT_WORDS[code]


def assumed_words(outcomes: Sequence[AuditOutcome]) -> str:
    """For how many stores of a run nobody named a release, or a broker.conf; "" where for none."""
    unnamed = [o.release for o in outcomes if o.release_from == DEFAULT]
    without = sum(o.settings_from == DEFAULT for o in outcomes)
    of_all, parts = f"of {len(outcomes):,} stores no", []
    if unnamed:
        assumed = f"{', '.join(sorted(set(unnamed)))} is assumed, and no repair command is shown"
        parts.append(f"for {len(unnamed):,} {of_all} release was named: {assumed}")
    if without:
        parts.append(f"for {without:,} {of_all} broker.conf was named: RocketMQ's defaults are assumed")
    return "; ".join(parts)


def note_kinds(outcomes: Iterable[AuditOutcome], most: int = 3) -> str:
    """The kinds of the notes with their numbers, the most frequent first, of which so many are named; "" where there is none."""
    kinds = Counter(f.code for outcome in outcomes for f in outcome.findings if f.severity == NOTE)
    return kinds_text([f"{code} {kinds[code]:,}" for code in sorted(kinds, key=lambda code: (-kinds[code], code))], most)


def kinds_text(kinds: Sequence[str], most: int = 3) -> str:
    """The first of the kinds, and how many others there are."""
    return ", ".join(kinds[:most]) + (f" and {count_text(len(kinds) - most, 'more kind')}" if len(kinds) > most else "")


def would_be_lost(lost: str, unknown: int) -> str:
    """How much starts would lose, and of how many stores that is not known: no start, or no prediction."""
    return f"{lost} would be lost by a start" + (f", not known of {count_text(unknown, 'store')}" if unknown else "")
