"""Messages with keys that no index file covers."""

from __future__ import annotations

from schemas.finding_codes import STARTS_DISPATCH, Code
from schemas.layouts import index_layout
from schemas.layouts.store_names import INDEX as FOLDER
from schemas.rows import WALK_AUDIT, Finding, SegmentSummary
from store_io.base.wording import count_text
from store_io.kinds.index.index_kind import INDEX, index_whole
from store_io.model.evidence import Evidence


def _all_keys(segment: SegmentSummary) -> tuple[int, int, int, int]:
    """Return first and last phy_offset, messages and keys of a segment for which there is no index file at all."""
    runs = segment.index_runs[(segment.index_runs["walk"] & WALK_AUDIT != 0) & (segment.index_runs["keys"] > 0)]
    if not len(runs):
        return -1, -1, 0, 0
    low, high = int(runs["first_key_phy_offset"].min()), int(runs["last_key_phy_offset"].max())
    return low, high, int(runs["records"].sum()), int(runs["keys"].sum())


def _is_put(evidence: Evidence, first: int, last: int, keys: int) -> bool:
    """Say whether a start puts the keys of all messages from one physical offset to another, in one go."""
    prediction = evidence.prediction
    if prediction is None or prediction.after_dispatch is None:
        return False
    pieces = [p for f in prediction.after_dispatch.index for p in f.pieces if p.last_phy >= first and p.first_phy <= last]
    reaches = bool(pieces) and pieces[0].first_phy <= first and last <= pieces[-1].last_phy
    return reaches and sum(p.last - p.first + 1 for p in pieces) >= keys


def unindexed(evidence: Evidence) -> list[Finding]:
    """Return findings on messages with keys outside of the index files' ranges (I1, I9).

    Log and index must have been read as a whole.
    """
    copy = evidence.copy
    late = any(file.path in evidence.late for file in copy[INDEX])
    whole = evidence.log_whole and index_whole(evidence) and not late
    if not whole or evidence.request.quick or not copy.rules.builds_index:
        return []
    files = [evidence[INDEX][file.path] for file in copy[INDEX] if file.path in evidence[INDEX]]
    first = last = -1
    records = keys = 0
    for segment in evidence.segments:
        low, high, n, k = segment.index_unindexed if files else _all_keys(segment)
        if k:
            first = low if first < 0 else min(first, low)
            last = max(last, high)
            records, keys = records + n, keys + k
    if not keys:
        return []
    newest = files[-1] if files else None
    waits = evidence.held_back is not None and first >= evidence.held_back
    return [
        Finding(
            Code.INDEX_RANGE_UNCONFIRMED if waits else Code.INDEX_RANGE_MISSING,
            newest.path if newest else FOLDER,
            0 if newest else None,
            index_layout.HEADER_BYTES if newest else None,
            phy_offset=first,
            expected=f"{count_text(keys, 'entry', 'entries')} of {count_text(records, 'message')} from {first:,} to {last:,}",
            actual="none",
            count=keys,
            next=STARTS_DISPATCH if not waits and _is_put(evidence, first, last, keys) else None,
        )
    ]
