"""One store's rounds: which tasks next, and between them the fold that says what a start would do.

Round one reads every byte once: a task per segment, per group of queues, per index file. Later rounds are small: a segment
again where the broker's decision falls inside a run, start()'s own walk, the queue entries that matched nothing.

An audit that may leave segments out (`quick`, a time limit, those that an earlier run has verified) looks at all edges and the
queues first and then asks for what it reads: at the quick level for nothing but what recovery itself would read, and what lies
beyond its cut.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from schemas.advice import Cause, Gap, LeftOut
from schemas.rows import EarlierRun, Finding, MappedFile, QueueKey, QueueSummary, SegmentSummary
from store_io.audit.rounds.task_making import TaskMaker
from store_io.base.errors import StoreError
from store_io.base.packed import PackedMap, PackedWhenMany, opened
from store_io.base.tasks import NotRead, PartlyRead, Task, unpacked
from store_io.broker.prediction import Needs, Prediction, ScanId
from store_io.broker.queues.combination import light_expected
from store_io.broker.recovery import AskedRecovery
from store_io.kinds.all_kinds import KINDS
from store_io.kinds.compaction.compaction_kind import COMPACTION
from store_io.kinds.dledger.ledger_chain import live_ends
from store_io.kinds.dledger.ledger_kind import LEDGER
from store_io.kinds.queues.queue_kind import QUEUES
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.log.scan.segment_edges import EdgeTask, SegmentEdges
from store_io.log.scan.segment_scan import SegmentTask
from store_io.log.scan.stored_runs import KeyTable, RunShelf
from store_io.model.audit_request import AuditRequest
from store_io.model.earlier_segments import EarlierSegments
from store_io.model.evidence import Evidence
from store_io.model.found_gaps import Gaps
from store_io.model.kind import Kind, Results
from store_io.model.loss import Loss, compute_loss
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_leftovers import LeftoverResult, LeftoverTask
from store_io.model.queue_views import KnownQueues, QueueView, queue_views


class Collected:
    """Results by file, queue or scan. segments: those that were read, by physical offset; settled by `sort_segments`.

    leftovers: what those entries of a queue are that no message matched.
    found: the results of each kind of files, by the kind's name.
    late: files that the time did not suffice for.
    scans: every scan of the broker's own walks, second looks too.
    """

    def __init__(self, gaps: Gaps):
        self._gaps = gaps
        self.segments: list[SegmentSummary] = []
        self.by_path: dict[str, SegmentSummary] = {}
        self.keys = KeyTable()
        self.edges: dict[str, SegmentEdges] = {}
        self.leftovers: PackedMap[QueueKey, LeftoverResult] = PackedMap(weigh=LeftoverResult.weight)
        self.scans: dict[ScanId, SegmentSummary] = {}
        self._findings: PackedWhenMany[Finding] = PackedWhenMany()  # of segments
        self._runs = RunShelf()
        self._kinds = {task: kind for kind in KINDS for task in kind.task_types}
        self.found: dict[str, Any] = {kind.name: kind.nothing_found() for kind in KINDS}
        self.late: set[str] = set()
        self.bytes_read = 0

    def results(self, kind: Kind[Any, Results, Any]) -> Results:
        """Return what the tasks of a kind of files have found so far."""
        found: Results = self.found[kind.name]
        return found

    def unchanged(self, copy: OpenedCopy, before: EarlierRun, gone: bool) -> bool:
        """Say whether all kinds hold the entries that an earlier run has compared. gone: see `Kind.unchanged`."""
        return all(kind.unchanged(copy, self.found[kind.name], before, gone) for kind in KINDS)

    def not_read(self, task: Task) -> None:
        """Note that the time was spent before this task began."""
        task = unpacked(task)
        kind = self._kinds.get(type(task))
        if kind is not None:
            kind.not_read(self.found[kind.name], task)
            self._gaps.add(Gap(Cause.TIME_LIMIT, values=(late,)) for of, late in kind.left_out if isinstance(task, of))
        if isinstance(task, LeftoverTask):
            self._gaps.add([Gap(Cause.TIME_LIMIT, values=(LeftOut.LEFTOVERS,))])
        elif kind is None or type(task) not in kind.looks_again:
            self.late.update(task.paths)

    def take(self, task: Task, result: Any, scan: ScanId | None = None) -> None:
        """Take in what a task has found. scan: which of the broker's walks a scan of a segment is."""
        assert not isinstance(result, NotRead)
        task = unpacked(task)
        kind = self._kinds.get(type(task))
        parts = result if isinstance(result, list) else [result]
        self.bytes_read += sum(getattr(part, "bytes_read", 0) for part in parts)
        problems = [part.problem for part in parts if getattr(part, "problem", None)]
        if kind is not None:
            self._gaps.add(problems)
            if kind is LEDGER:
                self._gaps.add(LEDGER.gaps_of(result))
            kind.take(self.found[kind.name], result)
        elif isinstance(task, SegmentTask):
            self._gaps.add(problems)
            self._take_segment(result, scan)
        elif isinstance(task, LeftoverTask):
            self._gaps.add(problems)
            self.leftovers.add({result.key: result})
        elif isinstance(task, EdgeTask):
            self.edges.update((edges.path, edges) for edges in parts)
            for problem in problems:
                self._gaps.cannot_read(problem)
        else:
            raise TypeError(f"no kind takes the result of {type(task).__name__}")

    def _take_segment(self, summary: SegmentSummary, scan: ScanId | None) -> None:
        self.keys.share(summary)
        summary.findings = self._findings.of(summary.findings)
        summary = self._runs.of(summary)
        if scan is not None:
            self.scans[scan] = summary
        if is_whole(scan):
            self.by_path[summary.path] = summary
            self.late.discard(summary.path)
            self.segments = []

    def sort_segments(self) -> None:
        """Settle `segments` after some were taken in."""
        if not self.segments:
            self.segments = sorted(self.by_path.values(), key=lambda s: (s.base_offset, s.path))


def is_whole(scan: ScanId | None) -> bool:
    """Say whether such a scan is the audit's own of a whole segment. Others are a part of the broker's walk alone."""
    return scan is None or scan.kind == "segment"


Rounds = Generator[list[Task], list[Any], None]

MAX_ROUNDS = 40  # of a fold; each one cuts runs finer, so that more would mean a bug


class StoreRounds:
    """Asks for tasks round by round.

    prediction, loss: those of the last fold; None if nothing can be said.
    views: the queues seen from both sides, once the segments are there.
    index: the index after a start is predicted, which needs scans whose index runs are of the release's own rules.
    """

    def __init__(self, request: AuditRequest, copy: OpenedCopy, gaps: Gaps, index: bool = True):
        self._request, self._copy, self._gaps = request, copy, gaps
        self.collected = Collected(gaps)
        self.tasks = TaskMaker(request, copy)
        self._fold_rules = copy.rules if index else replace(copy.rules, builds_index=False)
        self.prediction: Prediction | None = None
        self.loss: Loss | None = None
        self.views: Mapping[QueueKey, QueueView] = {}
        self._earlier = EarlierSegments(request, copy, self.collected)
        self._needs = Needs()
        self._going = self._run()

    def following(self, results: list[Any] | None) -> list[Task]:
        """Return the next round's tasks, [] when all is known.

        results: of the round before, in its order; None before the first.
        """
        try:
            return self._going.send(results)  # type: ignore[arg-type]  # None begins a generator
        except StopIteration:
            return []

    def evidence(self) -> Evidence:
        """Return the evidence as it is known now."""
        found = self.collected
        return Evidence(
            request=self._request,
            copy=self._copy,
            broken=self._gaps.broken,
            segments=found.segments,
            queues=self._read_queues,
            other_queues=self._by_reading(False),
            edges=found.edges,
            leftovers=found.leftovers,
            found=found.found,
            log_problem=found.results(LEDGER).log_problem,
            late=frozenset(found.late),
            unread=tuple(self.unread),
            views=self.views,
            earlier=self._earlier,
            prediction=self.prediction,
            loss=self.loss,
            bytes_read=found.bytes_read,
        )

    @property
    def _read_queues(self) -> Mapping[QueueKey, QueueSummary]:
        """Return the summaries of the queues from which consumers are served."""
        return self._by_reading(True)

    def _by_reading(self, served: bool) -> Mapping[QueueKey, QueueSummary]:
        """Return the summaries of the queues from which consumers are served, or of all others of a double write."""
        copy, found = self._copy, self.collected
        in_files = QUEUES.read_queues(copy, found.results(QUEUES), served)
        in_rocksdb = ROCKS_QUEUES.read_queues(copy, found.results(ROCKS_QUEUES), served)
        return {**in_files, **in_rocksdb} if in_files and in_rocksdb else in_files or in_rocksdb

    @property
    def unread(self) -> list[MappedFile]:
        """Return the segments of which nothing was read in this run but their edges."""
        return [f for f in self._copy.segment_files if f.path not in self.collected.by_path]

    def _run(self) -> Rounds:
        request, copy = self._request, self._copy
        before = [task for kind in KINDS for task in kind.tasks_before_log(request, copy)]
        if before:
            self._take(before, (yield before))
            self.tasks.live_ends = live_ends(self.collected.results(LEDGER).data.values())
        tasks = [task for kind in KINDS for task in kind.first_tasks(request, copy)]
        if self._request.whole:
            tasks = [*self.tasks.segments(self._copy.segment_files), *tasks]
            self._take(tasks, (yield tasks) if tasks else [])
        else:
            tasks = [*self.tasks.edges(), *tasks]
            self._take(tasks, (yield tasks) if tasks else [])
            tasks = self.tasks.segments(self._earlier.chosen())
            if tasks:
                self._take(tasks, (yield tasks))
        del before, tasks  # one of a million queues is as large as what was found
        yield from self._fold()
        self.view_queues()
        evidence = self.evidence()
        later: list[Task] = [*self.tasks.leftovers(evidence)]
        later += [task for kind in KINDS for task in kind.tasks_after_prediction(evidence, self.tasks.base)]
        del evidence  # it may hold a million queues
        if later:
            self._take(later, (yield later))
        del later
        last = [*TABLES.second_looks(self.evidence(), self.tasks.base)]
        if last:
            self._take(last, (yield last))

    def _fold(self) -> Rounds:
        """Predict, and look again if the answer is not fine enough, until it needs nothing else."""
        place = {f.path: i for i, f in enumerate(self._copy.loaded.segments)}
        for _ in range(MAX_ROUNDS):
            needs = self._predict()
            again: list[Task] = []
            if not needs and self.prediction is not None and self.prediction.starts:
                again = self.tasks.segments(self._unread_beyond(self.prediction.end))
                needs = needs if again else self._measure_loss(place)
            if not needs and not again:
                break
            self._merge(needs)
            again += self.tasks.rescans(needs, self._needs, self.collected.by_path)
            if not again:
                break
            results = yield again
            nothing_read = all(isinstance(result, NotRead) for result in results)
            self._take(again, results)
            if nothing_read:
                self.prediction = self.loss = None
                break
        else:
            self._gaps.add([Gap(Cause.LOSS_NOT_COUNTED)])
            self.prediction = None

    def _predict(self) -> Needs:
        self.prediction = None
        copy, found = self._copy, self.collected
        if (
            self._gaps.broken
            or copy.unmodelled
            or any(s.problem for s in found.segments)
            or any(kind.start_is_unknown(copy, found.found[kind.name], found.late) for kind in KINDS)
        ):
            return Needs()
        loaded = COMPACTION.after_load(copy, found.results(COMPACTION), copy.loaded)
        firsts = {i: found.edges[f.path].first for i, f in enumerate(copy.loaded.segments) if f.path in found.edges}
        known = self._fold_rules, loaded, copy.batch_topics, copy.checkpoint, copy.unclean
        asked = AskedRecovery(*known, found.scans, firsts, copy.headers, copy.epochs, copy.marks)
        for kind in KINDS:
            kind.add_to_recovery(copy, found.found[kind.name], asked)
        fold = asked.fold()
        try:
            self.prediction = fold.run()
            if self.prediction.starts:  # else it is sure what the broker does
                doubts = [*ROCKS_QUEUES.doubts(copy, found.results(ROCKS_QUEUES), fold)]
                if doubts:
                    self.prediction = None
                    self._gaps.add(doubts)
        except StoreError as why:
            self._gaps.cannot_read(why.gap())
            return Needs()
        finally:
            fold.close()
        return fold.needs

    def _measure_loss(self, place: dict[str, int]) -> Needs:
        assert self.prediction is not None and self.prediction.settled is not None
        self.view_queues()
        needs = Needs()
        segments = self.collected.segments
        self.loss = compute_loss(self.prediction.settled, self.prediction.end, segments, self.views)
        for number, by_key in self.loss.cuts.items():
            scan = ScanId("segment", place[segments[number].path])
            for key, edges in by_key.items():
                fresh = edges - self._needs.number_cuts.get(scan, {}).get(key, set())
                if fresh:
                    needs.number_cuts[scan][key] |= fresh
        return needs

    def _merge(self, needs: Needs) -> None:
        """Keep everything that was ever asked for: a scan is always repeated with all its cuts."""
        for scan, cuts in needs.phy_cuts.items():
            self._needs.phy_cuts[scan] |= cuts
        for scan, queue_cuts in needs.queue_cuts.items():
            for key, values in queue_cuts.items():
                self._needs.queue_cuts[scan][key] |= values
        for scan, number_cuts in needs.number_cuts.items():
            for key, values in number_cuts.items():
                self._needs.number_cuts[scan][key] |= values
        for scan, marks in needs.marks.items():
            self._needs.marks[scan] |= marks

    def _unread_beyond(self, phy_offset: int) -> list[MappedFile]:
        """Return segments that were not read and reach beyond the cut: their messages are lost."""
        return [f for f in self.unread if f.start + f.size > phy_offset]

    def _take(self, tasks: Sequence[Task], results: list[Any]) -> None:
        """Take in one round, and let go of its results. A gap in the place of a result says why there is none."""
        assert len(tasks) == len(results)
        results.reverse()
        failed: dict[str, Gap] = {}
        for task in tasks:
            result = opened(results.pop())
            if isinstance(result, PartlyRead):
                failed = {**result.failed, **failed}
                result = opened(result.result)
            if isinstance(result, Gap):
                self._gaps.cannot_read(result)
                self.prediction = None
            elif isinstance(result, NotRead):
                self.collected.not_read(task)
            else:
                scan = self.tasks.scan_of(task) if isinstance(task, SegmentTask) else None
                self.collected.take(task, result, scan)
                if isinstance(task, SegmentTask) and is_whole(scan):
                    self.views = {}
        self._gaps.add_failed(failed)  # last: the file's own task says more
        self.collected.sort_segments()

    def view_queues(self) -> None:
        """Make `views` anew if segments were read since they were made."""
        if self.views:
            return
        copy, found = self._copy, self.collected
        served, light = copy.queues_in_files.served, light_expected(copy.rules)
        known = KnownQueues(self._read_queues, served.files, served.folders, copy.batch_topics, copy.known_topics, light)
        known = ROCKS_QUEUES.known_queues(copy, known)
        damaged = any(self._request.was_damaged(s.path) for s in found.segments)  # then any entry may lead to what is gone there
        in_part = bool(self.unread) and (self._request.quick or not damaged)
        self.views = queue_views(found.segments, known, in_part)
