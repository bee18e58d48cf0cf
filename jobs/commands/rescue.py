"""rescue COPY [--broker-conf F]: from a damaged copy to a new store, in one command.

Look, audit, work out both ways to repair, propose one, and with --yes, or if a person at the terminal agrees, carry it out and
hand it over. What is run is the very command that is shown. The exit code says how it ended:

* 0: the copy is consistent and there is nothing to do, or the new store is in place, consistent, with its hand-over page.
* 2: something must be named, or the arguments make no sense. Nothing was done.
* 3: it could not be done: not audited completely, refused, too little space, failed; also where a sound copy and the donor have
  diverged, as nothing here can say which of them is right.
* 10, 20: a repair is proposed and was not run, or none would change what is wrong: the audit's own code, 10 of a sound copy
  whose donor has newer tables. Also where a repair's result was not consistent.
* 20 also if it is shown that the copy is not whole, or the donor holds more at its end: what is missing may still be had, so
  nothing is repaired, not with --yes either, unless --give-up is said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from jobs.audit.run_audit import write_store
from jobs.cli import options
from jobs.cli.options import Command
from jobs.cli.parser import is_cluster_mode
from jobs.cli.start_options import asked_start
from jobs.cli.stores import REPLICAS
from jobs.commands.repair import carry_out, tell_step
from jobs.repair.first_look import AskedRescue, agreed, first_lines, first_look
from jobs.report.files.result_files import replicas_json
from jobs.report.pages.hand_over_page import hand_over_text
from jobs.report.pages.report_html import PageContext
from jobs.report.texts.commands import command_line, not_shown, repair_withheld, repair_words, store_words
from jobs.report.texts.next_steps import shown_steps
from jobs.report.texts.rescue_text import (
    ComparedDonor,
    audit_text,
    choice_text,
    compared_text,
    donor_text,
    end_text,
    first_text,
    steps_list,
    ways_text,
    withheld_text,
)
from jobs.report.texts.text import printable
from jobs.runtime import interrupts
from jobs.runtime.faults import say
from jobs.runtime.output import OutputFailed
from jobs.tasks.threads_or_spark import run_tasks_for
from schemas.answer import Answer, StepName
from schemas.layouts.store_names import BESIDE
from schemas.outcome import Outcome
from schemas.repair import RepairProposal
from schemas.rows import DOUBT, NAMED
from store_io.answer.answers import answer_of
from store_io.answer.headline import judge
from store_io.answer.repairs import none_goes
from store_io.answer.steps import steps_of
from store_io.audit.audit_store import StoreAudit, run_rounds
from store_io.audit.compared.compared_audit import ComparedAudit
from store_io.base.crc import checksum
from store_io.base.errors import StoreError, UnfitDonor, UsageError
from store_io.base.exit_codes import CONSISTENT, DERIVED, LOST
from store_io.base.failed_reads import every_read
from store_io.base.tasks import Task
from store_io.broker.releases import KNOWN_RELEASES
from store_io.model.audit_request import AuditRequest
from store_io.outcome.copy_whole import held_by
from store_io.outcome.safety import differs_alone, holds_nothing
from store_io.repair.proposals import config_helps, recommended, timers_late
from store_io.repair.repair_plan import POLICIES, plan_text, read_plan
from store_io.repair.repair_work import RepairRequest, RunTasks
from store_io.repair.ways import Way, proposal_of, still_to_be_had, work_out_way
from store_io.replicas.replica_groups import ReplicaGroup
from store_io.replicas.same_logs import same_logs
from store_io.wording.gaps import gap_text
from store_io.wording.steps import next_text

YES, GIVE_UP, DONOR = "--yes", "--give-up", "the donor"


@dataclass(frozen=True)
class End:
    """An end without a repair.

    headline: why.
    steps: what to do next.
    """

    code: int
    headline: str
    steps: tuple[str, ...] = ()


def run(command: Command) -> int:
    """Run the command. Returns the exit code as above."""
    if is_cluster_mode(command.spark):
        raise UsageError("--deploy-mode cluster: a rescue writes a folder of this machine, from a driver here")
    with every_read():  # a read that fails ends a rescue before anything is written, never after
        asked = first_look(command)
    try:
        return _rescue(command, asked)
    except BaseException:
        if interrupts.came():
            say(f"interrupted: {_left(asked)}; the copy is as it was")
        raise


def _left(asked: AskedRescue) -> str:
    """Return a clause on the files that an interrupted rescue leaves."""
    found = [path for path in (asked.target, asked.folder, *(asked.target + end for end in BESIDE)) if os.path.lexists(path)]
    if not found:
        return "nothing is left of it"
    new = "the new store is in place and complete" if asked.target in found else "there is no new store"
    return f"{new}; what is left: {', '.join(found)}"


def _rescue(command: Command, asked: AskedRescue) -> int:
    """Rescue the copy, once it is settled what is asked for."""
    _say(first_text(first_lines(asked)))
    checksum.trust()
    with interrupts.first_only(), run_tasks_for(command.spark, asked.location) as run_tasks:
        tell_step("auditing the copy")
        outcome, compared = _audit(asked, run_tasks)
        _say(audit_text(outcome))
        asked = replace(asked, assumed=(*asked.assumed, *(f"{said}." for said in compared.doubts)))
        end = _end_without_repair(outcome, asked, compared)
        if compared.group.copies or end is not None:  # else the repair says why it leaves the donor out
            _say(compared_text(compared))
        with every_read():
            asked, ways = (asked, []) if end is not None else _ways_without_unfit_donor(asked, outcome, run_tasks)
    if end is not None:
        if end.code != CONSISTENT:
            _write(asked, outcome)
        _say(_steps(command, asked, outcome) + end_text(end.headline, end.steps))
        return end.code
    outcome = replace(outcome, repairs=tuple(map(proposal_of, ways)))
    _write(asked, outcome)
    if GIVE_UP not in command.flags and still_to_be_had(outcome, ways):
        named = [(name, command.options[name]) for name in ("--donor", "--to") if name in command.options]
        again = command_line("rescue", (*_given(command, asked), YES, GIVE_UP), named)
        _say(_steps(command, asked, outcome, again) + withheld_text(outcome, ways, asked.folder))
        return LOST
    _say(_steps(command, asked, outcome))
    best, answer = recommended(outcome), answer_of(outcome)
    first = best is not None and answer in (Answer.CHANGE, Answer.OTHER_COPY) and not _lists_repair(outcome)
    if first and GIVE_UP not in command.flags:
        _say(end_text("Not rescued: do the steps above first; --give-up repairs all the same.", (_page(asked, outcome),)))
        return outcome.exit_code if answer == Answer.CHANGE else LOST
    if best is None and any(way.consistent for way in ways):
        _say(end_text("Not rescued: a repair would change nothing of this.", (_page(asked, outcome),)))
        return outcome.exit_code
    _say(ways_text(outcome, ways))
    if best is None:
        raise StoreError(next_text(none_goes(outcome)))
    return _propose(command, asked, outcome, best)


def _propose(command: Command, asked: AskedRescue, outcome: Outcome, best: RepairProposal) -> int:
    """Show the recommended command; run it if that is wanted."""
    words = repair_words(best, _given(command, asked), _plan_file(asked, outcome), asked.target)
    run_it = YES in command.flags
    shown = "" if _lists_repair(outcome) else command_line("repair", words, []) or not_shown(words)
    _say(choice_text(outcome, shown, asked.folder, not run_it))
    if run_it or agreed("Run it now?"):
        done = carry_out(options.parse(["repair", *words]), asked.assumed)
        if done.handed is not None:
            _say(hand_over_text(done.handed))
        return done.exit_code
    return outcome.exit_code


# ---- the audit, and ends without a repair ------------------------------------------------------------------------------


def _audit(asked: AskedRescue, run_tasks: RunTasks) -> tuple[Outcome, ComparedDonor]:
    """Run the whole audit, under the store's own release and, to compare, all others.

    A donor is read and compared, too.
    """
    store = asked.store
    request = AuditRequest(
        store.name,
        asked.location,
        store.release,
        store.broker_conf,
        release_from=store.release_from,
        releases=tuple(dict.fromkeys((store.release, *KNOWN_RELEASES))),
        start=asked.start,
    )
    audit = ComparedAudit(request)
    asking: list[tuple[StoreAudit, list[Task]]] = [(audit, audit.first_tasks())]
    donor = None
    if asked.donor is not None:
        donor = StoreAudit(AuditRequest(DONOR, asked.donor, store.release, store.broker_conf, store=1))
        asking.append((donor, donor.first_tasks()))
    run_rounds(asking, lambda tasks: run_tasks(tasks, "auditing"))
    compared = ComparedDonor() if donor is None else _compared(audit, donor, run_tasks)
    outcome = audit.outcome()
    if asked.donor is not None and outcome.exit_code != CONSISTENT and (more := held_by(outcome, asked.donor.root)) is not None:
        outcome = replace(outcome, whole=replace(outcome.whole, signs=[more, *outcome.whole.signs]))
    return outcome, compared


def _compared(audit: StoreAudit, donor: StoreAudit, run_tasks: RunTasks) -> ComparedDonor:
    """Compare the donor with the copy, whatever a repair would take from it. The copy's audit gets what the comparison finds."""
    if audit.failed or donor.failed:
        return ComparedDonor(problem="; ".join(gap_text(gap) for each in (audit, donor) for gap in each.gaps.faults[:1]))
    if not same_logs([audit, donor]):
        where = "no message that the two hold at the same physical offset was found"
        return ComparedDonor(problem=f"perhaps no copy of this log: {where}")
    group = ReplicaGroup(DONOR, [audit, donor])
    group.finish(run_tasks(group.tasks(), "comparing the donor"))
    group.blame()
    return ComparedDonor(audit.request.name, group.result)


def _end_without_repair(outcome: Outcome, asked: AskedRescue, compared: ComparedDonor) -> End | None:
    """Return the end of a rescue without a repair, with its reason; None if a repair is worked out."""
    page = _page(asked, outcome)
    if outcome.effect is None or not outcome.complete:
        sentence = (outcome.incomplete or ["what the release would do is not known"])[0]
        return End(StoreError.exit_code, f"Not rescued: the copy could not be audited completely: {sentence}", (page,))
    sound = outcome.exit_code in (CONSISTENT, DERIVED) and not differs_alone(outcome)
    if sound and compared.doubts:
        said = "Not rescued: the copy is consistent by itself, and differs from the donor."
        step = "Find out which of the two is right before either is started; no repair joins two logs that have diverged."
        return End(StoreError.exit_code, said, (step, page))
    if sound:
        said = "Nothing to repair: the copy is consistent by all checks."
        if compared.has_more:
            store = "the donor's store" if asked.donor is None else printable(asked.donor.root)
            step = f"No repair adds this to a sound copy: use {store}, or its files of config/, instead."
            return End(outcome.exit_code, f"{said} The donor has more, as said above.", (step,))
        return End(CONSISTENT, said)
    if outcome.assumed.release_from != NAMED or any(premise.kind == DOUBT for premise in outcome.assumed.premises):
        code = StoreError.exit_code if outcome.assumed.release_from != NAMED else UsageError.exit_code
        return End(code, f"Not rescued: {repair_withheld(outcome) or judge(outcome).headline}")
    if outcome.no_repair:
        return End(
            StoreError.exit_code,
            "Not rescued: no repair is written for this kind of store.",
            (page,),
        )
    if holds_nothing(outcome):
        return End(StoreError.exit_code, f"Not rescued: {judge(outcome).headline}", (page,))
    return None


def _page(asked: AskedRescue, outcome: Outcome) -> str:
    return f"{asked.folder}/{outcome.name}/report.html has all of it"


def _given(command: Command, asked: AskedRescue) -> tuple[str, ...]:
    """Return the words of this rescue that a command for the same store takes over."""
    return (*store_words(asked.store), *command.spark, *asked_start(command.options).words())


def _lists_repair(outcome: Outcome) -> bool:
    """Say whether a repair is one of the steps."""
    return any(step.name == StepName.REPAIR and step.what is None for step in steps_of(outcome))


def _steps(command: Command, asked: AskedRescue, outcome: Outcome, all_the_same: str = "") -> str:
    """Return the list of steps. all_the_same: as `steps_list` takes it."""
    steps = shown_steps(outcome, _given(command, asked), _plan_file(asked, outcome), asked.target)
    return steps_list(outcome, steps, all_the_same)


def _ways_without_unfit_donor(asked: AskedRescue, outcome: Outcome, run_tasks: RunTasks) -> tuple[AskedRescue, list[Way]]:
    """Return what is asked for, without a donor that has nothing to give to this log, and the ways."""
    try:
        return asked, _ways(asked, outcome, run_tasks)
    except UnfitDonor as problem:
        _say(donor_text(str(problem)))
        asked = replace(asked, donor=None)
        return asked, _ways(asked, outcome, run_tasks)


def _ways(asked: AskedRescue, outcome: Outcome, run_tasks: RunTasks) -> list[Way]:
    """Return a repair by each policy, worked out. Raises StoreError if no repair can follow this audit."""
    plan = read_plan(plan_text(outcome).encode())
    found = []
    for policy in POLICIES:
        tell_step(f"working out a repair by policy {policy}")
        late = timers_late(outcome)
        request = RepairRequest(plan.store, asked.location, asked.target, plan, policy, asked.donor, late_timers=late)
        found.append(work_out_way(request, config_helps(outcome), run_tasks))
    return found


def _plan_file(asked: AskedRescue, outcome: Outcome) -> str:
    return f"{asked.folder}/{outcome.name}/plan.json"


def _write(asked: AskedRescue, outcome: Outcome) -> None:
    """Write the audit's own results. Raises OutputFailed: without the plan nothing can be repaired."""
    output = asked.output()
    output.begin([outcome.name])
    context = PageContext(store_words=store_words(asked.store), plan=_plan_file(asked, outcome), to=asked.target)
    problems = write_store(output, outcome, context)
    if problems:
        raise OutputFailed(problems[0].sentence)
    if outcome.replicas.copies:
        output.write(REPLICAS, replicas_json([outcome]))


def _say(text: str) -> None:
    print(text, end="", flush=True)
