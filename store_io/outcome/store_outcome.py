"""Puts together all results of one store's audit, and says which parts were not read and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas.advice import Cause, Gap, LeftOut
from schemas.finding_codes import Code
from schemas.first_day import FirstDay
from schemas.layouts.timer_layout import TIMER_WHEEL
from schemas.losses import ALL_READ, NOTHING_LOST, LossOfStart, NotRead, TopicLoss
from schemas.outcome import Assumed, Contents, CopyWhole, Cost, Covered, Differences, Outcome, OutcomeRows, PlanParts
from schemas.replicas import NO_GROUP, Group
from schemas.rows import DEFAULT, EXTENT_DAMAGED, NAMED, Finding, FurthestRun
from schemas.start_effect import LostByStart, QueueLost, StartEffect
from store_io.base.exit_codes import INCOMPLETE, of_store
from store_io.base.java.java_properties import parse_properties
from store_io.base.packed import packed
from store_io.base.times import iso_time
from store_io.base.wording import count_text
from store_io.broker.settings.unsafe_settings import unsafe_settings
from store_io.checks.changed_bytes import FirstRead
from store_io.checks.emptied import log_end
from store_io.checks.missing_messages import missing_messages
from store_io.checks.repaired_store import kept_by_repair
from store_io.first_day.first_day import first_day
from store_io.kinds.all_kinds import KINDS, ROOMS
from store_io.kinds.index.index_kind import INDEX
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.facts.odd_settings import ignored_lines, odd_settings
from store_io.model.found_gaps import Gaps
from store_io.model.loss import Loss
from store_io.model.other_kinds import other_ledgers
from store_io.model.premises import GivenConf, inferred_mode, mode_doubts, premises
from store_io.outcome.audit_rows import index_rows, queue_rows, segment_rows
from store_io.outcome.copy_whole import not_whole
from store_io.outcome.final_findings import final_findings, no_repair
from store_io.outcome.plan_inputs import plan_inputs
from store_io.outcome.release_leaves import release_leaves
from store_io.wording.gaps import distinct, incomplete_texts


def not_read(evidence: Evidence) -> NotRead:
    """Return how much was not read in this run."""
    request, copy = evidence.request, evidence.copy
    if request.whole:
        return ALL_READ
    reused = {f.path for f in evidence.unread if evidence.earlier.reused(f.path)}
    segments = [f for f in evidence.unread if f.path not in reused]
    kept = [f for f in evidence.unread if f.path in reused]
    read = {path for queue in evidence.every_queue for path in queue.digests}
    queues = [f for files in copy.queues_in_files.served.files.values() for f in files if f.path not in read]
    index = [f for f in copy[INDEX] if f.path not in evidence[INDEX]]
    return NotRead(
        *(len(segments), sum(f.size for f in segments)),
        *(len(queues), sum(f.size for f in queues)),
        *(len(index), sum(f.size for f in index)),
        *(len(kept), sum(f.size for f in kept)),
        request.earlier.run_id if kept and request.earlier is not None else None,
    )


def not_read_gaps(evidence: Evidence, left_out: NotRead) -> list[Gap]:
    """Return the gap of the files that were not read on purpose, if there are any."""
    copy, quick = evidence.copy, evidence.request.quick
    cause = Cause.LEVEL_QUICK if quick else Cause.TIME_LIMIT
    counts: list[int] = []
    for count, size, every in (
        (left_out.segments, left_out.segment_bytes, len(copy.segment_files)),
        (left_out.queue_files, left_out.queue_bytes, sum(map(len, copy.queues_in_files.served.files.values()))),
        (left_out.index_files, left_out.index_bytes, len(copy[INDEX])),
    ):
        counts += [count, every, size]
    if any(counts[::3]):
        return [Gap(cause, values=(LeftOut.FILES, *counts))]
    return [Gap(cause)] if quick else []


@dataclass(frozen=True)
class Judged:
    """The checks' answer to the evidence, and the findings that others have added since.

    findings: as they were made, without the catalogue's additions.
    held: as `changed_bytes.first_reads` gives it.
    """

    findings: Sequence[Finding]
    gaps: Gaps
    furthest: FurthestRun | None = None
    held: Mapping[str, FirstRead] = field(default_factory=dict)
    replicas: Group = NO_GROUP


def failed_outcome(request: AuditRequest, gaps: Sequence[Gap]) -> Outcome:
    """Return the outcome of an audit that could not be made."""
    return _blank(request, gaps)


def store_outcome(evidence: Evidence, judged: Judged) -> Outcome:
    """Return all results but `seconds`, which the caller measures. The same bytes give the same."""
    copy = evidence.copy
    known, start = not judged.gaps.faults, evidence.request.start
    day = first_day(evidence, start) if known and start is not None else None
    out = _judged(evidence, replace(judged, findings=[*judged.findings, *_of_the_day(day)]))
    out = replace(
        out,
        assumed=_assumed(evidence, out.assumed),
        no_repair=no_repair(copy),
        first_day=day,
        effect=_start_effect(evidence) if known else None,
        loss=loss_of_start(evidence.loss),
        replicas=judged.replicas,
        holds=_contents(evidence),
        cost=Cost(evidence.bytes_read),
        plan=PlanParts(release_leaves(evidence, out.found.findings), copy.rules.settings, plan_inputs(evidence)),
        rows=OutcomeRows(
            segment_rows(evidence, judged.findings, judged.held),
            queue_rows(evidence, judged.findings),
            index_rows(evidence, judged.findings),
        ),
    )
    for kind in KINDS:
        out = kind.add_to_outcome(evidence, out)
    whole = replace(out.whole, signs=not_whole(evidence, out), furthest=judged.furthest, unclean=copy.unclean)
    return replace(out, whole=whole)


def _of_the_day(day: FirstDay | None) -> Iterator[Finding]:
    """Yield the finding on timer messages that this start never delivers, if somebody decided to start."""
    if day is not None and day.moment.decided and day.timers is not None and day.timers.never:
        number, at = day.timers.never, iso_time(day.moment.at_ms)
        said = f"a start at {at} never delivers {count_text(number, 'timer message')}"
        yield Finding(Code.TIMERS_PASSED_OVER, TIMER_WHEEL, message=said, count=number)


def start_outcome(evidence: Evidence, judged: Judged) -> Outcome:
    """Return an outcome that has the effect of a start and the exit code alone. Parts that are not judged are named."""
    return replace(_judged(evidence, judged), effect=None if judged.gaps.faults else _start_effect(evidence))


def _judged(evidence: Evidence, judged: Judged) -> Outcome:
    """Return an outcome with all that decides its exit code: its findings, and its incomplete parts."""
    left_out = not_read(evidence)
    out = _blank(evidence.request, [*judged.gaps.faults, *not_read_gaps(evidence, left_out), *judged.gaps.on_purpose])
    found, dropped = final_findings(evidence, judged.findings)
    findings, counts = kept_by_repair(evidence, found), dict[str, int]()
    for finding in findings:
        counts[finding.severity] = counts.get(finding.severity, 0) + 1
    return replace(
        out,
        exit_code=of_store(counts, out.gaps),
        covered=Covered(evidence.request.level, left_out, not_judged(evidence)),
        found=Differences(findings, counts, dropped),
        whole=CopyWhole(missing=missing_messages(evidence, findings)),
    )


def _blank(request: AuditRequest, gaps: Sequence[Gap]) -> Outcome:
    told = distinct(gaps)
    return Outcome(
        request.name,
        request.location.root,
        request.release,
        INCOMPLETE,
        incomplete_texts(told),
        gaps=told,
        assumed=Assumed(request.release_from, NAMED if request.broker_conf is not None else DEFAULT),
    )


def _assumed(evidence: Evidence, named: Assumed) -> Assumed:
    request, written = evidence.request, evidence.written_by()
    copy, conf = evidence.copy, None
    if request.broker_conf is not None:
        misfits = [*(misfit.sentence for misfit in copy.misfits), *mode_doubts(copy.listing, copy.rules)]
        noted = [*ignored_lines(request.broker_conf, copy.rules), *filter(None, [copy.log_place.said])]
        conf = GivenConf(misfits, odd_settings(request.broker_conf, copy.rules), noted)
    return replace(
        named,
        unsafe_settings=unsafe_settings(copy.rules, parse_properties(request.broker_conf or "")),
        inferred_mode=inferred_mode(copy.rules),
        written_by="" if request.release_from == NAMED or written.holds(request.release) else written.range_text(),
        premises=premises(request.release, request.release_from, written, copy.rules.settings, conf),
    )


def _contents(evidence: Evidence) -> Contents:
    """Return the numbers of messages and their times. Segments that were not read count as an earlier run knows them."""
    extents = [extent for segment in evidence.segments for extent in segment.extents]
    messages = sum(extent.message_count for extent in extents)
    times = [(s.first_store_time, s.last_store_time) for s in evidence.segments if s.last_store_time]
    for file in evidence.unread:
        known = evidence.earlier.reused_segment(file.path)
        if known is not None and known.row.get("messages"):
            messages += known.row["messages"]
            times.append((known.row["first_store_time_ms"], known.row["last_store_time_ms"]))
    return Contents(
        messages,
        min((first for first, _ in times), default=0),
        max((last for _, last in times), default=0),
        len(evidence.copy.segment_files),
        sum(extent.kind == EXTENT_DAMAGED for extent in extents),
        log_end(evidence.segments) if evidence.end_is_known else None,
    )


def _start_effect(evidence: Evidence) -> StartEffect | None:
    if evidence.prediction is None:
        return None
    effect, loss = evidence.prediction.effect(), evidence.loss
    if effect.started is not None and loss is not None:
        by_queue = packed(
            QueueLost(*key, lost.messages, lost.first_store_time, lost.last_store_time)
            for key, lost in sorted(loss.by_queue.items())
        )
        effect = replace(effect, started=replace(effect.started, lost=LostByStart(loss.messages, loss.bytes, by_queue)))
    for kind in KINDS:
        effect = kind.add_to_effect(evidence, effect)
    return effect


def not_judged(evidence: Evidence) -> list[str]:
    """Return the files that a start reads and no check judges.

    Logs of other DLedger nodes are among them, which this one does not read.
    """
    copy = evidence.copy
    names = other_ledgers(copy.listing, copy.rules)
    for room in ROOMS:
        names = room.not_judged(evidence, names) if room.not_judged is not None else names
    return sorted(names, key=lambda name: (name.startswith("config/"), name))


def loss_of_start(loss: Loss | None) -> LossOfStart:
    """Return the loss of a start, by topic. Offsets that would lie beyond the end are added by the kind of config/."""
    if loss is None:
        return NOTHING_LOST
    topics: dict[str, TopicLoss] = {}
    for (topic, _), lost in sorted(loss.by_queue.items()):
        known = topics.get(topic, TopicLoss(topic, 0, lost.first_store_time, 0))
        topics[topic] = TopicLoss(
            topic,
            known.messages + lost.messages,
            min(known.first_store_time, lost.first_store_time),
            max(known.last_store_time, lost.last_store_time),
        )
    return LossOfStart(loss.messages, loss.bytes, tuple(topics.values()))
