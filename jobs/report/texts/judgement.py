"""Whether a copy is safe to start, in words: what the audit says, put as the answer to the question that people come with.

The words add nothing to what an outcome holds: they follow from its broker section, its loss and its findings' severities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from jobs.report.texts.ranking import EXIT_RANK, lacks_of, lost_of
from jobs.report.texts.text import bytes_text, count_text, printable, span_text
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from schemas.rows import DEFAULT, DOUBT, LOSS, REBUILDABLE, AuditOutcome, Row
from store_io.audit.as_master import as_master
from store_io.audit.checks.repaired_store import repair_note
from store_io.base.wording import clause, names_text

STOP, UNKNOWN, REFUSES, CARE, REBUILD, SAFE = "stop", "unknown", "refuses", "care", "rebuild", "safe"
GONE, PARTED, LACKS, EMPTY = "gone", "diverged", "lacks", "empty"


class Kind(NamedTuple):
    """short: the answer in a cell of a table.  shape: its sign on a page (`icon` in macros.html), and its colour there unless the
    exit code forbids it.  meaning: what it says of a store, for a list."""

    short: str
    shape: str
    meaning: str


# Those of the gravest exit codes first, of one code the most dangerous to start.
_KINDS = {
    STOP: Kind("do not start", "stop", "do not start yet: messages would be lost, or too much is damaged or could not be read"),
    GONE: Kind("messages gone", "stop", "all messages are gone, or those at the log's end that an earlier audit saw"),
    REFUSES: Kind("does not start", "stop", "the release does not start on the copy"),
    CARE: Kind("damaged", "care", "already damaged; a start makes nothing worse"),
    UNKNOWN: Kind("not known", "unknown", "not audited, or only in part"),
    PARTED: Kind(
        "diverged", "care", "another copy of the group holds other messages: whichever becomes master, the other's are lost"
    ),
    LACKS: Kind(
        "not as master", "care", "another copy of the group holds messages that are missing here: do not start as master"
    ),
    REBUILD: Kind("rebuild", "care", "ConsumeQueues, index files or the checkpoint need a rebuild"),
    EMPTY: Kind("no message", "unknown", "no message, and nothing shows that there ever was one"),
    SAFE: Kind("safe to start", "safe", "consistent"),
}
KINDS = tuple(_KINDS)
SHORT = {kind: row.short for kind, row in _KINDS.items()}
SHAPE_OF = {kind: row.shape for kind, row in _KINDS.items()}
MEANING = {kind: row.meaning for kind, row in _KINDS.items()}
# What a start of a copy by itself or as master would do, whatever its exit code: the most dangerous first.
_BY_START = (STOP, GONE, UNKNOWN, REFUSES, PARTED, LACKS, CARE, REBUILD, EMPTY, SAFE)
DANGER = {kind: -place for place, kind in enumerate(_BY_START)}


@dataclass(frozen=True)
class Judgement:
    """kind: one of the above.  headline: the answer.  why: sentences, plain text that may hold a store's names."""

    kind: str
    headline: str
    why: tuple[str, ...] = ()


_NOT_KNOWN = "Not known whether this copy is safe to start"


def judge(outcome: AuditOutcome) -> Judgement:
    """The answer for one store: that of the copy by itself, or that its group holds what it lacks, whichever is graver."""
    answer = _judge(outcome)
    given_up = repair_note(outcome)
    if given_up:
        number = next(f.actual for f in outcome.findings if f.code == "store_repaired")
        head = f"{answer.headline}; the repair that made it gave up {number}" if answer.kind == SAFE else answer.headline
        answer = replace(answer, headline=head, why=(*answer.why, given_up))
    if any(premise.kind == DOUBT for premise in outcome.premises) and outcome.plan.get("broker") is not None:
        answer = replace(answer, headline=f"{answer.headline}, by what was named, which does not fit this copy")
    assumed = _assumed(outcome, answer)
    if outcome.written_by and assumed:
        return _of_another_release(outcome, answer)
    return replace(answer, headline=f"{answer.headline}, if {assumed}") if assumed else answer


def _assumed(outcome: AuditOutcome, answer: Judgement) -> str:
    """What is assumed and the answer may depend on, as a clause; "" where there is nothing."""
    if outcome.plan.get("broker") is None or answer.kind in (GONE, PARTED, LACKS, EMPTY):
        return ""
    parts = [f"its release is {outcome.release}"] if outcome.release_from == DEFAULT else []
    if outcome.settings_from == DEFAULT and answer.kind == SAFE:
        parts.append("its broker.conf keeps RocketMQ's defaults")
    return f"{' and '.join(parts)}, which is assumed" if parts else ""


def _of_another_release(outcome: AuditOutcome, answer: Judgement) -> Judgement:
    """The answer where the release that was assumed is none of those that can have written the copy: it can only warn."""
    wrote = f"by its files RocketMQ {outcome.written_by} wrote it, and this verdict is for {outcome.release}"
    if answer.kind == STOP:
        return replace(answer, headline=f"{answer.headline}; {wrote}")
    by_its_rules = f"By the rules of {outcome.release}: {answer.headline}."
    return Judgement(UNKNOWN, f"{_NOT_KNOWN}: {wrote}", (by_its_rules, *answer.why))


def _judge(outcome: AuditOutcome) -> Judgement:
    alone = _judge_alone(outcome)
    lacking = as_master(outcome.replicas, outcome.name)
    if lacking is None:
        return alone
    kind = PARTED if lacking.parted else LACKS
    if DANGER[alone.kind] > DANGER[kind]:
        return Judgement(alone.kind, alone.headline, (*alone.why, f"{lacking.verdict()}."))
    by_itself = () if alone.kind in (SAFE, EMPTY) else (f"{alone.headline}.", *alone.why)
    return Judgement(kind, lacking.headline(), by_itself)


def _judge_gone(outcome: AuditOutcome) -> Judgement | None:
    """The answer for a copy whose messages are gone: from its CommitLog, or from the log's end since an earlier audit."""
    codes = {f.code for f in outcome.findings if f.severity == LOSS}
    if "commitlog_emptied" not in codes and "commitlog_shrunk" not in codes:
        return None
    seen = outcome.furthest
    saw = f"the audit of {seen.started_at} UTC saw {count_text(seen.messages, 'message')}" if seen is not None else ""
    if outcome.messages:
        return Judgement(GONE, f"Messages are gone from the end of this copy; {saw}")
    shows = any(queue.get("disk_entries") for queue in outcome.queues) or outcome.index_files
    return Judgement(
        GONE,
        f"Nothing to lose is left here; {saw or 'there were messages once'}",
        ("Do not start it: a start deletes the queues and index files that still tell what was there.",) if shows else (),
    )


def _judge_alone(outcome: AuditOutcome) -> Judgement:
    """The answer for the copy by itself."""
    gone = _judge_gone(outcome)
    if gone is not None and not outcome.messages:
        return gone
    broker = outcome.plan.get("broker")
    damaged = outcome.counts.get(LOSS, 0) > counted(outcome, "broker_refuses")
    if broker is None:
        why = tuple(outcome.incomplete[:5]) or ("What this release would do here is not modelled.",)
        if damaged:
            return Judgement(STOP, "Do not start this copy: it is damaged, and not all of it could be audited", why)
        return Judgement(UNKNOWN, _NOT_KNOWN, why)
    if not broker.get("starts"):
        why = (f"It refuses: {broker.get('refusal')}.", "A refused start loses nothing. A repair removes the cause.")
        if damaged:
            why += ("Bytes of the CommitLog are also damaged or missing.",)
        return Judgement(REFUSES, f"RocketMQ {outcome.release} does not start on this copy", why)
    reasons = []
    cut, skipped = counted(outcome, "broker_drops_messages"), counted(outcome, "broker_skips_messages")
    hangs = counted(outcome, "broker_hangs")
    if hangs:
        reasons.append("A start never ends: it waits at a gap in the CommitLog.")
    if cut:
        stop = STOP_REASONS.get(str(broker.get("stop_reason")), "")
        ends = f"{int(broker.get('truncate_at') or 0):,}{f' and stops there: {lower(stop)}' if stop else ''}"
        cuts = f"It cuts everything after that: {count_text(cut, 'valid message')}."
        reasons.append(f"Recovery reads the CommitLog up to physical offset {ends}. {cuts}")
    if skipped:
        stay, them = ("message stays", "it") if skipped == 1 else ("messages stay", "them")
        reasons.append(f"{skipped:,} {stay} in the CommitLog without a queue entry: consumers do not get {them}.")
    messages, size = lost_of(outcome)
    if messages:
        topics = outcome.loss.get("by_topic", ())
        times = [(t["first_store_time"], t["last_store_time"]) for t in topics]
        when = f", stored {span_text(min(t[0] for t in times), max(t[1] for t in times))}" if times else ""
        lost = f"{count_text(messages, 'message')} ({bytes_text(size)})"
        reasons.append(f"Consumers lose {lost} of {count_text(len(topics), 'topic')} in all{when}.")
    if reasons:
        head = "Do not start this copy yet" if hangs or cut else "Do not start this copy before its queues are rebuilt"
        return Judgement(STOP, head, tuple(reasons))
    if gone is not None:
        return gone
    if damaged and not outcome.messages:
        why = ("Other files name messages that the CommitLog does not hold. A start deletes these files.",)
        return Judgement(STOP, "Do not start this copy: its CommitLog holds no message", why)
    if any(f.severity == LOSS and f.code in ("segment_missing", "message_lost") for f in outcome.findings):
        why = (
            "A segment is gone, or queue entries lead to places where this copy holds no message. A repair cannot bring these"
            " messages back: look for them in another copy of the same broker first.",
        )
        return Judgement(CARE, "Messages are missing from this copy already; a start loses none of the others", why)
    if damaged:
        why = ("Bytes of the CommitLog are damaged or missing. Look for them in another copy of the same broker.",)
        return Judgement(CARE, "Some messages in this copy are already damaged; a start makes nothing worse", why)
    if outcome.incomplete:
        read = "A start loses nothing that was read, but not all of this copy was read"
        return Judgement(UNKNOWN, read if outcome.not_read else _NOT_KNOWN, tuple(outcome.incomplete[:5]))
    if counted(outcome, "commitlog_empty"):
        empty = CATALOGUE["commitlog_empty"]
        return Judgement(EMPTY, empty.meaning.rstrip("."), (empty.next,))
    if outcome.counts.get(REBUILDABLE):
        after = " (after a crash; a start mends some of it by itself)" if broker.get("exit") == "unclean" else ""
        differ = f"ConsumeQueues, index files, the checkpoint or config/ do not agree with the CommitLog{after}."
        why = (f"{differ} The CommitLog is whole; the others can be rebuilt from it.",)
        return Judgement(REBUILD, "A start loses no message, but queues, index or other derived files need a rebuild", why)
    if outcome.not_judged:
        why = (
            "Every byte of CommitLog, ConsumeQueues and index files was checked; they, the checkpoint and the offsets in"
            " config/ agree with each other.",
            f"Not judged, although a start reads it: {names_text(outcome.not_judged, len(outcome.not_judged))}.",
        )
        return Judgement(SAFE, "Safe to start, but parts of this copy were not judged", why)
    return Judgement(SAFE, "Safe to start", ("Every byte was checked, and all parts agree with each other.",))


def verdict_alone(outcome: AuditOutcome) -> str:
    """The verdict without the premises that it begins with, where these are shown before it."""
    verdict = outcome.verdict
    for premise in outcome.premises:
        verdict = verdict.removeprefix(f"{premise.sentence}. ")
    return verdict


def headline_of_all(kinds: Mapping[str, int], stores: int) -> str:
    """The answer for so many stores together. kinds: how many there are of each kind of answer."""
    of_all = f"of {count_text(stores, 'store')}"
    unsafe, lacking = kinds[STOP] + kinds[GONE] + kinds[REFUSES], kinds[PARTED] + kinds[LACKS]
    if unsafe:
        return f"{unsafe:,} {of_all} {'is' if unsafe == 1 else 'are'} not safe to start"
    if kinds[CARE]:
        return f"{kinds[CARE]:,} {of_all} {'is' if kinds[CARE] == 1 else 'are'} already damaged; a start makes nothing worse"
    if kinds[UNKNOWN]:
        return f"For {kinds[UNKNOWN]:,} {of_all} it is not known whether a start is safe"
    if stores and kinds[SAFE] == stores:
        return "All stores are safe to start" if stores > 1 else "The store is safe to start"
    if lacking:
        lacks, its, it = ("lacks", "its", "it") if lacking == 1 else ("lack", "their", "them")
        return f"{lacking:,} {of_all} {lacks} messages of {its} group: do not start {it} as master"
    return "No start loses a message, but some stores need care" if stores > 1 else "A start loses no message"


def why_it_ends(outcome: AuditOutcome, broker: Row) -> str:
    """Why recovery ends where it does, a catalogue sentence; of a log that simply ends there, just that."""
    reason = str(broker.get("stop_reason"))
    if reason == "unwritten" and not counted(outcome, "broker_drops_messages"):
        return "Nothing is written after it."
    return STOP_REASONS.get(reason, reason)


def most_dangerous_first(outcomes: Iterable[AuditOutcome]) -> list[tuple[AuditOutcome, Judgement]]:
    """By exit code, the gravest first; then which copies are unsafe to start, by what would be lost, by findings, by name."""
    judged = [(outcome, judge(outcome)) for outcome in outcomes]
    return sorted(judged, key=lambda pair: _rank(*pair))


def _rank(outcome: AuditOutcome, judgement: Judgement) -> tuple[object, ...]:
    lost, lacks = lost_of(outcome)[0], lacks_of(outcome)[0]
    counts = (-outcome.counts.get(severity, 0) for severity in (LOSS, REBUILDABLE))
    return -EXIT_RANK[outcome.exit_code], KINDS.index(judgement.kind), -lost, -lacks, *counts, outcome.name


def counted(outcome: AuditOutcome, code: str) -> int:
    """How many there are of a code, the folded ones too."""
    return sum(f.count for f in outcome.findings if f.code == code) + outcome.findings_dropped.get(code, 0)


def meaning_of(outcome: AuditOutcome, code: str) -> str:
    """A code's catalogue sentence. Of damage also in how many ranges it lies, where one range makes several findings."""
    known = CATALOGUE.get(code)
    if known is None or code != "commitlog_damaged" or not 0 < outcome.damaged_extents < counted(outcome, code):
        return known.meaning if known else ""
    return f"{known.meaning.rstrip('.')}, in {count_text(outcome.damaged_extents, 'damaged range')}."


def held(outcome: AuditOutcome) -> str:
    """How many messages a copy holds, and how many placeholder records of a repair besides."""
    messages, placeholders = count_text(outcome.messages, "message"), counted(outcome, "commitlog_bridged")
    return f"{messages} and {count_text(placeholders, 'placeholder record')}" if placeholders else messages


def lower(sentence: str) -> str:
    """A catalogue sentence as a part of a longer one: no capital, no full stop."""
    return clause(printable(sentence))
