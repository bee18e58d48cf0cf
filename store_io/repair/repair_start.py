"""Gives files of the log the configured length, and removes what keeps the release from starting; never what holds a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from schemas.advice import Refusal
from schemas.layouts.store_names import COMMITLOG
from schemas.repair import DroppedMessage
from schemas.rows import MappedFile, SegmentSummary
from store_io.base.errors import StoreError
from store_io.base.wording import count_text
from store_io.broker.loading import misfits
from store_io.kinds.all_repairs import REPAIRS
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.segment_walk import whole_messages_end
from store_io.model.queue_runs import left_in, message_runs
from store_io.repair.log.edits import message_extents, window_of
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_plan import SALVAGE
from store_io.repair.repair_steps import RESIZE, ZERO
from store_io.repair.repair_work import Beyond, Work
from store_io.wording.refusals import refusal_sentence
from store_io.wording.steps import advice_text


def unblock(work: Work, audit: Audited) -> Audited:
    """Return the audit of the copy on which the release starts. Notes refusals in `work`.

    Under policy salvage it is that of the copy in which each file of the log has the configured length.
    All files of one sort that stop it are taken away together, whatever their number; each round meets another refusal.
    Raises StoreError if a setting stops the release, and NoStart if the policy wants a start, and no change leads to one.
    """
    _check_settings(audit)
    if work.request.policy == SALVAGE:
        return with_configured_lengths(work, audit)
    met: set[Refusal] = set()
    while audit.prediction is not None and not audit.prediction.starts:
        refusal = audit.prediction.refusal
        assert refusal is not None
        if refusal in met:  # taking away what it names has not helped
            break
        met.add(refusal)
        wrong = _misfits(work, audit)
        if any(segment.path == refusal.path for segment in wrong):
            reasons = [str(refusal_sentence(replace(refusal, path=s.path, actual=s.size))) for s in wrong]
            work.refusals += reasons
            audit = _resized(work, audit, wrong, reasons)
        else:
            _take_away(work, audit, refusal)
            audit = audit_changed(work, "the copy")
    if not audit.starts:
        raise _no_start(work, audit, audit.prediction.refusal if audit.prediction is not None else None)
    return audit


def with_configured_lengths(work: Work, audit: Audited) -> Audited:
    """Return the audit of the copy in which each file of the log that holds a message has the configured length."""
    wrong = _misfits(work, audit)
    return _resized(work, audit, wrong, ["a file of the log has this size"] * len(wrong)) if wrong else audit


def _misfits(work: Work, audit: Audited) -> list[SegmentSummary]:
    """Return the files of the log that hold a message and have another length than the configured one."""
    return [s for s in audit.segments if s.size != work.rules.segment_bytes and s.path in audit.holding]


def _check_settings(audit: Audited) -> None:
    """Refuse a copy on which a line of broker.conf stops the release: a new store would not start either."""
    refusal = audit.prediction.refusal if audit.prediction is not None else None
    if refusal is not None and refusal.correct_line is not None:
        then = "Then audit it again. With this line the release would start on no store"
        raise StoreError(f"{advice_text(refusal.correct_line)} {then}: {refusal_sentence(refusal)}")


class NoStart(StoreError):
    """Under policy broker the release would not start, whatever is removed.

    audit: of the copy as it is by then.
    refusal: of that start.
    """

    def __init__(self, sentence: str, audit: Audited, refusal: Refusal | None):
        super().__init__(sentence)
        self.audit, self.refusal = audit, refusal


def _no_start(work: Work, audit: Audited, refusal: Refusal | None) -> NoStart:
    head = "under policy broker nothing can be done, as the release would not start"
    return NoStart(f"{head}: {why_no_start(work, refusal)}", audit, refusal)


def why_no_start(work: Work, refusal: Refusal | None) -> str:
    """Return why the release does not start, and what helps against that. refusal: None if nothing is predicted."""
    return f"{refusal_sentence(refusal)}{_config_advice(work, refusal)}" if refusal is not None else "nothing is predicted"


def _config_advice(work: Work, refusal: Refusal) -> str:
    """Name the option that writes a file of config/ that the release cannot read; "" for another refusal."""
    if not refusal.path.startswith("config/"):
        return ""
    if not work.request.fix_config:
        return ". Repair with --fix-config"
    if not any(file.left_out for file in work.config):
        return ""
    return ". Nothing of it can be read: take it from another copy of this broker; with --empty-config it begins empty"


def _take_away(work: Work, audit: Audited, refusal: Refusal) -> None:
    """Change the file that the refusal names so that this refusal is gone, and with it others of its kind."""
    if refusal.path in audit.holding:
        raise _no_start(work, audit, refusal)
    if refusal.path.startswith(f"{COMMITLOG}/"):
        others = misfits(audit.tree, COMMITLOG, work.rules.segment_bytes, work.rules)
        stopping = {each.path: each for each in (refusal, *others) if each.path not in audit.holding}
        for path, each in stopping.items():
            work.unblock(path, each, audit.tree)
        return
    reason = str(refusal_sentence(refusal))
    work.refusals.append(reason)
    # The last first: of queues that are written twice RocksDB's answer for both.
    if not any(kind.unblock(work, audit, refusal, reason) for kind in reversed(REPAIRS)):
        raise _no_start(work, audit, refusal)


def _resized(work: Work, audit: Audited, segments: Sequence[SegmentSummary], reasons: Sequence[str]) -> Audited:
    """Return the audit of the copy once these files of its log have the configured length. segments: by that audit."""
    size = work.rules.segment_bytes
    for segment, reason in zip(segments, reasons, strict=True):
        lost = {"bytes": max(0, segment.size - size)}
        work.steps.add(RESIZE, segment.path, start=0, end=size, reason=reason, lost=lost)
        work.writer.resize(segment.path, size)
    found = audit_changed(work, "the copy")
    work.beyond += _beyond(segments, found, size)
    halves = [_zero_half_record(work, found, s.path, s.size) for s in segments if s.size < size]
    return audit_changed(work, "the copy") if any(halves) else found


def _beyond(before: Iterable[SegmentSummary], audit: Audited, size: int) -> Iterator[Beyond]:
    """Yield the messages that lay after the configured length of each of these files.

    A file is left out if another file of the log is named for that place.
    """
    after = {s.path: s for s in audit.segments}
    bases = {s.base_offset for s in audit.segments}
    for segment in before:
        if segment.size > size and segment.path in after and segment.base_offset + size not in bases:
            extents = message_extents(after[segment.path])
            had, has = message_runs(segment), message_runs(after[segment.path])
            size_bytes, records = (int(had[name].sum() - has[name].sum()) for name in ("bytes", "records"))
            file = MappedFile(segment.path, segment.base_offset, segment.size)
            yield Beyond(file, extents[-1].end if extents else 0, left_in(had) - left_in(has), size_bytes, records)


def _zero_half_record(work: Work, audit: Audited, path: str, old_size: int) -> bool:
    """Zero the record that only the zeros beyond the segment's old end completed; whether there was one.

    No checksum covers the properties, so such a record passes every check although its last bytes are invented. No release reads
    a short segment (recovery.md 1), so none would serve the record.
    """
    segment = next((s for s in audit.segments if s.path == path), None)
    extents = message_extents(segment) if segment is not None else []
    start = next((e.start for e in extents if e.start < old_size < e.end), None)
    if segment is None or start is None:
        return False
    with window_of(work.source, path) as window:
        check = RecordCheck.audit_of(segment.base_offset, work.rules, path)
        start = whole_messages_end(check, window, start, old_size)
        verdict = check.verdict(window, start, window.size)
    message = verdict.message
    if message is None or start == old_size:
        return False
    end = start + verdict.size
    reason = f"its last {count_text(end - old_size, 'byte')} lay beyond the end of the file and would be zeros now"
    work.half_records.append(
        DroppedMessage(
            path, start, end, message.topic, message.queue_id, message.queue_offset, False, segment.base_offset + start, reason
        )
    )
    lost = {"bytes": old_size - start}
    work.steps.add(ZERO, path, start=start, end=old_size, reason=f"a record was cut off here: {reason}", lost=lost)
    work.writer.zero(path, start, old_size)
    return True
