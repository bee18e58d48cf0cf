"""Decides which of the eight answers holds for a copy: one table of rules, in their order, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from schemas.advice import Cause, Lack
from schemas.answer import Answer
from schemas.finding_codes import BY_A_START, CURED, Code
from schemas.outcome import Outcome
from schemas.rows import LOSS, NOTE, REBUILDABLE, Finding
from store_io.answer.repairs import empties, going, keeps_late_timers, more_than_a_start, none_goes
from store_io.outcome.safety import (
    Decision,
    Start,
    counted,
    decide,
    has_other_losses,
    index_shrinks,
    is_emptied,
    remade_index_files,
    setting_at_fault,
    setting_that_cuts,
)
from store_io.repair.proposals import FIX_CONFIG, recommended

NOT_DECIDED = (Start.NOT_KNOWN, Start.NOT_KNOWN_OF_DAMAGED, Start.NOT_READ)
LOG_KEPT_ELSEWHERE = (Cause.LOG_ELSEWHERE, Cause.LEDGER_LOG_ELSEWHERE)
_LOSING = (Start.REFUSES, Start.CUTS, Start.LEAVES_UNSERVED, Start.LOSES_CONFIG, Start.CONFIG_LOST)


def donor_holds_all(outcome: Outcome) -> bool:
    """Say whether a donor holds all messages of this copy, and more."""
    return any(lack.kind == Lack.OTHER_COPY and not lack.own for lack in outcome.whole.signs)


@dataclass(frozen=True)
class _Facts:
    """What the rules ask about one outcome."""

    outcome: Outcome

    @cached_property
    def decision(self) -> Decision:
        return decide(self.outcome)

    @property
    def start(self) -> Start:
        return self.decision.start

    @property
    def log_elsewhere(self) -> bool:
        """Say whether the audit is incomplete as broker.conf keeps the log in a folder that was not copied."""
        return any(gap.cause in LOG_KEPT_ELSEWHERE for gap in self.outcome.gaps)

    @property
    def not_decided(self) -> bool:
        return (self.start in NOT_DECIDED or self.decision.other_release) and not self.log_elsewhere

    @property
    def not_whole(self) -> bool:
        shown = any(lack.kind != Lack.OTHER_COPY for lack in self.outcome.whole.signs)
        shown = shown or bool(counted(self.outcome, Code.SEGMENT_CHANGED))
        return self.log_elsewhere or (shown or is_emptied(self.outcome)) and not donor_holds_all(self.outcome)

    @property
    def other_holds_more(self) -> bool:
        lacking, outcome = self.decision.lacking, self.outcome
        behind = any(f.code == Code.COPY_IS_BEHIND and f.severity != NOTE for f in outcome.found.findings)
        donor = any(lack.kind == Lack.OTHER_COPY for lack in outcome.whole.signs)
        return behind or donor or lacking is not None and not lacking.earlier

    @property
    def setting_stops(self) -> bool:
        """Say whether a line of broker.conf, or marks of a crash, stop a start or make a start drop or hide messages."""
        outcome = self.outcome
        if self.start == Start.AGAINST_SETTINGS or setting_at_fault(outcome) is not None:
            return True
        if self._late_alone:
            return True
        cuts = bool(setting_that_cuts(outcome)) and not has_other_losses(outcome)
        return cuts or bool(counted(outcome, Code.LEDGER_CRASH_CUT))

    @property
    def _late_alone(self) -> bool:
        """Say whether the start loses timer messages alone, as it comes too late for them, and no repair keeps these."""
        lost = {f.code for f in self.outcome.found.findings if f.severity == LOSS}
        return lost == {Code.TIMERS_PASSED_OVER} and not keeps_late_timers(self.outcome)

    @property
    def no_repair(self) -> bool:
        """Say whether no repair of this copy can go."""
        return self.outcome.no_repair is not None or none_goes(self.outcome) is not None or empties(self.outcome)

    @property
    def no_table_mended(self) -> bool:
        """Say whether only tables of config/ differ, and no repair that goes writes one of them."""
        found = going(self.outcome)
        tables = self.start in (Start.LOSES_CONFIG, Start.CONFIG_LOST)
        return tables and bool(found) and not any(FIX_CONFIG in one.options for one in found) and not self.mended_by_repair

    @property
    def loses(self) -> bool:
        return self.start in _LOSING or self.start == Start.NO_MESSAGE_LEFT

    @cached_property
    def mended_by_repair(self) -> bool:
        """Say whether something differs that any repair mends, and that a start does not."""
        rows = [f for f in self.outcome.found.findings if f.severity == REBUILDABLE and f.code in CURED]
        return bool(rows) and (index_shrinks(self.outcome) or not all(map(self._mended_by_start, rows)))

    def _mended_by_start(self, finding: Finding) -> bool:
        """Say whether a start puts this right: it dispatches, cuts queues at the log's end, and makes newer index files again."""
        if finding.next in BY_A_START or finding.file in self._remade:
            return True
        return finding.code == Code.QUEUE_ENTRY_BEYOND_END and (finding.topic, finding.queue_id) in self._cut_queues

    @cached_property
    def _remade(self) -> set[str]:
        return remade_index_files(self.outcome)

    @cached_property
    def _cut_queues(self) -> set[tuple[str | None, int | None]]:
        """Return the queues that lead beyond the log before a start, and not after it."""
        beyond = {(f.topic, f.queue_id) for f in self.outcome.found.findings if f.code == Code.QUEUE_ENTRY_BEYOND_END}
        started = self.outcome.started
        if not beyond or started is None:
            return set()
        ends = started.after_dispatch.queues
        return {end[:2] for end in ends if end[:2] in beyond and end.max_phy_offset < started.log_end}

    @property
    def repair_keeps_more(self) -> bool:
        best = recommended(self.outcome)
        return best is not None and more_than_a_start(self.outcome, best) > 0


class Rule(NamedTuple):
    """One rule. reason: why it comes before those that follow."""

    answer: Answer
    holds: Callable[[_Facts], bool]
    reason: str


RULES = (
    Rule(Answer.NOT_KNOWN, lambda facts: facts.not_decided, "nothing is called safe, or lost, that was not looked at"),
    Rule(Answer.COPY_AGAIN, lambda facts: facts.not_whole, "a copy costs nothing, and may bring everything"),
    Rule(Answer.OTHER_COPY, lambda facts: facts.other_holds_more, "what another copy holds need not be given up"),
    Rule(Answer.CHANGE, lambda facts: facts.setting_stops, "a line of broker.conf is changed in a minute, and loses nothing"),
    Rule(
        Answer.OTHER_COPY,
        lambda facts: facts.loses and (facts.no_repair or facts.no_table_mended),
        "a start loses something, and no repair keeps this: only another copy, or a backup, has it",
    ),
    Rule(Answer.REPAIR, lambda facts: facts.start in _LOSING, "a repair keeps what a start would lose"),
    Rule(
        Answer.REPAIR,
        lambda facts: (facts.repair_keeps_more or facts.mended_by_repair) and not facts.no_repair,
        "a repair mends what a start leaves as it is",
    ),
    Rule(Answer.EMPTY, lambda facts: facts.start == Start.EMPTY, "there is nothing to lose"),
    Rule(Answer.START_MENDS, lambda facts: facts.start != Start.SAFE, "a start loses nothing that this copy holds"),
    Rule(Answer.START, lambda facts: True, "nothing differs"),
)


def answer_of(outcome: Outcome) -> Answer:
    """Return the answer: that of the first rule that holds."""
    facts = _Facts(outcome)
    return next(rule.answer for rule in RULES if rule.holds(facts))
