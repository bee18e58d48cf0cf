"""The places of messages that a start would take away or leave unreachable: plan.json's `lost`, message by message.

Held as places, not as messages: a cut, and the runs below it that have no queue entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from store_io.audit.audit_store import StoreAudit
from store_io.base.errors import StoreError
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.messages.lost.segment_loss import NO_LOSS, NONE_SPARED, SegmentLoss, Spared
from store_io.model.loss import Unreached, compute_loss
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_sentence


@dataclass(frozen=True)
class LostPlaces:
    """The messages that a start takes of a whole store.

    truncate_at: the log's end after it.
    messages: cut or unreachable, as plan.json's `lost` counts them.
    undelivered: timer messages, as its `timer` counts them.
    listed_timers: how many of these have a place here.
    segments: by path.
    spared: delayed and timer messages among them that are not to be sent again; none if nobody looked.
    """

    release: str
    truncate_at: int
    messages: int
    undelivered: int
    listed_timers: int
    segments: Mapping[str, SegmentLoss]
    spared: Spared = NONE_SPARED

    def of(self, path: str) -> SegmentLoss:
        """Return the loss of this segment."""
        return self.segments.get(path, NO_LOSS)


def lost_places(audit: StoreAudit) -> LostPlaces:
    """Return the messages that a start would lose, by a finished audit. Raises StoreError if that is not known."""
    prediction, release = audit.prediction, f"RocketMQ {audit.request.release}"
    gaps = audit.gaps.faults
    if audit.failed or gaps or prediction is None:
        why = next(map(gap_text, gaps), "the audit is incomplete")
        raise StoreError(f"what a start would lose is not known: {why}")
    if prediction.refusal is not None:
        sentence = refusal_sentence(prediction.refusal)
        raise StoreError(f"{release} would not start on this copy, so a start loses nothing: {sentence}")
    assert prediction.settled is not None
    unreached = Unreached()
    loss = compute_loss(prediction.settled, prediction.end, audit.segments, audit.views, unreached)
    view = audit.evidence[TIMERS].in_use
    fates = view.fates if view is not None else None
    places = view.undelivered() if view is not None else None
    timers = np.zeros(0, np.int64) if places is None else places
    segments = {}
    for number, segment in enumerate(audit.segments):
        end = segment.base_offset + segment.size
        low, high = np.searchsorted(timers, [segment.base_offset, end]).tolist()
        cut = max(0, prediction.end - segment.base_offset) if end > prediction.end else None
        runs = {key: _positions(parts, segment.base_offset) for key, parts in unreached.runs.get(number, {}).items()}
        found = SegmentLoss(cut, runs, timers[low:high])
        if found:
            segments[segment.path] = found
    undelivered = fates.lost.messages if fates is not None else 0
    return LostPlaces(audit.request.release, prediction.end, loss.messages, undelivered, len(timers), segments)


def _positions(parts: Sequence[np.ndarray], base_offset: int) -> np.ndarray:
    """Return (first, last) position of each run, ascending. A run that does not store its own places is one record."""
    rows = np.concatenate(parts)
    first = rows["first_position"]
    last = np.where((rows["regular"] != 0) & (rows["records"] > 1), rows["last_phy_offset"] - base_offset, first)
    found = np.stack([first, last], axis=1)
    return found[np.argsort(first, kind="stable")]
