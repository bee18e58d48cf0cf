"""The report of a repair, NEW.repair.json. It says what was asked for, what was decided, what is lost, and by which bytes an
audit recognises the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest

from schemas.layouts import checkpoint_layout
from schemas.repair import (
    ConfigFile,
    DonorReport,
    EmptiedTable,
    FileDigest,
    HealedPlace,
    HealReport,
    LeftMessages,
    QueueMade,
    RepairReport,
    UnservedRange,
)
from store_io.base.errors import StoreError
from store_io.broker.loading import segments_of, when_dispatch_ends
from store_io.checks.repaired_store import MOST_HEALED, log_tail, repaired_findings, stays_of
from store_io.messages.copy_manifest import manifest_row
from store_io.model.queue_runs import left_in, message_runs
from store_io.repair.derived.repair_offsets import CorrectedOffsets
from store_io.repair.kind_repair import Rebuilt
from store_io.repair.log.edits import LogPlan
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_copy import Copied, removed
from store_io.repair.repair_judge import NewStoreVerdict
from store_io.repair.repair_steps import REMOVE, RENAME
from store_io.repair.repair_work import QueueEnds, Work
from store_io.repair.unsaved import LeftOut, Unsaved, find_missing, given_up, not_accounted, segments_left_out

PLAN, COPY_ALONE = "plan", "copy"  # where the steps come from
MOST_ENDS = 40  # queues that are listed for whoever checks the new store after its start


@dataclass
class Begun:
    """The facts that are known before the log is edited.

    audit: of the copy on which the release starts, with the donor's messages and healed records.
    messages: the number of valid ones in the copy as it was.
    donor, healed: None if nobody asked.
    """

    copied: Copied
    audit: Audited
    messages: int
    donor: DonorReport | None
    healed: HealReport | None
    log: LogPlan


@dataclass
class Ended:
    """The end of a repair.

    offsets: those beyond the new ends; none if nothing is put in place.
    """

    final: Audited
    verdict: NewStoreVerdict
    made: Rebuilt
    offsets: CorrectedOffsets = field(default_factory=CorrectedOffsets)


def report(work: Work, begun: Begun, ended: Ended) -> RepairReport:
    """Return the report."""
    request, verdict, offsets = work.request, ended.verdict, ended.offsets
    log, before, made = begun.log, begun.audit, ended.made
    left = left_out(begun)
    messages, size = lost_beyond(before, left)
    messages, size = messages + sum(b.messages for b in work.beyond), size + sum(b.bytes for b in work.beyond)
    answered = [row for q in made.queues for row in q.answered]
    findings = [*before.findings, *repaired_findings(before.evidence, request.location)]
    renamed = {e.step.file for e in log.edits if e.step.action == RENAME}
    written = written_files(work.config) if request.fix_config else []
    return RepairReport(
        policy=request.policy,
        release=request.plan.release,
        settings=request.settings,
        plan_sha256=request.plan.sha256,
        needed_bytes=begun.copied.needed_bytes,
        consistent=verdict.consistent,
        problems=tuple(verdict.problems),
        kept=tuple(verdict.kept),
        stays=stays_of(verdict.kept),
        messages_before=begun.messages,
        messages_after=ended.final.outcome.holds.messages,
        lost=LeftMessages(messages, size),
        given_up=given_up(before.evidence.leftovers, answered, log.dropped, messages, findings, work.lay_beyond),
        donor=begun.donor,
        healed=begun.healed,
        healed_at=_healed_at(begun.healed),
        emptied=tuple(EmptiedTable(file.file, file.lost) for file in work.config if file.emptied),
        zeroed_bytes=log.zeroed_bytes,
        log_end=log.end,
        bridges=tuple(log.bridges),
        dropped=tuple(log.dropped),
        removed=tuple(removed(request.location, work.location, renamed)),
        unblocked=tuple(work.refusals),
        not_copied=tuple(begun.copied.not_copied),
        queues=tuple(QueueMade(*q.key, q.folder, tuple(q.reasons), q.entries) for q in made.queues),
        database=made.database,
        tables=made.tables,
        index=made.index,
        timers=made.timers,
        answered=tuple(answered),
        moved=tuple(row for q in made.queues for row in q.moved),
        unserved=(*(row for q in made.queues for row in q.unserved), *_unfindable(work, ended)),
        offsets=tuple(offsets.beyond),
        offsets_set_back=tuple(offsets.set_back),
        positions_set_back=offsets.positions,
        topics_unknown=tuple(offsets.topics_unknown),
        config=tuple(work.config),
        config_in_copy=before.copy.listing.has_config,
        config_written=request.fix_config,
        digests=_digests(work, [*offsets.set_back, *written]),
        steps_from=COPY_ALONE if work.steps.planned is None else PLAN,
        steps=tuple(work.steps.done),
        log_tail=log_tail(work.source, segments_of(work.tree, work.rules), log.end),
    )


def written_files(config: Iterable[ConfigFile]) -> list[str]:
    """Return the files of config/ that are to be replaced; the others stay as they are."""
    return [each.file for each in config if not each.left_out]


def _unfindable(work: Work, ended: Ended) -> Iterator[UnservedRange]:
    """Yield messages of which no folder of a queue can be made, also with how a broker acts that comes to such a message."""
    prediction = ended.final.prediction
    at_next_start = prediction is not None and bool(prediction.skips)
    for (topic, _), rows in ended.made.unfindable.items():
        end = when_dispatch_ends(topic, work.rules, at_next_start)
        yield from (replace(row, reason="; ".join(filter(None, [row.reason, end]))) for row in rows)


def _healed_at(healed: HealReport | None) -> tuple[HealedPlace, ...]:
    """Return the places of healed records, for a later audit of the new store."""
    records = [row for row in healed.records if row.topic is not None][:MOST_HEALED] if healed is not None else []
    return tuple(HealedPlace(row.phy_offset, row.end - row.start) for row in records)


def unsaved_of(work: Work, begun: Begun, said: RepairReport) -> Unsaved:
    """Return the messages that the new store does not hold, by name.

    said: the report.
    """
    location = work.request.location
    missing, not_named = find_missing(
        begun.audit.evidence.leftovers, said.answered, said.dropped, said.given_up.missing, work.lay_beyond
    )
    cut = said.lost.messages
    if not cut:
        return Unsaved(location, work.rules, missing, not_named)
    left, copy = left_out(begun), begun.audit.segments
    records = left.by_queue(copy).total() + sum(b.records for b in work.beyond)
    changed = begun.donor and begun.donor.taken or begun.healed and begun.healed.records
    segments = segments_left_out(copy, location, left, work.beyond)
    return Unsaved(location, work.rules, missing, not_named, cut, segments, None if changed else records)


def queue_ends(ended: Ended) -> QueueEnds:
    """Return the ends of queues after a start of the new store."""
    p = ended.final.prediction
    queues = p.settled.queues if p is not None and p.settled is not None else {}
    rows = ((*key, queue.min_offset, queue.max_offset) for key, queue in queues.items())
    return QueueEnds(tuple(nsmallest(MOST_ENDS, rows, key=lambda row: (row[2] - row[3], row))), len(queues))


def left_out(begun: Begun) -> LeftOut:
    """Return the valid messages of the copy that the new log leaves out."""
    log = begun.log
    removed = {e.step.file for e in log.edits if e.step.action == REMOVE}
    return LeftOut(log.own_end, removed, [row for row in log.dropped if row.valid])


def lost_beyond(audit: Audited, left: LeftOut) -> tuple[int, int]:
    """Return (messages, bytes) of valid messages of the copy that the new log leaves out."""
    runs = [message_runs(segment, left.start_in(segment)) for segment in audit.segments]
    messages, size = sum(map(left_in, runs)), sum(int(rows["bytes"].sum()) for rows in runs)
    return messages + len(left.dropped), size + sum(row.end - row.start for row in left.dropped)


def check_sum(begun: Begun, ended: Ended) -> None:
    """Raise StoreError if the new log does not hold exactly what the scan of the copy accepted, the plan adds and names as left
    out."""
    wrong = not_accounted(begun.audit.segments, ended.final.segments, left_out(begun), begun.log.added)
    for (topic, queue), count in sorted(wrong.items())[:1]:
        less, more = (
            f"{count} records of the copy are neither in it nor listed",
            f"it has {-count} more than copy and plan give it",
        )
        what = less if count > 0 else more
        where = f"topic {topic!r}, queue {queue}" + (f" and {len(wrong) - 1} more queues" if len(wrong) > 1 else "")
        raise StoreError(f"the new store is not put in place: {where}: {what}: a fault of this program")


def _digests(work: Work, written: Sequence[str]) -> tuple[FileDigest, ...]:
    """Return SHA-256 of the small files that were written. For the large ones, at a second for each GB, there is `manifest`."""
    source, tree, found = work.source, work.tree, list[FileDigest]()
    for path in sorted({checkpoint_layout.CHECKPOINT_FILE, *written}):
        if path in tree.by_path:
            row = manifest_row(source, path)  # offsets may be many, so it is read in parts
            found.append(FileDigest(path, row.size, row.digest))
    return tuple(found)
