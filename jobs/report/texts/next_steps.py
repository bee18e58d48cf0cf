"""The steps for a store as people and result.json read them: the typed steps of `store_io.answer`, with words and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report.texts.commands import copied_again, copy_of_config, effect_clauses, not_shown, only_here, repair_commands
from jobs.report.texts.master_commands import master_command
from schemas.advice import Advice, NotWhole, Step
from schemas.answer import AnswerStep, GivesUp, StepName
from schemas.finding_codes import Code
from schemas.outcome import Outcome
from store_io.answer.repairs import more_than_a_start
from store_io.answer.steps import steps_of
from store_io.base.wording import count_text, names_text
from store_io.outcome.safety import counted
from store_io.repair.proposals import recommended
from store_io.wording.steps import advice_text

_SAVED = (Step.COMPARE_DIVERGED, Step.SAVE_FROM, Step.SEND_ONLY_OTHERS)  # what one copy alone holds


@dataclass(frozen=True)
class ShownStep:
    """One step in words.

    command: one line for any POSIX shell, "" without one.
    gives_up: what it gives up; None unless it is a repair that was worked out.
    """

    name: StepName
    text: str
    command: str = ""
    gives_up: GivesUp | None = None


def shown_steps(outcome: Outcome, words: Sequence[str], plan: str, to: str = "") -> list[ShownStep]:
    """Return the steps in their order. words, plan, to: as `repair_commands` takes them."""
    steps = steps_of(outcome)
    changed = any(step.name in (StepName.COPY, StepName.CHANGE) for step in steps)
    return [
        _repair(outcome, step, changed, words, plan, to) if step.what is None else _shown(outcome, step, step.what, words)
        for step in steps
    ]


def _shown(outcome: Outcome, step: AnswerStep, what: Advice | NotWhole, words: Sequence[str]) -> ShownStep:
    if isinstance(what, NotWhole):
        return ShownStep(step.name, *copied_again(what, words, outcome.whole.unclean))
    text = _with_files(what, step.files)
    if what.step == Step.COPY_CONFIG:
        return ShownStep(step.name, text, copy_of_config(what, words))
    saved = what.step in _SAVED
    command, withheld = only_here(what, words) if saved else master_command(outcome, what, words)
    return ShownStep(step.name, " ".join(filter(None, [text, withheld])), command)


def _with_files(advice: Advice, files: Sequence[str]) -> str:
    """Return the sentences on what to do, with the first file concerned if they do not name it."""
    text = advice_text(advice)
    if not files or files[0] in text:
        return text
    return f"{text.rstrip('.')} ({names_text(files, 1)})."


def _repair(outcome: Outcome, step: AnswerStep, changed: bool, words: Sequence[str], plan: str, to: str) -> ShownStep:
    """Return the step of a repair. changed: a step before it may change the copy."""
    commands = repair_commands(outcome, words, plan, to)
    command = "" if outcome.in_use else next((line for _, line in commands), "")
    unshown = not_shown(words, [("--plan", plan)]) if commands and not command and not outcome.in_use else ""
    return ShownStep(StepName.REPAIR, " ".join(filter(None, [_repair_text(outcome, changed), unshown])), command, step.gives_up)


def _repair_text(outcome: Outcome, changed: bool) -> str:
    """Return the sentence on the recommended repair: what it keeps and does, and last what it gives up.

    changed: a step before it may change the copy.
    """
    best = recommended(outcome)
    last = "If none of this can be had any more, work" if outcome.whole.signs else "Work"
    if best is None:
        return f"{last} out a repair by each policy: rescue recommends the one that keeps more."
    last = "If none of this can be had any more, repair" if outcome.whole.signs else "Repair"
    more = more_than_a_start(outcome, best) - best.healed
    all_of_them = (
        "the " if best.messages_after == 1 else "all " if best.messages_after == outcome.holds.messages + best.healed else ""
    )
    kept = f"keeps {all_of_them}{count_text(best.messages_after, 'message')}" if best.messages_after else ""
    if outcome.started is None:
        does = [kept, "removes what stops the release"]
    elif more > 0:
        cuts = outcome.loss.messages > counted(outcome, Code.BROKER_SKIPS_MESSAGES)
        does = [f"keeps the {count_text(more, 'message')} that a start would {'cut' if cuts else 'lose'}"]
    else:
        does = [kept, "mends what differs"]
    effects = "; ".join([" and ".join(filter(None, does)), *effect_clauses(best)])
    least = "at least " if best.given_up_more else ""
    given = [least + count_text(best.given_up, "message")] if best.given_up or least else []
    given += [count_text(best.not_kept, "entry", "entries") + " of config/"] if best.not_kept else []
    again = " If a step above was done, audit again first: this line is for the copy as it is now." if changed else ""
    return f"{last} the copy: this {effects}; it gives up {' and '.join(given) or 'nothing'}.{again}"


def first_name(outcome: Outcome) -> str:
    """Return the name of the first step; "" without steps."""
    return next((step.name.value for step in steps_of(outcome)), "")
