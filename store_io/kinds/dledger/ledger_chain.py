"""The stretches of all data files as one chain, without the old entries that a cut leaves after its new end (dledger.md 5).

Source: MmapFileList.truncateOffset leaves the bytes; DLedgerMmapFileStore.truncate and appendAsLeader write over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from store_io.kinds.dledger.ledger_walks import FILLER, DataWalk, Stretch


@dataclass(frozen=True)
class PlacedStretch:
    """A stretch and its data file."""

    walk: DataWalk
    stretch: Stretch

    @property
    def start(self) -> int:
        """Return the physical offset of its first entry."""
        return self.walk.start + self.stretch.start

    @property
    def end(self) -> int:
        """Return the physical offset after its last entry."""
        return self.walk.start + self.stretch.end

    def continues(self, before: PlacedStretch) -> bool:
        """Say whether its first entry is the one after the other's last."""
        return self.stretch.first_index == before.stretch.last_index + 1 and self.stretch.first_term >= before.stretch.last_term

    def follows_at_once(self, before: PlacedStretch) -> bool:
        """Say whether nothing lies between the two, in one file or from one file to the next."""
        if self.walk is before.walk:
            return self.stretch.start == before.stretch.end
        ended = before.stretch.ended_by == FILLER or before.stretch.end == before.walk.size
        return self.stretch.start == 0 and ended and before.walk.start + before.walk.size == self.walk.start


def placed(walks: Iterable[DataWalk]) -> list[PlacedStretch]:
    """Return all stretches of the log, in its order."""
    return [PlacedStretch(w, s) for w in sorted(walks, key=lambda w: (w.start, w.path)) for s in w.stretches]


def is_leftover(stretch: PlacedStretch, before: PlacedStretch) -> bool:
    """Say whether these are old entries after a cut that was written over. They have a lower term, or indexes that were given
    again.

    A cut leaves its bytes, and new entries are written over them from its place on (MmapFileList.truncateOffset).
    """
    if stretch.walk is not before.walk or stretch.follows_at_once(before):
        return False
    return stretch.stretch.first_term < before.stretch.last_term or stretch.stretch.first_index <= before.stretch.last_index


def live_stretches(walks: Iterable[DataWalk]) -> list[PlacedStretch]:
    """Return the stretches of the log as it is now, without the rest of a cut after its new end."""
    found: list[PlacedStretch] = []
    for one in placed(walks):
        if found and is_leftover(one, found[-1]):
            continue
        found.append(one)
    return found


def live_ends(walks: Iterable[DataWalk]) -> dict[str, int]:
    """Return data files with leftovers: the position at which the log as it is now ends in each."""
    known = list(walks)
    all_of_it: Counter[str] = Counter(one.walk.path for one in placed(known))
    live: Counter[str] = Counter()
    ends: dict[str, int] = {}
    for one in live_stretches(known):
        live[one.walk.path] += 1
        ends[one.walk.path] = max(one.stretch.end, ends.get(one.walk.path, 0))
    return {path: end for path, end in ends.items() if live[path] < all_of_it[path]}
