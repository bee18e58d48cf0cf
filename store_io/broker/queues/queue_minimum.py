"""The smallest offset of one ConsumeQueue that leads into the CommitLog, as correctMinOffset finds it (recovery.md 7.4).

Source: ConsumeQueue and BatchConsumeQueue: correctMinOffset.
"""

from __future__ import annotations

import numpy as np

from schemas.advice import Refusal, RefusalKind
from store_io.broker.prediction import Refused
from store_io.broker.queues.queue_state import CHUNK_ENTRIES, NeedCut, QueueFile, QueueState


def correct_minimum(queue: QueueState, min_phy: int) -> None:
    """Do correctMinOffset (recovery.md 7.4). Raises Refused if 5.0.0 to 5.4.0 throw."""
    if queue.batch:
        _by_batch(queue, min_phy)
    elif queue.rules.minimum_by_search:
        _by_search(queue, min_phy)
    else:
        _by_walk(queue, min_phy)


def _by_walk(queue: QueueState, min_phy: int) -> None:
    """Set the minimum as 4.x does: the first entry of the first file at or above the CommitLog's minimum."""
    if not queue.files:
        return
    file, at = queue.files[0], 0
    below = _leading_below(queue, file, min_phy)
    if below is not None:
        if below < file.wrote:
            queue.min_logic = file.start + below
        return
    while at < file.wrote:
        piece = queue.piece_at(file, at)
        if piece is not None:
            if piece.last_phy >= min_phy:
                if piece.first_phy < min_phy and piece.count > 1:
                    raise NeedCut(min_phy - 1)
                queue.min_logic = file.start + at
                return
            at = piece.start + piece.count * queue.unit - file.start
            continue
        if file.path is None:
            return
        stop = queue.pieces_of(file).next_start(at, file.wrote)
        rows = queue.disk(file.path, at // queue.unit, min(CHUNK_ENTRIES * 64, (stop - at) // queue.unit))
        if not len(rows):
            return
        hit = rows["phy_offset"] >= min_phy
        if hit.any():
            queue.min_logic = file.start + at + int(np.argmax(hit)) * queue.unit
            return
        at += len(rows) * queue.unit


def _leading_below(queue: QueueState, file: QueueFile, min_phy: int) -> int | None:
    """Return the bytes of leading entries of the first file below the CommitLog's minimum, if its scan has counted them."""
    edges = queue.edges
    if edges is None or queue.batch or file.path != edges.first_path or edges.log_min != min_phy or len(queue.pieces_of(file)):
        return None
    return edges.below * queue.unit if file.wrote <= edges.first_entries * queue.unit else None


def _by_search(queue: QueueState, min_phy: int) -> None:
    """Set the minimum as 5.x does: a binary search in the first file."""
    if queue.rules.resets_empty_queues and not queue.files:
        queue.min_logic, queue.max_phy = 0, -1
    if queue.min_logic >= queue.max_bytes or not queue.files:
        return
    first, last = queue.files[0], queue.files[-1]
    if last.wrote < queue.unit:
        if queue.rules.empty_last_queue_file_throws:
            name = last.path or f"{queue.folder}/{last.start:020d}"
            raise Refused(Refusal(RefusalKind.QUEUE_FILE_EMPTY, name))
    elif queue.entry(last, last.wrote - queue.unit).phy_offset < min_phy:
        queue.min_logic = last.start + last.wrote
        return
    start = queue.min_logic - first.start
    intact = start >= 0
    start = max(start, 0)
    if start >= first.wrote:
        return
    if intact and queue.entry(first, start).phy_offset >= min_phy:
        return
    below = _leading_below(queue, first, min_phy)
    if below is not None and queue.edges is not None and queue.edges.parted and not start and not first.wrote % queue.unit:
        if below < first.wrote:  # what any search finds where all before lies below and all after above
            queue.min_logic = first.start + below
        return
    low, high = 0, first.wrote - start - queue.unit
    while high - low > queue.unit:
        middle = (low + high) // 2 // queue.unit * queue.unit
        phy = queue.entry(first, start + middle).phy_offset
        if phy > min_phy:
            high = middle
        elif phy == min_phy:
            low = high = middle
        else:
            low = middle
    for at in range(low, high + 1, queue.unit):
        if queue.entry(first, start + at).phy_offset >= min_phy:
            queue.min_logic = first.start + start + at
            break


def _by_batch(queue: QueueState, min_phy: int) -> None:
    """Set the minimum of a BatchConsumeQueue: entry by entry from the first file's beginning."""
    queue.revise_min()
    if not queue.files:
        return
    file, at = queue.files[0], 0
    while at < file.wrote:
        piece = queue.piece_at(file, at)
        if piece is not None:
            if piece.first_phy >= min_phy:
                return
            if piece.count > 1:
                raise NeedCut(min_phy - 1)
            queue.batch_min = piece.base + piece.messages
            at += queue.unit
            continue
        if file.path is None:
            return
        rows = queue.disk(file.path, at // queue.unit, min(CHUNK_ENTRIES, (file.wrote - at) // queue.unit))
        if not len(rows):
            return
        for row in rows:
            if queue.piece_at(file, at) is not None:
                break
            if int(row["phy_offset"]) >= min_phy:
                return
            queue.batch_min = int(row["base"]) + int(row["count"])
            at += queue.unit
