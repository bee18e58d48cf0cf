"""The repair of one store, from the copy to the new store in its place. `_carry_out` is its table of contents.

    outcome = repair(request, run_tasks)

All work is done on a copy beside the target. Tasks are independent of one another and run wherever `run_tasks` runs them. What
the broker's own recovery gets wrong, and what is done about it: pitfalls.md, A to D.

What each step refuses, a StoreError (docs/contract.md, 6, says when, and has the refusals of the command line):

* before 1, `check_source`: a source without segments, or whose segments are not of the configured size; a node of a DLedger
  group of several.
* 1, `plan_copy`: a segment name in two CommitLog folders; too little space.
* 2, `audit_copy`: a copy that differs from the plan, or that no audit can read completely.
* 3, `fix_config`: nothing but tables in a database; a file of config/ that cannot be read.
* 3, `unblock`: policy broker where no change lets the release start.
* 4, `heal`: a donor that is no store, or no copy of this log.
* after 5: a log without a message, although the copy shows that it held some.
* 6, `plan_log`: segment names that make no log; a segment without room for a filler.  `plan_ledger`: no sound entry; damage in
  the older part of a mixed store; a first data file that can get no entry at its start.
* 1 to 13, `Steps.take`, and after 13 `Steps.finish`: steps that are not the plan's.
* 13, `correct_offsets`: a file with offsets that cannot be read.
* at the end, `StoreWriter.placing`: a target that exists by now.

Any step may also meet a medium that fails, or a source that changes. A new store that is not consistent (12) is no refusal: the
exit code is 10 or 20, and nothing is put in place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from schemas.layouts.checkpoint_layout import ABORT_FILE
from schemas.layouts.dledger_layout import FOLDER_PREFIX
from schemas.layouts.store_names import COMMITLOG
from schemas.repair import DroppedMessage, OtherPolicy
from store_io.base.errors import StoreError
from store_io.base.failed_reads import every_read
from store_io.base.wording import count_text
from store_io.first_day.after_start import edges_of, ends_of, state_of
from store_io.kinds.all_repairs import REPAIRS
from store_io.kinds.config.rebuild.fix_config import fix_config
from store_io.kinds.dledger.ledger_plan import plan_ledger
from store_io.outcome.safety import holds_nothing
from store_io.repair import repair_audit
from store_io.repair.copy_under_way import CopyUnderWay, started
from store_io.repair.derived import repair_offsets
from store_io.repair.derived.rebuild_round import rebuild
from store_io.repair.kind_repair import Rebuilt, Round
from store_io.repair.log import pad
from store_io.repair.log.donor import heal
from store_io.repair.log.edits import LogPlan, apply_edits, message_extents
from store_io.repair.log.heal import heal_records
from store_io.repair.log.log_plan import plan_log
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_copy import ANOTHER_COPY, check_source
from store_io.repair.repair_judge import judge_new_store
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_report import Begun, Ended, check_sum, queue_ends, report, unsaved_of
from store_io.repair.repair_start import NoStart, unblock, why_no_start, with_configured_lengths
from store_io.repair.repair_steps import COPY, REMOVE
from store_io.repair.repair_work import RepairOutcome, RepairRequest, RunTasks, Work
from store_io.repair.writing.store_writer import WriteFailed
from store_io.repair.writing.trial_writer import TrialWriter
from store_io.source.byte_source import StoreLocation, open_source, shown

ROOM_TO_KEEP = 3  # times what the copy takes: as much at most is kept by scans, and no step may lack room for that
MOST_ROUNDS = 3  # of rebuilding what an audit finds wrong


def repair(
    request: RepairRequest,
    run_tasks: RunTasks,
    keep: Callable[[RepairOutcome, str], None] = lambda outcome, folder: None,
    progress: Callable[[str], None] = lambda sentence: None,
    copying: CopyUnderWay | None = None,
) -> RepairOutcome:
    """Repair into `request.target`. Raises StoreError if nothing could be done; then nothing is left.

    keep: writes the files that go beside the new store of a repair that succeeded, under their final names, into a folder. They
    are put in place just before the new store is, and are on the disk by then. If it fails nothing is put in place.
    progress: takes a phrase for what is done next.
    copying: the copy, if it was started before.
    """
    with started(request) if copying is None else contextlib.nullcontext(copying) as copying:
        writer = copying.writer
        with every_read():
            outcome = _carry_out(Work(request, writer, run_tasks, progress), copying)
        if outcome.exit_code == 0:
            progress("writing it to the disk")
            copying.flush()
            with every_read():
                writer.narrow(open_source(request.location))
                writer.flush()
                _add_edges(outcome, writer.location)
                keep(outcome, writer.waiting)
            with writer.placing():
                writer.publish()
        return outcome


def _add_edges(outcome: RepairOutcome, location: StoreLocation) -> None:
    """Add the edges of the log's files to the plan of the new store: what `after-start` can hold against a file that grows."""
    assert outcome.audited is not None
    audited = outcome.audited
    assert audited.started is not None
    paths = [row["file"] for row in audited.plan.inputs]
    edges = edges_of(open_source(location), state_of(ends_of(audited.started), paths))
    outcome.audited = replace(audited, plan=replace(audited.plan, edges=edges))


@every_read()
def preview(
    request: RepairRequest, run_tasks: RunTasks, scratch: str, progress: Callable[[str], None] = lambda sentence: None
) -> RepairOutcome:
    """Work out `repair`, down to every number of its report, by doing it on a `TrialWriter`.

    The report also has `free_bytes`, and `other_policy`: how many messages that one would keep.
    scratch: a folder for rebuilt queues and index files, and a donor's messages, which goes when this is done.
    """
    check_source(request.location, request.plan.broker_conf)
    try:
        with TrialWriter.below(scratch, request.target, request.location) as writer:
            work = Work(request, writer, run_tasks, progress)
            first = _begun(work)
            other_policy = _other_policy(work, first, writer)
            outcome = _finish(work, first)
            outcome.report = replace(outcome.report, other_policy=other_policy, free_bytes=writer.free_bytes())
            return outcome
    except WriteFailed as problem:
        raise WriteFailed(f"{scratch}, where a dry run keeps what it works out: {problem}") from None


@every_read()
def work_out(request: RepairRequest, run_tasks: RunTasks, scratch: str) -> RepairOutcome:
    """Work out a repair as `preview` does, by this policy alone."""
    check_source(request.location, request.plan.broker_conf)
    with TrialWriter.below(scratch, request.target, request.location) as writer:
        work = Work(request, writer, run_tasks, lambda sentence: None)
        return _finish(work, _begun(work))


# ---- the steps ---------------------------------------------------------------------------------------------------------


def _carry_out(work: Work, copying: CopyUnderWay) -> RepairOutcome:
    return _finish(work, _begin(work, copying))  # 1 to 6


def _finish(work: Work, begun: Begun) -> RepairOutcome:
    """Edit the new log, make all derived files anew, correct the offsets, and judge the new store."""
    apply_edits(work, begun.log.edits)  # 7: cut, zero, bridge
    _declare_clean(work, begun.audit)  # 8
    if work.request.policy == SALVAGE:
        for kind in REPAIRS:
            kind.clear(work, begun.audit)
    ended = _make_derived(work, begun, _audit_edited_log(work, begun))  # 9 to 12
    if ended.verdict.consistent:
        check_sum(begun, ended)
        ended.offsets = repair_offsets.correct_offsets(work, ended.final, begun.log.end)  # 13
        work.steps.finish()
    said = report(work, begun, ended)
    return RepairOutcome(ended.verdict.exit_code, said, unsaved_of(work, begun, said), queue_ends(ended), ended.final.outcome)


def _begun(work: Work) -> Begun:
    with CopyUnderWay(work.request.location, work.writer) as copying:
        return _begin(work, copying)


def _begin(work: Work, copying: CopyUnderWay) -> Begun:
    """Wait for the copy, mend and audit it, and plan the edits of its log. Raises StoreError."""
    work.progress("copying")
    copied = copying.plan.copied  # 1: not whole yet while the copy is audited
    work.keeps = work.request.plan.rebuilds and work.writer.aside.free_bytes() > ROOM_TO_KEEP * copied.needed_bytes
    lost = {"files": len(copied.not_copied)}
    work.steps.add(COPY, "", reason="all work is done on a copy", kept={"files": copied.files, "bytes": copied.bytes}, lost=lost)
    first = repair_audit.audit_copy(work, copying)  # 2
    audit = _unblocked(work, fix_config(work, first))  # 3
    donated = heal(work, audit)  # 4
    healed = heal_records(work, donated.audit)  # 5
    if holds_nothing(healed.audit.outcome):
        raise StoreError(
            f"nothing to repair from: no segment of {shown(work.request.location.root)} holds a message; {ANOTHER_COPY}"
        )
    if healed.audit is not audit:
        audit = _unblocked(work, healed.audit)
    log = _plan(work, audit, work.request.policy)  # 6
    log.dropped += [half for half in work.half_records if not _holds(audit, half)]
    return Begun(copied, audit, first.outcome.holds.messages, donated.by_donor, healed.by_change, log)


def _unblocked(work: Work, audit: Audited) -> Audited:
    """Unblock the start; if the release stops at the log itself, the refusal says what salvage would keep."""
    try:
        return unblock(work, audit)
    except NoStart as problem:
        if problem.refusal is None or not problem.refusal.path.startswith((f"{COMMITLOG}/", FOLDER_PREFIX)):
            # What else stops the release salvage does not change.
            raise
        try:
            kept = _plan(work, with_configured_lengths(work, problem.audit), SALVAGE).messages
        except StoreError:
            raise problem from None
        raise StoreError(
            f"{problem}. Policy salvage would keep {kept:,} of {count_text(audit.outcome.holds.messages, 'message')}"
        ) from None


def _holds(audit: Audited, half: DroppedMessage) -> bool:
    """Say whether a message is at the place of that one, as a donor's may be."""
    extents = (e for s in audit.segments if s.path == half.file for e in message_extents(s))
    return any(e.start <= half.start < e.end for e in extents)


def _plan(work: Work, audit: Audited, policy: str) -> LogPlan:
    planned = plan_log if audit.evidence.copy.loaded.ledger is None else plan_ledger
    return planned(work, audit, policy)


def _declare_clean(work: Work, audit: Audited) -> None:
    if audit.unclean:
        work.remove(ABORT_FILE, "the new store was stopped cleanly", audit.tree)


def _audit_edited_log(work: Work, begun: Begun) -> Audited:
    """Return the audit that decides what to rebuild: the first one, if no message of the log changes. Checks that need a clean
    stop follow in the second round."""
    holding = begun.audit.holding
    if any(edit.step.action != REMOVE or edit.step.file in holding for edit in begun.log.edits):
        work.progress("auditing the repaired log")
        return repair_audit.audit(work, work.conf, "the repaired log", keep=True)
    return begun.audit


def _make_derived(work: Work, begun: Begun, audit: Audited) -> Ended:
    """Make anew what follows from the log, until an audit finds nothing to rebuild, or rebuilding does not help.

    At last the kinds make what follows from that audit.
    """
    log, made = begun.log, Rebuilt()
    why_not = partial(why_no_start, work)
    for _ in range(MOST_ROUNDS):
        now = Round(work, log, begun.audit, audit, made)
        rebuild(now)  # 9
        for kind in REPAIRS:
            kind.write_marks(now)  # 10
        final = repair_audit.audit_new_store(work) if work.steps.changed else audit  # 11
        if pad.would_cut_again(final, log):
            another = pad.pad(work, final, log)
            final = repair_audit.audit_new_store(work)
            if another:
                rebuild(Round(work, log, begun.audit, final, made))
                final = repair_audit.audit_new_store(work)
        ended = Ended(final, judge_new_store(begun.audit, final, log, made, why_not), made)  # 12
        if ended.verdict.consistent or final is audit:
            break
        audit = final
    finished = [kind.finish(work, ended.final, made) for kind in REPAIRS] if ended.verdict.consistent else []
    unasked = ended.verdict.consistent and not work.steps.changed and work.request.start is not None  # its first day
    if any(finished) or unasked:
        final = repair_audit.audit_new_store(work)
        ended = Ended(final, judge_new_store(begun.audit, final, log, made, why_not), made)
    return ended


def _other_policy(work: Work, begun: Begun, trial: TrialWriter) -> OtherPolicy:
    """Return the messages that the other policy would keep.

    If the release starts on the copy as it is, this audit shows them.
    """
    other = SALVAGE if work.request.policy == BROKER else BROKER
    try:
        if begun.audit.starts and not work.refusals:
            log = _plan(work, begun.audit, other)
        else:
            with trial.another() as writer:
                log = _begun(Work(replace(work.request, policy=other), writer, work.run_tasks, work.progress)).log
    except WriteFailed:
        raise
    except StoreError as problem:
        return OtherPolicy(other, refused=str(problem))
    return OtherPolicy(other, log.messages, log.messages - begun.log.messages)
