"""Whether a new store is consistent. It is put in place only if its audit finds nothing above a note, apart from findings
that may stay (`finding_codes.Stays`), which the report names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schemas.advice import Refusal
from schemas.finding_codes import CATALOGUE, Code, Part, Stays
from schemas.repair import FindingKept
from schemas.rows import Finding
from store_io.base.exit_codes import CONSISTENT, DERIVED, LOST
from store_io.broker.loading import why_no_folder
from store_io.repair.kind_repair import Rebuilt
from store_io.repair.log.edits import LogPlan
from store_io.repair.repair_audit import Audited


@dataclass(frozen=True)
class NewStoreVerdict:
    """The verdict on a new store.

    problems: why the store is not put in place, in sentences.
    kept: findings above a note that stay.
    loss: whether one of the other findings is a loss.
    """

    problems: list[str]
    kept: list[FindingKept]
    loss: bool

    @property
    def consistent(self) -> bool:
        return not self.problems

    @property
    def exit_code(self) -> int:
        return CONSISTENT if self.consistent else LOST if self.loss else DERIVED


def judge_new_store(
    before: Audited, final: Audited, log: LogPlan, made: Rebuilt, why_not: Callable[[Refusal | None], str]
) -> NewStoreVerdict:
    """Judge a new store by its audit.

    before, final: the audits of the copy and of the new store.
    why_not: says why the release does not start, and what helps against a refusal.
    """
    accepted = _Accepted(before, log, made)
    kept = [f for f in final.serious if accepted.takes(f)]
    left = [f for f in final.serious if f not in kept]
    problems = [problem_text(f) for f in left]
    if not final.complete:
        problems += final.outcome.incomplete
    problems += _start_problems(final, log, accepted, why_not)
    return NewStoreVerdict(problems, [_kept(f) for f in kept], any(f.severity == "loss" for f in left))


def problem_text(f: Finding) -> str:
    """Return a clause on a finding, with its place and both values if it has them."""
    at = "" if f.start is None else f" at {f.start:,}"
    values = [f"{word} {value}" for word, value in (("expected", f.expected), ("found", f.actual)) if value is not None]
    return ": ".join(filter(None, [f.code, f"{f.file}{at}", f.message.rstrip("."), ", ".join(values)]))


class _Accepted:
    """The findings above a note that may stay."""

    def __init__(self, before: Audited, log: LogPlan, made: Rebuilt):
        self.none_stays, self.timers_made = not log.messages, bool(made.timers and made.timers.rebuilt)
        self.known: dict[tuple[Code, int | None], int] = {}  # -> how many more beyond the bound
        for f in before.findings:
            self.known[f.code, f.phy_offset] = max(f.more, self.known.get((f.code, f.phy_offset), 0))
        queues = [*made.queues, *made.in_place]
        self.moved: dict[tuple[object, int | None], int] = {
            (q.key, row.phy_offset): len(q.moved) for q in queues for row in q.moved
        }
        self.elsewhere = {q.key for q in queues if q.unserved or q.moved}

    def takes(self, f: Finding) -> bool:
        """Say whether the finding may stay, with all that it counts beyond the bound."""
        stays = CATALOGUE[f.code].stays
        if Part.TIMER in CATALOGUE[f.code].about:  # the timer's files come last; where they cannot be made, the report says it
            return not self.timers_made
        if Stays.ALWAYS in stays or Stays.EMPTY_LOG in stays and self.none_stays:  # which the report says
            return True
        if Stays.AS_BEFORE in stays and f.more <= self.known.get((f.code, f.phy_offset), -1):
            return True
        if Stays.MOVED_MESSAGE in stays and f.more < self.moved.get(((f.topic, f.queue_id), f.phy_offset), 0):
            return True
        partial = (f.topic, f.queue_id) in self.elsewhere or f.topic is not None and why_no_folder(f.topic) != ""
        return Stays.PARTIAL_QUEUE in stays and partial


def _start_problems(final: Audited, log: LogPlan, accepted: _Accepted, why_not: Callable[[Refusal | None], str]) -> list[str]:
    """Say what a start of the release would do to the new store. [] if the start changes nothing that counts."""
    p = final.prediction
    if p is None or not p.starts:
        return [f"the release would not start: {why_not(p.refusal if p is not None else None)}"]
    if p.truncate_at != log.end and log.edits:
        return [f"the release would end the log at {p.truncate_at}, not at {log.end}"]
    by_queue = final.loss.by_queue if final.loss is not None else {}
    lost = sum(q.messages for k, q in by_queue.items() if not why_no_folder(k[0]) and k not in accepted.elsewhere)
    return [f"the release would lose {lost} messages"] if lost else []


def _kept(f: Finding) -> FindingKept:
    return FindingKept(f.code, f.file, f.start, f.end, f.phy_offset, f.topic, f.queue_id, f.queue_offset, f.message, f.more)
