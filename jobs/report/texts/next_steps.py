"""The next steps for a store, in words that the terminal and its page share: the action that keeps most comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.report.texts.commands import not_shown, repair_commands, repair_withheld
from jobs.report.texts.comparison_words import config_steps
from jobs.report.texts.safety_text import judge
from jobs.report.texts.text import count_text
from schemas.finding_codes import BY_A_REPAIR, BY_A_START, CATALOGUE, END_GONE, HEALS, SWITCH_OFF, WITHOUT_DONOR, Code
from schemas.rows import DEFAULT, LOSS, REBUILDABLE, AuditOutcome
from store_io.audit.outcome.as_master import as_master
from store_io.audit.outcome.safety import (
    Safety,
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
from store_io.kinds.config.config_reader import NO_BACKUP, NO_BACKUP_DATABASE
from store_io.repair.proposals import FIX_CONFIG, proposals

NOTHING = "Nothing to do."
NOTHING_JUDGED = "Nothing to do for what was judged."
_NAME_CONF = "To be sure, name its broker.conf with --broker-conf and audit again."


@dataclass
class NextSteps:
    """The next steps for a store.

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
        before += dict.fromkeys(note.next for note in named_notes(outcome))
        before += [f"{change}." for change in outcome.unsafe_settings]
        nothing = " ".join(before) or (NOTHING_JUDGED if outcome.not_judged else NOTHING)
        return NextSteps(f"{nothing} {_NAME_CONF}" if outcome.settings_from == DEFAULT else nothing)
    repairs = repair_commands(outcome, words, plan, to)
    emptied = holds_nothing(outcome)
    withheld = repair_withheld(outcome)
    by_repair = bool(repairs or emptied or withheld)  # said once, not for each finding
    going = [one for one in proposals(outcome.plan.get("repair")) if one.refused is None]
    config_stays = bool(going) and not any(FIX_CONFIG in one.options for one in going)
    heals = any(one.healed for one in going[:1])
    first, steps = "", _of_unread(outcome)
    for severity in (LOSS, REBUILDABLE):
        for finding in outcome.findings:
            if emptied and (finding.code == Code.SEGMENT_MISSING or finding.next in WITHOUT_DONOR):  # a donor gives it nothing
                continue
            cause = severity == LOSS and finding.code == Code.LIVE_COPY  # a note, but it explains the others
            said = finding.next == withheld or by_repair and finding.next in BY_A_REPAIR
            if finding.next in SWITCH_OFF.values():
                first = finding.next
            elif (cause or finding.severity == severity) and finding.next and not said:
                step = _offsets(outcome) if repairs and finding.code == Code.CONSUMER_OFFSET_BEYOND_END else ""
                if finding.next == NO_BACKUP and config_stays:
                    step = NO_BACKUP_DATABASE
                steps.setdefault(step or finding.next.removesuffix(HEALS if heals else ""), {}).setdefault(finding.file)
    for step in [step for step in steps if any(other != step and other.startswith(step) for other in steps)]:
        files = steps.pop(step)  # one with the same words and more says it
        next(rest for other, rest in steps.items() if other.startswith(step)).update(files)
    optional = bool(repairs) and left_to_a_start(outcome)
    if repairs:  # it does what a start does, too
        taken = [said for step, said in BY_A_START.items() if steps.pop(step, None) is not None]
        if optional and not first:
            first = f"{' '.join(taken)} A repair is optional."
    for note in named_notes(outcome):
        steps.setdefault(note.next, {}).setdefault(note.file)
    others = [(step, list(files)) for step, files in steps.items() if step != END_GONE]
    sizes = {finding.next for finding in outcome.findings if finding.code == Code.SETTING_MISMATCH}  # it may cause all others
    others.sort(key=lambda step: step[0] not in sizes)
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
    return NextSteps("", optional, END_GONE if END_GONE in steps else first, repairs, unshown, withheld, start, others)


def config_step(outcome: AuditOutcome) -> str:
    """What to do about config/ that was not copied; "" if nothing is."""
    absent = config_absent(outcome)
    return absent and f"{absent} is not in this copy: copy it from the broker, or a start knows no {config_unknown(outcome)}."


def _of_unread(outcome: AuditOutcome) -> dict[str, dict[str, None]]:
    """Return the steps for files that made the audit incomplete because they were not opened.

    They come first: all else may follow from them.
    """
    steps: dict[str, dict[str, None]] = {}
    unread = {gap.path for gap in outcome.gaps if gap.path}
    for finding in outcome.findings:
        row = CATALOGUE.get(finding.code)
        if row is not None and row.unread and finding.next and finding.file in unread:
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
    return f"Start {lacking.holder} as master, and make this copy a slave of it."


def _offsets(outcome: AuditOutcome) -> str:
    """Return the step for consumer groups beyond the new ends of their queues."""
    rows = outcome.loss.get("groups", ())
    groups = count_text(len({row["group"] for row in rows}), "group")
    lie = "lies past the new queue end" if len(rows) == 1 else "lie past the new queue ends"
    return f"{count_text(len(rows), 'offset')} of {groups} {lie}: repair with --fix-offsets." if rows else ""


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
