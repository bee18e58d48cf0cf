"""The audit of one store, without Spark: rounds of independent tasks, and a fold between them.

    audit = StoreAudit(request)
    tasks = audit.first_tasks()
    while tasks:
        tasks = audit.next_tasks([run_task(task) for task in tasks])
    outcome = audit.outcome()

Round one reads every byte once: a task per segment, per group of queues, per index file. Later rounds are small: a segment
again where the broker's decision falls inside a run, start()'s own walk, the queue entries that matched nothing.

An audit that may leave segments out (`quick`, a time limit, those that an earlier run has verified) looks at all edges and the
queues first and then asks for what it reads: at the quick level for nothing but what recovery itself would read, and what lies
behind its cut.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from schemas import checkpoint_layout
from schemas.finding_codes import CATALOGUE
from schemas.rows import (
    DEFAULT,
    EXTENT_DAMAGED,
    EXTENT_MESSAGE,
    LOSS,
    NAMED,
    NOTE,
    REBUILDABLE,
    AuditOutcome,
    EarlierRun,
    EarlierSegment,
    Finding,
    FurthestRun,
    IndexFileSummary,
    MappedFile,
    QueueKey,
    QueueSummary,
    Row,
    SegmentSummary,
)
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from store_io.audit.audit_rows import index_rows, queue_rows, segment_rows
from store_io.audit.checks import store_diff
from store_io.audit.checks.emptied import empty_findings, log_end
from store_io.audit.checks.given_up import repaired_findings
from store_io.audit.checks.live_copy import live_copy
from store_io.audit.checks.size_misfits import misfit_findings, size_misfits, with_cause
from store_io.audit.checks.unjudged import NEXT_STEP as CONFIG_STEP
from store_io.audit.checks.unjudged import start_files
from store_io.audit.checks.unwritten import unwritten
from store_io.audit.log_map import MESSAGE, LogMap, log_map
from store_io.audit.loss import Loss, compute_loss
from store_io.audit.other_kinds import unmodelled
from store_io.audit.planning import plan_steps, verdict_sentence
from store_io.audit.premises import heads_of, premises
from store_io.audit.queue_leftovers import LeftoverResult, LeftoverTask
from store_io.audit.written_by import WrittenBy, written_by
from store_io.base.errors import NotAStore, StoreError, UsageError
from store_io.base.java_compat import parse_number
from store_io.base.ranges import intersect, total
from store_io.base.tasks import NotRead, Task, run_task
from store_io.base.wording import count_text
from store_io.formats import checkpoint_reader, config_reader, index_reader
from store_io.formats.consumequeue_reader import QueueGroup, QueueTask, read_file_entries
from store_io.formats.index_reader import IndexTask
from store_io.formats.settings import parse_properties, read_settings
from store_io.rules.loading import Tree, load_store, numbered_files, queue_folder, queue_folders, segments_of
from store_io.rules.prediction import IndexHeader, Needs, Prediction, ScanId
from store_io.rules.queue_state import CHUNK_ENTRIES, DiskEntries
from store_io.rules.recovery import Fold
from store_io.rules.releases import BrokerRules, broker_rules
from store_io.scan import torn_copies
from store_io.scan.index_merge import IndexFileRef
from store_io.scan.segment_edges import EdgeTask, SegmentEdges, edge_tasks
from store_io.scan.segment_scan import SegmentTask
from store_io.scan.summary_pickle import KeyTable
from store_io.source import store_dir
from store_io.source.byte_source import ByteSource, StoreLocation, open_source

Rounds = Generator[list[Task], list[Any], None]

MAX_ROUNDS = 40  # of a fold; each one cuts finer, so that only a fault of ours could need more
MAX_FINDINGS = 100_000
MAX_REMEMBERED = 100_000  # reads of queue entries
MAX_DISPUTED = 1000
LEFTOVERS_LATE = "the time limit was reached: ConsumeQueue entries that lead to no message were not examined"
LOOK_FIRST = "Look at this file. A repair removes it: repair this copy before a start."
MAX_PHY_OFFSET = (1 << 63) - 1
QUEUE_GROUP_BYTES = 64 << 20
QUEUE_GROUP_COUNT = 256
EDGES_TOGETHER = 128  # segments
RECOVERED_SEGMENTS = 3  # at the log's end, where recovery after a clean stop begins
UNSETTLED_SEGMENTS = 2  # the newest, whose first record may be torn
_RANK = {NOTE: 0, REBUILDABLE: 10, LOSS: 20}


@dataclass(frozen=True)
class AuditRequest:
    """What to audit. broker_conf: the properties file's text. window_bytes, decoder: for tests and measurements."""

    name: str
    location: StoreLocation
    release: str
    broker_conf: str | None = None
    replica_group: str = ""
    store: int = 0
    window_bytes: int = 4 << 20
    decoder: str = "fast"
    level: str = "full"  # or "quick": only what the broker would read
    not_after: float = 0  # seconds since 1970 at which no further segment is begun; 0: never
    earlier: EarlierRun | None = None
    release_from: str = NAMED  # or DEFAULT: nobody named it
    reuse: bool = False  # what the earlier run, or one before it, has verified is not read again
    perhaps_emptied: bool = False  # a folder that nothing shows to be a store is read too: `emptied.settle` says what it is

    @property
    def whole(self) -> bool:
        """Whether everything is to be read, whatever it takes."""
        return self.level == "full" and not self.not_after and self.earlier is None


def run_local(request: AuditRequest) -> AuditOutcome:
    """The whole audit in this process."""
    return run_audit(request).outcome()


def run_audit(request: AuditRequest) -> StoreAudit:
    """The same, giving the audit itself with all it knows."""
    audit = StoreAudit(request)
    tasks = audit.first_tasks()
    while tasks:
        tasks = audit.next_tasks([run_task(task) for task in tasks])
    return audit


def queue_entries_on_disk(source: ByteSource) -> DiskEntries:
    """What a fold reads of queue files, a few entries at a time; what it asks for again in a later round is remembered."""
    seen: dict[tuple[str, int, int], np.ndarray] = {}

    def read(path: str, first: int, count: int) -> np.ndarray:
        rows = seen.get((path, first, count))
        if rows is None:
            rows = read_file_entries(source, path, first, count, path.startswith(BATCH_QUEUES + "/"))
            if len(seen) < MAX_REMEMBERED and count <= CHUNK_ENTRIES:
                seen[path, first, count] = rows
        return rows

    return read


@dataclass
class StoreAudit:
    """One store's audit as a machine that asks for tasks. After the last round `outcome()` has everything."""

    request: AuditRequest
    incomplete: list[str] = field(default_factory=list)
    unmodelled: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    prediction: Prediction | None = None
    loss: Loss | None = None
    failed: bool = False
    first: list[Task] = field(default_factory=list)  # the first round, for a runner of many stores
    furthest: FurthestRun | None = None  # of earlier audits; known once the store was read
    replicas: Row = field(default_factory=dict)  # its group as replicas.json has it, once its copies were compared

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._rounds: Rounds | None = None
        self.segments: list[SegmentSummary] = []
        self._by_path: dict[str, SegmentSummary] = {}
        self.keys = KeyTable()
        self.queues: dict[QueueKey, QueueSummary] = {}
        self.index: dict[str, IndexFileSummary] = {}
        self.scans: dict[ScanId, SegmentSummary] = {}
        self.views: dict[QueueKey, store_diff.QueueView] = {}
        self.leftovers: dict[QueueKey, LeftoverResult] = {}
        self.needs = Needs()
        self.bytes_read = 0
        self.edges: dict[str, SegmentEdges] = {}
        self._derived: bool | None = None
        self.late: set[str] = set()  # files that the time did not suffice for
        self.incomplete_on_purpose: list[str] = []
        self.broken = False  # a task gave no result: nothing is predicted
        self.no_store = ""  # why nothing in the folder shows it to be a store

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def first_tasks(self) -> list[Task]:
        """The tasks that read everything once. [] where nothing can be audited."""
        try:
            self._prepare()
        except UsageError:
            raise
        except StoreError as error:
            self.failed = True
            self.incomplete.append(str(error))
            return []
        except Exception as fault:
            self.failed = True
            self._fault(fault)
            return []
        self._rounds = self._run()
        return self._advance(None)

    def next_tasks(self, results: Sequence[Any]) -> list[Task]:
        """Take in one round's results, in the order of its tasks; the next round's tasks, [] when all is known.

        A text in the place of a result says why there is none; the audit is then incomplete.
        """
        return self._advance(list(results))

    def _advance(self, results: list[Any] | None) -> list[Task]:
        assert self._rounds is not None
        try:
            return self._rounds.send(results)  # type: ignore[arg-type]  # None begins a generator
        except StopIteration:
            return []
        except StoreError as error:
            self.incomplete.append(str(error))
            return []
        except Exception as fault:  # one store's must not end the others' audit
            self._fault(fault)
            return []

    def _fault(self, fault: Exception) -> None:
        where = traceback.extract_tb(fault.__traceback__)[-1]
        sentence = f"{type(fault).__name__}: {fault} ({where.name}, line {where.lineno})"
        self._cannot_read(f"an error in this program ended the audit: {sentence}")
        self.prediction = None

    def _prepare(self) -> None:
        request = self.request
        self.listing = store_dir.list_folder(request.location)
        self.no_store = store_dir.why_no_store(request.location, self.listing.files)
        if self.no_store and not request.perhaps_emptied:
            raise NotAStore(self.no_store)
        self.source = open_source(request.location)
        self.disk = queue_entries_on_disk(self.source)
        self.settings = read_settings(request.broker_conf, self.listing, self.source)
        self.misfits = size_misfits(request.broker_conf, self.listing, self.settings)
        self.rules: BrokerRules = broker_rules(request.release, self.settings)
        self.tree = Tree(self.listing.files)
        self.unmodelled = unmodelled(self.listing, self.rules)
        self.incomplete += self.unmodelled
        self.incomplete += store_dir.unreadable_parts(self.listing)
        self.config = config_reader.read_config(self.source, self.listing)
        self.incomplete += self.config.problems
        self.batch_topics = self._batch_topics()
        self.loaded = load_store(self.tree, self.rules, self.batch_topics)
        self.start_files = start_files(
            self.source, self.listing, self.config, self.rules, parse_properties(request.broker_conf or "")
        )
        self.incomplete += [sentence for sentence in self.start_files.broken if sentence not in self.incomplete]
        self.loaded.refusal = self.start_files.refusal or self.loaded.refusal
        self.loaded.index_refusal = self.loaded.index_refusal or self.start_files.late_refusal
        self.unmodelled += [
            f"{f.path}: a segment with physical offsets beyond 63 bits"
            for f in self.loaded.segments
            if f.start + f.size > MAX_PHY_OFFSET
        ]
        self.incomplete += [sentence for sentence in self.unmodelled if sentence not in self.incomplete]
        self.unclean = self.listing.unclean
        try:
            self.checkpoint_file = checkpoint_reader.read_checkpoint(self.source, self.listing)
        except StoreError as error:
            self._cannot_read(str(error))
            self.checkpoint_file = checkpoint_reader.StoredCheckpoint()
        self.checkpoint = self.checkpoint_file.fields
        self.segment_files = self._all_segments()
        self.queue_folders = dict(queue_folders(self.tree, QUEUES))
        if self.rules.batch_queues:  # 4.x does not know the folder: its queues of these topics are ordinary ones
            self.queue_folders |= queue_folders(self.tree, BATCH_QUEUES)
        self.queue_files = {key: tuple(numbered_files(self.tree, folder)) for key, folder in self.queue_folders.items()}
        self.headers: dict[str, IndexHeader] = {}
        # Every file whose name is a number, as the broker maps it: an empty one reads as zeros.
        self.index_files = [
            MappedFile(e.path, parse_number(e.path.rpartition("/")[2], 64) or 0, e.size)
            for e in self.tree.children(INDEX)
            if e.kind == "file" and parse_number(e.path.rpartition("/")[2], 64) is not None
        ]
        for file in self.index_files:
            try:
                header = index_reader.read_header(self.source, file.path)
            except StoreError as error:
                self._cannot_read(str(error))
                header = index_reader.Header()
            self.headers[file.path] = IndexHeader(
                file.path,
                header.begin_timestamp,
                header.end_timestamp,
                header.begin_phy_offset,
                header.end_phy_offset,
                header.index_count,
            )

    def _cannot_read(self, sentence: str) -> None:
        """What a broker would read is unknown here: the rest is audited, and nothing is predicted."""
        self.broken = True
        self.incomplete.append(sentence)

    def _batch_topics(self) -> frozenset[str]:
        """BatchCQ topics by config/topics.json; without that file those with a folder in batchconsumequeue/ (contract.md).

        Of a file that is there and that cannot be used, the release holds an empty table.
        """
        if not self.rules.batch_queues:
            return frozenset()
        if self.config.topics is not None or any(self.listing.is_file(config_reader.TOPICS + end) for end in ("", ".bak")):
            return frozenset(self.config.batch_topics)
        return frozenset(e.path.rpartition("/")[2] for e in self.tree.children(BATCH_QUEUES) if e.kind == "directory")

    def _all_segments(self) -> list[MappedFile]:
        """Segments of the listing, and what else the broker loads as such; by name."""
        files = [f for f in segments_of(self.tree) if f.start + f.size <= MAX_PHY_OFFSET]
        known = {f.path for f in files}
        return sorted(
            [*files, *(f for f in self.loaded.segments if f.path not in known and f.start + f.size <= MAX_PHY_OFFSET)],
            key=lambda f: (f.start, f.path),
        )

    def _run(self) -> Rounds:
        self._prepare_tasks()
        tasks: list[Task] = [*self._queue_tasks(), *self._index_tasks()]
        if self.request.whole:
            tasks = [*self._segment_tasks(self.segment_files), *tasks]
            self._take(tasks, (yield tasks) if tasks else [])
        else:
            tasks = [*self._edge_tasks(), *tasks]
            self._take(tasks, (yield tasks) if tasks else [])
            chosen: list[Task] = [*self._segment_tasks(self._chosen())]
            if chosen:
                self._take(chosen, (yield chosen))
        place = {f.path: i for i, f in enumerate(self.loaded.segments)}
        for _ in range(MAX_ROUNDS):
            needs = self._predict()
            again: list[Task] = []
            if not needs and self.prediction is not None and self.prediction.starts:
                again = [*self._segment_tasks(self._unread_behind(self.prediction.truncate_at))]
                needs = needs if again else self._measure_loss(place)
            if not needs and not again:
                break
            self._merge(needs)
            again += self._rescans(needs)
            if not again:
                break
            results = yield again
            self._take(again, results)
            if all(isinstance(result, NotRead) for result in results):
                self.prediction = self.loss = None
                break
        else:
            self.incomplete.append("could not determine message by message what a start would lose")
            self.prediction = None
        if not self.views:
            self._view_queues()
        leftover_tasks: list[Task] = [*self._leftover_tasks()]
        if leftover_tasks:
            self._take(leftover_tasks, (yield leftover_tasks))
        self._diff()

    def _predict(self) -> Needs:
        self.prediction = None
        if (
            self.broken
            or self.unmodelled
            or any(file.path in self.late for queue in self.loaded.queues.values() for file in queue.files)
            or any(s.problem for s in self.segments)
            or any(q.problem for q in self.queues.values())
        ):
            return Needs()
        fold = Fold(
            self.rules,
            self.loaded,
            self.batch_topics,
            self.checkpoint,
            self.unclean,
            self.scans,
            self.queues,
            self.headers,
            self.disk,
            {i: self.edges[f.path].first for i, f in enumerate(self.loaded.segments) if f.path in self.edges},
        )
        self.prediction = fold.run()
        return fold.needs

    def _measure_loss(self, place: dict[str, int]) -> Needs:
        assert self.prediction is not None and self.prediction.after_dispatch is not None
        self._view_queues()
        needs = Needs()
        self.loss = compute_loss(
            self.prediction.after_dispatch, self.prediction.truncate_at, self.segments, self.views, self.scans
        )
        for number, by_key in self.loss.cuts.items():
            scan = ScanId("segment", place[self.segments[number].path])
            for key, edges in by_key.items():
                fresh = edges - self.needs.number_cuts.get(scan, {}).get(key, set())
                if fresh:
                    needs.number_cuts[scan][key] |= fresh
        return needs

    def _merge(self, needs: Needs) -> None:
        """Keep everything that was ever asked for: a scan is always repeated with all its cuts."""
        for scan, cuts in needs.phy_cuts.items():
            self.needs.phy_cuts[scan] |= cuts
        for scan, queue_cuts in needs.queue_cuts.items():
            for key, values in queue_cuts.items():
                self.needs.queue_cuts[scan][key] |= values
        for scan, number_cuts in needs.number_cuts.items():
            for key, values in number_cuts.items():
                self.needs.number_cuts[scan][key] |= values
        for scan, marks in needs.marks.items():
            self.needs.marks[scan] |= marks

    def _rescans(self, needs: Needs) -> list[Task]:
        scans = {*needs.scans, *needs.phy_cuts, *needs.queue_cuts, *needs.number_cuts, *needs.marks}
        return [self._scan_task(scan) for scan in sorted(scans, key=lambda s: (s.segment, s.kind, s.start, s.limit))]

    def _take(self, tasks: Sequence[Task], results: Sequence[Any]) -> None:
        for task, result in zip(tasks, results, strict=True):
            if isinstance(result, str):
                self.incomplete.append(result)
                self.prediction, self.broken = None, True
                continue
            if isinstance(result, NotRead):
                if not isinstance(task, LeftoverTask):
                    self.late.update(task.paths)
                elif LEFTOVERS_LATE not in self.incomplete_on_purpose:
                    self.incomplete_on_purpose.append(LEFTOVERS_LATE)
                continue
            self.bytes_read += getattr(result, "bytes_read", 0)
            problem = getattr(result, "problem", "")
            if problem and problem not in self.incomplete:
                self.incomplete.append(problem)
            if isinstance(task, SegmentTask):
                self._take_segment(task, result)
            elif isinstance(task, QueueGroup):
                for summary in result:
                    self.queues[summary.key] = summary
                    self.bytes_read += summary.bytes_read
                    if summary.problem and summary.problem not in self.incomplete:
                        self.incomplete.append(summary.problem)
            elif isinstance(task, EdgeTask):
                for edges in result:
                    self.edges[edges.path] = edges
                    self.bytes_read += edges.bytes_read
                    if edges.problem:
                        self._cannot_read(edges.problem)
            elif isinstance(task, IndexTask):
                self.index[result.path] = result
            elif isinstance(task, LeftoverTask):
                self.leftovers[result.key] = result
        if not self.segments:
            self.segments = sorted(self._by_path.values(), key=lambda s: (s.base_offset, s.path))

    def _take_segment(self, task: SegmentTask, summary: SegmentSummary) -> None:
        scan = self._scan_of[id(task)]
        self.keys.share(summary)
        if scan is not None:
            self.scans[scan] = summary
        if scan is None or scan.kind == "segment":
            self._by_path[summary.path] = summary
            self.late.discard(summary.path)
            self.segments = []
            self.views = {}

    def written_by(self) -> WrittenBy:
        """The releases that can have written this copy."""
        magics = [s.first.magic for s in self.segments if s.first.check_ok and not s.first.blank]
        return written_by(self.listing.files, self.checkpoint, heads_of(self.source, self.listing), magics)

    def segment_addresses(self) -> list[tuple[str, str, int]]:
        """(path in the store, address on its file system, size) of each segment, for a second listing."""
        if self.failed:
            return []
        return [(f.path, self.source.address(f.path), f.size) for f in self.segment_files]

    # ---- tasks -----------------------------------------------------------------------------------------------------

    def _prepare_tasks(self) -> None:
        self._scan_of: dict[int, ScanId | None] = {}
        self._kept_tasks: list[Task] = []
        self._loaded_place = {f.path: i for i, f in enumerate(self.loaded.segments)}
        end = max((f.start + f.size for f in self.segment_files), default=0)
        ext = {
            key: tuple(numbered_files(self.tree, f"{EXT}/{folder.partition('/')[2]}"))
            for key, folder in self.queue_folders.items()
        }
        quick = self.request.level == "quick"
        refs = () if quick else tuple(self._index_ref(i) for i in range(len(self.index_files)))
        plain = {k: v for k, v in self.queue_files.items() if v and self.queue_folders[k].startswith(QUEUES + "/")}
        batch = {k: v for k, v in self.queue_files.items() if v and self.queue_folders[k].startswith(BATCH_QUEUES + "/")}
        self._base_task = SegmentTask(
            store=self.request.store,
            path="",
            base_offset=0,
            size=0,
            location=self.request.location,
            rules=self.rules,
            batch_topics=self.batch_topics,
            queue_files=plain,
            expect_queues=not self.unmodelled,
            batch_queue_files=batch,
            ext_files={k: v for k, v in ext.items() if v},
            index_files=refs,
            lmq=self.rules.multi_dispatch,
            log_end=end,
            unclean=self.unclean,
            window_bytes=self.request.window_bytes,
            decoder=self.request.decoder,
        )

    def _edge_tasks(self) -> list[EdgeTask]:
        request = self.request
        return edge_tasks(request.store, request.location, self.rules, self.segment_files, EDGES_TOGETHER)

    def _chosen(self) -> list[MappedFile]:
        """The segments to read, the most needed first: damaged ones, those at which recovery will begin, those that no run has
        verified, and then the one that was verified longest ago. At the quick level only what the fold asks for later."""
        if self.request.level == "quick":
            return []
        newest = {f.path for f in self.loaded.segments[-RECOVERED_SEGMENTS:]}

        def rank(file: MappedFile) -> tuple[int, float, int, str]:
            known = self.unchanged(file.path)
            verified = known is not None and known.verified_run and known.verified_at
            since = known.verified_at.timestamp() if verified and known is not None and known.verified_at else 0.0
            order = 0 if self._was_damaged(file.path) else 1 if file.path in newest else 3 if verified else 2
            return order, since, file.start, file.path

        return sorted((f for f in self.segment_files if not self.reused(f.path)), key=rank)

    def unchanged(self, path: str) -> EarlierSegment | None:
        """What the run before says of a segment whose length, time and edges are still the same."""
        known, entry, edges = self._known(path), self.listing.get(path), self.edges.get(path)
        if known is None or entry is None or edges is None or not known.edge_digest or not self._same_rules:
            return None
        same = (known.size, known.modified_ns, known.edge_digest) == (entry.size, entry.mtime_ns, edges.digest)
        return known if same else None

    def reused(self, path: str) -> bool:
        """Whether a segment need not be read because an earlier run has verified it."""
        return self.request.reuse and self._verified(path) and self._derived_unchanged()

    def _verified(self, path: str) -> bool:
        known = self.unchanged(path)
        return known is not None and not known.damaged and bool(known.verified_run)

    def _derived_unchanged(self) -> bool:
        """Whether the ConsumeQueue entries and index files that the earlier run has compared are still those, but for what has
        been added: only then are those of segments that are not read again known to be right."""
        if self._derived is None:
            before = self.request.earlier
            assert before is not None
            gone = any(
                self.listing.get(path) is None for path in before.segments
            )  # then retention may have taken files of theirs
            newest = max(before.index, default="")
            self._derived = (
                all(self._found_again(*finding) for finding in before.derived)
                and all(
                    key in self.queues
                    and not self.queues[key].changed
                    and not self.queues[key].problem
                    and (gone or all(entries == 0 or path in self.queues[key].digests for path, entries, _ in files))
                    for key, files in before.queues.items()
                    if files and not (gone and key not in self.queue_folders)
                )
                and all(
                    (path in self.index and (path == newest or self.index[path].digest == digest))
                    or gone
                    and path not in self.tree.by_path
                    for path, digest in before.index.items()
                )
            )
        return self._derived

    def _found_again(self, file: str, phy_offset: int | None, count: int) -> bool:
        """Whether a disagreement of derived data that the earlier run found is about a segment that is read again."""
        if phy_offset is None or count > 1 and not file.startswith(INDEX + "/"):
            return False
        segment = next((f for f in self.segment_files if f.start <= phy_offset < f.start + f.size), None)
        return segment is not None and not self._verified(segment.path)

    def _known(self, path: str) -> EarlierSegment | None:
        return self.request.earlier.segments.get(path) if self.request.earlier is not None else None

    @cached_property
    def _same_rules(self) -> bool:
        """Whether the earlier run judged by the same rules. One by others may have taken for sound what is not."""
        before = self.request.earlier
        now = {key: str(setting.value) for key, setting in self.rules.settings.items()}
        return before is not None and (before.release, before.settings) == (self.request.release, now)

    def _was_damaged(self, path: str) -> bool:
        known = self._known(path)
        return known is not None and known.damaged

    @property
    def unread(self) -> list[MappedFile]:
        """The segments of which nothing was read in this run but their edges."""
        return [f for f in self.segment_files if f.path not in self._by_path]

    def _unread_behind(self, phy_offset: int) -> list[MappedFile]:
        """Segments that were not read and reach beyond the cut: their messages are lost."""
        return [f for f in self.segment_files if f.path not in self._by_path and f.start + f.size > phy_offset]

    def _segment_tasks(self, files: Sequence[MappedFile]) -> list[Task]:
        tasks: list[Task] = []
        for file in files:
            number = self._loaded_place.get(file.path)
            not_after = 0.0 if self._was_damaged(file.path) else self.request.not_after
            task = replace(self._base_task, path=file.path, base_offset=file.start, size=file.size, not_after=not_after)
            self._scan_of[id(task)] = ScanId("segment", number) if number is not None else None
            self._kept_tasks.append(task)
            tasks.append(task)
        return tasks

    def _index_ref(self, number: int) -> IndexFileRef:
        file = self.index_files[number]
        header = self.headers[file.path]
        before = self.headers[self.index_files[number - 1].path].end_time if number else 0
        return IndexFileRef(
            path=file.path,
            size=file.size,
            begin_phy_offset=header.begin_phy,
            end_phy_offset=header.end_phy,
            begin_timestamp=header.begin_time,
            index_count=header.index_count,
            slots=self.rules.index_slots,
            max_entries=self.rules.index_max,
            previous_end_timestamp=before,
            end_timestamp=header.end_time,
            may_be_torn=self.unclean and number == len(self.index_files) - 1,
        )

    def _scan_task(self, scan: ScanId) -> Task:
        file = self.loaded.segments[scan.segment]
        cuts = self.needs.cuts(scan)
        task = replace(
            self._base_task,
            path=file.path,
            base_offset=file.start,
            size=file.size,
            cuts=cuts,
            index_marks=tuple(sorted(self.needs.marks.get(scan, ()))),
            # Of what was read already a second look is a little more, and decides the plan.
            not_after=0.0 if file.path in self._by_path else self.request.not_after,
        )
        if scan.kind == "from":
            task = replace(task, broker_from=scan.start, walk_audit=False)
        elif scan.kind == "reput":
            task = replace(task, reput=(scan.start, scan.limit))
        self._scan_of[id(task)] = scan
        self._kept_tasks.append(task)  # so that its id stays its own
        return task

    def _queue_tasks(self) -> list[Task]:
        tasks: list[Task] = []
        group: list[QueueTask] = []
        size = 0
        log_min = min((f.start for f in self.segment_files), default=-1)
        for key, folder in sorted(self.queue_folders.items()):
            loaded = self.loaded.queues.get(key)
            mapped = loaded if loaded is not None and not self.loaded.refusal else None
            task = QueueTask(
                self.request.store,
                key,
                self.request.location,
                tuple(mapped.files) if mapped else (),
                self.queue_files[key],
                tuple(mapped.ext_files) if mapped else (),
                folder.startswith(BATCH_QUEUES + "/"),
                bool(self.rules.value("enableConsumeQueueExt")),
                log_min,
                last_only=self.request.level == "quick",
                known=self.request.earlier.queues.get(key, ()) if self.request.earlier is not None else (),
            )
            group.append(task)
            size += sum(f.size for f in task.audit_files)
            if size >= QUEUE_GROUP_BYTES or len(group) >= QUEUE_GROUP_COUNT:
                tasks.append(QueueGroup(tuple(group), self.request.not_after))
                group, size = [], 0
        if group:
            tasks.append(QueueGroup(tuple(group), self.request.not_after))
        return tasks

    def _index_tasks(self) -> list[Task]:
        tasks: list[Task] = []
        if self.request.level == "quick":  # a broker reads nothing of an index file but its header
            return tasks
        before: IndexHeader | None = None
        for file in self.index_files:
            tasks.append(
                IndexTask(
                    self.request.store,
                    self.request.location,
                    self.rules,
                    file.path,
                    file.size,
                    newest=file is self.index_files[-1],
                    unclean=self.unclean,
                    previous_end=(before.end_time, before.end_phy) if before is not None else None,
                    not_after=self.request.not_after,
                )
            )
            before = self.headers[file.path]
        return tasks

    # ---- the diff --------------------------------------------------------------------------------------------------

    def _view_queues(self) -> None:
        if self.views:
            return
        self.views = store_diff.queue_views(
            self.segments,
            self.queues,
            self.queue_files,
            self.queue_folders,
            self.batch_topics,
            None if self.config.topics is None else frozenset(self.config.topics),
            self.rules.multi_dispatch,
        )
        damaged = any(self._was_damaged(s.path) for s in self.segments)  # then any entry may lead to what is gone there
        if self.unread and not (self.request.level == "full" and damaged):
            for view in self.views.values():
                # Entries before those of the first message that was read lead to what was not.
                known = [*view.covered[:1], *view.missing[:1]]
                if view.batch and not view.covered and view.missing and view.summary is not None:
                    # Nothing says where in a BatchConsumeQueue its messages belong but those before them.
                    count, end = total(view.missing), view.summary.used_end
                    view.missing, known = [(end, end + count)], []
                view.leftover = intersect(view.leftover, [(min(known)[0], 1 << 62)]) if known else []

    def _log_map(self) -> LogMap:
        return log_map(self.segments, self.rules.segment_bytes, self.unread)

    def _leftover_tasks(self) -> list[Task]:
        log = self._log_map()
        return [
            LeftoverTask(
                self.request.store,
                self.request.location,
                key,
                view.batch,
                view.files,
                tuple(view.leftover),
                tuple(view.missing),
                tuple(view.covered),
                log,
                self.request.not_after,
            )
            for key, view in sorted(self.views.items())
            if view.leftover
        ]

    def _whole(self, *parts: str) -> bool:
        """Whether everything below these folders was read: only then does it mean something that a thing is not there."""
        if self.broken or self.unmodelled:
            return False
        kinds = ("link_out", "unreadable", "special")
        if any(e.kind in kinds and e.path.partition("/")[0] in parts for e in self.listing.files):
            return False
        return not (
            COMMITLOG in parts
            and any(s.problem for s in self.segments)
            or QUEUES in parts
            and (any(q.problem for q in self.queues.values()) or any(left.problem for left in self.leftovers.values()))
            or INDEX in parts
            and any(i.problem for i in self.index.values())
        )

    def _diff(self) -> None:
        found = self.findings
        log = self._log_map()
        log_whole = self._whole(COMMITLOG)
        whole = not self.unread and self.request.level == "full"
        read_last = self._read_last()
        for file in self.unread[: -UNSETTLED_SEGMENTS or None] if read_last else []:
            found += self.edges[file.path].findings if file.path in self.edges else []
        queues_whole = self._whole(QUEUES, BATCH_QUEUES, EXT)
        named = store_diff.name_findings(self.tree, self.rules) if not self.unmodelled else []
        named = [f for f in named if log_whole or f.code != "segment_missing"]
        blamed = {f.file for f in named}
        found += named
        found += [f for f in store_dir.name_findings(self.listing) if f.file not in blamed]
        found += torn_copies.told_once([f for segment in self.segments for f in segment.findings], self.segments)
        for queue in self.queues.values():
            found += queue.findings
        for index in self.index.values():
            found += index.findings
        if log_whole:
            holes = unwritten(self.segments, self.views, self.leftovers, log)
            found += holes.findings()
            found += empty_findings(self)
            answered = {key: left.answered for key, left in self.leftovers.items()}
            found += store_diff.sequence_findings(self.views, self.segments, log, self.rules, answered)
        for key, view in self.views.items() if queues_whole else ():
            leftover = self.leftovers.get(key)
            found += store_diff.missing_findings(view, self.segments, self.rules, leftover.wrong if leftover else [])
            found += store_diff.shifted_findings(view)
            if log_whole and whole:
                found += store_diff.hole_findings(view)
                found += store_diff.spare_file_findings(view)
            if leftover is not None and log_whole:
                found += leftover.findings
        if log_whole and queues_whole:
            last_time = max((s.last_store_time for s in self.segments), default=0)
            flushed_further = self._read_last() and self.checkpoint.physic_time > last_time
            copied = holes.copied_live(self.checkpoint.physic_time)
            live = live_copy(self.leftovers.values(), log, self.unclean, flushed_further, copied)
            found += store_diff.lost_findings(self.leftovers.values(), self.segments, log, live, self.rules)
        self._settle_index()
        found += self._disputed()
        index_late = any(f.path in self.late for f in self.index_files)
        if log_whole and self._whole(INDEX) and self.request.level == "full" and not index_late:
            ordered = [self.index[f.path] for f in self.index_files if f.path in self.index]
            found += store_diff.unindexed_findings(self.segments, ordered, self.rules, self.unclean)
        if log_whole and read_last:
            times = [(s.first_store_time, s.last_store_time) for s in self.segments if s.first_store_time or s.last_store_time]
            times += [self._time_of_head(file) for file in self.unread]
            first, last = (min(t[0] for t in times), max(t[1] for t in times)) if times else (0, 0)
            found += checkpoint_reader.checkpoint_findings(
                self.checkpoint_file, first_store_time=first, last_store_time=last, log_end=log.data_end, unclean=self.unclean
            )
        found += (
            self.config.findings
            + self.start_files.findings
            + misfit_findings(self.misfits)
            + repaired_findings(self, self.request.location)
        )
        self.incomplete += [c for c in store_dir.changes_since(self.listing) if c not in self.incomplete]
        if not self.incomplete:
            found += self._broker_findings()

    @property
    def end_is_known(self) -> bool:
        """Whether the log's end is what this audit says it is."""
        return not self.failed and self._whole(COMMITLOG) and self._read_last()

    def _read_last(self) -> bool:
        """Whether the newest message of the log was read: only then is anything known to be behind it."""
        data = [s.base_offset for s in self.segments if any(e.kind == EXTENT_MESSAGE for e in s.extents)]
        return not self.unread or bool(data) and max(data) > max(f.start for f in self.unread)

    def _time_of_head(self, file: MappedFile) -> tuple[int, int]:
        """Earliest and latest store time, as far as an unread segment's first record tells; zeros where it does not."""
        known = self.unchanged(file.path)
        if known is not None and known.verified_run and known.row.get("messages"):
            return known.row["first_store_time_ms"], known.row["last_store_time_ms"]
        first = self.edges[file.path].first if file.path in self.edges else None
        return (first.store_time, first.store_time) if first is not None and first.check_ok and not first.blank else (0, 0)

    def _settle_index(self) -> None:
        """Where the comparison with messages blames an entry, the index file's header is not to blame for the same."""
        by_file: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            by_file[finding.file].append(finding)
        for path, summary in self.index.items():
            kept = index_reader.settled(by_file[path], summary, self.rules.index_slots)
            if len(kept) != len(by_file[path]):
                self.findings[:] = [f for f in self.findings if f.file != path] + kept

    def _disputed(self) -> list[Finding]:
        """The messages whose tags code or keys an entry contradicts: header and properties have no checksum, so the message
        may be the one that is wrong."""
        log = self._log_map()
        found: dict[int, Finding] = {}
        for finding in self.findings:
            phy_offset = finding.phy_offset
            if finding.code not in ("queue_entry_wrong", "index_entry_wrong") or phy_offset is None or phy_offset in found:
                continue
            if len(found) >= MAX_DISPUTED or log.kind_at(np.array([phy_offset]))[0] != MESSAGE or finding.count > 1:
                continue
            path, position = log.segment_of(phy_offset)
            try:
                with self.source.open(path) as file:
                    size = int.from_bytes(file.read(position, 4), "big", signed=True)
            except StoreError:  # it changed underneath, which is told elsewhere
                continue
            if 0 < size <= log.range_end(phy_offset) - phy_offset:
                found[phy_offset] = Finding(
                    "message_disputed", path, position, position + size, phy_offset=phy_offset, topic=finding.topic,
                    queue_id=finding.queue_id, queue_offset=finding.queue_offset, actual=f"{finding.file} says otherwise",
                )  # fmt: skip
        return list(found.values())

    def _broker_findings(self) -> list[Finding]:
        p = self.prediction
        if p is None:
            return []
        if not p.starts:
            blamed = self.tree.blamed(p.refusal)
            next_step = CONFIG_STEP if blamed.startswith("config/") else ""
            return [Finding("broker_refuses", blamed, message=p.refusal, next=next_step)]
        found: list[Finding] = []
        assert p.after_dispatch is not None and self.loss is not None
        cut = sum(q.cut for q in self.loss.by_queue.values())
        if cut:
            name = f"commitlog/{p.stop_segment}"
            found.append(
                Finding(
                    "broker_drops_messages",
                    name,
                    p.stop_position,
                    p.stop_position + 8,
                    phy_offset=p.truncate_at,
                    expected="the scan continues",
                    actual=p.stop_reason,
                    count=cut,
                    message=f"a start cuts the log at {p.truncate_at:,} and loses {count_text(cut, 'valid message')}",
                )
            )
        for key, lost in sorted(self.loss.by_queue.items()):
            if lost.messages > lost.cut:
                folder = self.views[key].folder if key in self.views else queue_folder(False, key)
                found.append(
                    Finding(
                        "broker_skips_messages",
                        folder,
                        topic=key[0],
                        queue_id=key[1],
                        count=lost.messages - lost.cut,
                        message=f"a start leaves {count_text(lost.messages - lost.cut, 'message')} without a queue entry",
                    )
                )
        if p.hangs_at >= 0:
            found.append(Finding("broker_hangs", "commitlog", phy_offset=p.hangs_at, message="a start waits here and never ends"))
        ends = {key: q.max_offset for key, q in p.after_dispatch.queues.items()}
        losing = {key for key, q in self.loss.by_queue.items() if q.messages}
        self.groups = config_reader.groups_beyond(self.config, ends)
        self.delays = config_reader.delays_beyond(self.config, ends)
        for row in self.groups:
            file = self.config.offset_file((row["group"], row["topic"], row["queue_id"]))
            severity = REBUILDABLE if (row["topic"], row["queue_id"]) in losing else NOTE
            found.append(
                Finding(
                    "consumer_offset_beyond_end",
                    file,
                    *self._whole_file(file),
                    severity=severity,
                    topic=row["topic"],
                    queue_id=row["queue_id"],
                    queue_offset=row["offset"],
                    expected=f"at most {row['new_max']}",
                    actual=str(row["offset"]),
                    message=f"group {row['group']}",
                )
            )
        file = self.config.read_from.get(config_reader.DELAY_OFFSETS, config_reader.DELAY_OFFSETS)
        for row in self.delays:
            found.append(
                Finding(
                    "delay_offset_beyond_end",
                    file,
                    *self._whole_file(file),
                    severity=NOTE,
                    queue_offset=row["offset"],
                    expected=f"at most {row['new_max']}",
                    actual=str(row["offset"]),
                    message=f"delay level {row['level']}",
                )
            )
        return found

    def _whole_file(self, path: str) -> tuple[int | None, int | None]:
        """The range of a whole file, where no smaller one is known."""
        entry = self.listing.get(path)
        return (0, entry.size) if entry is not None else (None, None)

    # ---- outcome ---------------------------------------------------------------------------------------------------

    def outcome(self) -> AuditOutcome:
        """All results. Deterministic but for `seconds`."""
        try:
            return self._outcome()
        except Exception as fault:  # one store's must not end the others' audit
            self.failed = True
            self._fault(fault)
            return self._outcome()

    def _outcome(self) -> AuditOutcome:
        request = self.request
        out = AuditOutcome(
            request.name,
            request.location.root,
            request.release,
            3,
            False,
            list(dict.fromkeys(self.incomplete)),
            release_from=request.release_from,
            settings_from=NAMED if request.broker_conf is not None else DEFAULT,
            replica_group=request.replica_group,
        )
        out.seconds = time.monotonic() - self._began
        if self.failed:
            out.plan = self._empty_plan()
            out.verdict = f"Could not be audited: {out.incomplete[0]}"
            return out
        written = self.written_by()
        out.written_by = "" if request.release_from != DEFAULT or written.holds(request.release) else written.range_text()
        out.premises = premises(
            request.release,
            request.release_from,
            written,
            self.rules.settings,
            request.broker_conf is not None,
            [misfit.sentence for misfit in self.misfits],
        )
        out.not_judged = list(self.start_files.names)
        out.level, out.not_read = request.level, self._not_read()
        out.incomplete += self._not_read_sentences(out.not_read)
        out.complete = not out.incomplete
        out.findings, out.findings_dropped = self._final_findings()
        for finding in out.findings:
            out.counts[finding.severity] = out.counts.get(finding.severity, 0) + 1
        highest = max([_RANK[f.severity] for f in out.findings] + [0])
        out.exit_code = 20 if highest == 20 else 3 if not out.complete else highest
        out.bytes_read = self.bytes_read
        out.plan = self._plan(out.findings)
        out.loss = self._loss_rows()
        out.segments = segment_rows(self)
        out.queues = queue_rows(self)
        out.index_files = index_rows(self)
        for segment in self.segments:
            out.messages += sum(e.message_count for e in segment.extents)
            out.damaged_extents += sum(e.kind == EXTENT_DAMAGED for e in segment.extents)
        times = [(s.first_store_time, s.last_store_time) for s in self.segments if s.last_store_time]
        for file in self.unread:
            known = self.unchanged(file.path) if self.reused(file.path) else None
            if known is not None and known.row.get("messages"):
                out.messages += known.row["messages"]
                times.append((known.row["first_store_time_ms"], known.row["last_store_time_ms"]))
        if times:
            out.first_store_time, out.last_store_time = min(t[0] for t in times), max(t[1] for t in times)
        out.segment_count = len(self.segment_files)
        out.unclean = self.unclean
        out.checkpoint = asdict(self.checkpoint) if self.checkpoint_file.present else {}
        out.log_end = log_end(self.segments) if self.end_is_known else None
        out.furthest, out.replicas = self.furthest, self.replicas
        out.verdict = verdict_sentence(out, self.prediction if not self.incomplete else None, self.loss)
        return out

    def _empty_plan(self) -> Row:
        return {
            "schema_version": 1,
            "store": self.request.name,
            "release": self.request.release,
            "release_from": self.request.release_from,
            "complete": False,
            "settings": {},
            "inputs": [],
            "broker": None,
            "steps": [],
        }

    def _final_findings(self) -> tuple[list[Finding], dict[str, int]]:
        dropped: dict[str, int] = defaultdict(int)
        holders: list[SegmentSummary | QueueSummary | IndexFileSummary | LeftoverResult] = []
        holders += [*self.segments, *self.queues.values(), *self.index.values(), *self.leftovers.values()]
        for holder in holders:
            for code, count in holder.findings_dropped.items():
                dropped[code] += count
        final = []
        for finding in with_cause(self.findings, self.misfits):
            entry = CATALOGUE[finding.code]
            raised = finding.severity not in ("", NOTE) and entry.severity == NOTE
            final.append(
                replace(
                    finding,
                    severity=finding.severity or entry.severity,
                    next=finding.next or (LOOK_FIRST if raised else entry.next),
                    message=finding.message or entry.meaning,
                )
            )
        final = sorted(set(final), key=_finding_order)
        if len(final) > MAX_FINDINGS:  # the gravest are told; the others are counted
            ranked = sorted(final, key=lambda f: -_RANK[f.severity])
            for finding in ranked[MAX_FINDINGS:]:
                dropped[finding.code] += 1
            final = sorted(ranked[:MAX_FINDINGS], key=_finding_order)
        return final, dict(sorted(dropped.items()))

    def _plan(self, findings: Sequence[Finding]) -> Row:
        broker: Row | None = None
        if self.prediction is not None and not self.incomplete:
            broker = self.prediction.broker_section()
            if self.prediction.starts and self.loss is not None:
                broker["lost"] = {
                    "messages": self.loss.messages,
                    "bytes": self.loss.bytes,
                    "by_queue": [
                        {
                            "topic": key[0],
                            "queue_id": key[1],
                            "messages": q.messages,
                            "first_store_time": iso_time(q.first_store_time),
                            "last_store_time": iso_time(q.last_store_time),
                        }
                        for key, q in sorted(self.loss.by_queue.items())
                    ],
                }
        not_read = self._not_read()
        return {
            "schema_version": 1,
            "store": self.request.name,
            "release": self.request.release,
            "release_from": self.request.release_from,
            "complete": not self.incomplete and not self._not_read_sentences(not_read),
            **({"not_read": not_read} if not_read else {}),
            **({"not_judged": self.start_files.names} if self.start_files.names else {}),
            "settings": {k: {"value": s.value, "from": s.origin} for k, s in sorted(self.rules.settings.items())},
            "inputs": self._inputs(),
            "broker": broker,
            "steps": plan_steps(self, findings),
        }

    def _inputs(self) -> list[Row]:
        """Every file that the plan depends on, with a digest that notices a changed byte."""
        rows = {s.path: (s.size, s.digest) for s in self.segments}
        for file in [*self.unread, *(f for files in self.queue_files.values() for f in files), *self.index_files]:
            known = self.unchanged(file.path) if self.reused(file.path) else None
            rows.setdefault(file.path, (file.size, known.row.get("digest") or "" if known is not None else ""))
        for queue in self.queues.values():
            for path, digest in queue.digests.items():
                entry = self.listing.get(path)
                rows[path] = (entry.size if entry else 0, digest)
        for index in self.index.values():
            rows[index.path] = (index.size, index.digest)
        small = [checkpoint_layout.CHECKPOINT_FILE, checkpoint_layout.ABORT_FILE]
        small += [e.path for e in self.tree.children("config") if e.kind == "file"]
        # Whatever load() looks at by its name alone: files that stop it, or that it skips.
        looked_at = (COMMITLOG, QUEUES, BATCH_QUEUES, EXT, INDEX)
        small += [e.path for e in self.listing.files if e.path not in rows and e.path.partition("/")[0] in looked_at]
        for path in small:
            if self.listing.is_file(path):
                try:
                    data = self.source.read_small(path, config_reader.MOST_BYTES)
                except StoreError:
                    continue
                rows[path] = (len(data), digest_of(data))
        return [{"file": path, "size": size, "digest": digest} for path, (size, digest) in sorted(rows.items())]

    def _not_read(self) -> Row:
        """How much was not read in this run; see AuditOutcome."""
        reused = {f.path for f in self.unread if self.reused(f.path)}
        segments = [f for f in self.unread if f.path not in reused]
        kept = [f for f in self.unread if f.path in reused]
        read = {path for queue in self.queues.values() for path in queue.digests}
        queues = [f for files in self.queue_files.values() for f in files if f.path not in read]
        index = [f for f in self.index_files if f.path not in self.index]
        if self.request.whole or not (segments or kept or queues or index):
            return {}
        return {
            "segments": len(segments),
            "segment_bytes": sum(f.size for f in segments),
            "queue_files": len(queues),
            "queue_bytes": sum(f.size for f in queues),
            "index_files": len(index),
            "index_bytes": sum(f.size for f in index),
            "reused_segments": len(kept),
            "reused_bytes": sum(f.size for f in kept),
            "since": self.request.earlier.run_id if kept and self.request.earlier is not None else None,
        }

    def _not_read_sentences(self, not_read: Row) -> list[str]:
        """What makes the audit incomplete although nothing went wrong."""
        parts = []
        for count, size, noun in (
            ("segments", "segment_bytes", "CommitLog segment"),
            ("queue_files", "queue_bytes", "ConsumeQueue file"),
            ("index_files", "index_bytes", "index file"),
        ):
            number = not_read.get(count, 0)
            if number:
                all_files = {"segments": self.segment_files, "index_files": self.index_files}.get(count)
                total = len(all_files) if all_files is not None else sum(map(len, self.queue_files.values()))
                parts.append(f"{number:,} of {count_text(total, noun)} ({not_read[size]:,} bytes)")
        why = "level quick reads what a starting broker reads" if self.request.level == "quick" else "the time limit was reached"
        sentences = list(self.incomplete_on_purpose)
        if parts:
            sentences.insert(0, f"not read ({why}): {', '.join(parts)}")
        elif self.request.level == "quick":
            sentences.insert(0, f"not everything was compared: {why}")
        return sentences

    def _loss_rows(self) -> Row:
        topics: dict[str, Row] = {}
        if self.loss is not None:
            for (topic, _), lost in sorted(self.loss.by_queue.items()):
                row = topics.setdefault(
                    topic, {"topic": topic, "messages": 0, "first_store_time": lost.first_store_time, "last_store_time": 0}
                )
                row["messages"] += lost.messages
                row["first_store_time"] = min(row["first_store_time"], lost.first_store_time)
                row["last_store_time"] = max(row["last_store_time"], lost.last_store_time)
        return {
            "messages": self.loss.messages if self.loss else 0,
            "bytes": self.loss.bytes if self.loss else 0,
            "by_topic": list(topics.values()),
            "groups": getattr(self, "groups", []),
            "delay_levels": getattr(self, "delays", []),
        }


def digest_of(data: bytes) -> str:
    """The digest of a small file in plan.json."""
    return "blake2b-128:" + hashlib.blake2b(data, digest_size=16).hexdigest()


def iso_time(milliseconds: int) -> str | None:
    """UTC with milliseconds; None for what no calendar holds."""
    if not -62_135_596_800_000 <= milliseconds <= 253_402_300_799_999:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return str(np.datetime64(seconds, "s")) + f".{rest:03d}Z"


def _finding_order(finding: Finding) -> tuple[Any, ...]:
    def known(value: int | None) -> int:
        return -1 if value is None else value

    return (
        finding.file,
        known(finding.start),
        known(finding.end),
        finding.code,
        known(finding.phy_offset),
        finding.topic or "",
        known(finding.queue_id),
        known(finding.queue_offset),
        finding.expected or "",
        finding.actual or "",
        finding.message,
        finding.count,
    )
