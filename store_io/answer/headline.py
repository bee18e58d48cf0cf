"""The headline of the answer about a copy, and its reasons: what people read first, the same on every page and terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from schemas.finding_codes import CATALOGUE, STOP_REASONS, Code
from schemas.losses import ALL_READ
from schemas.outcome import Outcome
from schemas.rows import ASSUMED, DEFAULT, DOUBT, LOSS, NAMED, REBUILDABLE, TAKEN
from store_io.answer.day_steps import segments_that_go, timers_passed_over
from store_io.base.times import minute_text, span_text
from store_io.base.wording import as_sentence, bytes_text, clause, count_text, names_text
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
    election_of,
    entries_lost,
    entries_lost_clauses,
    has_other_losses,
    is_damaged,
    mended_by_a_start,
    named_sentences,
    no_config,
    refused_by_config,
    setting_at_fault,
    setting_that_cuts,
    settings_at_odds,
    start_beside_settings,
    tables_behind,
    timers_lost,
    unqueueable,
)
from store_io.source.store_dir import DLEDGER
from store_io.wording import not_whole
from store_io.wording.refusals import refusal_sentence
from store_io.wording.steps import advice_text

_CAUSES = (Code.QUEUES_COPIED_LATER, Code.LIVE_COPY, Code.STORES_MERGED)  # of what else the audit found


@dataclass(frozen=True)
class Judgement:
    """The answer for one store, with its reasons.

    headline: the answer, without a full stop.
    why: its reasons, sentences of plain text that may hold a store's names.
    condition: under which alone a safe copy is safe to start, as its headline has it; else "".
    """

    kind: Safety
    headline: str
    why: tuple[str, ...] = ()
    condition: str = ""

    def adding(self, *sentences: str) -> Judgement:
        """Return the answer with further reasons."""
        return replace(self, why=(*self.why, *sentences))


_NOT_KNOWN = "Not known whether this copy is safe to start"
_NOT_AUDITED = "Could not be audited"


def judge(outcome: Outcome) -> Judgement:
    """Return the answer for one store, with what it assumes."""
    decision = decide(outcome)
    answer = _in_group(outcome, decision)
    known = outcome.effect is not None
    again = known and decision.alone != Safety.GONE and bool(outcome.whole.signs)
    if again:  # what is missing may still be had: that comes before all that a start or a repair does
        reasons = (f"{answer.headline}.", *answer.why)
        answer = replace(answer, headline=not_whole.headline(outcome.whole.signs[0]), why=reasons)
    if answer.kind == Safety.SAFE and (absent := no_config(outcome)):
        answer = replace(answer, condition=f"once {absent} is there")
    if answer.kind in (Safety.SAFE, Safety.REBUILD) and known and (first := _first_day(outcome)):
        but = ", but first" if answer.kind == Safety.SAFE else "; first"
        answer = replace(answer, headline=f"{answer.headline}{but} {first}")
    if answer.kind == Safety.SAFE and outcome.assumed.unsafe_settings:
        head = f"{answer.headline}, but change broker.conf before new messages come"
        answer = replace(answer, headline=head).adding(*(f"{change}." for change in outcome.assumed.unsafe_settings))
    answer = answer.adding(*_besides(outcome, decision), *map(as_sentence, named_sentences(outcome)))
    given_up = repair_note(outcome)
    if given_up:
        number = next(f.actual for f in outcome.found.findings if f.code == Code.STORE_REPAIRED)
        safe = answer.kind == Safety.SAFE
        head = f"{answer.headline}; the repair that made it gave up {number}" if safe else answer.headline
        answer = replace(answer, headline=head).adding(given_up)
    if any(premise.kind == DOUBT for premise in outcome.assumed.premises) and known:
        answer = replace(answer, headline=f"{answer.headline}, by what was named, which does not fit this copy")
    if decision.other_release:
        return _of_another_release(outcome, decision.safety, answer)
    assumed = _assumed(outcome, answer) if known and not again else ""
    return replace(answer, headline=f"{answer.headline}, if {assumed}") if assumed else answer


def verdict_text(outcome: Outcome) -> str:
    """Return headline, doubts, reasons and assumptions as one text, for a cell of a table."""
    judgement = judge(outcome)
    assumed = [as_sentence(premise.sentence) for premise in outcome.assumed.premises if premise.kind == ASSUMED]
    return " ".join([short_text(outcome, judgement), *judgement.why, *assumed])


def short_text(outcome: Outcome, judgement: Judgement) -> str:
    """Return headline and doubts as one text, for a list of stores: lines that are odd, and what does not fit the copy."""
    odd = [as_sentence(premise.sentence) for premise in outcome.assumed.premises if premise.kind in (TAKEN, DOUBT)]
    return " ".join([f"{judgement.headline}.", *odd])


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
        parts.append(f"its broker runs in {outcome.assumed.inferred_mode}")
    if outcome.assumed.settings_from == DEFAULT and answer.kind == Safety.SAFE:
        parts.append("its broker.conf keeps RocketMQ's defaults")
    return f"{' and '.join(parts)}, which is assumed" if parts else ""


def _of_another_release(outcome: Outcome, safety: Safety, answer: Judgement) -> Judgement:
    """Return the answer if the assumed release cannot have written the copy."""
    wrote = f"by its files RocketMQ {outcome.assumed.written_by} wrote it, and this answer is for {outcome.release}"
    if safety == answer.kind:
        return replace(answer, headline=f"{answer.headline}; {wrote}")
    by_its_rules = f"By the rules of {outcome.release}: {answer.headline}."
    return Judgement(safety, f"{_NOT_KNOWN}: {wrote}", (by_its_rules, *answer.why))


def _in_group(outcome: Outcome, decision: Decision) -> Judgement:
    """Return the answer for the copy by itself, or that its group holds what it lacks, whichever is graver."""
    headline, why = _gone(outcome, decision.start) if decision.alone == Safety.GONE else _by_itself(outcome, decision.start)
    told = _tells_of_start(outcome, decision)
    causes = [as_sentence(f.message) for code in _CAUSES for f in outcome.found.findings if f.code == code]
    if outcome.whole.missing and told and decision.start not in (Start.MISSING, Start.DAMAGED):
        why = (*why, f"{_already(outcome, 'missing from this copy already')}.")
    if not told or decision.start != Start.LOSES_CONFIG:
        why = (*why, *_entries_lost(outcome))
    alone = Judgement(decision.alone, headline, (*causes, *why))
    lacking = decision.lacking
    if lacking is None:
        return alone
    held = () if lacking.earlier or lacking.undecided and not lacking.lacks else (f"In its group, {lacking.clause()}.",)
    if decision.in_group == decision.alone:
        return alone.adding(f"{lacking.headline()}.", *held)
    by_itself = () if decision.alone == Safety.SAFE else (f"{headline}.",)  # nobody reads "safe" of such a copy
    return Judgement(decision.in_group, lacking.headline(), (*held, *by_itself, *alone.why))


def _tells_of_start(outcome: Outcome, decision: Decision) -> bool:
    """Say whether headline and reasons say what a start does: not of a copy whose messages are all gone."""
    return decision.alone != Safety.GONE or bool(outcome.holds.messages)


def _besides(outcome: Outcome, decision: Decision) -> Iterator[str]:
    """Yield what is to be known of a copy besides the effect of a start."""
    start, told = decision.start, _tells_of_start(outcome, decision)
    for finding in outcome.found.findings:
        if finding.code == Code.COMMITLOG_EMPTIED or finding.code == Code.COMMITLOG_SHRUNK and decision.alone != Safety.GONE:
            yield as_sentence(finding.message)
    changed = [f for f in outcome.found.findings if f.code == Code.SEGMENT_CHANGED]
    if changed:
        more = f", nor those of {count_text(len(changed) - 1, 'other segment')}" if len(changed) > 1 else ""
        yield f"{changed[0].file}: its {changed[0].message}{more}."
    if not told and outcome.refusal is not None:
        yield f"{_refused(outcome)}."
        yield from _refusal(outcome)
    if not told or not outcome.holds.messages and start not in (Start.LOSES_CONFIG, Start.CONFIG_LOST):
        yield from map(as_sentence, config_losses(outcome))
    if start != Start.SAFE:
        yield from _without_config(outcome)
        yield from _not_judged(outcome.covered.not_judged)
    timers = outcome.holds.timers
    if timers is not None and timers.fates is not None and not timers_lost(outcome):
        if unseen := timers.fates.after_end.messages + timers.fates.no_unit.messages:
            yield f"{count_text(unseen, 'timer message')}, due after the copy's last message, would not be delivered."
    started = outcome.started
    if started is not None and started.controller is not None and not counted(outcome, Code.BROKER_HANGS):
        yield (
            "In controller mode: counted as this replica is after its election as master, alone in its syncStateSet. Before it,"
            " it is fenced."
        )
    if outcome.incomplete and (start != Start.NOT_KNOWN or not told):  # whose headline has the first gap
        gap, said = outcome.incomplete[0], start in (Start.NOT_KNOWN_OF_DAMAGED, Start.NOT_READ)
        yield as_sentence(gap) if said else f"Not all of this copy was audited: {gap}."


def _without_config(outcome: Outcome) -> Iterator[str]:
    if absent := no_config(outcome):
        yield f"{absent} is not in this copy: by this copy alone a start knows no {config_unknown(outcome)}."


_Words = tuple[str, tuple[str, ...]]  # headline, why


def _gone(outcome: Outcome, start: Start) -> _Words:
    """Return the words on a copy whose messages are gone.

    They are gone from its CommitLog, or from the log's end since an earlier audit.
    """
    saw = next((f.message for f in outcome.found.findings if f.code == Code.COMMITLOG_SHRUNK), "")
    if outcome.holds.messages:
        headline, why = _by_itself(outcome, start)
        return f"Messages are gone from the end of this copy; {saw}", (f"{headline}.", *why)
    gone = clause(_already(outcome, "gone")) if outcome.whole.missing else "" if saw else "there were messages once"
    return f"Nothing to lose is left here; {'; '.join(filter(None, [gone, saw]))}", ()


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
            if start == Start.NOT_KNOWN_OF_DAMAGED:
                return f"Do not start this copy: {fault}, and not all of it could be audited", ()
            gap = outcome.incomplete[0] if outcome.incomplete else "what this release would do here is not modelled"
            return f"{_NOT_KNOWN if outcome.plan.settings else _NOT_AUDITED}: {gap}", ()
        case Start.AGAINST_SETTINGS:
            at_odds, beside = settings_at_odds(outcome), start_beside_settings(outcome)
            settings = names_text(list(dict.fromkeys(f.actual for f in at_odds if f.actual)))
            others = [as_sentence(f.message) for f in at_odds[1:]]
            unread = any(f.code == Code.MESSAGES_NOT_READ for f in at_odds)
            if unread and outcome.started is not None and (files := outcome.started.deleted_files):
                others.append(f"A start of RocketMQ {outcome.release} deletes {count_text(len(files), 'file')}.")
            if beside == Start.REFUSES or not unread:
                headline, why = _by_itself(outcome, beside)
                others += why if beside == Start.SAFE else [f"{headline}.", *why]
            first = "".join(f.message for f in at_odds[:1])
            return f"Do not start this copy with {settings or 'this broker.conf'}: {first}", tuple(others)
        case Start.REFUSES:
            return _refused(outcome), tuple(_refusal(outcome))
        case Start.CUTS:
            setting = setting_that_cuts(outcome)
            alone = setting and not has_other_losses(outcome)
            head = f"Do not start this copy with {setting}=true" if alone else "Do not start this copy yet"
            return f"{head}: {_cut(outcome)}", tuple(_losses(outcome))
        case Start.LEAVES_UNSERVED:
            if not outcome.loss.messages and not counted(outcome, Code.BROKER_SKIPS_MESSAGES):
                return f"A start never delivers {count_text(timers_lost(outcome), 'timer message')} of this copy", ()
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
            return head, (*_entries_lost(outcome), *map(as_sentence, others))
        case Start.NOT_READ:
            read = "A start loses nothing that was read, but not all of this copy was read"
            return read if outcome.covered.not_read != ALL_READ else _NOT_KNOWN, ()
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
            return f"A start loses no message, but {lost[0]}", tuple(map(as_sentence, lost[1:]))
        case Start.SAFE if outcome.covered.not_judged or no_config(outcome):
            loads = outcome.effect.config if outcome.effect is not None else None
            offsets = loads is not None and loads.read.get("consumerOffset.json")
            agree = "they, the checkpoint and the offsets in config/" if offsets else "they and the checkpoint"
            # they may refuse, or lose
            unsure = ", but its timers were not judged" if "timers" in outcome.covered.not_judged else ""
            reasons = [f"Every byte of CommitLog, ConsumeQueues and index files was checked; {agree} agree with each other."]
            if absent := no_config(outcome):
                unsure = f" once {absent} is there{unsure}"
            reasons += [*_without_config(outcome), *_not_judged(outcome.covered.not_judged)]
            return f"Safe to start{unsure}", tuple(reasons)
        case _:
            return _ALWAYS_THE_SAME[start]


def _cut(outcome: Outcome) -> str:
    """Return a clause on the largest loss of a start that cuts the log, or that never ends."""
    if election_hangs(outcome):
        return "its election as master never ends"
    if counted(outcome, Code.BROKER_HANGS):
        return "a start never ends"
    cut, at = count_text(counted(outcome, Code.BROKER_DROPS_MESSAGES), "valid message"), _election_cuts_at(outcome)
    assert outcome.started is not None
    if at is not None:
        return f"the controller's election of it as master cuts {cut} after physical offset {at:,}"
    return f"a start cuts {cut} after physical offset {outcome.started.log_end:,}"


def _most_differing(outcome: Outcome) -> str:
    """Return a clause on what differs most: the code of most findings without a loss, their number, and the first file."""
    every = [f for f in outcome.found.findings if f.severity == REBUILDABLE and f.code != Code.COPY_IS_BEHIND]
    rows = [f for f in every if CATALOGUE[f.code].severity != LOSS] or every  # what is said of a loss is not true of these
    number = Counter[str]()
    for finding in rows:
        number[finding.code] += finding.count
    code, most = number.most_common(1)[0]
    file = next(f.file for f in rows if f.code == code)
    return f"{clause(CATALOGUE[code].meaning)} ({most:,}, {file})" if most > 1 else f"{clause(CATALOGUE[code].meaning)} ({file})"


def _entries_lost(outcome: Outcome) -> tuple[str, ...]:
    """Return a sentence for each table of config/ of which the copy shows more than a start holds."""
    return tuple(map(as_sentence, entries_lost_clauses(outcome)))


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


def _refused(outcome: Outcome) -> str:
    cause = f": {refusal_sentence(outcome.refusal)}" if outcome.refusal is not None else ""
    return f"RocketMQ {outcome.release} does not start on this copy{cause}"


def _refusal(outcome: Outcome) -> Iterable[str]:
    if refused_by_config(outcome):
        yield (
            "A refused start loses no message, but it writes tables that it has not loaded over good files in config/: repair the"
            " file, or set it and its .bak aside, before any start."
        )
    else:
        setting = setting_at_fault(outcome)
        doubtful = any(premise.kind == DOUBT for premise in outcome.assumed.premises)
        cause = advice_text(setting) if setting else "" if outcome.no_repair or doubtful else "A repair removes the cause."
        yield f"A refused start loses nothing. {cause}".rstrip()
    if is_damaged(outcome):
        yield "Bytes of the CommitLog are also damaged or missing."


def recovery_cuts(outcome: Outcome) -> bool:
    """Say whether a start's recovery cuts valid messages; else an election as master may."""
    return bool(counted(outcome, Code.BROKER_DROPS_MESSAGES)) and _election_cuts_at(outcome) is None


def _election_cuts_at(outcome: Outcome) -> int | None:
    """Return the physical offset at which the election as master cuts the log; None if it cuts nothing."""
    election = election_of(outcome)
    return None if election is None else election.cut_at


def _losses(outcome: Outcome) -> Iterable[str]:
    """Yield a sentence for each loss of a start."""
    cut, skipped = counted(outcome, Code.BROKER_DROPS_MESSAGES), counted(outcome, Code.BROKER_SKIPS_MESSAGES)
    if election_hangs(outcome):
        where = "it waits at one place in the CommitLog. The broker stays fenced"
        yield f"The election as master, alone in its syncStateSet, never ends: {where}."
    elif counted(outcome, Code.BROKER_HANGS):
        yield "A start never ends: it waits at one place in the CommitLog."
    if recovery_cuts(outcome) and outcome.started is not None:
        stop = STOP_REASONS.get(outcome.started.stop_reason, "")
        ends = f"{outcome.started.log_end:,}{f' and stops there: {clause(stop)}' if stop else ''}"
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
