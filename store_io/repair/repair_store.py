"""The repair of one store: copy, audit the copy, edit its log, rebuild what is derived, audit again, put into place.

    outcome = repair(request, run_tasks)

All work is done on a copy beside the target; tasks (of the audits, and `rebuild`'s) are independent of one another and run
wherever `run_tasks` runs them. Only a copy whose own audit finds nothing above a note, but for what the report names, is renamed
into place. What the broker's own recovery gets wrong, and what is done about it: pitfalls.md, A to D.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from schemas import checkpoint_layout, commitlog_layout, consumequeue_layout
from schemas.rows import EXTENT_MESSAGE, NOTE, RUN_LMQ, WALK_AUDIT, AuditOutcome, Finding, QueueKey, Row
from store_io.audit.audit_store import AuditRequest, StoreAudit
from store_io.audit.checks import given_up
from store_io.base.errors import StoreError
from store_io.base.tasks import Task
from store_io.explore.manifest import manifest_row
from store_io.formats import config_reader
from store_io.formats.commitlog import bridges
from store_io.formats.consumequeue_reader import read_file_entries
from store_io.repair import repair_log, repair_offsets, repair_plan, repair_queues
from store_io.repair.donor import Donor
from store_io.repair.rebuild import BuildTask, LinkTask, QueueBuild, fill_entries, last_store_time
from store_io.repair.repair_copy import check_source, copy_store, removed
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.repair_queues import Damage, QueuePlan
from store_io.repair.store_writer import StoreWriter, WriteFailed
from store_io.repair.trial_writer import TrialWriter, Writer
from store_io.rules.loading import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES, Tree, is_folder, queue_folder, segments_of
from store_io.rules.releases import BrokerRules
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store

BROKER, SALVAGE = "broker", "salvage"
MAX_UNBLOCKED = 50
# Files in config/ without which a broker starts and goes on; of topics, groups and consumer offsets no repair lets go.
_SPARE_CONFIG = (
    config_reader.DELAY_OFFSETS,
    "config/consumerFilter.json",
    "config/consumerOrderInfo.json",
    "config/timermetrics",
)
MOST_ROUNDS = 3  # of rebuilding what an audit blames
PAD_BEFORE_MS = 3001  # a crash recovery begins at a segment whose first message is that much older than the checkpoint
# What an audit says of a message itself: no rebuilding changes it, and nothing is served wrongly. The second kind only where the
# source's audit has said the same.
MESSAGE_CODES = frozenset(
    "properties_malformed message_header_odd queue_offset_wrong queue_offset_back store_time_back store_time_odd "
    "config_damaged".split()
)
KNOWN_CODES = frozenset(
    "message_disputed consumer_offset_beyond_end delay_offset_beyond_end message_lost segment_missing queue_offset_gap".split()
)

RunTasks = Callable[[Sequence[Task], str], list[Any]]


@dataclass(frozen=True)
class RepairRequest:
    """What to do. settings: where they come from, a sentence for the report."""

    name: str
    location: StoreLocation
    target: str
    plan: RepairPlan
    policy: str = BROKER
    donor: StoreLocation | None = None
    fix_offsets: bool = False
    settings: str = "the plan's"
    window_bytes: int = 4 << 20


@dataclass
class RepairOutcome:
    """What was done. exit_code: 0 done and consistent; 10 or 20: the result was not consistent, and nothing was put in place.

    report: repair.json, plain data.  final: the audit of the new store.
    """

    exit_code: int
    report: Row = field(default_factory=dict)
    final: AuditOutcome | None = None


def repair(
    request: RepairRequest,
    run_tasks: RunTasks,
    keep: Callable[[Row], None] = lambda report: None,
    forget: Callable[[], None] = lambda: None,
    progress: Callable[[str], None] = lambda sentence: None,
) -> RepairOutcome:
    """Repair into `request.target`. Raises StoreError where nothing could be done; then nothing is left.

    keep: given the report of a repair that succeeded, just before the new store is put into place; no other run places anything
    there meanwhile.  forget: takes the report back where that failed.  progress: told what is done next.
    """
    check_source(request.location, request.plan.broker_conf)
    with StoreWriter.beside(request.target) as writer:
        outcome = _Repair(request, writer, run_tasks, progress).run()
        if outcome.exit_code == 0:
            progress("writing it to the disk")
            writer.flush()
            with writer.placing():
                try:
                    keep(outcome.report)
                    writer.publish()
                except BaseException:
                    if not writer.published:
                        forget()
                    raise
        return outcome


def preview(
    request: RepairRequest, run_tasks: RunTasks, scratch: str, progress: Callable[[str], None] = lambda sentence: None
) -> RepairOutcome:
    """What `repair` would do, down to every number of its report, by doing it on a `TrialWriter`.

    The report also has `free_bytes`, and `other_policy`: how many messages that one would keep.  scratch: a folder for what is
    worked out (rebuilt queues and index files, a donor's messages), which goes when this is done.
    """
    check_source(request.location, request.plan.broker_conf)
    try:
        with TrialWriter.beside(request.target, scratch, request.location) as writer:
            outcome = _Repair(request, writer, run_tasks, progress).run()
            outcome.report["free_bytes"] = writer.free_bytes()
            return outcome
    except WriteFailed as problem:
        raise WriteFailed(f"{scratch}, where a dry run keeps what it works out: {problem}") from None


class _Repair:
    def __init__(self, request: RepairRequest, writer: Writer, run_tasks: RunTasks, progress: Callable[[str], None]):
        self.request, self.writer, self.run_tasks, self.progress = request, writer, run_tasks, progress
        self.report: Row = {
            "schema_version": 1, "policy": request.policy, "release": request.plan.release, "settings": request.settings,
            "plan_sha256": request.plan.sha256,
        }  # fmt: skip
        self.tell_other = isinstance(writer, TrialWriter)
        self.unblocked: list[str] = []
        self.touched = False
        self.queue_plans: list[QueuePlan] = []
        self.donor: Row | None = None
        self.index: Row = {"files": 0, "entries": 0, "reasons": []}

    def plan(self) -> StoreAudit:
        """Copy the store, take away what is in the way, and decide on the log (`self.log`); the audit that tells."""
        self.progress("copying")
        self.report["needed_bytes"], self.not_copied = copy_store(self.request.location, self.writer)
        self.progress("auditing the copy")
        first = self._audit(self.request.plan.broker_conf, self.location)
        self._check(first)
        self.rules: BrokerRules = first.rules
        self.conf = repair_plan.properties_text({k: s.value for k, s in first.rules.settings.items()})
        first = self._unblock(first)
        first = self._heal(first)
        self.log = self._plan_log(first, self.request.policy)
        self.before = first
        return first

    def run(self) -> RepairOutcome:
        first = self.plan()
        if self.tell_other:
            self.report["other_policy"] = self._other_policy(first)
        repair_log.apply_edits(self.writer, self.log.edits, self.rules)
        self._declare_clean(first)
        second = first
        holding = {s.path for s in first.segments if any(e.kind == EXTENT_MESSAGE for e in s.extents)}
        if any(edit.action != "remove" or edit.path in holding for edit in self.log.edits):
            self.progress("auditing the repaired log")
            second = self._audit(self.conf, self.location)
        # Where the log's messages stay as they are the first audit tells what to rebuild; what counts only after a clean stop
        # comes in a second round.
        for _ in range(MOST_ROUNDS):
            self._rebuild(second)
            self._write_checkpoint(second)
            final = self._final_audit() if self.touched or self.log.edits else second
            if self._cut_again(final):
                self._pad(final)
                final = self._final_audit()
            outcome = self._judge(first, final)
            if outcome.exit_code == 0 or final is second:
                break
            second = final
        if outcome.exit_code == 0:
            self._offsets(final)
        self.report["digests"] = self._digests()
        self.report["log_tail"] = self._log_tail()
        return outcome

    def _log_tail(self) -> Row:
        """By which an audit knows the new store again."""
        tree = Tree(list_store(self.location).files)
        return given_up.log_tail(open_source(self.location), segments_of(tree), self.log.end)

    def _digests(self) -> list[Row]:
        """SHA-256 of the small files that were written. Of the large ones it would take another second for each GB, which
        `manifest` does for whoever wants it."""
        source, found = open_source(self.location), []
        for path in sorted({checkpoint_layout.CHECKPOINT_FILE, *self.report.get("offsets_set_back", [])}):
            if path in Tree(list_store(self.location).files).by_path:
                row = manifest_row(source, path)  # positions may be many, so it is read in parts
                found.append({"file": path, "size": row.size, "sha256": row.digest})
        return found

    @property
    def location(self) -> StoreLocation:
        """Where the new store is read while it is made."""
        return self.writer.location

    def _final_audit(self) -> StoreAudit:
        """The audit of the new store, while what was written goes to the disk."""
        self.progress("auditing the new store")
        with ThreadPoolExecutor(1) as threads:
            flushed = threads.submit(self.writer.flush)
            final = self._audit(self.conf, self.location)
            flushed.result()
        return final

    # ---- audits ----------------------------------------------------------------------------------------------------

    def _audit(self, conf: str | None, location: StoreLocation) -> StoreAudit:
        request = self.request
        asked = AuditRequest(request.name, location, request.plan.release, conf, window_bytes=request.window_bytes)
        audit = StoreAudit(asked)
        tasks = audit.first_tasks()
        while tasks:
            tasks = audit.next_tasks(self.run_tasks(tasks, "audit"))
        self.outcome = audit.outcome()
        return audit

    def _check(self, audit: StoreAudit) -> None:
        """The audit of the copy must find what the plan promises."""
        wrong = repair_plan.differences(self.request.plan, self.outcome.plan)
        if wrong:
            more = f" (and {len(wrong) - 1} more differences)" if len(wrong) > 1 else ""
            raise StoreError(f"the store is not the one that the plan was made from: {wrong[0]}{more}")
        if not self.outcome.complete or audit.failed:
            raise StoreError(f"the copy could not be audited: {self.outcome.incomplete[0]}")

    def _unblock(self, audit: StoreAudit) -> StoreAudit:
        """Take away what keeps the release from starting, until it would start: nothing that holds a message."""
        for _ in range(MAX_UNBLOCKED):
            prediction = audit.prediction
            if prediction is None or prediction.starts or self.request.policy == SALVAGE:
                break
            path = audit.tree.blamed(prediction.refusal)
            self._unblock_one(audit, path, prediction.refusal)
            self.unblocked.append(prediction.refusal)
            self.touched = True
            audit = self._audit(self.conf, self.location)
            if not self.outcome.complete:
                raise StoreError(f"the copy could not be audited: {self.outcome.incomplete[0]}")
        if self.request.policy == BROKER and (audit.prediction is None or not audit.prediction.starts):
            why = audit.prediction.refusal if audit.prediction is not None else "nothing is predicted"
            raise StoreError(f"under policy broker nothing can be done, as the release would not start: {why}")
        return audit

    def _unblock_one(self, audit: StoreAudit, path: str, refusal: str) -> None:
        top = path.partition("/")[0]
        segment = next((s for s in audit.segments if s.path == path), None)
        if top == COMMITLOG and segment is not None and any(e.kind == EXTENT_MESSAGE for e in segment.extents):
            if segment.size == self.rules.segment_bytes:
                raise StoreError(f"under policy broker nothing can be done, as the release would not start: {refusal}")
            self.writer.resize(path, self.rules.segment_bytes)
        elif path == checkpoint_layout.CHECKPOINT_FILE:
            self._put_checkpoint(0, 0, 0, 0)
        elif path in _SPARE_CONFIG:
            for name in (path, path + ".bak"):
                self.writer.remove(name)
        elif top in (COMMITLOG, INDEX, QUEUES, BATCH_QUEUES, EXT) and "/" in path:
            folder = "/".join(path.split("/")[:3])
            if top in (QUEUES, BATCH_QUEUES) and (
                path not in audit.tree.by_path or audit.tree.is_folder(path) and path == folder
            ):
                self._remove_empty_last(audit, folder)
            else:
                self.writer.remove("/".join(path.split("/")[:3]) if top == EXT else path)
        else:
            raise StoreError(f"under policy broker nothing can be done, as the release would not start: {refusal}")

    def _remove_empty_last(self, audit: StoreAudit, folder: str) -> None:
        files = audit.tree.children(folder)
        self.writer.remove(files[-1].path if files else folder)

    # ---- the log ---------------------------------------------------------------------------------------------------

    def _plan_log(self, audit: StoreAudit, policy: str) -> repair_log.LogPlan:
        limit = None
        if policy == BROKER:
            assert audit.prediction is not None
            limit = audit.prediction.truncate_at
        return repair_log.LogRepair(audit.segments, self.rules, open_source(self.location), audit.tree, limit).run()

    def _other_policy(self, first: StoreAudit) -> Row:
        """What the other policy would keep of the messages: by the same audit where the release starts on the copy as it is."""
        other = SALVAGE if self.request.policy == BROKER else BROKER
        try:
            if first.prediction is not None and first.prediction.starts and not self.unblocked:
                log = self._plan_log(first, other)
            else:
                assert isinstance(self.writer, TrialWriter)
                with self.writer.another() as writer:
                    trial = _Repair(replace(self.request, policy=other), writer, self.run_tasks, self.progress)
                    trial.plan()
                    log = trial.log
        except WriteFailed:
            raise
        except StoreError as problem:
            return {"policy": other, "refused": str(problem)}
        return {"policy": other, "messages": log.messages, "more": log.messages - self.log.messages}

    def _heal(self, audit: StoreAudit) -> StoreAudit:
        """Take damaged ranges from the donor, so that from here on they are no longer there."""
        if self.request.donor is None:
            return audit
        self.progress("taking damaged ranges from the donor")
        donor = Donor(self.request.donor, self.rules)
        self.donor = donor.heal(self.writer, audit.segments, open_source(self.location), audit.tree)
        if not self.donor["taken"]:
            return audit
        self.touched = True
        healed = self._audit(self.conf, self.location)
        if not self.outcome.complete:
            raise StoreError(f"the copy with the donor's messages could not be audited: {self.outcome.incomplete[0]}")
        return self._unblock(healed)

    def _declare_clean(self, audit: StoreAudit) -> None:
        if audit.unclean:
            self.writer.remove(checkpoint_layout.ABORT_FILE)
            self.touched = True

    def _cut_again(self, audit: StoreAudit) -> bool:
        """Whether the release would not take messages that pass every check: its settings, or its age, refuse them."""
        p = audit.prediction
        if p is None or not p.starts or not self.log.end or not self.outcome.complete:
            return False
        return p.truncate_at < self.log.end and p.stop_reason in ("dup_info", "property_crc_missing", "property_crc", "magic")

    def _pad(self, audit: StoreAudit) -> None:
        """Put segments behind the log, each with one record that the release takes: its recovery then reads nothing else.

        A clean start reads the last three segments up to 5.3.1; later the newest one that a ConsumeQueue entry leads into.
        """
        size, queued = self.rules.segment_bytes, self.rules.at_least("5.3.2")
        last = self.log.end - self.log.end % size
        path, at = repair_log.segment_path(last), self.log.end - last
        left = size - at
        if left < commitlog_layout.FRAME_BYTES:
            return
        self.writer.write(path, at, left.to_bytes(4, "big") + commitlog_layout.MAGIC_BLANK_BYTES)
        time = max(1, self._last_time(audit) - PAD_BEFORE_MS)
        entry = next((e for e in audit.tree.all if e.path == path), None)
        base = last
        for number in range(1 if queued else 3):
            base += size
            record = bridges.pad(base, time, self.rules, queued)
            if number:
                filler = (size - len(record)).to_bytes(4, "big") + commitlog_layout.MAGIC_BLANK_BYTES
                self.writer.write(repair_log.segment_path(base - size), len(record), filler)
            self.writer.create(repair_log.segment_path(base), size)
            self.writer.write(repair_log.segment_path(base), 0, record)
            self.writer.set_time(repair_log.segment_path(base), entry.mtime_ns if entry is not None else 1)
            row = {"file": repair_log.segment_path(base), "start": 0, "end": len(record), "phy_offset": base}
            self.log.bridges.append({**row, "kind": "segment", "store_time": time})
        if queued:
            name = f"{QUEUES}/{bridges.TOPIC}/0/{0:020d}"
            self.writer.remove(f"{QUEUES}/{bridges.TOPIC}")
            self.writer.create(name, self.rules.queue_file_bytes)
            self.writer.write(name, 0, struct.pack(consumequeue_layout.ENTRY_FORMAT, base, len(record), 0))
        self.log.end = base + len(record)
        self._put_checkpoint(
            self._last_time(audit), self._index_time(audit), 0, base if self.rules.at_least("5.1.1") else 0,
            base if self.rules.at_least("5.5.0") else 0,
        )  # fmt: skip

    # ---- queues and index ------------------------------------------------------------------------------------------

    def _rebuild(self, audit: StoreAudit) -> None:
        findings = audit.outcome().findings
        serious = [f for f in findings if f.severity != NOTE]
        audit._view_queues()
        queues = self._plan_queues(audit, serious)
        index = self._plan_index(audit, serious)
        self._remove_strays(audit)
        again = {plan.key for plan in queues}
        self.queue_plans = [plan for plan in self.queue_plans if plan.key not in again] + queues
        self._expire(audit, {plan.key for plan in queues if not plan.keep_files})
        self.writer.require(sum((plan.end - plan.first) * _unit(plan) for plan in queues), "the queues need")
        tree = Tree(list_store(self.location).files)
        gone = {f.path for plan in queues for f in plan.keep_files} - tree.by_path.keys()
        for plan in queues:
            plan.keep_files = [f for f in plan.keep_files if f.path not in gone]
            self._prepare_queue(plan, tree)
        builds: dict[QueueKey, QueuePlan] = {p.key: p for p in queues if p.end > p.first}
        tasks: list[Any] = []
        first_key = 1
        for segment in audit.segments:
            keys = self._keys_of(segment)
            wanted = {key: self._build(builds[key], segment.path) for key in segment.queues if key in builds}
            if wanted or index and keys:
                tasks.append(
                    BuildTask(
                        replace(
                            audit._base_task,
                            path=segment.path,
                            base_offset=segment.base_offset,
                            size=segment.size,
                            queue_files={},
                            batch_queue_files={},
                            ext_files={},
                            index_files=(),
                            expect_queues=False,
                            probe=False,
                            digest=False,
                        ),
                        self.writer,
                        wanted,
                        tuple(index),
                        first_key,
                    )
                )
            first_key += keys
        if tasks or queues:
            self.touched = True
        if tasks:
            self.progress("rebuilding queues and index")
            results = self.run_tasks(tasks, "rebuild")
            _raise_faults(results)
            if index and sum(r.keys for r in results) != first_key - 1:
                raise StoreError("the index entries written are not those that the audit counted: a fault of this program")
        for plan in queues:
            size = self._file_bytes(plan)
            for low, high, entry in plan.fills:
                fill_entries(self.writer, plan.folder, size, low, high, entry)
        if index:
            self._link(index, first_key - 1)

    def _plan_queues(self, audit: StoreAudit, serious: Sequence[Finding]) -> list[QueuePlan]:
        folders = {folder: key for key, folder in audit.queue_folders.items()}
        blamed = repair_queues.serious_by_folder(serious, folders)
        damage = Damage(sorted((b["phy_offset"], b["phy_offset"] + b["end"] - b["start"]) for b in self.log.bridges))
        served = self._served()
        plans = []
        for key, view in sorted(audit.views.items()):
            if view.deleted_topic and self.request.policy == BROKER and key not in served:
                continue
            if view.of_other_kind or not _findable(key[0]):
                continue
            refusal = view.summary.refusal if view.summary is not None else ""
            if refusal and not blamed.get(key):
                blamed[key] = [Finding("queue_ext_damaged", view.folder, message=refusal)]
            plan = repair_queues.plan_queue(
                view, audit.segments, blamed.get(key, []), audit.tree, self.rules, self.log.start, damage,
                self.request.policy == SALVAGE,
            )  # fmt: skip
            if plan is not None:
                plans.append(plan)
        return plans

    def _expire(self, audit: StoreAudit, made_anew: set[QueueKey]) -> None:
        """What retention would do with entries of messages below the log's start.

        Whole files of them go, but the last, where the log begins later than the copy's: up to 4.9.8 only a queue's first file
        is looked at for its minimum. And the entry of the message at physical offset 0 must not stay: getMessage takes the
        first segment there is for one that begins at 0 (MappedFileQueue.findMappedFileByOffset).
        """
        later = self.before.prediction is None or self.log.start > max(0, self.before.prediction.min_phy_offset)
        source = open_source(self.location)
        for key, view in audit.views.items():
            summary = view.summary
            if summary is None or not summary.expired_end or self.log.start <= 0 or key in made_anew or not view.files:
                continue
            files = list(view.files)
            while later and len(files) > 1 and files[0].start + files[0].size <= summary.expired_end * view.unit:
                self.writer.remove(files.pop(0).path)
                self.touched = True
            if view.batch:
                continue
            count = min(files[0].size, summary.expired_end * view.unit - files[0].start) // view.unit
            rows = read_file_entries(source, files[0].path, 0, max(0, count))
            found = np.flatnonzero((rows["phy_offset"] == 0) & (rows["size"] != consumequeue_layout.PRE_BLANK_SIZE))
            for number in found.tolist():
                entry = struct.pack(consumequeue_layout.ENTRY_FORMAT, self.log.start - 1, consumequeue_layout.ANSWER_SIZE, 0)
                self.writer.write(files[0].path, number * view.unit, entry)
                self.touched = True

    def _served(self) -> frozenset[QueueKey]:
        """Queues that the release itself would have in memory."""
        prediction = self.before.prediction
        if prediction is None or prediction.after_dispatch is None:
            return frozenset()
        return frozenset(prediction.after_dispatch.queues)

    def _file_bytes(self, plan: QueuePlan) -> int:
        return self.rules.batch_file_bytes if plan.batch else self.rules.queue_file_bytes

    def _build(self, plan: QueuePlan, segment: str) -> QueueBuild:
        start = plan.batch_starts.get(segment, 0) if plan.batch else -1
        return QueueBuild(plan.folder, self._file_bytes(plan), tuple(plan.shifts), start)

    def _prepare_queue(self, plan: QueuePlan, tree: Tree) -> None:
        """Leave of the queue's folder what stays, and make the files that are needed."""
        size, unit = self._file_bytes(plan), _unit(plan)
        kept = {f.path for f in plan.keep_files}
        for entry in tree.children(plan.folder):
            if entry.path not in kept:
                self.writer.remove(entry.path)
        for file in plan.keep_files:
            if plan.keep * unit < file.start + file.size:
                self.writer.zero(file.path, plan.keep * unit - file.start, file.size)
        if not plan.batch:  # its units' addresses stand in the entries that go
            self.writer.remove(f"{EXT}/{plan.folder.partition('/')[2]}")
        if plan.end == plan.first and not plan.keep_files:
            self.writer.remove(plan.folder)
            return
        names = {f.start for f in plan.keep_files}
        if plan.end > plan.first:
            for start in range(plan.first * unit // size * size, plan.end * unit, size):
                if start not in names:
                    self.writer.create(f"{plan.folder}/{start:020d}", size)

    def _remove_strays(self, audit: StoreAudit) -> None:
        """What a broker lists as a queue, or stumbles over, and is none."""
        tree = audit.tree
        for kind in (QUEUES, BATCH_QUEUES, EXT):
            for topic in tree.children(kind):
                if not is_folder(topic):
                    self.writer.remove(topic.path)
                    self.touched = True
                    continue
                for child in tree.children(topic.path):
                    key = audit.queue_folders
                    if not is_folder(child) or kind != EXT and child.path not in key.values():
                        self.writer.remove(child.path)
                        self.touched = True

    # ---- index -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _keys_of(segment: Any) -> int:
        runs = segment.index_runs[segment.index_runs["walk"] & WALK_AUDIT != 0]
        return int(runs["keys"].sum()) if len(runs) else 0

    def _plan_index(self, audit: StoreAudit, serious: Sequence[Finding]) -> list[str]:
        """Paths of the new index files, in order; the old ones are removed. Empty: they stay as they are."""
        blamed = [f for f in serious if f.code.startswith("index_") or f.file.partition("/")[0] == INDEX]
        names = audit.tree.children(INDEX)
        if not blamed:
            return []
        self.touched = True
        self.index = {"files": 0, "entries": 0, "reasons": sorted({f.code for f in blamed})}
        if not self.rules.builds_index:
            for entry in names:
                self.writer.remove(entry.path)
            return []
        total = sum(self._keys_of(s) for s in audit.segments)
        count = -(-total // (self.rules.index_max - 1))
        paths = index_names([e.path for e in names if e.kind == "file"], count, self._last_time(audit))
        self.index |= {"files": len(paths), "entries": total}
        for entry in names:
            self.writer.remove(entry.path)
        for path in paths:
            self.writer.create(path, self.rules.index_file_bytes)
        return paths

    def _link(self, paths: Sequence[str], total: int) -> None:
        capacity = self.rules.index_max - 1
        tasks = []
        before = 0
        for number, path in enumerate(paths):
            count = min(capacity, total - number * capacity)
            tasks.append(LinkTask(self.writer, self.rules, path, count, before))
            before = last_store_time(self.writer.root, self.rules, path, count)
        _raise_faults(self.run_tasks(tasks, "index"))

    # ---- checkpoint ------------------------------------------------------------------------------------------------

    def _last_time(self, audit: StoreAudit) -> int:
        return max((s.last_store_time for s in audit.segments), default=0)

    def _write_checkpoint(self, audit: StoreAudit) -> None:
        """A checkpoint as a clean stop leaves it, where there is a reason to write one."""
        blamed = any(f.file == checkpoint_layout.CHECKPOINT_FILE and f.severity != NOTE for f in audit.outcome().findings)
        if not (self.touched or self.log.edits or blamed):
            return
        self.touched = True
        last = self._last_time(audit)
        stored = self.before.checkpoint
        master = stored.master_flushed_offset if -1 <= stored.master_flushed_offset <= self.log.end else 0
        start = self._last_message(audit)
        self._put_checkpoint(
            last, self._index_time(audit), master, start if self.rules.at_least("5.1.1") else 0,
            start if self.rules.at_least("5.5.0") else 0,
        )  # fmt: skip

    def _put_checkpoint(self, time: int, index: int, master: int, confirmed: int, logics: int = 0) -> None:
        fields = struct.pack(checkpoint_layout.FIELDS_FORMAT, time, time, index, master, confirmed, logics)
        self.writer.put(checkpoint_layout.CHECKPOINT_FILE, fields.ljust(checkpoint_layout.FILE_BYTES, b"\0"))

    def _index_time(self, audit: StoreAudit) -> int:
        """The newest index file's last time: all of it is on the disk, so a crash later need not delete it."""
        source = open_source(self.location)
        newest = [e.path for e in Tree(list_store(self.location).files).children(INDEX) if e.kind == "file"]
        if not newest:
            return 0
        with source.open(newest[-1]) as file:
            return max(0, min(int.from_bytes(file.read(8, 8), "big", signed=True), self._last_time(audit)))

    def _last_message(self, audit: StoreAudit) -> int:
        """Physical offset of the last message, a bridge or not; 0 without one."""
        return max((int(s.index_runs["last_phy_offset"].max()) for s in audit.segments if len(s.index_runs)), default=0)

    # ---- offsets ---------------------------------------------------------------------------------------------------

    def _offsets(self, final: StoreAudit) -> None:
        """Tell which positions lie beyond the new ends, and set them back where that is asked for."""
        p = final.prediction
        if p is None or p.after_dispatch is None:
            return
        ends = {key: queue.max_offset for key, queue in p.after_dispatch.queues.items()}
        listing, source = list_store(self.location), open_source(self.location)
        groups, delays = config_reader.groups_beyond(final.config, ends), config_reader.delays_beyond(final.config, ends)
        rows = repair_offsets.beyond(groups, delays, source, listing, ends, self.log.end)
        self.report["offsets"] = rows
        changed: tuple[list[str], int] = ([], 0)
        if self.request.fix_offsets and rows:
            changed = repair_offsets.set_back(self.writer, source, final.config, rows)
        self.report["offsets_set_back"], self.report["positions_set_back"] = changed
        known = final.config.topics
        self.report["topics_unknown"] = (
            sorted({topic for topic, _ in ends} - set(known) - {bridges.TOPIC}) if known is not None else []
        )

    # ---- judging ---------------------------------------------------------------------------------------------------

    def _judge(self, first: StoreAudit, final: StoreAudit) -> RepairOutcome:
        outcome = final.outcome()
        known = {(f.code, f.phy_offset) for f in first.outcome().findings}
        moved = {(q.key, row["phy_offset"]) for q in self.queue_plans for row in q.moved}
        elsewhere = {q.key for q in self.queue_plans if q.unserved or q.moved}
        kept = [
            f
            for f in outcome.findings
            if f.severity != NOTE
            and (
                f.code in MESSAGE_CODES
                or f.code == "commitlog_emptied"
                and not self.log.messages  # none stays, which the report says
                or f.code in KNOWN_CODES
                and (f.code, f.phy_offset) in known
                or f.code in ("queue_entry_shifted", "queue_entry_unexpected", "queue_entry_twice", "message_disputed")
                and ((f.topic, f.queue_id), f.phy_offset) in moved
                or f.code in ("queue_entry_missing", "broker_skips_messages")
                and (f.topic, f.queue_id) in elsewhere
                or f.code in ("queue_entry_missing", "broker_skips_messages")
                and not _findable(f.topic or "x")
            )
        ]
        left = [f for f in outcome.findings if f.severity != NOTE and f not in kept]
        problems = [f"{f.code}: {f.file} {f.start}: {f.message} {f.expected} {f.actual}" for f in left]
        p = final.prediction
        if not outcome.complete:
            problems += outcome.incomplete
        if p is None or not p.starts:
            problems.append("the release would not start: " + (p.refusal if p else "nothing is predicted"))
        elif p.truncate_at != self.log.end and self.log.edits:
            problems.append(f"the release would end the log at {p.truncate_at}, not at {self.log.end}")
        elif final.loss is not None and (
            lost := sum(q.messages for k, q in final.loss.by_queue.items() if _findable(k[0]) and k not in elsewhere)
        ):
            problems.append(f"the release would lose {lost} messages")
        code = 0 if not problems else 20 if any(f.severity == "loss" for f in left) else 10
        self.report |= {"consistent": not problems, "problems": problems, "kept": [_finding_row(f) for f in kept]}
        self.report |= self._told(first)
        self.report["messages_after"] = outcome.messages
        return RepairOutcome(code, self.report, outcome)

    def _told(self, first: StoreAudit) -> Row:
        """What was decided, for the report."""
        messages, size = self._lost(first)
        return {
            "messages_before": sum(e.message_count for s in first.segments for e in s.extents),
            "lost": {"messages": messages, "bytes": size},
            "given_up": self._given_up(messages),
            "donor": self.donor,
            "zeroed_bytes": self.log.zeroed_bytes,
            "log_end": self.log.end,
            "bridges": self.log.bridges,
            "dropped": self.log.dropped,
            "removed": removed(self.request.location, self.location, {e.path for e in self.log.edits if e.action == "rename"}),
            "unblocked": self.unblocked,
            "not_copied": self.not_copied,
            "queues": [
                {"topic": q.key[0], "queue_id": q.key[1], "folder": q.folder, "reasons": q.reasons, "entries": q.end - q.first}
                for q in self.queue_plans
            ],
            "index": self.index,
            "answered": [row for q in self.queue_plans for row in q.answered],
            "moved": [row for q in self.queue_plans for row in q.moved],
            "unserved": [row for q in self.queue_plans for row in q.unserved],
        }

    def _given_up(self, cut: int) -> Row:
        answered = [row for q in self.queue_plans for row in q.answered]
        earlier = given_up.repaired_findings(self.before, self.request.location)
        findings = [*self.before.outcome().findings, *earlier]
        return given_up.given_up(self.before.leftovers, answered, self.log.dropped, cut, findings)

    def _lost(self, audit: StoreAudit) -> tuple[int, int]:
        """(messages, bytes) of valid messages of the copy that lie behind the new end of the log."""
        messages = size = 0
        for segment in audit.segments:
            for row in segment.runs:
                if row["walk"] & WALK_AUDIT and row["kind"] != RUN_LMQ:
                    if segment.base_offset + int(row["first_position"]) >= self.log.end:
                        messages += int(row["messages"])
                        size += int(row["bytes"])
        return messages, size


def _unit(plan: QueuePlan) -> int:
    return consumequeue_layout.BATCH_ENTRY_BYTES if plan.batch else consumequeue_layout.ENTRY_BYTES


def _findable(topic: str) -> bool:
    """Whether a broker finds the queues of that topic again when it starts: not where its name is no name of a folder."""
    return queue_folder(False, (topic, 0)).split("/")[1] == topic


def _finding_row(finding: Finding) -> Row:
    return {
        "code": finding.code, "file": finding.file, "start": finding.start, "end": finding.end,
        "phy_offset": finding.phy_offset, "topic": finding.topic, "queue_id": finding.queue_id,
        "queue_offset": finding.queue_offset, "message": finding.message,
    }  # fmt: skip


def _raise_faults(results: Sequence[Any]) -> None:
    for result in results:
        sentence = getattr(result, "sentence", None)
        if sentence is not None:
            raise StoreError(f"a task of the repair failed: {sentence}")


def index_names(existing: Sequence[str], count: int, last_time: int) -> list[str]:
    """Names for that many index files: ascending, below every name that a broker makes from now on in any time zone.

    Those that are there are used again; without any they are 14 hours before the last message's time.
    """
    known = sorted(n for n in (p.rpartition("/")[2] for p in existing) if len(n) == 17 and n.isdigit() and n < "3")
    names = known[:count]
    while len(names) < count:
        if names:
            moment = _milliseconds(names[-1]) + 1
        else:
            moment = max(0, last_time - 14 * 3_600_000)
        names.append(_stamp(moment))
    return [f"{INDEX}/{name}" for name in names]


def _stamp(milliseconds: int) -> str:
    text = str(np.datetime64(milliseconds, "ms"))
    return "".join(c for c in text if c.isdigit())[:17]


def _milliseconds(name: str) -> int:
    text = f"{name[:4]}-{name[4:6]}-{name[6:8]}T{name[8:10]}:{name[10:12]}:{name[12:14]}.{name[14:]}"
    try:
        return int(np.datetime64(text, "ms").astype(np.int64))
    except ValueError:
        return 0
