"""Whether a repair of a copy goes and changes anything, and what to do in its place if none does."""

from __future__ import annotations

from schemas.advice import Advice, Step
from schemas.finding_codes import CURED
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from schemas.rows import DEFAULT, DOUBT, NAMED, NOTE
from store_io.base.exit_codes import DERIVED, LOST
from store_io.base.wording import clause
from store_io.outcome.safety import holds_nothing, refused_by_config, setting_at_fault, unqueueable
from store_io.repair.proposals import DONOR, LATE_TIMERS, config_helps, proposals, timers_late


def going(outcome: Outcome) -> list[RepairProposal]:
    """Return the repairs that go, the recommended one first. None if the audit worked none out."""
    return [one for one in proposals(outcome) if one.refused is None]


def acts(outcome: Outcome) -> bool:
    """Say whether a repair changes anything: by its own steps if the plan has them, else by a start's steps and the findings."""
    found = going(outcome)
    if found:
        return any(one.changes for one in found)
    changes = any(step.action != "keep" for step in outcome.plan.steps)
    cured = any(f.code in CURED and f.severity != NOTE and not f.has_step(Step.NO_QUEUE) for f in outcome.found.findings)
    return changes or cured or config_helps(outcome) or timers_late(outcome)


def keeps_late_timers(outcome: Outcome) -> bool:
    """Say whether the recommended repair, or one that is not worked out yet, keeps timer messages for which a start is late."""
    found = proposals(outcome)
    best = next((one for one in found if one.refused is None), None)
    if not timers_late(outcome) or outcome.no_repair is not None:
        return False
    return LATE_TIMERS in best.options if best is not None else all(not one.worked_out for one in found)


def empties(outcome: Outcome) -> bool:
    """Say whether a repair of this store, which differs, would keep no message."""
    known = outcome.effect is not None and outcome.no_repair is None
    nothing_left = not outcome.holds.segment_count or holds_nothing(outcome)
    return outcome.exit_code in (DERIVED, LOST) and known and nothing_left


def in_place_of_repair(outcome: Outcome) -> Advice | None:
    """Return what to do if no repair is offered although something differs. None if one is offered, or nothing is to be done."""
    if empties(outcome):
        return Advice(Step.NO_MESSAGE_LEFT)
    if not acts(outcome):
        return Advice(Step.NO_REPAIR_MENDS) if going(outcome) else None
    if (advice := by_cause(outcome)) is not None:
        return advice
    if outcome.assumed.release_from != NAMED:
        return Advice(Step.NAME_RELEASE if outcome.assumed.release_from == DEFAULT else Step.NAME_KNOWN_RELEASE)
    if any(premise.kind == DOUBT for premise in outcome.assumed.premises):
        return Advice(Step.AUDIT_WITH_OWN)
    return none_goes(outcome)


def by_cause(outcome: Outcome) -> Advice | None:
    """Return what to do in place of a repair by the copy's settings or kind; None if neither forbids one."""
    return None if empties(outcome) or not acts(outcome) else setting_at_fault(outcome) or outcome.no_repair


def none_goes(outcome: Outcome) -> Advice | None:
    """Return that a repair by either policy refuses, and why; None if one goes, or none was worked out."""
    found = proposals(outcome)
    if not found or any(one.refused is None or not one.worked_out for one in found):
        return None
    why = "; ".join(dict.fromkeys(clause(str(one.refused)) for one in found))
    of_ledger = outcome.started is not None and outcome.started.ledger is not None
    given = any(DONOR in one.options for one in found) or of_ledger  # or no donor is taken
    if refused_by_config(outcome):  # the reason says what to do about the file
        return Advice(Step.NO_REPAIR_GOES, (why,))
    return Advice(Step.NO_REPAIR_OTHER_COPY if given else Step.NO_REPAIR_NAME_DONOR, (why,))


def more_than_a_start(outcome: Outcome, proposal: RepairProposal) -> int:
    """Return how many more messages consumers get after a repair than after a start. 0 if the release does not start."""
    if outcome.started is None:
        return 0
    after_a_start = outcome.holds.messages - outcome.loss.messages
    return max(0, proposal.messages_after - proposal.unserved - unqueueable(outcome) - after_a_start)
