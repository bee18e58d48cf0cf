"""The epochs of a replica in controller mode: who was master from which physical offset on.

Source: EpochFileCache.appendEntry, truncateSuffixByOffset, findConsistentPoint; AutoSwitchHAService.changeToMaster
(controller.md 1, 4, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.start_effect import Epoch as Epoch

NO_END = (1 << 63) - 1  # an epoch without a known end
NO_EPOCH = -1  # EpochFileCache.lastEpoch without one


@dataclass(frozen=True)
class Elected:
    """The effect of an election on the epochs.

    recorded: the new epoch is written to the epoch file.
    kept: all that the broker holds then, the new one with them.
    """

    epoch: Epoch
    recorded: bool
    removed: tuple[Epoch, ...]
    kept: tuple[Epoch, ...] = ()


def as_cached(lines: Sequence[Epoch]) -> tuple[Epoch, ...]:
    """Return the epochs as the broker holds them: by number, of two lines with one number the last (initEntries)."""
    return tuple(sorted({line.epoch: line for line in lines}.values()))


def elect(epochs: Sequence[Epoch], end: int, truncated: int | None) -> Elected:
    """Elect the master of the next epoch.

    end: the log's end then.
    truncated: the position at which truncateInvalidMsg ended; None: it did not run.
    """
    last = epochs[-1].epoch if epochs else NO_EPOCH
    new = Epoch(max(last, 0) + 1, end)
    kept = tuple(e for e in epochs if truncated is None or e.start < truncated)
    removed = tuple(e for e in epochs if truncated is not None and e.start >= truncated)
    recorded = not kept or kept[-1].epoch < new.epoch and kept[-1].start < new.start
    return Elected(new, recorded, removed, (*kept, new) if recorded else kept)


def end_of(epochs: Sequence[Epoch], place: int, log_end: int) -> int:
    """Return the end of an epoch: the next one's start, or the log's end. The last one has no end if it begins beyond that."""
    if place + 1 < len(epochs):
        return epochs[place + 1].start
    return log_end if epochs[place].start <= log_end else NO_END


def consistent_point(ours: Sequence[Epoch], our_end: int, theirs: Sequence[Epoch], their_end: int) -> int | None:
    """Return the physical offset up to which both logs are taken to be the same. None: they know no epoch with the same start.

    The highest epoch that both know with the same start counts, and of its two ends the smaller one. The last epoch of each copy
    ends at the end of its log (doTruncate).
    """
    others = {epoch: place for place, epoch in enumerate(theirs)}
    for place in reversed(range(len(ours))):
        other = others.get(ours[place])
        if other is not None:
            return min(end_of(ours, place, our_end), end_of(theirs, other, their_end))
    return None
