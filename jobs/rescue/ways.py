"""The ways to repair a copy, one by each policy, worked out without writing a new store, and which one to take.

found = work_out_ways(...)
best = choose(found)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from jobs.report.hand_over.figures import RepairFigures
from schemas.rows import AuditOutcome, Row
from store_io.audit.healing.changes import DEFAULT_RISK
from store_io.audit.healing.judgement import risk_text
from store_io.audit.outcome.safety import setting_that_cuts
from store_io.base.errors import StoreError, UnfitDonor, Unreadable
from store_io.base.wording import count_text
from store_io.formats.config.table_forms import FormUnread
from store_io.repair.plan_repair_section import refused_section, section_of
from store_io.repair.repair_plan import BROKER, POLICIES, SALVAGE, plan_text, read_plan
from store_io.repair.repair_steps import COPY
from store_io.repair.repair_store import work_out
from store_io.repair.repair_work import RepairOutcome, RepairRequest, RunTasks
from store_io.source.byte_source import StoreLocation

_NO_STEPS = "not in the plan: a repair with a donor, --heal or --fix-config works its steps out itself"
MOST_RISK = DEFAULT_RISK  # of all records together that are healed without a person who asked for it
WRITING_SPEED = 100e6  # bytes a second: what the time of writing is reckoned with


@dataclass(frozen=True)
class Way(RepairFigures):
    """What a repair by this policy would do. refused: why it does not go, a sentence; else outcome is there.
    seconds: what working it out took.  fix_config: it also writes files of config/; else it leaves them.
    risk_left: of records that one change each makes whole and that it leaves, as their risks together are too high; else 0.
    config_left: why it leaves files of config/ that a repair could mend, a sentence; else empty."""

    policy: str
    outcome: RepairOutcome | None
    refused: str = ""
    seconds: float = 0.0
    fix_config: bool = False
    risk_left: float = 0.0
    config_left: str = ""

    @property
    def report(self) -> Row:
        """Of a way that goes."""
        assert self.outcome is not None
        return self.outcome.report

    @property
    def consistent(self) -> bool:
        """Whether a run would put a new store in place."""
        return self.outcome is not None and self.outcome.exit_code == 0

    @property
    def kept(self) -> int:
        return int(self.report["messages_after"])

    @property
    def risk(self) -> float:
        """How likely one of these changes is not the right one, at most: the sum of their risks."""
        return float((self.report.get("healed") or {}).get("total_risk", 0.0)) if self.outcome is not None else 0.0

    @property
    def changes(self) -> bool:
        """Whether the new store would be anything else than a copy."""
        return any(step["action"] != COPY for step in self.report["steps"])

    @property
    def offsets(self) -> int:
        """How many offsets of consumers, delay levels and timers it sets back."""
        return int(self.report.get("positions_set_back", 0))

    @property
    def not_kept(self) -> int:
        """How many entries of tables of config/ are in a form that is not taken, and in no table of the new store."""
        return sum(int(form["count"]) for row in self.report["config"] for form in row["not_kept"])

    @property
    def written(self) -> int:
        """Bytes of the copy that it writes; what it makes anew replaces some of them."""
        return sum(int(step["kept"].get("bytes", 0)) for step in self.report["steps"] if step["action"] == COPY)

    @property
    def run_seconds(self) -> float:
        """What a run takes, about: the same work, and the writing."""
        return self.seconds + self.written / WRITING_SPEED

    def problem(self) -> str:
        """Why it cannot be taken; "" where it can."""
        if self.outcome is None:
            return self.refused
        return "" if self.consistent else "the new store would not be consistent: " + "; ".join(self.report["problems"][:3])


@dataclass(frozen=True)
class Choice:
    """way: the one to take.  why: a clause.  options: what the repair is asked for besides its policy."""

    way: Way
    why: str
    options: tuple[str, ...] = field(default=())


def work_out_ways(request: RepairRequest, run_tasks: RunTasks, progress: Callable[[str], None]) -> list[Way]:
    """Both policies. request: of either; its target is where the new store would be.

    Raises UnfitDonor, with which neither goes, and Unreadable; a form of a table that cannot be read only refuses both.
    """
    return [_work_out(replace(request, policy=policy), run_tasks, progress) for policy in POLICIES]


def _work_out(request: RepairRequest, run_tasks: RunTasks, progress: Callable[[str], None]) -> Way:
    progress(f"working out a repair by policy {request.policy}")
    began = time.monotonic()
    try:
        outcome = work_out(request, run_tasks, tempfile.gettempdir())
    except StoreError as problem:
        if isinstance(problem, UnfitDonor | Unreadable) and not isinstance(problem, FormUnread):
            raise  # a read that fails says nothing of the policy
        return Way(request.policy, None, str(problem), fix_config=request.fix_config)
    return Way(request.policy, outcome, seconds=time.monotonic() - began, fix_config=request.fix_config)


def request_of(outcome: AuditOutcome, location: StoreLocation, target: str, donor: StoreLocation | None) -> RepairRequest:
    """What both policies are asked for: all that mends something and needs no person to decide. Raises StoreError where no
    repair can follow this audit."""
    plan = read_plan(plan_text(outcome.plan).encode())
    return RepairRequest(plan.store, location, target, plan, donor=donor, fix_offsets=True, heal_risk=DEFAULT_RISK)


def choose(ways: Sequence[Way], cause: str = "") -> Choice | None:
    """The way that keeps most; None where none goes. Where both keep the same: by the policy that surprises consumers least.

    cause: a clause on the messages that policy broker leaves out, as `kept_by_salvage` makes it.
    """
    going = [way for way in ways if way.consistent]
    if not going:
        return None
    best = max(going, key=lambda way: (way.kept, -way.given_up, way.policy == BROKER))
    others = [way for way in ways if way is not best]
    why = _why(best, others[0], cause)
    if best.risk_left:
        left = f"risks of {risk_text(best.risk_left)} in all, not below {MOST_RISK:g}"
        why += f"; damaged records that one change makes whole stay as they are ({left}): decide on repair --heal yourself"
    if best.config_left:
        why += f"; files of config/ stay as they are, as with --fix-config it does not go: {best.config_left}"
    return Choice(best, why, _options(best))


def kept_by_salvage(outcome: AuditOutcome) -> str:
    """Which messages policy salvage keeps beyond those of policy broker, a clause; "" where that is not known."""
    setting = setting_that_cuts(outcome)
    of_setting = f": those that a start with {setting}=true cuts" if setting else ""
    return of_setting + (", also those after the damage" if outcome.damaged_extents else "")


def _why(best: Way, other: Way, cause: str) -> str:
    why = _why_this_policy(best, other, cause)
    if not best.healed:
        return why
    return f"{why}; --heal makes {count_text(best.healed, 'damaged record')} whole, at a risk of {risk_text(best.risk)} in all"


def _why_this_policy(best: Way, other: Way, cause: str) -> str:
    if not other.consistent:
        return f"policy {other.policy} does not go: {other.problem()}"
    more = best.kept - other.kept
    if more > 0:
        return f"it keeps {more:,} more of the messages{cause if best.policy == SALVAGE else ''}"
    if best.given_up < other.given_up:
        return f"it gives up {other.given_up - best.given_up:,} fewer messages"
    return "both keep the same messages, and so the log ends where the release itself would end it"


def _options(way: Way) -> tuple[str, ...]:
    wanted = (("--heal", way.healed), ("--fix-config", way.fix_config), ("--fix-offsets", way.report.get("offsets")))
    return tuple(option for option, is_wanted in wanted if is_wanted)


def plan_section(ways: Sequence[Way], donor: bool) -> Row:
    """plan.json's `repair` by these ways: none where they take an option of whose runs a plan has no steps."""
    going = [way for way in ways if way.outcome is not None]
    if donor or any(way.fix_config or way.healed for way in going):
        return {way.policy: refused_section(_NO_STEPS) for way in ways}
    return {way.policy: section_of(way.outcome) if way.outcome is not None else refused_section(way.refused) for way in ways}
