"""Words about several stores together: what their exit codes say, what they assume, the kinds of their notes, their losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from schemas.rows import DEFAULT, NAMED, NOTE, AuditOutcome
from store_io.audit.outcome.safety import lacks_of
from store_io.base.exit_codes import CONSISTENT, DERIVED, GAP_CODES, LOST
from store_io.base.wording import count_text


class ExitWords(NamedTuple):
    """The words for an exit code: up to three of them, and a clause."""

    short: str
    meaning: str


_EXIT_WORDS = {
    LOST: ExitWords("loss", "bytes or messages are damaged or missing, or a start would lose messages or fail"),
    **dict.fromkeys(GAP_CODES, ExitWords("incomplete", "not audited, or not completely")),
    DERIVED: ExitWords("derived data differ", "derived data differ: the CommitLog suffices to rebuild them"),
    CONSISTENT: ExitWords("consistent", "consistent"),
}
EXIT_CODES = ", ".join(f"{code} {words.short}" for code, words in _EXIT_WORDS.items())  # the most severe first


def exit_meaning(code: int) -> str:
    """Return a clause on a run's exit code. Any code but an audit's is that of a run that was stopped."""
    return _EXIT_WORDS[code].meaning if code in _EXIT_WORDS else "stopped"


def exit_words(code: int, outcomes: Iterable[AuditOutcome]) -> str:
    """Return the words for an exit code of these stores; for LOST, whether messages are concerned or the start.

    Copies that have diverged are not just called consistent.
    """
    outcomes = list(outcomes)
    if code == CONSISTENT and any(lacks_of(outcome)[1] for outcome in outcomes):
        return "each consistent by itself, diverged from another copy"
    grave = [o.plan.get("broker") for o in outcomes if o.exit_code == code == LOST]
    words = {_EXIT_WORDS[LOST].short if broker is None or broker.get("starts") else "no start" for broker in grave}
    return " or ".join(sorted(words, reverse=True)) or _EXIT_WORDS[code].short


def assumed_words(outcomes: Sequence[AuditOutcome]) -> str:
    """Say for how many stores of a run nobody named a release, or a broker.conf; "" if for none."""
    unnamed = [o.release for o in outcomes if o.release_from != NAMED]
    known = "" if all(o.release_from in (NAMED, DEFAULT) for o in outcomes) else "known "
    without = sum(o.settings_from == DEFAULT for o in outcomes)
    of_all, parts = f"of {len(outcomes):,} stores no", []
    if unnamed:
        assumed = f"{', '.join(sorted(set(unnamed)))} is assumed, and no repair command is shown"
        parts.append(f"for {len(unnamed):,} {of_all} {known}release was named: {assumed}")
    if without:
        parts.append(f"for {without:,} {of_all} broker.conf was named: RocketMQ's defaults are assumed")
    return "; ".join(parts)


def note_kinds(outcomes: Iterable[AuditOutcome], most: int = 3) -> str:
    """The kinds of the notes with their numbers, the most frequent first, at most `most` of them; "" without one."""
    kinds = Counter(f.code for outcome in outcomes for f in outcome.findings if f.severity == NOTE)
    return kinds_text([f"{code} {kinds[code]:,}" for code in sorted(kinds, key=lambda code: (-kinds[code], code))], most)


def kinds_text(kinds: Sequence[str], most: int = 3) -> str:
    """The first of the kinds, and how many others there are."""
    return ", ".join(kinds[:most]) + (f" and {count_text(len(kinds) - most, 'more kind')}" if len(kinds) > most else "")


def would_be_lost(lost: str, unknown: int) -> str:
    """How much starts would lose, and of how many stores that is not known: no start, or no prediction."""
    return f"{lost} would be lost by a start" + (f", not known of {count_text(unknown, 'store')}" if unknown else "")
