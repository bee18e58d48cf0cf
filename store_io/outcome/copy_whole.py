"""What shows that a copy is not all that its broker had, while the rest may still be where the copy was made.

It is decided here alone: the answer, the steps of an audit and a rescue follow from it. What a loss of power leaves as well is
no proof: queues that lead beyond the log after an unclean exit, unless the checkpoint knows later messages that were flushed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from schemas.advice import Lack, NotWhole
from schemas.finding_codes import Code, Part
from schemas.layouts.store_names import COMMITLOG
from schemas.outcome import Outcome
from schemas.rows import EXTENT_DAMAGED, LOSS, NOTE, Finding
from store_io.checks.lost_messages import flushed_further
from store_io.kinds.unread.unread_kind import holds_unread
from store_io.model import log_map as lm
from store_io.model.evidence import Evidence
from store_io.model.facts.live_copy import queues_ahead
from store_io.model.facts.log_place import broker_folder
from store_io.model.lost_entries import lost_places
from store_io.outcome.safety import as_master


def not_whole(evidence: Evidence, out: Outcome) -> list[NotWhole]:
    """Return what shows that the copy is not whole, the gravest first. out: with its findings and missing messages."""
    if any(misfit.part & Part.LOG for misfit in evidence.copy.misfits):
        return []  # by the wrong size of a segment others seem to be missing
    of_the_log = [] if holds_unread(evidence) else _of_the_log(evidence, out)  # else settings keep a start from the log
    found = [*_stores_merged(out.found.findings), *of_the_log, *_no_config(evidence, out.found.findings)]
    return sorted(found, key=lambda one: tuple(Lack).index(one.kind))


def held_by(outcome: Outcome, path: str) -> NotWhole | None:
    """Return that the donor at this path holds more at the end of its log, which no repair of the copy takes; else None."""
    lacking = as_master(outcome.replicas, outcome.name)
    if lacking is None or lacking.diverged_from:
        return None
    group, copy = outcome.replicas, outcome.replicas.copy(outcome.name)
    end = copy.end if copy is not None else None
    pieces = (piece for lack in group.lacked_by(outcome.name, lacking.holder) for piece in lack.ranges)
    if not any(end is None or piece.start >= end for piece in pieces):
        return None
    own = sum(lack.messages for lack in group.lacked_by(lacking.holder, outcome.name))
    return NotWhole(Lack.OTHER_COPY, COMMITLOG, messages=lacking.holds, place=path, own=own)


def _stores_merged(findings: Sequence[Finding]) -> Iterator[NotWhole]:
    edges = [f for f in findings if f.code == Code.STORES_MERGED and f.severity == LOSS]
    if edges:
        yield NotWhole(Lack.STORES_MERGED, edges[0].file, len(edges))


def _no_config(evidence: Evidence, findings: Sequence[Finding]) -> Iterator[NotWhole]:
    if any(f.code == Code.CONFIG_NOT_COPIED and f.severity != NOTE for f in findings):
        yield NotWhole(Lack.NO_CONFIG, "config/", place=broker_folder(evidence.request.broker_conf, "config"))


def _of_the_log(evidence: Evidence, out: Outcome) -> Iterator[NotWhole]:
    """Yield what of the log is missing; if broker.conf keeps the log in another folder, that alone."""
    parts = [*_segments(evidence, out), *_zeros(evidence, out.found.findings)]
    if not any(part.kind == Lack.SEGMENTS_AT_END for part in parts):
        parts += _queues_later(evidence, out.found.findings)
    counted = [part for part in parts if part.kind != Lack.ZEROS or not part.messages]
    if (
        out.whole.missing and len(counted) == len(parts) == 1 and (not out.holds.damaged_extents or not parts[0].messages)
    ):  # all that is missing
        parts = [replace(parts[0], messages=out.whole.missing.messages, at_least=out.whole.missing.at_least)]
    elsewhere = evidence.copy.log_place.elsewhere
    if elsewhere and parts:
        yield replace(parts[0], kind=Lack.LOG_ELSEWHERE, file=COMMITLOG, files=1, place=elsewhere)
        return
    folder = broker_folder(evidence.request.broker_conf, COMMITLOG)
    yield from (replace(part, place=folder) for part in parts)


def _segments(evidence: Evidence, out: Outcome) -> Iterator[NotWhole]:
    gone = [f for f in out.found.findings if f.code == Code.SEGMENT_MISSING and f.severity == LOSS and f.phy_offset is not None]
    between = [f for f in gone if (f.phy_offset or 0) < evidence.log.end]
    if between:
        yield _missing(Lack.SEGMENTS_BETWEEN, between, evidence)
    at_end = [f for f in gone if f not in between]
    ahead = queues_ahead(evidence.leftovers.values(), evidence.log)
    if at_end and out.holds.messages and ahead is not None and ahead.shows_more:
        yield _missing(Lack.SEGMENTS_AT_END, at_end, evidence)


def _missing(kind: Lack, found: Sequence[Finding], evidence: Evidence) -> NotWhole:
    """Return the segments of these findings, with the messages to which queue entries lead there."""
    size = evidence.copy.rules.segment_bytes
    starts = {(f.phy_offset or 0) // size for f in found}
    places = lost_places(evidence.leftovers.values(), evidence.log, (lm.MISSING, lm.BEYOND))
    own = [at for (_, begin), at in places.items() if begin // size in starts]
    more = not evidence.queues_whole or not all(at.exact for at in own)
    return NotWhole(kind, found[0].file, len(found), sum(at.count for at in own), more)


def _zeros(evidence: Evidence, findings: Sequence[Finding]) -> Iterator[NotWhole]:
    """Yield zeros before later messages, unless they are where the files of two brokers meet.

    Zeros inside of a segment are damage if the broker stopped cleanly.
    """
    if any(f.code == Code.STORES_MERGED for f in findings):
        return
    to_the_end = {f.file for f in findings if f.code == Code.SEGMENT_UNWRITTEN and f.severity == LOSS}
    live = any(f.code == Code.LIVE_COPY and f.start is not None for f in findings)
    pairs = zip(evidence.holes.holes, evidence.holes.counts, strict=True)
    shown = [(hole, count) for hole, count in pairs if (live if not hole.to_end else hole.path in to_the_end)]
    if shown:
        files = dict.fromkeys(hole.path for hole, _ in shown)
        yield NotWhole(Lack.ZEROS, next(iter(files)), len(files), sum(count for _, count in shown), at_least=True)


def _queues_later(evidence: Evidence, findings: Sequence[Finding]) -> Iterator[NotWhole]:
    """Yield that the log was longer: by its queues after a clean exit, or by them or the index together with the checkpoint."""
    log = evidence.log
    if not evidence.end_is_known or evidence.copy.loaded.ledger is not None or log.data_end <= log.start:
        return
    ahead = queues_ahead(evidence.leftovers.values(), log) if evidence.queues_whole else None
    by_queues = ahead is not None and ahead.follow and (not evidence.copy.unclean or flushed_further(evidence))
    if any(e.kind == EXTENT_DAMAGED and s.base_offset + e.end > log.data_end for s in evidence.segments for e in s.extents):
        return  # what is later may lie in the damage
    indexed = any(f.code == Code.INDEX_ENTRY_BEYOND_END for f in findings)
    if by_queues or indexed and flushed_further(evidence):
        place = log.segment_name(max(0, log.data_end - 1))
        yield NotWhole(Lack.QUEUES_LATER, place, messages=ahead.messages if ahead is not None else 0, at_least=ahead is None)
