"""The words on whether a copy is safe to start: the decision of `safety`, as an answer to people's question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from schemas.finding_codes import CATALOGUE, STOP_REASONS, Code
from schemas.outcome import Outcome
from schemas.rows import LOSS, REBUILDABLE
from schemas.start_effect import Started
from store_io.answer.headline import Judgement, judge
from store_io.base.exit_codes import rank
from store_io.base.times import span_text
from store_io.base.wording import count_text
from store_io.outcome.safety import Safety, counted, is_unsafe, lacks_of

_NEVER_DELIVERED = (
    ("cut", "are never delivered again: their delivered copies are cut away"),
    ("never", "are never delivered: no copy of them is there"),
    ("after_end", "are never delivered, unless their copies lie in what was not copied: their time came after the last message"),
    ("unreached", "are never delivered: no slot of the timer wheel leads to their units"),
    ("no_unit", "are never delivered: they were taken out of their queue, and no unit of them is there"),
)


class Kind(NamedTuple):
    """The words and the sign for one answer.

    short: the answer in a cell of a table.
    shape: its sign on a page (`icon` in macros.html), and its colour there unless the exit code forbids it.
    meaning: what it says of a store, for a list.
    """

    short: str
    shape: str
    meaning: str


# Those of the most severe exit codes first, of one code the most dangerous to start.
_KINDS: Mapping[str, Kind] = {
    Safety.STOP: Kind(
        "do not start",
        "stop",
        "do not start yet: a start would lose messages, or the copy is damaged and could not be audited completely",
    ),
    Safety.GONE: Kind("messages gone", "stop", "all messages are gone, or those at the log's end that an earlier audit saw"),
    Safety.REFUSES: Kind("does not start", "stop", "the release does not start on the copy"),
    Safety.CARE: Kind("damaged", "care", "already damaged; a start makes nothing worse"),
    Safety.UNKNOWN: Kind("not known", "unknown", "not audited, or only in part"),
    Safety.DIVERGED: Kind(
        "diverged", "care", "another copy of the group holds other messages: whichever becomes master, the other's are lost"
    ),
    Safety.LACKS: Kind(
        "not as master", "care", "another copy of the group holds messages that are missing here: do not start as master"
    ),
    Safety.REBUILD: Kind("rebuild", "care", "ConsumeQueues, index files, the checkpoint or config/ need a rebuild"),
    Safety.EMPTY: Kind("no message", "unknown", "no message, and nothing shows that there ever was one"),
    Safety.SAFE: Kind("safe to start", "safe", "consistent"),
}
KINDS = tuple(_KINDS)
SHORT = {kind: row.short for kind, row in _KINDS.items()}
SHAPE_OF = {kind: row.shape for kind, row in _KINDS.items()}
MEANING = {kind: row.meaning for kind, row in _KINDS.items()}


def timer_words(outcome: Outcome) -> Iterator[str]:
    """Yield a line for each effect of a start on timer messages that someone must know."""
    fates = outcome.holds.timers.fates if outcome.holds.timers is not None else None
    if fates is None:
        return
    for name, words in _NEVER_DELIVERED:
        count = getattr(fates, name)
        if count.messages:
            yield f"{count_text(count.messages, 'timer message')}, due {span_text(count.first_time, count.last_time)}, {words}"
    if fates.again.messages:
        yield f"{count_text(fates.again.messages, 'timer message')} that were delivered come again"


def headline_of_all(kinds: Mapping[str, int], stores: int) -> str:
    """Return the answer for so many stores together. kinds: how many there are of each kind of answer."""
    of_all = f"of {count_text(stores, 'store')}"
    unsafe = sum(kinds[safety] for safety in Safety if is_unsafe(safety))
    lacking, damaged, unknown = kinds[Safety.DIVERGED] + kinds[Safety.LACKS], kinds[Safety.CARE], kinds[Safety.UNKNOWN]
    as_master = f"; {lacking:,} not as master" if lacking else ""
    others = (f"; {unknown:,} not known" if unknown else "") + as_master
    if unsafe:
        return f"{unsafe:,} {of_all} {'is' if unsafe == 1 else 'are'} not safe to start{others}"
    if damaged:
        return (
            f"{damaged:,} {of_all} {'is' if damaged == 1 else 'are'} already damaged{others or '; a start makes nothing worse'}"
        )
    if unknown:
        return f"For {unknown:,} {of_all} it is not known whether a start is safe{as_master}"
    if stores and kinds[Safety.SAFE] == stores:
        return "All stores are safe to start" if stores > 1 else "The store is safe to start"
    if kinds[Safety.DIVERGED]:
        number = kinds[Safety.DIVERGED]
        return f"{number:,} {of_all} {'has' if number == 1 else 'have'} diverged from another copy: choose a master first"
    if lacking:
        lacks, its, it = ("lacks", "its", "it") if lacking == 1 else ("lack", "their", "them")
        return f"{lacking:,} {of_all} {lacks} messages of {its} group: do not start {it} as master"
    return "No start loses a message, but some stores need care" if stores > 1 else "A start loses no message"


def lost_style(lost: bool, unknown: int, kinds: Mapping[str, int]) -> str:
    """Return the style of what starts would lose: green only if every store is safe in that. unknown: stores of unknown loss."""
    if lost:
        return "c-stop"
    unsound = unknown or any(kinds[safety] for safety in Safety if is_unsafe(safety) or safety in (Safety.DIVERGED, Safety.LACKS))
    return "" if unsound else "c-safe"


def why_it_ends(outcome: Outcome, started: Started) -> str:
    """Return the catalogue's sentence on the place at which recovery ends. A log that simply ends there has its own sentence."""
    reason = started.stop_reason
    if reason == "unwritten" and not counted(outcome, Code.BROKER_DROPS_MESSAGES):
        return "Nothing is written after it."
    return STOP_REASONS.get(reason, reason)


def most_dangerous_first(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, Judgement]]:
    """Sort outcomes by exit code, then by danger of a start, by loss, by findings, by name."""
    judged = [(outcome, judge(outcome)) for outcome in outcomes]
    return sorted(judged, key=lambda pair: _rank(*pair))


def _rank(outcome: Outcome, judgement: Judgement) -> tuple[object, ...]:
    counts = (
        outcome.loss.messages,
        lacks_of(outcome)[0],
        *(outcome.found.counts.get(severity, 0) for severity in (LOSS, REBUILDABLE)),
    )
    return danger_key(outcome.exit_code, judgement.kind, counts, outcome.name)


def danger_key(exit_code: int, kind: str, counts: Iterable[int], name: str) -> tuple[object, ...]:
    """Return the sort key of a store: the most severe exit code first, of one code the most dangerous to start.

    kind: one of KINDS.
    counts: messages that a start loses, messages of the group that the copy lacks, losses, rebuildable findings.
    """
    return -rank(exit_code), KINDS.index(kind), *(-count for count in counts), name


def meaning_of(outcome: Outcome, code: str) -> str:
    """Return a code's catalogue sentence. Damage also has its number of ranges, if one range makes several findings."""
    known = CATALOGUE.get(code)
    if known is None or code != Code.COMMITLOG_DAMAGED or not 0 < outcome.holds.damaged_extents < counted(outcome, code):
        return known.meaning if known else ""
    return f"{known.meaning.rstrip('.')}, in {count_text(outcome.holds.damaged_extents, 'damaged range')}."


def held(outcome: Outcome) -> str:
    """Return how many messages a copy holds, and how many placeholder records of a repair besides."""
    messages, placeholders = count_text(outcome.holds.messages, "message"), counted(outcome, Code.COMMITLOG_BRIDGED)
    return f"{messages} and {count_text(placeholders, 'placeholder record')}" if placeholders else messages
