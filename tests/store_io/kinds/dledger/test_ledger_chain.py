"""Where the log as it is now ends in each data file, with old entries after a cut."""

from __future__ import annotations

from dataclasses import replace

from store_io.kinds.dledger.ledger_chain import live_ends
from store_io.kinds.dledger.ledger_walks import HEADER, MAX_STRETCHES, DataWalk, Stretch

EACH = 90


def stretch(number: int, first: int, last: int, term: int = 3) -> Stretch:
    """At the place of that number, each apart from the next."""
    start = number * 10 * EACH
    return Stretch(start, start + (last - first + 1) * EACH, start, first, last, term, term, None, HEADER)


def walk(*stretches: Stretch, path: str = "data/0", start: int = 0) -> DataWalk:
    return DataWalk(path, start, 1 << 20, stretches=list(stretches))


def test_old_entries_after_a_cut_are_not_of_the_log() -> None:
    own = walk(stretch(0, 0, 4), stretch(1, 5, 6), stretch(2, 7, 8, term=2), stretch(3, 6, 8))
    following = walk(stretch(0, 7, 9), path="data/1", start=1 << 20)
    assert live_ends([following, own]) == {"data/0": own.stretches[1].end}


def test_as_many_stretches_as_are_kept_of_many_files() -> None:
    """A comparison of each with each would take minutes."""
    one = walk(*(stretch(k, k, k) for k in range(MAX_STRETCHES - 1)), stretch(MAX_STRETCHES, 0, 0))
    walks = [replace(one, path=f"data/{k:03}", start=k << 20) for k in range(20)]
    assert set(live_ends(walks).values()) == {one.stretches[-2].end}
