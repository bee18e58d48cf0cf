"""A repair by one policy, worked out without writing a new store: what it would keep, lose and change.

ways = [work_out_way(replace(request, policy=policy), config_helps(outcome), run_tasks) for policy in POLICIES]
outcome.repairs = tuple(map(proposal_of, ways))
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from schemas.advice import Lack
from schemas.outcome import Outcome
from schemas.repair import ConfigFile, RepairProposal, RepairReport
from schemas.rows import FROM_FILE
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.base.errors import FormUnread, StoreError, UnfitDonor, Unreadable
from store_io.base.wording import clause
from store_io.broker.settings.config_rules import TOPICS
from store_io.repair.proposals import FIX_CONFIG, MOST_RISK
from store_io.repair.repair_report import written_files
from store_io.repair.repair_steps import COPY
from store_io.repair.repair_store import work_out
from store_io.repair.repair_work import RepairOutcome, RepairRequest, RunTasks

_IN_THE_LOG = (Lack.SEGMENTS_BETWEEN, Lack.SEGMENTS_AT_END, Lack.ZEROS, Lack.QUEUES_LATER)
WRITING_SPEED = 100e6  # bytes a second: what the time of writing is reckoned with


class _Reported(Protocol):
    @property
    def report(self) -> RepairReport: ...


class RepairFigures:
    """Count what a repair's report says. A class that has the report as `report` inherits them."""

    @property
    def given_up(self: _Reported) -> int:
        """Return messages that the new store does not hold, although the copy holds them or shows that they were there."""
        return self.report.given_up.messages

    @property
    def healed(self: _Reported) -> int:
        """Return damaged records that were made whole."""
        return len(self.report.healed_records)

    @property
    def config_stays(self: _Reported) -> list[str]:
        """Return files of config/ that the new store lacks, or has as little of use as the copy."""
        report = self.report
        files = [each.file for each in report.config if each.left_out or not report.config_written]
        return list(dict.fromkeys([*files, *([TOPICS] if report.topics_unknown else [])]))


@dataclass(frozen=True)
class Way(RepairFigures):
    """A repair by one policy, worked out.

    refused: why it does not go, a sentence; else outcome is there.
    options: words of its command besides --policy.
    seconds: what working it out took.
    risk_left: the sum of the risks of records that one change each makes whole, if they are left because it is too high; else 0.
    config_left: why the files of config/ stay as they are, although some are not as a start needs them, a sentence; else empty.
    """

    policy: str
    outcome: RepairOutcome | None
    refused: str = ""
    seconds: float = 0.0
    options: tuple[str, ...] = ()
    risk_left: float = 0.0
    config_left: str = ""

    @property
    def report(self) -> RepairReport:
        """Return the report of a way that goes."""
        assert self.outcome is not None
        return self.outcome.report

    @property
    def consistent(self) -> bool:
        """Say whether a run would put a new store in place."""
        return self.outcome is not None and self.outcome.exit_code == 0

    @property
    def kept(self) -> int:
        return self.report.messages_after

    @property
    def risk(self) -> float:
        """Return the sum of the risks of all healed records: at most as likely one of them is wrong."""
        return float(self.report.healed.total_risk) if self.outcome is not None and self.report.healed is not None else 0.0

    @property
    def offsets(self) -> int:
        """Return how many offsets of consumers, delay levels and timers it sets back."""
        return self.report.positions_set_back

    @property
    def not_kept(self) -> int:
        """Count the entries in forms of config/ that are not taken. No table of the new store has them."""
        return sum(form.count for file in self.report.config for form in file.not_kept)

    @property
    def written(self) -> int:
        """Return bytes of the copy that it writes, without holes; what it makes anew replaces some of them."""
        copied = sum(step.kept.get("bytes", 0) for step in self.report.steps if step.action == COPY)
        return min(copied, self.report.needed_bytes)

    @property
    def run_seconds(self) -> float:
        """Estimate the seconds of a run: the same work, and the writing."""
        return self.seconds + self.written / WRITING_SPEED

    def problem(self) -> str:
        """Say why the way cannot be taken; "" if it can."""
        if self.outcome is None:
            return self.refused
        return "" if self.consistent else "the new store would not be consistent: " + "; ".join(self.report.problems[:3])


def work_out_way(request: RepairRequest, mends_config: bool, run_tasks: RunTasks) -> Way:
    """Work out a repair by the request's policy with all options that mend something and need no person to decide.

    The first of these that gives a consistent store: with --fix-config if `mends_config`, and with --heal; without the first;
    without --heal; without both. --heal is left out if the risks of all records together are not below the bound of one.
    Raises UnfitDonor, with which no policy goes, and Unreadable; a form of a table that cannot be read only refuses a repair with
    --fix-config.
    """
    first: Way | None = None
    left, config_left = 0.0, ""
    for heal_risk in (DEFAULT_RISK, None):
        differs = False  # whether it is worth to try without --heal
        for fix_config in (True, False) if mends_config else (False,):
            way = _worked_out(replace(request, heal_risk=heal_risk, fix_config=fix_config, fix_offsets=True), run_tasks)
            first = first or way
            differs = differs or way.outcome is None or way.healed > 0
            if way.risk >= MOST_RISK:
                left = way.risk
                break
            if way.consistent:
                return replace(way, risk_left=left, config_left=way.config_left if fix_config else config_left)
            if fix_config:
                config_left = f"with {FIX_CONFIG} the repair does not go: {way.problem()}"
        if not differs:
            break
    assert first is not None
    return first


def _worked_out(request: RepairRequest, run_tasks: RunTasks) -> Way:
    began = time.monotonic()
    try:
        outcome = work_out(request, run_tasks, tempfile.gettempdir())
    except StoreError as problem:
        if isinstance(problem, UnfitDonor | Unreadable) and not isinstance(problem, FormUnread):
            raise  # a read that fails says nothing of the policy
        return Way(request.policy, None, str(problem))
    report = outcome.report
    healed, set_back, written = bool(report.healed_records), bool(report.offsets), bool(written_files(report.config))
    asked = replace(
        request,
        heal_risk=request.heal_risk if healed else None,
        fix_config=request.fix_config and written,
        fix_offsets=set_back,
        late_timers=request.late_timers and report.timers is not None and report.timers.rebuilt,
    )
    config_left = _nothing_written(report.config) if request.fix_config and not written else ""
    seconds = time.monotonic() - began
    return Way(request.policy, outcome, seconds=seconds, options=asked.options, config_left=config_left)


def _nothing_written(config: Sequence[ConfigFile]) -> str:
    """Return why --fix-config writes no file. config: all of them are left out."""
    why = "; ".join(f"{each.file}: {clause(each.reason)}" for each in config)
    return f"{FIX_CONFIG} finds nothing to write" + (f": {why}" if why else "")


def still_to_be_had(outcome: Outcome, ways: Sequence[Way]) -> bool:
    """Say whether a new store would give up what may still be had, as it is shown that the copy is not whole.

    A donor from which a way takes all that the log lacks leaves nothing that may still be found.
    """
    reports = [way.report for way in ways if way.consistent]
    kept = [report.given_up for report in reports if report.donor is not None and report.donor.taken]
    whole = any(not given_up.messages and not given_up.signs for given_up in kept)
    return any(lack.kind not in _IN_THE_LOG or not whole for lack in outcome.whole.signs)


def proposal_of(way: Way) -> RepairProposal:
    """Return what a repair by the policy would do, for plan.json."""
    if not way.consistent:
        return RepairProposal(way.policy, way.problem())
    report = way.report
    return RepairProposal(
        way.policy, None, True, way.options, report.messages_before, report.messages_after, way.healed, way.risk, way.risk_left,
        way.config_left, report.lost, report.given_up.messages, bool(report.given_up.signs), tuple(map(_timeless, report.config)),
        _unserved(report), report.steps,
    )  # fmt: skip


def _unserved(report: RepairReport) -> int:
    """Count the messages of an earlier life of their queue that get no entry. Messages that were in no queue before are no
    loss."""
    return sum(row.end - row.first for row in report.unserved if row.had_entry)


def _timeless(file: ConfigFile) -> ConfigFile:
    """Return a file of the report without modification times: the same bytes have the same plan."""
    forms = tuple(replace(form, time_ms=None) if form.time_from == FROM_FILE else form for form in file.not_kept)
    return replace(file, not_kept=forms, time_ms=None if file.time_from == FROM_FILE else file.time_ms)
