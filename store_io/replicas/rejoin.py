"""Two replicas in controller mode: what each would do, and lose, if it joined the other as its slave.

The slave cuts its log at the consistent point, which follows from the epochs of both alone, and copies the rest.
Source: AutoSwitchHAClient.doTruncate, DefaultMessageStore.truncateFiles, isOffsetAligned (controller.md 5).
"""

from __future__ import annotations

from schemas.rows import MappedFile, Row
from store_io.broker.controller_mode.epochs import consistent_point
from store_io.broker.prediction import Prediction
from store_io.kinds.controller.epoch_starts import EpochPlace, EpochStartsTask, look_up
from store_io.replicas.compared_copies import ComparedCopies, Copy
from store_io.replicas.replica_parts import LACKING

COPIES, CUTS, REFUSED, KEEPS = "copies", "cuts", "refused", "keeps_its_log"


def rejoin_rows(compared: ComparedCopies, left: int, right: int, same_until: int | None) -> list[Row] | None:
    """Return two rows: the first copy as slave of the second, and the other way round.

    None if one of the two is not known, or a start of one of the copies never ends.
    same_until: the physical offset up to which both hold the same messages; None if that is not known.
    """
    copies = compared.copies[left], compared.copies[right]
    controllers = [copy.audit.prediction.controller if copy.audit.prediction is not None else None for copy in copies]
    if any(c is None or c.elected is None for c in controllers) or any(copy.unreadable for copy in copies):
        return None
    return [_row(compared, left, right, same_until), _row(compared, right, left, same_until)]


def _row(compared: ComparedCopies, slave: int, master: int, same_until: int | None) -> Row:
    one, other = compared.copies[slave], compared.copies[master]
    ours, theirs = one.audit.prediction, other.audit.prediction
    assert ours is not None and theirs is not None and ours.controller is not None and theirs.controller is not None
    assert theirs.controller.elected is not None
    point = consistent_point(ours.controller.epochs, ours.truncate_at, theirs.controller.elected.kept, theirs.end)
    outcome = _outcome(one, ours, point)
    pieces = [
        piece
        for piece in compared.pieces[slave]
        if outcome == CUTS and point is not None and piece.end > point and piece.states[master] in LACKING
    ]
    return {
        "slave": one.name,
        "master": other.name,
        "consistent_point": point,
        "outcome": outcome,
        "messages": sum(piece.messages for piece in pieces),
        "bytes": sum(piece.bytes for piece in pieces),
        "first_store_time": min((piece.first_store_time for piece in pieces), default=None),
        "last_store_time": max((piece.last_store_time for piece in pieces), default=None),
        "differs_before": point is not None and same_until is not None and same_until < min(point, ours.truncate_at, theirs.end),
    }


def _outcome(copy: Copy, prediction: Prediction, point: int | None) -> str:
    assert prediction.controller is not None
    if not prediction.controller.epochs:
        return KEEPS if prediction.truncate_at > 0 else COPIES
    if point is None:
        return REFUSED
    if point >= prediction.truncate_at:
        return COPIES
    return CUTS if _between_records(copy, point) else REFUSED


def _between_records(copy: Copy, point: int) -> bool:
    """Say whether a record or a filler that can be read begins there in this copy. A copy without a file there counts, too."""
    segment = next((s for s in copy.segments if s.base_offset <= point < s.base_offset + s.size), None)
    if segment is None:
        return True
    place = EpochPlace(point, MappedFile(segment.path, segment.base_offset, segment.size))
    request = copy.audit.request
    return not look_up(EpochStartsTask(request.store, request.location, copy.audit.rules, (place,))).no_record
