"""Words about several stores together: their titles, exit codes, assumptions and notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobs.report.texts.text import printable
from schemas.outcome import Outcome
from schemas.rows import DEFAULT, NAMED, NOTE
from store_io.base.exit_codes import CONSISTENT, DERIVED, GAP_CODES, LOST
from store_io.base.wording import count_text
from store_io.outcome.safety import differs_alone, lacks_of

_LONGEST = 127  # characters of a brokerName that are shown: as many as RocketMQ allows
# Names of folders that any store may lie in, as RocketMQ's own default; a run makes them unique with -2, -3.
# A name that a person may have chosen, such as broker-1 or backup, is none of them.
_SAYS_NOTHING = re.compile(r"(store|data|rocketmq)(-[0-9]+)?", re.IGNORECASE)


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


def exit_words(code: int, outcomes: Iterable[Outcome]) -> str:
    """Return the words for an exit code of these stores; for LOST, whether messages are concerned or the start.

    Copies of which only another copy holds more are not said to differ from their logs.
    """
    outcomes = list(outcomes)
    own = [outcome for outcome in outcomes if outcome.exit_code == code]
    if code in (CONSISTENT, DERIVED) and not any(map(differs_alone, own)):
        if any(lacks_of(outcome)[1] for outcome in own):
            return "diverged from another copy"
        if own and code == DERIVED:
            return "lacking what another copy holds"
    grave = [o for o in outcomes if o.exit_code == code == LOST]
    words = {_EXIT_WORDS[LOST].short if o.effect is None or o.started is not None else "no start" for o in grave}
    return " or ".join(sorted(words, reverse=True)) or _EXIT_WORDS[code].short


def assumed_words(outcomes: Sequence[Outcome]) -> str:
    """Say for how many stores of a run nobody named a release, or a broker.conf; "" if for none."""
    unnamed = [o.release for o in outcomes if o.assumed.release_from != NAMED]
    known = "" if all(o.assumed.release_from in (NAMED, DEFAULT) for o in outcomes) else "known "
    without = sum(o.assumed.settings_from == DEFAULT for o in outcomes)
    of_all, parts = f"of {len(outcomes):,} stores no", []
    if unnamed:
        assumed = f"{', '.join(sorted(set(unnamed)))} is assumed, and no repair command is shown"
        parts.append(f"for {len(unnamed):,} {of_all} {known}release was named: {assumed}")
    if without:
        parts.append(f"for {without:,} {of_all} broker.conf was named: RocketMQ's defaults are assumed")
    return "; ".join(parts)


def note_kinds(outcomes: Iterable[Outcome], most: int = 3) -> str:
    """Return the kinds of the notes with their numbers, the most frequent first, at most `most` kinds. "" without a note."""
    kinds = Counter(f.code for outcome in outcomes for f in outcome.found.findings if f.severity == NOTE)
    return kinds_text([f"{code} {kinds[code]:,}" for code in sorted(kinds, key=lambda code: (-kinds[code], code))], most)


def kinds_text(kinds: Sequence[str], most: int = 3) -> str:
    """Return the first of the kinds, and how many others there are."""
    return ", ".join(kinds[:most]) + (f" and {count_text(len(kinds) - most, 'more kind')}" if len(kinds) > most else "")


def would_be_lost(lost: str, unknown: int) -> str:
    """Return how much starts would lose, and of how many stores that is not known: no start, or no prediction."""
    return f"{lost} would be lost by a start" + (f", not known of {count_text(unknown, 'store')}" if unknown else "")


def broker_name_of(outcome: Outcome) -> str:
    """Return brokerName of broker.conf, else the controller's name of the broker; "" if neither is known."""
    named = outcome.plan.settings.get("brokerName")
    if named is not None and named.value:
        return str(named.value)
    controller = outcome.started.controller if outcome.started is not None else None
    return controller.identity.broker if controller is not None and controller.identity is not None else ""


def store_title(name: str, broker_name: str | None, room: int = 0) -> str:
    """Return the store's name, or `broker-a (store)`.

    broker_name: hostile; "" or None if it is not known. A name with parentheses is not shown: it could end as another store's
    name does.
    room: if above 0, the characters of the whole; the broker's name is cut to fit.
    """
    if not broker_name or broker_name == name or not says_nothing(name) or {"(", ")"} & set(broker_name):
        return name
    own = f" ({name})"
    return printable(broker_name, max(room - len(own), 1) if room else _LONGEST) + own


def short_names(stores: Iterable[str]) -> dict[str, str]:
    """Return store -> the name that people read in its place.

    For a place this is its end, with the fewest folders that make it unlike all others.
    """
    known = sorted(set(stores))
    parts = {store: store.split("/") for store in known}
    ends = Counter("/".join(own[-n:]) for own in parts.values() for n in range(1, len(own) + 1))
    return {
        store: next((end for n in range(1, len(own)) if own[-n] and ends[end := "/".join(own[-n:])] == 1), store)
        for store, own in parts.items()
    }


def says_nothing(name: str) -> bool:
    """Say whether any store's folder may be called that."""
    return _SAYS_NOTHING.fullmatch(name) is not None


def title_of(outcome: Outcome) -> str:
    """Return the title of an audited store."""
    return store_title(outcome.name, broker_name_of(outcome))
