"""The verdict: what an audit found that matters most, in one sentence. What a start does to the copy is `safety.start_of`'s."""

from __future__ import annotations

from schemas.finding_codes import Code
from schemas.outcome import Outcome
from schemas.rows import DEFAULT, DOUBT, NAMED, TAKEN
from store_io.base.wording import count_text, names_text
from store_io.checks import changed_bytes, emptied
from store_io.checks.repaired_store import repair_note
from store_io.model.facts.odd_settings import MOST_NAMED
from store_io.outcome.safety import (
    Start,
    as_master,
    changed_alone,
    config_losses,
    config_unknown,
    counted,
    differs_alone,
    differs_from_log,
    election_hangs,
    election_of,
    entries_lost,
    is_damaged,
    named_sentences,
    no_config,
    setting_that_cuts,
    settings_at_odds,
    start_beside_settings,
    start_of,
    tables_behind,
    timers_lost,
    topics_lost,
)
from store_io.wording.refusals import refusal_sentence

_NOT_KNOWN = (Start.NOT_KNOWN, Start.NOT_KNOWN_OF_DAMAGED)


def names_first_gap(outcome: Outcome) -> bool:
    """Say whether the verdict names the first reason why the audit is incomplete."""
    return bool(outcome.incomplete) and start_of(outcome) in _NOT_KNOWN and not emptied.verdict(outcome)


def verdict_parts(outcome: Outcome) -> tuple[str, str]:
    """Return (the premises with which the verdict begins, the verdict itself). All else is set in the outcome."""
    effect, started = outcome.effect, outcome.started
    without_log = emptied.verdict(outcome)
    sentence = (
        without_log + _start_without_log(outcome)
        if without_log
        else _verdict(outcome) + emptied.verdict_addition(outcome) + changed_bytes.verdict_addition(outcome)
    )
    for code in (Code.QUEUES_COPIED_LATER, Code.LIVE_COPY, Code.STORES_MERGED):  # the cause of what follows
        for finding in (f for f in outcome.found.findings if f.code == code):
            sentence = f"{finding.message[:1].upper()}{finding.message[1:]}. {sentence}"
    lacking = as_master(outcome.replicas, outcome.name)
    if lacking is not None:
        sentence = f"{lacking.verdict()}; by itself: {sentence}"
    if outcome.assumed.inferred_mode and effect is not None and (started is None or outcome.loss.messages):
        sentence = f"Taken for {outcome.assumed.inferred_mode}, which a broker that has left this mode keeps, too: {sentence}"
    doubts = [premise.sentence for premise in outcome.assumed.premises if premise.kind == DOUBT]
    head = f"{doubts[0]}. " if doubts else ""
    if doubts:
        sentence = f"With what was named: {sentence}"
    taken = [premise.sentence for premise in outcome.assumed.premises if premise.kind == TAKEN]
    if len(taken) > 1:
        least = "at least " if len(taken) > MOST_NAMED else ""
        more = f"(and {least}{count_text(len(taken) - 1, 'more line')} of broker.conf)"
        head, sentence = "", f"{taken[0]} {more}. {head}{sentence}"
    elif taken:
        head = f"{taken[0]}. {head}"
    if outcome.assumed.release_from != NAMED and effect is not None:
        why = (
            "no release was named" if outcome.assumed.release_from == DEFAULT else f"{outcome.assumed.release_from} is not known"
        )
        sentence += f" ({why}: this one is assumed)"
    if outcome.assumed.settings_from == DEFAULT and effect is not None:
        sentence += f" (no broker.conf was named: {_assumed_settings(outcome)})"
    if absent := no_config(outcome):
        sentence += f". A start knows no {config_unknown(outcome)}: {absent} is not in this copy"
    fates = outcome.holds.timers.fates if outcome.holds.timers is not None else None
    unseen = fates.after_end.messages + fates.no_unit.messages if fates is not None else 0
    if unseen and not timers_lost(outcome):
        sentence += f". {count_text(unseen, 'timer message')}, due after the copy's last message, would not be delivered"
    sentence += "".join(f". {said}" for said in named_sentences(outcome))
    if outcome.covered.not_judged and started is not None:
        sentence += f". Not judged: {names_text(outcome.covered.not_judged)}"
    if started is not None and started.controller is not None and not counted(outcome, Code.BROKER_HANGS):
        sentence += (
            ". In controller mode: counted as this replica is after its election as master, alone in its syncStateSet; before it,"
            " it is fenced"
        )
    again = repair_note(outcome).rstrip(".")
    sentence += f". {again}" if again else ""
    return head, sentence + ("; not all of this copy was read" if outcome.incomplete and effect is not None else "")


def _start_without_log(outcome: Outcome) -> str:
    """Return clauses on a start of a copy without a message, if it loses more of the broker's state."""
    if outcome.refusal is not None:
        return f"; RocketMQ {outcome.release} would not start on this copy: {refusal_sentence(outcome.refusal)}"
    entries = entries_lost(outcome)
    lost = [f"a start begins without {entries} that this copy shows"] if entries else []
    return "".join(f"; {clause}" for clause in (*lost, *config_losses(outcome)))


def _assumed_settings(outcome: Outcome) -> str:
    """Return a clause on the settings that are assumed if nobody named a broker.conf. Sizes from the files go without saying."""
    found = [
        f"{key} = {str(setting.value).lower() if isinstance(setting.value, bool) else setting.value}"
        for key, setting in sorted(outcome.plan.settings.items())
        if setting.origin == "inferred" and type(setting.value) is not int
    ]
    if not found:
        return "RocketMQ's defaults are assumed"
    return f"{names_text(found)} by its files, RocketMQ's defaults else are assumed"


def _verdict(outcome: Outcome) -> str:
    at_odds = settings_at_odds(outcome)
    if not at_odds:
        return _by_itself(outcome)
    settings = names_text(list(dict.fromkeys(f.actual for f in at_odds if f.actual)))
    unread = outcome.refusal is None and any(f.code == Code.MESSAGES_NOT_READ for f in at_odds)
    said = "; ".join(f.message for f in at_odds)
    return f"{_start_beside(outcome) if unread else _by_itself(outcome)}. With {settings or 'this broker.conf'}, {said}"


def _by_itself(outcome: Outcome) -> str:
    release, start = outcome.release, start_beside_settings(outcome)
    if start in _NOT_KNOWN:
        why = outcome.incomplete[0] if outcome.incomplete else "the store is not understood"
        return f"What RocketMQ {release} would do on this copy is not known: {why}"
    if outcome.refusal is not None:
        return f"RocketMQ {release} would not start on this copy: {refusal_sentence(outcome.refusal)}"
    lost = outcome.loss.messages
    sentence = _losing(outcome, lost)
    timers = timers_lost(outcome)
    if timers:
        of_them = f"{count_text(timers, 'timer message')} that stay{'s' if timers == 1 else ''} in the log"
        sentence += f"; it would never deliver {of_them}" if sentence else ""
        sentence = sentence or f"RocketMQ {release} would start and never deliver {of_them}"
    entries = entries_lost(outcome)
    if sentence:
        return f"{sentence}; it would begin without {entries} that this copy shows" if entries else sentence
    if not entries and start == Start.DAMAGED and changed_alone(outcome):
        return f"RocketMQ {release} would start and lose no valid message"
    if not entries and start in (Start.CUTS, Start.NO_MESSAGE_LEFT, Start.MISSING, Start.DAMAGED):
        return f"RocketMQ {release} would start and lose no valid message; bytes of the CommitLog are already damaged or missing"
    lost_config = [*topics_lost(outcome), *config_losses(outcome), *tables_behind(outcome)]
    derived = "; derived data differ from the CommitLog and can be rebuilt from it" if differs_from_log(outcome) else ""
    if entries:
        derived = "; bytes of the CommitLog are already damaged or missing" if is_damaged(outcome) else derived
        others = "".join(f"; {clause}" for clause in lost_config)
        return f"RocketMQ {release} would start and begin without {entries} that this copy shows{others}{derived}"
    if lost_config:
        return f"RocketMQ {release} would start and lose no message, but {'; '.join(lost_config)}{derived}"
    if differs_alone(outcome):
        return (
            f"RocketMQ {release} would start and lose nothing; derived data differ from the CommitLog and can be rebuilt from it"
        )
    judged = "everything" if outcome.complete else "what was read of it"
    if outcome.complete and outcome.covered.not_judged:
        judged = "all that was judged"
    return f"RocketMQ {release} would start on this copy and lose nothing; {judged} is consistent"


def _start_beside(outcome: Outcome) -> str:
    """Say what a start does that reads another log than the one with messages."""
    if outcome.started is None:
        return f"RocketMQ {outcome.release} would read another log of this copy"
    deleted = len(outcome.started.deleted_files)
    more = f" and delete {count_text(deleted, 'file')}" if deleted else ""
    return f"RocketMQ {outcome.release} would start{more}"


def _losing(outcome: Outcome, lost: int) -> str:
    """Return the sentence on the fate of valid messages of the log; "" if all stay."""
    release, started = outcome.release, outcome.started
    if election_hangs(outcome):
        left = f"; {count_text(lost, 'valid message')} would have no queue entry" if lost else ""
        elected = "its election as master, alone in its syncStateSet, never ends"
        return f"RocketMQ {release} would start on this copy, but {elected}, and the broker stays fenced{left}"
    if counted(outcome, Code.BROKER_HANGS):
        valid = f", and consumers do not get {count_text(lost, 'valid message')}" if lost else ""
        return f"A start of RocketMQ {release} on this copy never ends{valid}"
    if lost and not counted(outcome, Code.BROKER_DROPS_MESSAGES):
        left = f"leave {count_text(lost, 'valid message')} without a queue entry"
        return f"RocketMQ {release} would start and {left}, so that consumers do not get {'it' if lost == 1 else 'them'}"
    election = election_of(outcome)
    if lost and election is not None and election.cut_at is not None:
        return (
            f"RocketMQ {release} would start; the controller's election of it would cut the CommitLog at physical offset"
            f" {election.cut_at:,} and lose {count_text(lost, 'valid message')}"
        )
    setting = setting_that_cuts(outcome)
    if lost and started is not None:
        return (
            f"RocketMQ {release} would start, cut the CommitLog at physical offset {started.truncate_at:,} and lose"
            f" {count_text(lost, 'valid message')}{f', as {setting} is on' if setting else ''}"
        )
    return ""
