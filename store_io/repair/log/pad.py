"""Segments after a log whose last messages the release would not take, each with one record that it takes.

Messages that pass every check are refused by the release's settings, or by its age. Its recovery then reads nothing but the
added segments: up to 5.3.1 a clean start reads the last ones; later it looks for the newest that a queue entry leads into.
"""

from __future__ import annotations

from schemas.layouts import commitlog_layout
from schemas.layouts.store_names import BRIDGE_TOPIC
from store_io.kinds.all_repairs import REPAIRS
from store_io.log.records import bridges
from store_io.repair.kind_repair import Added
from store_io.repair.log.edits import LogPlan, filler, segment_path
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import ADD_SEGMENT, FILL
from store_io.repair.repair_work import Work

PAD_BEFORE_MS = 3001  # a crash recovery begins at a segment whose first message is that much older than the checkpoint
_REASON = "a start reads this record and not those before it, which the release refuses"
_REFUSED = ("dup_info", "property_crc_missing", "property_crc", "magic")


def would_cut_again(audit: Audited, log: LogPlan) -> bool:
    """Say whether the release would not take messages that pass every check."""
    p = audit.prediction
    if p is None or not p.starts or not log.end or not audit.complete:
        return False
    return p.truncate_at < log.end and p.stop_reason in _REFUSED


def pad(work: Work, audit: Audited, log: LogPlan) -> bool:
    """Add the segments, and lead a start to them; return whether that takes another round. `log` ends with the last one's record.

    Nothing is added to a segment without room for a filler.
    """
    writer, size = work.writer, work.rules.segment_bytes
    log.padded_from = log.own_end
    last = log.end - log.end % size
    left = size - (log.end - last)
    if left < commitlog_layout.FRAME_BYTES:
        return False
    _fill(work, last, log.end - last)
    queued = work.rules.clean_start_by_queues
    time = max(1, audit.last_store_time - PAD_BEFORE_MS)
    entry = next((e for e in audit.tree.all if e.path == segment_path(last)), None)
    base = last
    for number in range(_added(work, len(audit.segments))):
        base += size
        record = bridges.pad(base, time, work.rules, queued)
        if number:
            _fill(work, base - size, len(record))
        path = segment_path(base)
        writer.create(path, size)
        writer.write(path, 0, record)
        writer.set_time(path, entry.mtime_ns if entry is not None else 1)
        work.steps.add(ADD_SEGMENT, path, start=0, end=len(record), reason=_REASON)
        log.add_bridge(base, 0, len(record), "segment", store_time=time)
        log.added[BRIDGE_TOPIC, 0] += 1
    log.end = base + len(record)
    added = Added(base, len(record))
    asked = [kind.lead_to(work, audit, added) for kind in REPAIRS]
    return any(asked)


def _added(work: Work, count: int) -> int:
    """Return how many segments to add after this count, so that recovery reads no other. A search ends at the last one."""
    added = 1
    while work.rules.first_recovered(count + added, count + added - 1 if work.rules.clean_start_by_queues else None) < count:
        added += 1
    return added


def _fill(work: Work, base: int, at: int) -> None:
    """End the segment there with a filler."""
    size = work.rules.segment_bytes
    work.steps.add(FILL, segment_path(base), start=at, end=size, reason="a segment follows")
    work.writer.write(segment_path(base), at, filler(size - at))
