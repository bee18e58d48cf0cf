"""The words on whether a copy is safe to start: the decision of `safety`, as an answer to people's question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jobs.report.texts.text import printable
from schemas.advice import Advice, Step
from schemas.finding_codes import CATALOGUE, STOP_REASONS, Code
from schemas.losses import ALL_READ
from schemas.outcome import Outcome
from schemas.rows import DEFAULT, DOUBT, LOSS, NAMED, REBUILDABLE
from schemas.start_effect import Started
from store_io.answer.day_steps import segments_that_go, timers_passed_over
from store_io.base.exit_codes import rank
from store_io.base.times import minute_text, span_text
from store_io.base.wording import bytes_text, clause, count_text, names_text
from store_io.checks.missing_messages import missing_text
from store_io.checks.repaired_store import repair_note
from store_io.outcome.safety import (
    OF_ANY_RELEASE,
    Decision,
    Safety,
    Start,
    changed_alone,
    config_entries_lost,
    config_losses,
    config_unknown,
    counted,
    decide,
    differs_from_log,
    election_hangs,
    entries_lost,
    entries_lost_clauses,
    has_other_losses,
    is_damaged,
    is_unsafe,
    lacks_of,
    mended_by_a_start,
    named_sentences,
    no_config,
    refused_by_config,
    setting_at_fault,
    setting_that_cuts,
    settings_at_odds,
    shows_gone,
    start_beside_settings,
    tables_behind,
    timers_lost,
    unqueueable,
)
from store_io.outcome.verdict import names_first_gap
from store_io.source.store_dir import DLEDGER
from store_io.wording import not_whole
from store_io.wording.refusals import refusal_sentence
from store_io.wording.steps import advice_text

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


class Reason(NamedTuple):
    """One reason for an answer. in_verdict: the verdict says it, too."""

    sentence: str
    in_verdict: bool = False


@dataclass(frozen=True)
class Judgement:
    """The answer for one store, with its reasons.

    kind: one of the above.
    headline: the answer.
    reasons: sentences, plain text that may hold a store's names.
    condition: under which alone a safe copy is safe to start, as its headline has it; else "".
    """

    kind: Safety
    headline: str
    reasons: tuple[Reason, ...] = ()
    condition: str = ""

    @property
    def why(self) -> tuple[str, ...]:
        """Return the sentences of all reasons."""
        return tuple(reason.sentence for reason in self.reasons)

    def adding(self, *sentences: str, in_verdict: bool = False) -> Judgement:
        """Return the answer with further reasons."""
        return replace(self, reasons=(*self.reasons, *(Reason(sentence, in_verdict) for sentence in sentences)))


_NOT_KNOWN = "Not known whether this copy is safe to start"


def judge(outcome: Outcome) -> Judgement:
    """Return the answer for one store, with what it assumes."""
    decision = decide(outcome)
    answer = _in_group(outcome, decision)
    known = outcome.effect is not None
    again = known and decision.alone != Safety.GONE and bool(outcome.whole.signs)
    if again:  # what is missing may still be had: that comes before all that a start or a repair does
        reasons = (Reason(f"{answer.headline}.", decision.start == Start.CONFIG_LOST), *answer.reasons)
        answer = replace(answer, headline=not_whole.headline(outcome.whole.signs[0]), reasons=reasons)
    if answer.kind == Safety.SAFE and (absent := no_config(outcome)):
        answer = replace(answer, condition=f"once {absent} is there")
    if answer.kind in (Safety.SAFE, Safety.REBUILD) and known and (first := _first_day(outcome)):
        answer = replace(answer, headline=f"{answer.headline}, but first {first}")
    if answer.kind == Safety.SAFE and outcome.assumed.unsafe_settings:
        head = f"{answer.headline}, but change broker.conf before new messages come"
        answer = replace(answer, headline=head).adding(*(f"{change}." for change in outcome.assumed.unsafe_settings))
    answer = answer.adding(*(f"{said}." for said in named_sentences(outcome)), in_verdict=True)
    given_up = repair_note(outcome)
    if given_up:
        number = next(f.actual for f in outcome.found.findings if f.code == Code.STORE_REPAIRED)
        safe = answer.kind == Safety.SAFE
        head = f"{answer.headline}; the repair that made it gave up {number}" if safe else answer.headline
        answer = replace(answer, headline=head).adding(given_up, in_verdict=True)
    if any(premise.kind == DOUBT for premise in outcome.assumed.premises) and known:
        answer = replace(answer, headline=f"{answer.headline}, by what was named, which does not fit this copy")
    if decision.other_release:
        return _of_another_release(outcome, decision.safety, answer)
    assumed = _assumed(outcome, answer) if known and not again else ""
    return replace(answer, headline=f"{answer.headline}, if {assumed}") if assumed else answer


def _first_day(outcome: Outcome) -> str:
    """Return a clause on what to see to before a start, because of what the broker does by itself; "" for nothing."""
    going, late = sum(segments_that_go(outcome)), timers_passed_over(outcome)
    if outcome.first_day is None or not going and not late:
        return ""
    starts = f"if it starts {minute_text(outcome.first_day.moment.at_ms)}"
    if going:
        return f"keep {count_text(going, 'segment')} that the broker deletes by itself {starts}"
    return f"see to {count_text(late, 'timer message')} that the broker never delivers {starts}"


def _assumed(outcome: Outcome, answer: Judgement) -> str:
    """Return a clause on the assumptions on which the answer may depend; "" without any."""
    if answer.kind in OF_ANY_RELEASE:
        return ""
    parts = [f"its release is {outcome.release}"] if outcome.assumed.release_from == DEFAULT else []
    if outcome.assumed.release_from not in (NAMED, DEFAULT):
        parts.append(f"{outcome.assumed.release_from} does as {outcome.release}")
    if outcome.assumed.inferred_mode:
        parts.append("its broker runs in controller mode")
    if outcome.assumed.settings_from == DEFAULT and answer.kind == Safety.SAFE:
        parts.append("its broker.conf keeps RocketMQ's defaults")
    return f"{' and '.join(parts)}, which is assumed" if parts else ""


def _of_another_release(outcome: Outcome, safety: Safety, answer: Judgement) -> Judgement:
    """Return the answer if the assumed release cannot have written the copy."""
    wrote = f"by its files RocketMQ {outcome.assumed.written_by} wrote it, and this verdict is for {outcome.release}"
    if safety == answer.kind:
        return replace(answer, headline=f"{answer.headline}; {wrote}")
    by_its_rules = f"By the rules of {outcome.release}: {answer.headline}."
    return Judgement(safety, f"{_NOT_KNOWN}: {wrote}", (Reason(by_its_rules), *answer.reasons))


def _in_group(outcome: Outcome, decision: Decision) -> Judgement:
    """Return the answer for the copy by itself, or that its group holds what it lacks, whichever is graver."""
    headline, why = _gone(outcome) if decision.alone == Safety.GONE else _by_itself(outcome, decision.start)
    if outcome.whole.missing and decision.alone != Safety.GONE and decision.start not in (Start.MISSING, Start.DAMAGED):
        why = (*why, f"{_already(outcome, 'missing from this copy already')}.")
    if decision.start != Start.LOSES_CONFIG or decision.alone == Safety.GONE:
        why = (*why, *_entries_lost(outcome))
    refuses = decision.start == Start.REFUSES and outcome.refusal is not None
    said = decision.alone != Safety.GONE and (refuses or names_first_gap(outcome))
    alone = Judgement(decision.alone, headline).adding(*why[:1], in_verdict=said).adding(*why[1:])
    lacking = decision.lacking
    if lacking is None:
        return alone
    if decision.in_group == decision.alone:
        return alone.adding(f"{lacking.verdict()}.", in_verdict=True)
    by_itself = () if decision.alone in (Safety.SAFE, Safety.EMPTY) else (Reason(f"{headline}."), *alone.reasons)
    return Judgement(decision.in_group, lacking.headline(), by_itself)


_Words = tuple[str, tuple[str, ...]]  # headline, why


def _gone(outcome: Outcome) -> _Words:
    """Return the words on a copy whose messages are gone.

    They are gone from its CommitLog, or from the log's end since an earlier audit.
    """
    seen = outcome.whole.furthest
    saw = f"the audit of {seen.started_at} UTC saw {count_text(seen.messages, 'message')}" if seen is not None else ""
    if outcome.holds.messages:
        return f"Messages are gone from the end of this copy; {saw}", ()
    do_not = (advice_text(Advice(Step.DO_NOT_START)),) if shows_gone(outcome) else ()
    gone = clause(_already(outcome, "gone")) if outcome.whole.missing else "" if saw else "there were messages once"
    return f"Nothing to lose is left here; {'; '.join(filter(None, [gone, saw]))}", do_not


def _already(outcome: Outcome, what: str) -> str:
    """Return how many messages are missing, or the word for it, as the beginning of a sentence."""
    missing = outcome.whole.missing
    text = missing_text(missing) or "Messages"
    return f"{text[:1].upper()}{text[1:]} {'is' if missing is not None and missing.messages == 1 else 'are'} {what}"


def _by_itself(outcome: Outcome, start: Start) -> _Words:
    """Return the words on the copy by itself."""
    match start:
        case Start.NOT_KNOWN | Start.NOT_KNOWN_OF_DAMAGED:
            fault = "it is damaged" if is_damaged(outcome) else f"it would begin without {entries_lost(outcome)}"
            damaged = f"Do not start this copy: {fault}, and not all of it could be audited"
            why = tuple(outcome.incomplete[:5]) or ("What this release would do here is not modelled.",)
            return _NOT_KNOWN if start == Start.NOT_KNOWN else damaged, why
        case Start.AGAINST_SETTINGS:
            at_odds, beside = settings_at_odds(outcome), start_beside_settings(outcome)
            settings = names_text(list(dict.fromkeys(f.actual for f in at_odds if f.actual)))
            others = [f"{f.message[:1].upper()}{f.message[1:]}." for f in at_odds[1:]]
            unread = any(f.code == Code.MESSAGES_NOT_READ for f in at_odds)
            if beside == Start.REFUSES or not unread and beside not in (Start.SAFE, Start.EMPTY):
                headline, why = _by_itself(outcome, beside)
                others += [f"{headline}.", *why]
            first = "".join(f.message for f in at_odds[:1])
            return f"Do not start this copy with {settings or 'this broker.conf'}: {first}", tuple(others)
        case Start.REFUSES:
            at = outcome.refusal.setting or outcome.refusal.path if outcome.refusal is not None else ""
            head = f"RocketMQ {outcome.release} does not start on this copy"
            return f"{head}: {at}" if at else head, tuple(_refusal(outcome))
        case Start.CUTS:
            setting = setting_that_cuts(outcome)
            alone = setting and not has_other_losses(outcome)
            head = f"Do not start this copy with {setting}=true" if alone else "Do not start this copy yet"
            return f"{head}: {_cut(outcome)}", tuple(_losses(outcome))
        case Start.LEAVES_UNSERVED:
            if not outcome.loss.messages and not counted(outcome, Code.BROKER_SKIPS_MESSAGES):
                timers = count_text(timers_lost(outcome), "timer message")
                return f"A start never delivers {timers} of this copy", tuple(_losses(outcome))
            if counted(outcome, Code.LEDGER_CRASH_CUT):
                crash = "abort and the checkpoint of its DLedger group"
                return f"Do not start this copy before {crash} are removed from it", tuple(_losses(outcome))
            if (lasting := unqueueable(outcome)) and lasting == outcome.loss.messages:
                head = f"Neither a start nor a repair brings {count_text(lasting, 'message')} of this copy into a queue"
                return head, tuple(_losses(outcome))
            left = counted(outcome, Code.BROKER_SKIPS_MESSAGES) or outcome.loss.messages
            head = f"a start leaves {count_text(left, 'message')} without a queue entry"
            return f"Do not start this copy before its queues are rebuilt: {head}", tuple(_losses(outcome))
        case Start.LOSES_CONFIG:
            others = list(config_losses(outcome))
            if is_damaged(outcome):
                others.append("bytes of the CommitLog are already damaged or missing")
            elif differs_from_log(outcome):
                others.append("what is derived from the CommitLog differs, too, and can be rebuilt")
            file = config_entries_lost(outcome)[0].file
            head = f"Do not start this copy yet: it would begin without {entries_lost(outcome)} ({file})"
            return head, (*_entries_lost(outcome), *(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in others))
        case Start.NOT_READ:
            read = "A start loses nothing that was read, but not all of this copy was read"
            return read if outcome.covered.not_read != ALL_READ else _NOT_KNOWN, tuple(outcome.incomplete[:5])
        case Start.EMPTY:
            empty = CATALOGUE[Code.COMMITLOG_EMPTY]
            return empty.meaning.rstrip("."), (advice_text(empty.next),)
        case Start.REBUILD:
            unclean = outcome.effect is not None and not outcome.effect.clean
            part = "it" if mended_by_a_start(outcome) else "some of it"
            after = f" (after a crash; a start mends {part} by itself)" if unclean else ""
            differ = f"ConsumeQueues, index files, the checkpoint or config/ do not agree with the CommitLog{after}."
            why = (f"{differ} The CommitLog is whole; the others can be rebuilt from it.",)
            if mended_by_a_start(outcome):
                return f"A start loses no message and mends what differs: {_most_differing(outcome)}", why
            return f"A start loses no message, but a rebuild is needed: {_most_differing(outcome)}", why
        case Start.MISSING:
            return f"{_already(outcome, 'missing from this copy already')}; a start loses none of the others", _FIND_THEM
        case Start.DAMAGED if changed_alone(outcome):
            segments = count_text(counted(outcome, Code.SEGMENT_CHANGED), "segment")
            head = f"Bytes of {segments} changed since an earlier audit, under the same modification time"
            return f"{head}; a start makes nothing worse", _LOOK_AT_BYTES
        case Start.DAMAGED if outcome.whole.missing:
            return f"{_already(outcome, 'already damaged in this copy')}; a start makes nothing worse", _ALWAYS_THE_SAME[start][1]
        case Start.CONFIG_LOST:
            differs = ["what is derived from the CommitLog differs, too, and can be rebuilt"] if differs_from_log(outcome) else []
            lost = [*config_losses(outcome), *tables_behind(outcome), *differs]
            why = tuple(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in lost[1:])
            return f"A start loses no message, but {lost[0]}", why
        case Start.SAFE if outcome.covered.not_judged or no_config(outcome):
            loads = outcome.effect.config if outcome.effect is not None else None
            offsets = loads is not None and loads.read.get("consumerOffset.json")
            agree = "they, the checkpoint and the offsets in config/" if offsets else "they and the checkpoint"
            # they may refuse, or lose
            unsure = ", but its timers were not judged" if "timers" in outcome.covered.not_judged else ""
            reasons = [f"Every byte of CommitLog, ConsumeQueues and index files was checked; {agree} agree with each other."]
            if absent := no_config(outcome):
                unsure = f" once {absent} is there{unsure}"
                reasons.append(f"{absent} is not in this copy: by this copy alone a start knows no {config_unknown(outcome)}.")
            reasons += _not_judged(outcome.covered.not_judged)
            return f"Safe to start{unsure}", tuple(reasons)
        case _:
            return _ALWAYS_THE_SAME[start]


def _cut(outcome: Outcome) -> str:
    """Return a clause on the largest loss of a start that cuts the log, or that never ends."""
    if election_hangs(outcome):
        return "its election as master never ends"
    if counted(outcome, Code.BROKER_HANGS):
        return "a start never ends"
    cut = count_text(counted(outcome, Code.BROKER_DROPS_MESSAGES), "valid message")
    assert outcome.started is not None
    return f"a start cuts {cut} after physical offset {outcome.started.log_end:,}"


def _most_differing(outcome: Outcome) -> str:
    """Return a clause on what differs most: the code of most findings without a loss, their number, and the first file."""
    rows = [f for f in outcome.found.findings if f.severity == REBUILDABLE and f.code != Code.COPY_IS_BEHIND]
    number = Counter[str]()
    for finding in rows:
        number[finding.code] += finding.count
    code, most = number.most_common(1)[0]
    file = next(f.file for f in rows if f.code == code)
    return f"{lower(CATALOGUE[code].meaning)} ({most:,}, {file})" if most > 1 else f"{lower(CATALOGUE[code].meaning)} ({file})"


def _entries_lost(outcome: Outcome) -> tuple[str, ...]:
    """Return a sentence for each table of config/ of which the copy shows more than a start holds."""
    return tuple(f"{clause[:1].upper()}{clause[1:]}." for clause in entries_lost_clauses(outcome))


def _not_judged(names: Sequence[str]) -> Iterator[str]:
    others = [name for name in names if DLEDGER.fullmatch(name)]
    own = [name for name in names if name not in others]
    if own:
        yield f"Not judged, although a start reads it: {names_text(own, len(own))}."
    if others:
        yield f"Not judged, as no start of this DLedger node reads it: {names_text(others, len(others))}."


_FIND_THEM = (
    "A segment is gone, or queue entries lead to places where this copy holds no message. A repair cannot bring these messages"
    " back: look for them in another copy of the same broker first.",
)
_LOOK_AT_BYTES = (
    "A broker never writes there again: a disk or the copying changed them, or somebody who put the time back. Which bytes are"
    " right only another copy can say.",
)
_ALWAYS_THE_SAME: Mapping[Start, _Words] = {
    Start.NO_MESSAGE_LEFT: (
        "Do not start this copy: its CommitLog holds damaged or missing bytes, and no message",
        ("A start deletes queue and index files that may still show which messages existed.",),
    ),
    Start.DAMAGED: (
        "Messages are already damaged in this copy; a start makes nothing worse",
        ("Bytes of the CommitLog are damaged or missing. Look for them in another copy of the same broker.",),
    ),
    Start.SAFE: ("Safe to start", ("Every byte was checked, and all parts agree with each other.",)),
}


def _refusal(outcome: Outcome) -> Iterable[str]:
    if outcome.refusal is not None:
        yield f"It refuses: {refusal_sentence(outcome.refusal)}."
    if refused_by_config(outcome):
        yield (
            "A refused start loses no message, but it writes tables that it has not loaded over good files in config/: repair the"
            " file, or set it and its .bak aside, before any start."
        )
    else:
        setting = setting_at_fault(outcome)
        cause = advice_text(setting) if setting else "" if outcome.no_repair else "A repair removes the cause."
        yield f"A refused start loses nothing. {cause}".rstrip()
    if is_damaged(outcome):
        yield "Bytes of the CommitLog are also damaged or missing."


def _losses(outcome: Outcome) -> Iterable[str]:
    """Yield a sentence for each loss of a start."""
    cut, skipped = counted(outcome, Code.BROKER_DROPS_MESSAGES), counted(outcome, Code.BROKER_SKIPS_MESSAGES)
    if election_hangs(outcome):
        yield "The election as master never ends: it waits at one place in the CommitLog. The broker stays fenced."
    elif counted(outcome, Code.BROKER_HANGS):
        yield "A start never ends: it waits at one place in the CommitLog."
    if cut and outcome.started is not None:
        stop = STOP_REASONS.get(outcome.started.stop_reason, "")
        ends = f"{outcome.started.log_end:,}{f' and stops there: {lower(stop)}' if stop else ''}"
        cuts = f"It cuts everything after that: {count_text(cut, 'valid message')}."
        yield f"Recovery reads the CommitLog up to physical offset {ends}. {cuts}"
    if skipped:
        stay, them = ("message stays", "it") if skipped == 1 else ("messages stay", "them")
        yield f"{skipped:,} {stay} in the CommitLog without a queue entry: consumers do not get {them}."
    messages, size = outcome.loss.messages, outcome.loss.bytes
    if messages:
        topics = outcome.loss.by_topic
        first, last = min((t.first_store_time for t in topics), default=0), max((t.last_store_time for t in topics), default=0)
        when = f", stored {span_text(first, last)}" if topics else ""
        lost = f"{count_text(messages, 'message')} ({bytes_text(size)})"
        yield f"Consumers lose {lost} of {count_text(len(topics), 'topic')} in all{when}."
    timers = timers_lost(outcome)
    if timers:
        yield f"{count_text(timers, 'timer message')} that stay in the CommitLog will never be delivered."


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


def verdict_alone(outcome: Outcome) -> str:
    """Return the verdict without the premises at its begin, if these are shown before it."""
    return outcome.verdict[len(outcome.verdict_head) :]


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


def lower(sentence: str) -> str:
    """Return a catalogue sentence as a part of a longer one: no capital, no full stop."""
    return clause(printable(sentence))
