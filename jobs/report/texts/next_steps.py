"""The next steps for a store, in words that the terminal and its page share. The action that keeps most comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.report.texts.commands import copy_again, not_shown, repair_commands, repair_withheld, withheld_by
from jobs.report.texts.comparison_words import EMPTIED, config_steps
from jobs.report.texts.safety_text import judge
from jobs.report.texts.text import count_text
from schemas.advice import Advice, Lack, Step
from schemas.finding_codes import BY_A_REPAIR, CATALOGUE, WITHOUT_DONOR, Code
from schemas.rows import DEFAULT, LOSS, REBUILDABLE, AuditOutcome
from store_io.audit.outcome.safety import (
    Safety,
    as_master,
    config_absent,
    config_unknown,
    counted,
    election_hangs,
    end_of_log,
    holds_nothing,
    left_to_a_start,
    lost_of,
    named_notes,
)
from store_io.repair.proposals import FIX_CONFIG, proposals
from store_io.wording.steps import START_DOES, advice_text, next_text

NOTHING = advice_text(Advice(Step.NOTHING))
NOTHING_JUDGED = "Nothing to do for what was judged."
_END_GONE = Advice(Step.SEEK_LOG_END)
_SAYS_MORE = (  # (a step, one that says all of it and more)
    (Advice(Step.OTHER_COPY), Advice(Step.OTHER_COPY_OR_HEAL)),
    (Advice(Step.OWN_CONF), Advice(Step.OWN_CONF_OR_NONE)),
    (Advice(Step.WRITE_CHECKPOINT), CATALOGUE[Code.CHECKPOINT_AHEAD].next),
    (Advice(Step.WRITE_CHECKPOINT), CATALOGUE[Code.CHECKPOINT_DAMAGED].next),
    (CATALOGUE[Code.TOPIC_NOT_IN_TABLE].next, Advice(Step.CREATE_TOPICS_DELETE_NONE)),
)
_NAME_CONF = "To be sure, name its broker.conf with --broker-conf and audit again."


@dataclass
class NextSteps:
    """The next steps for a store.

    again: (what to copy again, command or "") for what is missing and may still be had, before all else.
    nothing: the step for a consistent store, if any; else "".
    optional: all that differs can be left to a start.
    first: the step before a repair, or the effect of that start, "" without one.
    repairs: (what it keeps, command).
    unshown: why these commands are "", if they are.
    withheld: why there is no command although there is something to do.
    start: the effect of a start of the release instead, "" if it does not start or that is not known.
    others: (sentence, the files that it is about) of the findings, the most severe first.
    """

    nothing: str = ""
    again: list[tuple[str, str]] = field(default_factory=list)
    optional: bool = False
    first: str = ""
    repairs: list[tuple[str, str]] = field(default_factory=list)
    unshown: str = ""
    withheld: str = ""
    start: str = ""
    others: list[tuple[str, list[str]]] = field(default_factory=list)


def next_steps(outcome: AuditOutcome, words: Sequence[str], plan: str, to: str = "", in_use: str = "") -> NextSteps:
    """words, plan, to: as `repair_commands` takes them.  in_use: why a repair refuses the store now, "" if no broker uses it."""
    config = list(filter(None, [config_step(outcome)])) or [*config_steps(outcome.replicas, outcome.name)]
    if judge(outcome).kind == Safety.SAFE:
        before = config
        before += [next_text(step) for step in dict.fromkeys(note.next for note in named_notes(outcome))]
        before += [f"{change}." for change in outcome.unsafe_settings]
        nothing = " ".join(before) or (NOTHING_JUDGED if outcome.not_judged else NOTHING)
        return NextSteps(f"{nothing} {_NAME_CONF}" if outcome.settings_from == DEFAULT else nothing)
    repairs = repair_commands(outcome, words, plan, to)
    emptied = holds_nothing(outcome)
    withheld, advised = repair_withheld(outcome), withheld_by(outcome)
    by_repair = bool(repairs or emptied or withheld)  # said once, not for each finding
    going = [one for one in proposals(outcome.plan.get("repair")) if one.refused is None]
    config_stays = bool(going) and not any(FIX_CONFIG in one.options for one in going)
    heals = any(one.healed for one in going[:1])
    first, steps = "", _of_unread(outcome)
    if advised is not None and advised.step == Step.READ_WITH_LINES:  # no matter of a repair
        first, withheld = advice_text(advised), ""
    again, said_again = _copy_again(outcome, words)
    for severity in (LOSS, REBUILDABLE):
        for finding in outcome.findings:
            step = finding.next
            if step is None or emptied and (finding.code == Code.SEGMENT_MISSING or step.step in WITHOUT_DONOR):
                continue  # a donor gives it nothing
            said = step == advised or finding.code in said_again or by_repair and step in BY_A_REPAIR
            if step.step == Step.SWITCH_OFF:
                first = advice_text(step)
            elif finding.severity == severity and not said:
                if repairs and finding.code == Code.CONSUMER_OFFSET_BEYOND_END:
                    step = _offsets(outcome) or step
                elif step.step == Step.RESTORE_OR_FIX and config_stays:
                    step = Advice(Step.RESTORE)
                elif step.step == Step.OTHER_COPY_OR_HEAL and heals:
                    step = Advice(Step.OTHER_COPY)
                steps.setdefault(step, {}).setdefault(finding.file)
    for less, more in _SAYS_MORE:
        if less in steps and more in steps:
            steps[more].update(steps[less])
    for less, more in _SAYS_MORE:
        if more in steps:
            steps.pop(less, None)
    optional = bool(repairs) and left_to_a_start(outcome)
    if repairs:  # it does what a start does, too
        taken = [said for step, said in START_DOES.items() if steps.pop(step, None) is not None]
        if optional and not first:
            first = f"{' '.join(taken)} A repair is optional."
    for note in named_notes(outcome):
        if note.next is not None:
            steps.setdefault(note.next, {}).setdefault(note.file)
    sizes = {finding.next for finding in outcome.findings if finding.code == Code.SETTING_MISMATCH}  # it may cause all others
    in_order = sorted((step for step in steps if step != _END_GONE), key=lambda step: step not in sizes)
    others = [(advice_text(step), list(steps[step])) for step in in_order]
    if outcome.written_by:
        wrote = f"by its files RocketMQ {outcome.written_by} wrote this copy"
        others.insert(0, (f"Name the broker's own release with --release and audit again: {wrote}.", []))
    if not first:
        others += [(f"{change}.", []) for change in outcome.unsafe_settings]
    lacking = _lacking(outcome)
    if config_absent(outcome) or not lacking:
        others += [(step, []) for step in config]
    if lacking:
        others.insert(0, (lacking, []))
    start = "" if emptied or lacking else _start(outcome)
    unshown = not_shown(words, [("--plan", plan)]) if repairs else ""
    if in_use and repairs:
        repairs, unshown, withheld = [], "", in_use
    return NextSteps(
        "", again, optional, advice_text(_END_GONE) if _END_GONE in steps else first, repairs, unshown, withheld, start, others
    )


def _copy_again(outcome: AuditOutcome, words: Sequence[str]) -> tuple[list[tuple[str, str]], set[Code]]:
    """Return (the steps that come before all others, the codes of findings whose own steps these replace).

    If nothing is proven, a copy that was perhaps made while the broker ran still has its step, with that condition.
    """
    again = copy_again(outcome, words)
    replaced = {Code.LIVE_COPY, Code.QUEUES_COPIED_LATER, Code.CONFIG_NOT_COPIED, Code.STORES_MERGED}
    if not again:
        perhaps = (f for f in outcome.findings if f.code in (Code.LIVE_COPY, Code.QUEUES_COPIED_LATER))
        again = [(next_text(step), "") for step in dict.fromkeys(f.next for f in perhaps)]
    return again, replaced


def config_step(outcome: AuditOutcome) -> str:
    """Say what to do about config/ that was not copied; "" if there is nothing to do, or it is to be copied again."""
    absent = "" if any(lack.kind == Lack.NO_CONFIG for lack in outcome.not_whole) else config_absent(outcome)
    return absent and f"{absent} is not in this copy: copy it from the broker, or a start knows no {config_unknown(outcome)}."


def _of_unread(outcome: AuditOutcome) -> dict[Advice, dict[str, None]]:
    """Return the steps for files that made the audit incomplete because they were not opened.

    They come first: all else may follow from them.
    """
    steps: dict[Advice, dict[str, None]] = {}
    unread = {gap.path for gap in outcome.gaps if gap.path}
    for finding in outcome.findings:
        row = CATALOGUE.get(finding.code)
        if row is not None and row.unread and finding.next is not None and finding.file in unread:
            steps.setdefault(finding.next, {}).setdefault(finding.file)
    return steps


def _lacking(outcome: AuditOutcome) -> str:
    """Return the step for a copy that lacks messages of its group."""
    lacking = as_master(outcome.replicas, outcome.name)
    if lacking is None:
        return ""
    if lacking.undecided:
        return f"Compare the messages in which it and {lacking.diverged_from} differ, by replicas.json, before either is master."
    if lacking.diverged_from:
        return f"Compare it with {lacking.diverged_from} before either becomes master: replicas.json has what each of them lacks."
    if lacking.best:
        return f"Save what {lacking.holder} alone holds before this copy becomes master: replicas.json has the ranges."
    if lacking.refused:
        return (
            f"Start {lacking.holder} as master. As its slave this copy would never copy anything: empty it first ({EMPTIED};"
            f" config/ stays), then let it copy from {lacking.holder}."
        )
    return f"Start {lacking.holder} as master, and make this copy a slave of it."


def _offsets(outcome: AuditOutcome) -> Advice | None:
    """Return the step for consumer groups beyond the new ends of their queues."""
    rows = outcome.loss.get("groups", ())
    return Advice(Step.FIX_OFFSETS, (len(rows), len({row["group"] for row in rows}))) if rows else None


def _start(outcome: AuditOutcome) -> str:
    """Return one sentence on the effect of a start."""
    broker = outcome.plan.get("broker")
    if broker is None or not broker.get("starts"):  # the headline says it
        return ""
    release = f"RocketMQ {outcome.release}"
    if election_hangs(outcome):
        return f"{release} would start, but its election as master never ends, and the broker stays fenced."
    if counted(outcome, Code.BROKER_HANGS):
        return f"A start of {release} never ends: it waits at one place in the CommitLog."
    lost, _ = lost_of(outcome)
    if not lost:
        return f"A start of {release} loses no message."
    cut = lost - counted(outcome, Code.BROKER_SKIPS_MESSAGES)
    where = f" It cuts the CommitLog at physical offset {end_of_log(broker):,}." if cut > 0 else ""
    return f"A start of {release} keeps {count_text(outcome.messages - lost, 'message')} and loses {lost:,}.{where}"
