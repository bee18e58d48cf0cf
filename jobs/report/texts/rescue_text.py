"""The text of a rescue for a terminal: its assumptions, the audit's answer, the ways, one command with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jobs.cli.terminal import Paint, in_columns
from jobs.report.texts.commands import effect_clauses
from jobs.report.texts.comparison_words import config_words, lack_words, least_text, lost_text, pair_words
from jobs.report.texts.next_steps import ShownStep
from jobs.report.texts.text import printable, seconds_text
from schemas.answer import StepName
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from schemas.replicas import NO_GROUP, Group
from store_io.answer.answers import answer_of
from store_io.answer.headline import judge
from store_io.base.wording import bytes_text, count_text
from store_io.outcome.safety import as_master, setting_that_cuts, timers_lost
from store_io.repair.proposals import proposals, recommended
from store_io.repair.repair_plan import SALVAGE
from store_io.repair.ways import Way

_SENTENCE = 400
_LABEL = 10


@dataclass(frozen=True)
class ComparedDonor:
    """How a donor compares with the copy.

    copy: its name there.
    problem: why they were not compared.
    """

    copy: str = ""
    group: Group = NO_GROUP
    problem: str = ""

    @property
    def has_more(self) -> bool:
        """Say whether the donor has messages, or entries of config/, that the copy lacks or has older ones of."""
        return bool(self.group.lacked_by(self.copy) or self.group.ahead_of(self.copy))

    @property
    def doubts(self) -> list[str]:
        """Return sentences if the two hold different messages at the same physical offsets, and nothing shows which is right."""
        lacking = as_master(self.group, self.copy)
        if lacking is None or not lacking.diverged_from:
            return []
        return [lacking.headline() if lacking.undecided else f"{lacking.headline()}; {lacking.clause()}"]


def compared_text(compared: ComparedDonor) -> str:
    """Return the text on messages that only one of copy and donor has. "" without a donor."""
    if compared.problem:
        return _line("Donor", compared.problem) + "\n"
    if not compared.group.copies:
        return ""
    said = [pair_words(pair) for pair in compared.group.pairs]
    for name in dict.fromkeys((compared.copy, *(copy.store for copy in compared.group.copies))):
        said += lack_words(compared.group, name)
    said += [*config_words(compared.group), *compared.group.problems]
    return "".join(f"{_line('Donor' if not number else '', text)}\n" for number, text in enumerate(said))


def audit_text(outcome: Outcome) -> str:
    """Return the audit's headline, before any repair, with what it assumes and its reasons."""
    judged = judge(outcome)
    lines = [f"{printable(outcome.location_text)}: {printable(judged.headline, _SENTENCE)}"]
    lines += [
        _line("Assumed" if not number else "", premise.sentence + ".") for number, premise in enumerate(outcome.assumed.premises)
    ]
    lines += [_line("Why" if not number else "", why) for number, why in enumerate(judged.why)]
    lines += [_line("Compared", text) for text in filter(None, [_other_release(outcome)])]
    return "\n".join(lines) + "\n"


def steps_list(outcome: Outcome, steps: Sequence[ShownStep], all_the_same: str = "") -> str:
    """Return the answer and its steps, in their order.

    all_the_same: the rescue that repairs although more may still be had, shown in place of the repair; "" if it runs one.
    """
    lines = [_line("Answer", answer_of(outcome))]
    for number, step in enumerate(steps, 1):
        lines += [_line("Next" if number == 1 else "", f"{number}. {step.name}: {step.text}")]
        repair = step.name == StepName.REPAIR
        command = all_the_same if repair and all_the_same else step.command
        lines += [f"  {'Repair' if repair and not all_the_same else '':<{_LABEL}} {command}"] if command else []
    return "\n".join(lines) + "\n"


def _other_release(outcome: Outcome) -> str:
    """Return a line if a start of another release would lose less than one of the copy's own, else ""."""
    compared = outcome.comparison
    if compared is None or not compared.least or outcome.release in compared.least:
        return ""
    own = next((row for row in compared.releases if row.release == outcome.release), None)
    if own is None or not own.known:
        return ""
    said = f"a start of RocketMQ {outcome.release} as the copy is: {lost_text(own)}"
    if own.starts:
        said += " messages lost"
    more = f"A repair for {outcome.release} may keep as many: see below."
    return f"{least_text(outcome, compared)} {said[:1].upper()}{said[1:]}. {more}"


def donor_text(problem: str) -> str:
    """Return the line of a donor that has nothing to give, and is left out."""
    return _line("Donor", f"unfit, and left out from here on: {problem}") + "\n"


def ways_text(outcome: Outcome, ways: Sequence[Way]) -> str:
    """Return the ways beside one another, and a plain start."""
    return _ways_text(outcome, ways, recommended(outcome))


def _ways_text(outcome: Outcome, ways: Sequence[Way], best: RepairProposal | None) -> str:
    marked = {best.policy: "> "} if best is not None else {}
    heads = ["", "a plain start", *(f"{marked.get(way.policy, '')}policy {way.policy}" for way in ways)]
    keeps_all = not any(way.not_kept for way in ways if way.outcome is not None)
    rows = [heads, *(_row(*row, outcome, ways) for row in _ROWS if row is not _ENTRIES or not keeps_all)]
    lines = ["  " + line for line in in_columns(rows, range(1, len(heads)), [""] * len(rows), Paint(False))]
    lines += [_line(way.policy.capitalize(), f"does not go: {way.problem()}") for way in ways if not way.consistent]
    return "\n".join(lines) + "\n"


def withheld_text(outcome: Outcome, ways: Sequence[Way], folder: str) -> str:
    """Return the ways, none of them recommended, and why none is run: what is missing may still be had."""
    said = "Nothing was repaired: what is missing here may still be had, as said above. Do that first, then rescue the result."
    lines = [_line("Next", said), _line("Page", f"{folder} has the audit's page and plan")]
    return _ways_text(outcome, ways, None) + "\n".join(lines) + "\n"


def _row(
    title: str, start: Callable[[Outcome], str], said: Callable[[Way], str], outcome: Outcome, ways: Sequence[Way]
) -> list[str]:
    return [title, start(outcome), *("-" if way.outcome is None else said(way) for way in ways)]


def _starts(outcome: Outcome) -> bool:
    return outcome.started is not None


def _start_keeps(outcome: Outcome) -> str:
    return f"{outcome.holds.messages - outcome.loss.messages:,}" if _starts(outcome) else "does not start"


def _start_loses(outcome: Outcome) -> str:
    timers = timers_lost(outcome)
    more = f" + {count_text(timers, 'timer')}" if timers else ""
    return f"{outcome.loss.messages:,}{more}" if _starts(outcome) else "-"


_ENTRIES: tuple[str, Callable[[Outcome], str], Callable[[Way], str]] = (
    "table entries not kept",  # which only a form of a table of config/ has that is not taken
    lambda outcome: "-",
    lambda way: f"{way.not_kept:,}",
)
_ROWS: Sequence[tuple[str, Callable[[Outcome], str], Callable[[Way], str]]] = (
    ("messages kept", _start_keeps, lambda way: f"{way.kept:,}"),
    ("valid ones lost", _start_loses, lambda way: f"{way.report.lost.messages:,}"),
    ("given up in all", lambda outcome: "-", lambda way: _given_up(way)),
    ("records healed", lambda outcome: "-", lambda way: f"{way.healed:,}"),
    (
        "taken from a donor",
        lambda outcome: "-",
        lambda way: count_text(len(way.report.donor.taken) if way.report.donor is not None else 0, "range"),
    ),
    ("offsets set back", lambda outcome: "-", lambda way: f"{way.offsets:,}"),
    _ENTRIES,
    ("written, about", lambda outcome: "-", lambda way: bytes_text(way.written)),
    ("time, about", lambda outcome: "-", lambda way: seconds_text(way.run_seconds)),
    (
        "consistent then",
        lambda outcome: "no" if outcome.exit_code else "yes",
        lambda way: "no" if not way.consistent else "yes, but for config/" if way.config_stays else "yes, checked",
    ),
)


def _given_up(way: Way) -> str:
    unknown = way.report.given_up.signs
    return "not known" if unknown and not way.given_up else f"{way.given_up:,}"


def choice_text(outcome: Outcome, command: str, folder: str, proposed: bool) -> str:
    """Return why this repair is recommended.

    command: the repair; "" if the list of steps has it.  folder: that of the audit's page.  proposed: nothing runs it yet.
    """
    lines = [
        _line("Reason", _why(outcome)),
        *([f"  {'Repair':<{_LABEL}} {command}"] if command else []),
        _line("Page", f"{folder} has the audit's page and plan"),
    ]
    if proposed:
        lines.append(_line("Next", "Run the command after Repair, or this rescue command again with --yes."))
    return "\n".join(lines) + "\n"


def _why(outcome: Outcome) -> str:
    """Return why the first proposal is recommended, and what it does and leaves out, clauses."""
    best, other = proposals(outcome)
    return "; ".join([_why_this_policy(outcome, best, other), *effect_clauses(best)])


def _why_this_policy(outcome: Outcome, best: RepairProposal, other: RepairProposal) -> str:
    if other.refused is not None:
        return f"policy {other.policy} does not go: {other.refused}"
    more = best.messages_after - other.messages_after
    if more > 0:
        return f"it keeps {more:,} more of the messages{_kept_by_salvage(outcome) if best.policy == SALVAGE else ''}"
    if best.given_up < other.given_up:
        return f"it gives up {other.given_up - best.given_up:,} fewer messages"
    return f"policy {best.policy} recommended: both keep the same messages, and {best.policy} ends the log as a start would"


def _kept_by_salvage(outcome: Outcome) -> str:
    """Return a clause on the messages that policy salvage keeps beyond policy broker's; "" if they are not known."""
    setting = setting_that_cuts(outcome)
    of_setting = f": those that a start with {setting}=true cuts" if setting else ""
    return of_setting + (", also those after the damage" if outcome.holds.damaged_extents else "")


def end_text(headline: str, more: Sequence[str]) -> str:
    """Return an end without a repair: why, and what else there is to read."""
    return "\n".join([printable(headline, _SENTENCE), *(_line("Page" if not n else "", s) for n, s in enumerate(more))]) + "\n"


def first_text(lines: Iterator[str]) -> str:
    """Return the lines to be shown before any work."""
    return "".join(f"  {printable(line, _SENTENCE)}\n" for line in lines)


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}} {printable(text, 2 * _SENTENCE)}"
