"""Tasks of several audits of one copy, each run once: what differs in rules alone is scanned together.

A segment is scanned by the first audit's rules, and the scan follows those of the others (`log.scan.other_walks`). Where a walk
goes its own way, that segment is scanned once more by its rules. Any other task runs once for all that ask for an equal one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from schemas.rows import Cuts, QueueKey, SegmentSummary
from store_io.audit.compared.variants import nameless
from store_io.base.packed import opened
from store_io.base.tasks import PartlyRead, Task
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_columns import RecordCheck
from store_io.log.scan.other_walks import MOST_OTHERS, WalkRules, by_other_rules, by_own_rules
from store_io.log.scan.segment_scan import SegmentTask

Asked = Sequence[Sequence[Task]]  # by audit

# Of a segment's task: what may differ where one scan serves several audits.
_OF_ONE_AUDIT = frozenset({"rules", "cuts", "index_marks", "timers", "delays", "lmq", "others"})


@dataclass
class _Scan:
    """One scan of a segment: the task of the audit that asked first, and what it is for. walks: by number, 0 the task's own.

    askers: (audit, place among its tasks, number of its walk, its task).
    """

    task: SegmentTask
    walks: list[WalkRules]
    askers: list[tuple[int, int, int, SegmentTask]] = field(default_factory=list)
    others: tuple[BrokerRules, ...] = ()

    def takes(self, task: SegmentTask, walk: WalkRules) -> bool:
        """Say whether it can serve this task, too."""
        if walk not in self.walks and (not _is_whole(task) or len(self.others) == MOST_OTHERS):
            return False
        return walk.delays == self.walks[0].delays and _same(self.task, task, _OF_ONE_AUDIT)

    def add(self, asker: tuple[int, int], task: SegmentTask, walk: WalkRules) -> None:
        """Serve this task, too."""
        if walk not in self.walks:
            self.walks.append(walk)
            self.others = (*self.others, task.rules)
        self.askers.append((*asker, self.walks.index(walk), task))

    def joined(self) -> SegmentTask:
        """Return the task that is run. Its index runs are cut for its own audit alone, which numbers them."""
        tasks = [task for _, _, _, task in self.askers]
        if len(tasks) == 1:
            return self.task
        cuts = [task.cuts for task in tasks]
        everywhere = {offset for own in cuts[1:] for offset in own.phy_offsets} - set(cuts[0].phy_offsets)
        joined = Cuts(
            self.task.cuts.phy_offsets,
            _union([own.by_queue for own in cuts]),
            _union([own.queue_offsets for own in cuts]),
            tuple(sorted(everywhere)),
        )
        return replace(
            self.task,
            cuts=joined,
            others=self.others,
            timers=next(filter(None, (task.timers for task in tasks)), None),
            delays=next(filter(None, (task.delays for task in tasks)), None),
        )


def _union(cuts: Sequence[dict[QueueKey, tuple[int, ...]]]) -> dict[QueueKey, tuple[int, ...]]:
    found: dict[QueueKey, set[int]] = {}
    for own in cuts:
        for key, values in own.items():
            found.setdefault(key, set()).update(values)
    return {key: tuple(sorted(values)) for key, values in found.items()}


@dataclass
class _Other:
    """Any other task, and who asked for an equal one: (audit, place)."""

    task: Task
    askers: list[tuple[int, int]] = field(default_factory=list)


class SharedRound:
    """One round of tasks of several audits. `tasks`: what is run; `take` may ask for more of them, [] when all have answers."""

    def __init__(self, asked: Asked):
        self.answers: list[list[Any]] = [[None] * len(own) for own in asked]
        self._scans: list[_Scan] = []
        self._others: list[_Other] = []
        by_path: dict[str, list[_Scan]] = {}
        by_kind: dict[tuple[type, tuple[str, ...]], list[_Other]] = {}
        for audit, own in enumerate(asked):
            for place, task in enumerate(own):
                if isinstance(task, SegmentTask):
                    self._add_scan((audit, place), task, by_path.setdefault(task.path, []))
                else:
                    self._add_other((audit, place), task, by_kind.setdefault((type(task), tuple(task.paths)), []))
        known: dict[tuple[int, ...], tuple[BrokerRules, ...]] = {}  # equal ones are one object, which a runner sends once
        for scan in self._scans:
            scan.others = known.setdefault(tuple(map(id, scan.others)), scan.others)
        self.tasks: list[Task] = [*(scan.joined() for scan in self._scans), *(other.task for other in self._others)]

    def _add_scan(self, asker: tuple[int, int], task: SegmentTask, known: list[_Scan]) -> None:
        walk = _walk_of(task)
        scan = next((one for one in known if one.takes(task, walk)), None)
        if scan is None:
            scan = _Scan(task, [walk])
            known.append(scan)
            self._scans.append(scan)
        scan.add(asker, task, walk)

    def _add_other(self, asker: tuple[int, int], task: Task, known: list[_Other]) -> None:
        other = next((one for one in known if _same(one.task, task, frozenset({"log"}))), None)
        if other is None:
            other = _Other(task)
            known.append(other)
            self._others.append(other)
        other.askers.append(asker)

    def take(self, results: Sequence[Any]) -> list[Task]:
        """Take in the results of `tasks`; scans that some need besides are then the new `tasks`."""
        apart: list[_Scan] = []
        for scan, packed in zip(self._scans, results, strict=False):
            result = opened(packed)
            for audit, place, number, task in scan.askers:
                answer = _own_part(result, number, task)
                if answer is None:
                    self._add_apart(apart, (audit, place), task)
                self.answers[audit][place] = answer
        for other, result in zip(self._others, results[len(self._scans) :], strict=True):
            for audit, place in other.askers:
                self.answers[audit][place] = result
        self._scans, self._others = apart, []
        self.tasks = [scan.task for scan in apart]
        return self.tasks

    @staticmethod
    def _add_apart(apart: list[_Scan], asker: tuple[int, int], task: SegmentTask) -> None:
        """Keep the task by itself, and tasks of the same walk with the same cuts together."""
        walk = _walk_of(task)
        scan = next((one for one in apart if one.walks == [walk] and _same(one.task, task, frozenset({"rules"}))), None)
        if scan is None:
            scan = _Scan(task, [walk])
            apart.append(scan)
        scan.add(asker, task, walk)


def _own_part(result: Any, number: int, task: SegmentTask) -> Any:
    """Return one walk's part of a scan that served several; None: the walk left the scan's."""
    if isinstance(result, PartlyRead):
        part = _own_part(result.result, number, task)
        return None if part is None else replace(result, result=part)
    summary = getattr(result, "summary", result)  # a scan that writes datasets gives more, to its own audit
    if not isinstance(summary, SegmentSummary):  # not read
        return result
    own = by_own_rules(summary) if number == 0 or summary.problem else by_other_rules(summary, number - 1)
    if own is not None and task.timers is None:
        own = replace(own, timers=None, timers_dropped=0)
    if own is not None and task.delays is None:
        own = replace(own, delayed=None)
    return own


def _is_whole(task: SegmentTask) -> bool:
    """Say whether the task is a scan of a whole segment, which can follow other walks."""
    return task.walk_audit and task.broker_from == 0 and task.only is None


def _walk_of(task: SegmentTask) -> WalkRules:
    """Return the facts that decide a task's result, apart from its files and cuts."""
    rules = task.rules
    if _is_whole(task):
        return WalkRules.of(rules, task.unclean)
    check = RecordCheck.reput(rules)
    own = rules.dispatches_to_log_end, rules.value("brokerId"), tuple(sorted(rules.delays_in_recovery.items())), check.settings
    return replace(WalkRules.of(rules, task.unclean), kind=own)


def _same(one: Task, other: Task, besides: frozenset[str]) -> bool:
    """Say whether two tasks are equal but for these fields, and for the names of releases that do the same."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    names = (own.name for own in fields(one))  # type: ignore[arg-type]  # each task is a dataclass
    return all(name in besides or _equal(getattr(one, name), getattr(other, name)) for name in names)


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, BrokerRules):
        return nameless(one) == nameless(other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)
