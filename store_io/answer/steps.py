"""Decides what to do about a copy, in which order: first what costs nothing, last what gives something up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from schemas.advice import Advice, Cause, Lack, NotWhole, Step
from schemas.answer import Answer, AnswerStep, GivesUp, StepName
from schemas.finding_codes import BY_A_REPAIR, CATALOGUE, WITHOUT_DONOR, Code
from schemas.outcome import Outcome
from schemas.replicas import LOGS_APART, Group, TableAhead
from schemas.rows import DEFAULT, LOSS, NOTE, REBUILDABLE, Finding
from store_io.answer.answers import LOG_KEPT_ELSEWHERE, NOT_DECIDED, answer_of, donor_holds_all
from store_io.answer.day_steps import day_conditions
from store_io.answer.promotion import OWN_BOUND, groups_without_offsets, topics_of_log, topics_of_tables
from store_io.answer.repairs import acts, going, in_place_of_repair, keeps_late_timers, none_goes
from store_io.outcome.safety import (
    AsMaster,
    Start,
    config_absent,
    config_unknown,
    counted,
    decide,
    holds_nothing,
    is_emptied,
    named_notes,
    never_joins,
    shows_gone,
)
from store_io.repair.proposals import DONOR, FIX_CONFIG, recommended

MOST_STEPS = 8  # of one name
LATER_MOMENTS = (Lack.ZEROS, Lack.QUEUES_LATER)  # of a copy that was made while the broker ran
_IN_THE_LOG = (Lack.SEGMENTS_BETWEEN, Lack.SEGMENTS_AT_END, *LATER_MOMENTS, Lack.LOG_ELSEWHERE)
_NAMES: Mapping[StepName, Sequence[Step]] = {
    StepName.COPY: (Step.COPY_AGAIN_IF_LIVE, Step.LOOK_AT_FOLDER),
    StepName.OTHER: (
        Step.OTHER_COPY, Step.OTHER_COPY_OR_HEAL, Step.OTHER_COPY_ALONE, Step.SEEK_LAST_MESSAGE, Step.SEEK_LAST_MESSAGE_ALONE,
        Step.SEEK_SEGMENT, Step.SEEK_SEGMENT_ALONE, Step.SEEK_LOG_END, Step.SEEK_INDEXED_MESSAGES, Step.SEEK_HEADERS,
        Step.LOOK_AT_ORIGIN, Step.NO_LEDGER_REPAIR, Step.NO_COMPACTED_REPAIR, Step.NO_DOUBLE_WRITE_REPAIR,
        Step.NO_DATABASE_REPAIR, Step.RESTORE, Step.RESTORE_OR_FIX, Step.RESTORE_TABLES, Step.RESTORE_TOPICS,
    ),
    StepName.CHANGE: (
        Step.CORRECT_LINE, Step.ADD_LINE, Step.READ_WITH_LINES, Step.SWITCH_OFF, Step.OWN_CONF, Step.OWN_CONF_OR_NONE,
        Step.CORRECT_NAMES, Step.NAME_CONF, Step.MAKE_MASTER, Step.ROCKSDB_TIMERS, Step.SPLIT_SEGMENTS,
        Step.REMOVE_CRASH_MARKS, Step.CHECK_PATH, Step.CORRECT_ARGUMENTS,
    ),
    StepName.REPAIR: (
        Step.REBUILD_QUEUE, Step.REBUILD_DATABASE, Step.REBUILD_OTHER_KIND, Step.REBUILD_INDEX, Step.REBUILD_TABLES,
        Step.REBUILD_TIMERS, Step.WRITE_CHECKPOINT, Step.WRITE_EPOCHS, Step.SALVAGE, Step.LEAVE_OUT, Step.REMOVE_FILE,
        Step.CORRECT_OFFSETS, Step.FIX_OFFSETS,
    ),
    StepName.RESEND: (Step.NO_QUEUE,),
}  # fmt: skip
_NAME_OF = {step: name for name, steps in _NAMES.items() for step in steps}
_NO_STEP = (Step.NOTHING, Step.STARTS_DISPATCH, Step.SEE_COMPACTED)
# Their first value is the setting by which a start reads another form of a table as it is, or "".
_OR_SETTING = (Step.TAKE_OVER, Step.TAKE_OVER_OR_COPY, Step.TAKE_OVER_OR_EXPORT, Step.RAISE_COUNTER, Step.COPY_DATABASE)
# Codes whose own step is none of `_NAMES`: what that step is. All others are conditions.
_OF_CODES: Mapping[StepName, Sequence[Code]] = {
    StepName.COPY: (Code.SEGMENT_WRONG_SIZE, Code.SEGMENT_CHANGED, Code.COMMITLOG_EMPTIED),
    StepName.OTHER: (
        Code.MESSAGE_HEADER_ODD, Code.MESSAGE_DISPUTED, Code.COPY_OF_SLAVE, Code.TOPIC_NOT_IN_TABLE,
        Code.CONFIG_TABLE_LOST, Code.OPENED_DATABASE_DAMAGED, Code.CONFIG_DAMAGED, Code.LEDGER_ENTRIES_MISSING,
        Code.COMMITLOG_SHRUNK,
    ),
    StepName.CHANGE: (Code.MESSAGES_NOT_READ, Code.IDENTITY_DIFFERS, Code.COMPACTED_TOPIC_UNSERVED),
}  # fmt: skip
_NAME_OF_CODE = {code: name for name, codes in _OF_CODES.items() for code in codes}
# Why nothing of a copy was read -> what to do about that.
_NOT_READ: Mapping[Cause, Step] = {
    **dict.fromkeys(
        (
            Cause.ERROR, Cause.NOT_A_STORE, Cause.NOT_A_FILE, Cause.UNREADABLE, Cause.DENIED, Cause.UNREACHED,
            Cause.FILE_FOR_FOLDER, Cause.NOT_LISTED,
        ),
        Step.CHECK_PATH,
    ),
    Cause.WRONG_ARGUMENTS: Step.CORRECT_ARGUMENTS,
    **dict.fromkeys(
        (Cause.STOPPED, Cause.AUDIT_FAULT, Cause.TASK_FAULT, Cause.TASK_WITHOUT_RESULT, Cause.WORKER_LOST), Step.AUDIT_AGAIN
    ),
}  # fmt: skip
_SAYS_MORE = (  # (a step, one that says all of it and more)
    (Advice(Step.OTHER_COPY), Advice(Step.OTHER_COPY_OR_HEAL)),
    (Advice(Step.OWN_CONF), Advice(Step.OWN_CONF_OR_NONE)),
    (CATALOGUE[Code.TOPIC_NOT_IN_TABLE].next, Advice(Step.CREATE_TOPICS_DELETE_NONE)),
)
_ONE_HEALED = (Code.COMMITLOG_FOREIGN, Code.QUEUE_OFFSET_WRONG, Code.QUEUE_OFFSET_BACK)  # one change makes them right
_REPLACED = (
    Code.TIMERS_PASSED_OVER,
    Code.LIVE_COPY,
    Code.QUEUES_COPIED_LATER,
    Code.CONFIG_NOT_COPIED,
    Code.STORES_MERGED,
    Code.COPY_IS_BEHIND,
)


def steps_of(outcome: Outcome) -> list[AnswerStep]:
    """Return the steps for a copy, each name's together in the order of `StepName`. Those that it does not need are left out."""
    return _Steps(outcome).listed()


class _Steps:
    """Puts the steps of one outcome together."""

    def __init__(self, outcome: Outcome):
        self._outcome = outcome
        self._answer, self._decision = answer_of(outcome), decide(outcome)
        self._repair = recommended(outcome)
        self._found = self._of_findings()

    def listed(self) -> list[AnswerStep]:
        found = [
            *self._read(), *self._stop(), *self._copy(), *self._other(), *self._change_steps, *self._repair_steps,
            *self._conditions(), *self._start(), *self._check(), *self._resend(),
        ]  # fmt: skip
        return [step for name in StepName for step in _bounded([one for one in found if one.name == name])]

    # ---- what findings say ---------------------------------------------------------------------------------------------

    def _of_findings(self) -> dict[StepName, list[AnswerStep]]:
        """Return the next steps of findings by name, each once with its files, those of the gravest findings first."""
        steps: dict[tuple[StepName, Advice], dict[str, None]] = {}
        for finding in self._serious():
            advice = finding.next
            if advice is not None and (name := self._name_of(finding)) is not None:
                steps.setdefault((name, self._fitting(advice)), {}).setdefault(finding.file)
        for less, more in _SAYS_MORE:
            for name in StepName:
                if (name, less) in steps and (name, more) in steps:
                    steps[name, more].update(steps.pop((name, less)))
        found: dict[StepName, list[AnswerStep]] = {}
        for (name, advice), files in steps.items():
            found.setdefault(name, []).append(AnswerStep(name, advice, tuple(filter(None, files))))
        return found

    def _serious(self) -> Iterator[Finding]:
        """Yield findings whose step somebody may have to take: of files that were not opened first, notes that are named last."""
        outcome = self._outcome
        unread = {gap.path for gap in outcome.gaps if gap.path}
        rows = [f for f in outcome.found.findings if f.code in CATALOGUE]
        yield from (f for f in rows if CATALOGUE[f.code].unread and f.file in unread)
        for severity in (LOSS, REBUILDABLE):
            yield from (f for f in rows if f.severity == severity)
        if self._answer != Answer.NOT_KNOWN:
            yield from named_notes(outcome)

    def _name_of(self, finding: Finding) -> StepName | None:
        """Return the name of a finding's step; None if nothing is to be done, or another step says it."""
        advice = finding.next
        assert advice is not None
        if advice.step in _NO_STEP or finding.code in _REPLACED:
            perhaps = advice.step == Step.COPY_AGAIN_IF_LIVE and not self._outcome.whole.signs
            return StepName.COPY if perhaps else None
        if self._holds_nothing and (finding.code == Code.SEGMENT_MISSING or advice.step in WITHOUT_DONOR):
            return None  # a donor gives it nothing
        if advice.step in (Step.OF_CODE, Step.RAISED_OF_CODE):
            return self._name_of_code(finding)
        name = _NAME_OF.get(advice.step, StepName.CONDITION)
        if advice.step in _OR_SETTING and advice.values[0]:
            return StepName.CHANGE
        if advice.step == Step.RESTORE_OR_FIX and self._writes_tables and finding.severity == NOTE:
            return None
        if advice.step == Step.MAKE_MASTER:
            return self._of_slave(name)
        return name

    def _name_of_code(self, finding: Finding) -> StepName | None:
        """Return the name of a step that only findings of this code have."""
        if finding.next in BY_A_REPAIR:
            return StepName.REPAIR
        if finding.code in _ONE_HEALED and finding.count == 1 and self._repair is not None and self._repair.healed:
            return None
        return _NAME_OF_CODE.get(finding.code, StepName.CONDITION)

    def _of_slave(self, name: StepName) -> StepName | None:
        """Return the name of the step that makes a master of a slave's copy."""
        if self._answer == Answer.OTHER_COPY:
            return None  # another copy is to be started
        return StepName.CONDITION if self._answer in (Answer.START, Answer.START_MENDS, Answer.EMPTY) else name

    def _fitting(self, advice: Advice) -> Advice:
        """Return the advice without what the recommended repair does not do."""
        if advice.step == Step.RESTORE_OR_FIX and self._repair_goes and not self._writes_tables:
            return Advice(Step.RESTORE)
        if advice.step == Step.OTHER_COPY_OR_HEAL and self._repair is not None and self._repair.healed:
            return Advice(Step.OTHER_COPY)
        return advice

    @cached_property
    def _holds_nothing(self) -> bool:
        return holds_nothing(self._outcome)

    @cached_property
    def _writes_tables(self) -> bool:
        return any(FIX_CONFIG in one.options for one in going(self._outcome))

    @cached_property
    def _repair_goes(self) -> bool:
        return bool(going(self._outcome))

    # ---- what several names ask --------------------------------------------------------------------------------------

    @cached_property
    def _change_steps(self) -> list[AnswerStep]:
        return list(self._change())

    @cached_property
    def _repair_steps(self) -> list[AnswerStep]:
        return list(self._repairs())

    @cached_property
    def _day(self) -> list[Advice]:
        kept = (Step.START_BEFORE,) if self._keeps_late else ()
        return [advice for advice in day_conditions(self._outcome) if advice.step not in kept]

    @cached_property
    def _keeps_late(self) -> bool:
        """Say whether a repair that is listed keeps the timer messages for which a start is late."""
        return any(step.what is None for step in self._repair_steps) and keeps_late_timers(self._outcome)

    # ---- one name after the other --------------------------------------------------------------------------------------

    def _read(self) -> Iterator[AnswerStep]:
        """Yield what to do so that a copy of which nothing was read can be audited."""
        outcome = self._outcome
        if (
            self._answer != Answer.NOT_KNOWN
            or outcome.complete
            or outcome.holds.segment_count
            or outcome.holds.config is not None
        ):
            return
        for step in dict.fromkeys(_NOT_READ[gap.cause] for gap in outcome.gaps if gap.cause in _NOT_READ):
            yield AnswerStep(_NAME_OF.get(step, StepName.CONDITION), Advice(step))

    def _stop(self) -> Iterator[AnswerStep]:
        if any(lack.kind in LATER_MOMENTS for lack in self._outcome.whole.signs):
            yield AnswerStep(StepName.STOP, Advice(Step.STOP_BROKER))
        elif self._outcome.in_use:
            yield AnswerStep(StepName.STOP, Advice(Step.STOP_USER, (self._outcome.in_use,)))

    def _copy(self) -> Iterator[AnswerStep]:
        outcome = self._outcome
        for gap in outcome.gaps:
            if gap.cause in LOG_KEPT_ELSEWHERE:
                yield AnswerStep(StepName.COPY, Advice(Step.COPY_LOG, (gap.values[0],)))
        if is_emptied(outcome):
            yield AnswerStep(StepName.COPY, Advice(Step.COPY_WHOLE))
        if not donor_holds_all(self._outcome):
            yield from (_of_lack(StepName.COPY, lack) for lack in outcome.whole.signs if lack.kind != Lack.OTHER_COPY)
        absent = config_absent(outcome)
        if absent and not any(lack.kind in (Lack.NO_CONFIG, Lack.LOG_ELSEWHERE) for lack in outcome.whole.signs):
            yield AnswerStep(StepName.COPY, Advice(Step.COPY_CONFIG, (absent, config_unknown(outcome))))
        if any(f.code == Code.COMPACTED_TOPIC_UNSERVED and f.severity == LOSS for f in outcome.found.findings):
            yield AnswerStep(StepName.COPY, Advice(Step.COPY_COMPACTED))
        if self._ends_torn() and not outcome.whole.signs:
            yield AnswerStep(StepName.COPY, Advice(Step.COPY_AGAIN_IF_LIVE))
        yield from (step for step in self._found.get(StepName.COPY, ()) if step.what != Advice(Step.COPY_AGAIN_IF_LIVE))

    def _ends_torn(self) -> bool:
        """Say whether queues lead beyond the log of a broker that was not stopped cleanly, or the copy shows as much."""
        outcome, end = self._outcome, self._outcome.holds.log_end
        lost = (f.phy_offset for f in outcome.found.findings if f.code == Code.MESSAGE_LOST and f.severity == LOSS)
        beyond = outcome.whole.unclean and end is not None and any(at is not None and at >= end for at in lost)
        if beyond or counted(outcome, Code.LIVE_COPY):
            return True
        return any(step.what == Advice(Step.COPY_AGAIN_IF_LIVE) for step in self._found.get(StepName.COPY, ()))

    def _other(self) -> Iterator[AnswerStep]:
        outcome, lacking = self._outcome, self._decision.lacking
        kinds = {lack.kind for lack in outcome.whole.signs}
        yield from (_of_lack(StepName.OTHER, lack) for lack in outcome.whole.signs if lack.kind == Lack.OTHER_COPY)
        if Lack.LOG_ELSEWHERE in kinds or donor_holds_all(self._outcome):
            return
        if lacking is not None and not lacking.earlier:
            yield AnswerStep(StepName.OTHER, _in_place(lacking, outcome.replicas))
        if lacking is None or lacking.best:
            yield from (AnswerStep(StepName.OTHER, advice) for advice in _tables(outcome.replicas, outcome.name))
        found = self._found.get(StepName.OTHER, [])
        if Lack.NO_CONFIG in kinds:
            yield AnswerStep(StepName.OTHER, Advice(Step.SEEK_TABLES))
        if any(f.code == Code.CONSUMER_OFFSETS_EMPTY and f.severity != NOTE for f in outcome.found.findings):
            yield AnswerStep(StepName.OTHER, Advice(Step.TAKE_OFFSETS))
        if Lack.STORES_MERGED in kinds:
            return  # what findings say follows from that
        if kinds & set(_IN_THE_LOG) and not any(step.what in _SEEKS for step in found):
            yield AnswerStep(StepName.OTHER, Advice(Step.OTHER_COPY_ALONE))
        if outcome.no_repair is not None and acts(outcome) and self._answer != Answer.CHANGE:
            yield AnswerStep(StepName.OTHER, outcome.no_repair)
        yield from (step for step in found if step.what != outcome.no_repair)
        none = none_goes(outcome) if self._answer == Answer.OTHER_COPY and (lacking is None or lacking.best) else None
        yield from [AnswerStep(StepName.OTHER, none)] if none is not None else []

    def _change(self) -> Iterator[AnswerStep]:
        if self._outcome.assumed.written_by:
            yield AnswerStep(StepName.CHANGE, Advice(Step.WROTE, (self._outcome.assumed.written_by,)))
        refusal = self._outcome.refusal
        line = refusal.correct_line if refusal is not None else None
        yield from [AnswerStep(StepName.CHANGE, line)] if line is not None else []
        yield from (step for step in self._found.get(StepName.CHANGE, ()) if step.what != line)

    def _repairs(self) -> Iterator[AnswerStep]:
        """Yield the recommended repair, or why none is offered."""
        outcome = self._outcome
        elsewhere = any(lack.kind == Lack.LOG_ELSEWHERE for lack in outcome.whole.signs)
        from_donor = self._answer == Answer.OTHER_COPY and self._repair is not None and DONOR in self._repair.options
        wanted = self._answer in (Answer.REPAIR, Answer.COPY_AGAIN) or from_donor
        if not wanted or donor_holds_all(self._outcome) or elsewhere:
            return
        if (instead := in_place_of_repair(outcome)) is not None:
            if instead != outcome.no_repair and instead.step not in (Step.NO_REPAIR_MENDS, Step.NO_MESSAGE_LEFT):
                yield AnswerStep(StepName.REPAIR, instead)
        elif outcome.effect is not None and outcome.complete and acts(outcome):
            yield AnswerStep(StepName.REPAIR, gives_up=self._gives_up())

    @property
    def _more_given_up(self) -> bool:
        return self._repair is not None and self._repair.given_up_more

    def _gives_up(self) -> GivesUp | None:
        best = self._repair
        return None if best is None else GivesUp(best.given_up, best.offsets, entries=best.not_kept)

    def _conditions(self) -> Iterator[AnswerStep]:
        lacking, outcome = self._decision.lacking, self._outcome
        if lacking is not None and lacking.earlier and not donor_holds_all(self._outcome):
            holder = outcome.replicas.place(lacking.holder)
            yield AnswerStep(StepName.CONDITION, Advice(Step.ONLY_IF_LATER_ONE_IS_GONE, (holder, lacking.lacks)))
        if lacking is not None and lacking.refused and not lacking.best:
            yield AnswerStep(StepName.CONDITION, Advice(Step.EMPTY_THIS, (outcome.replicas.place(lacking.holder),)))
        for place in self._never_join():
            yield AnswerStep(StepName.CONDITION, Advice(Step.EMPTY_OTHER, (place,)))
        if any(lack.kind == Lack.NO_CONFIG for lack in outcome.whole.signs):
            yield AnswerStep(StepName.CONDITION, Advice(Step.SET_OFFSETS))
        if shows_gone(outcome):
            yield AnswerStep(StepName.CONDITION, Advice(Step.DO_NOT_START))
        yield from (AnswerStep(StepName.CONDITION, advice) for advice in self._day)
        yield from self._found.get(StepName.CONDITION, ())
        yield from (AnswerStep(StepName.CONDITION, advice) for advice in self._as_master())
        if not any(isinstance(step.what, Advice) and step.what.step == Step.SWITCH_OFF for step in self._change_steps):
            yield from (
                AnswerStep(StepName.CONDITION, Advice(Step.SET_LINE, (line,))) for line in outcome.assumed.unsafe_settings
            )
        if outcome.assumed.settings_from == DEFAULT and self._answer in (Answer.START, Answer.EMPTY):
            yield AnswerStep(StepName.CONDITION, Advice(Step.NAME_OWN_CONF))

    def _as_master(self) -> Iterator[Advice]:
        """Yield topics to create and offsets to set, if this copy may be started as master in another one's place."""
        outcome, lacking = self._outcome, self._decision.lacking
        if lacking is None or lacking.best:
            yield from topics_of_tables(outcome, list(_tables(outcome.replicas, outcome.name)))
        if self._answer == Answer.OTHER_COPY or not any(f.code == Code.COPY_OF_SLAVE for f in outcome.found.findings):
            return
        yield from () if self._writes_tables else topics_of_log(outcome)
        yield from groups_without_offsets(outcome)

    def _never_join(self) -> Iterator[str]:
        """Yield the places of copies that, as slaves of this one, would never copy anything."""
        group, name = self._outcome.replicas, self._outcome.name
        if group.best == name:
            others = (copy.store for copy in group.copies if copy.store != name)
            yield from (group.place(other) for other in others if never_joins(group, other, name))

    def _start(self) -> Iterator[AnswerStep]:
        outcome, answer = self._outcome, self._answer
        if answer == Answer.NOT_KNOWN or is_emptied(outcome) or self._decision.start in NOT_DECIDED:
            return
        lacking = self._decision.lacking
        if lacking is not None and not lacking.earlier and (lacking.diverged_from or lacking.undecided) and not lacking.best:
            return
        kinds = {lack.kind for lack in outcome.whole.signs}
        damaged = self._decision.start in (Start.MISSING, Start.DAMAGED, Start.NO_MESSAGE_LEFT)
        step = {
            Answer.COPY_AGAIN: Step.START_COPY,
            Answer.OTHER_COPY: Step.START_OTHER,
            Answer.CHANGE: Step.START_CHANGED if self._change_steps else Step.START_ALL_BUT,
            Answer.REPAIR: Step.START_NEW_STORE,
            Answer.START_MENDS: Step.START_DAMAGED if damaged else Step.START_MENDING,
        }.get(answer, Step.START_JUDGED if outcome.covered.not_judged else Step.START)
        if step == Step.START and self._day:
            step = Step.START_ONCE
        if Lack.LOG_ELSEWHERE not in kinds:
            yield AnswerStep(StepName.START, Advice(step, (outcome.release,)))

    def _check(self) -> Iterator[AnswerStep]:
        if not any(True for _ in self._start()):
            return
        if any(step.gives_up is not None or step.what is None for step in self._repair_steps):
            yield AnswerStep(StepName.CHECK, Advice(Step.CHECK_NEW_STORE))
        elif self._answer == Answer.START_MENDS and self._outcome.started is not None:
            yield AnswerStep(StepName.CHECK, Advice(Step.CHECK_LOG_END, (self._outcome.started.log_end,)))

    def _resend(self) -> Iterator[AnswerStep]:
        outcome, lacking = self._outcome, self._decision.lacking
        yield from self._found.get(StepName.RESEND, ())
        late = sum(f.count for f in outcome.found.findings if f.code == Code.TIMERS_PASSED_OVER)
        yield from [AnswerStep(StepName.RESEND, Advice(Step.SEND_TIMERS, (late,)))] if late and not self._keeps_late else []
        if lacking is not None and lacking.diverged_from:
            advice = _sent_from(outcome.name, lacking, outcome.replicas)
            yield from [AnswerStep(StepName.RESEND, advice)] if advice is not None else []
            return
        given = next((step.gives_up for step in self._repair_steps if step.gives_up is not None), None)
        if given is not None:
            given_up = Advice(Step.SEND_GIVEN_UP, (given.messages, int(self._more_given_up)))
            yield from [AnswerStep(StepName.RESEND, given_up)] if given.messages else []
        elif self._answer == Answer.START_MENDS and outcome.whole.missing:
            missing = outcome.whole.missing.messages, int(outcome.whole.missing.at_least)
            yield AnswerStep(StepName.RESEND, Advice(Step.SEND_AGAIN, missing))


_SEEKS = tuple(Advice(step) for step in (*WITHOUT_DONOR, *WITHOUT_DONOR.values(), Step.SEEK_LOG_END))


def _of_lack(name: StepName, lack: NotWhole) -> AnswerStep:
    return AnswerStep(name, lack, (lack.file,))


def _in_place(lacking: AsMaster, group: Group) -> Advice:
    """Return the step for a copy that lacks messages of its group and is no clean earlier moment of another."""
    if lacking.undecided:
        return Advice(Step.COMPARE_FORMS, (group.place(lacking.diverged_from), lacking.undecided))
    if lacking.diverged_from:
        return Advice(Step.COMPARE_DIVERGED, (group.place(lacking.diverged_from), lacking.lacks))
    holder = group.place(lacking.holder)
    if lacking.best:
        return Advice(Step.SAVE_FROM, (holder, lacking.holds))
    return Advice(Step.MASTER_INSTEAD_OF_REFUSED if lacking.refused else Step.MASTER_INSTEAD, (holder, lacking.lacks))


def _sent_from(store: str, lacking: AsMaster, group: Group) -> Advice | None:
    """Return which copy's messages to send again, and the copy that is to be master; None if that one lacks nothing."""
    master = group.best or lacking.diverged_from
    sender = lacking.diverged_from if master == store else store
    messages = sum(lack.messages for lack in group.lacked_by(master, sender))
    return Advice(Step.SEND_ONLY_OTHERS, (group.place(sender), messages, group.place(master))) if messages else None


def _tables(group: Group, store: str) -> Iterator[Advice]:
    """Yield which tables of config/ to take from other copies before this copy becomes master."""
    tables: dict[str, list[TableAhead]] = {}
    for ahead in group.ahead_of(store):
        if not ahead.of_offsets or group.relation(store, ahead.holder) not in LOGS_APART:
            tables.setdefault(ahead.table, []).append(ahead)
    for table, found in tables.items():
        lesser = {ahead.store for ahead in group.config if ahead.table == table}
        most = next((ahead for ahead in found if ahead.holder not in lesser), None)  # it has all that any copy has
        if most is None:
            places = [text for ahead in found for text in (ahead.holder_file, group.place(ahead.holder))]
            yield Advice(Step.PUT_TOGETHER, ("the greatest of each offset" if "offsets" in table else f"all {table}", *places))
            continue
        lacks = 0 if most.of_offsets else most.lacks
        yield Advice(Step.TAKE_TABLE, (most.holder_file, group.place(most.holder), lacks, table.removesuffix("s")))


def _bounded(steps: list[AnswerStep]) -> Iterator[AnswerStep]:
    """Yield the first steps of one name, the gravest, and how many others there are. Steps with their own bound come last."""
    own = [step for step in steps if isinstance(step.what, Advice) and step.what.step in OWN_BOUND]
    others = [step for step in steps if step not in own]
    yield from others[:MOST_STEPS]
    if len(others) > MOST_STEPS:
        yield replace(others[0], what=Advice(Step.MORE_STEPS, (len(others) - MOST_STEPS,)), files=(), gives_up=None)
    yield from own
