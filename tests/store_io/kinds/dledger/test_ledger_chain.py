"""Where the log as it is now ends in each data file, with old entries after a cut."""

from __future__ import annotations

from dataclasses import replace

from store_io.kinds.dledger.ledger_chain import PlacedStretch, live_ends, placed
from store_io.kinds.dledger.ledger_checks import _breaks
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


def test_one_entry_alone_is_odd_where_what_follows_it_at_once_continues_what_is_before_it() -> None:
    def together(*indexes: tuple[int, int]) -> list[PlacedStretch]:
        """One at the other's end, from entry `first` to `last` each."""
        found, at = [], 0
        for first, last in indexes:
            end = at + (last - first + 1) * EACH
            found.append(Stretch(at, end, end - EACH, first, last, 3, 3, None, HEADER))
            at = end
        return placed([walk(*found)])

    def counts(*indexes: tuple[int, int]) -> list[tuple[int, int]]:
        return [(finding.start or 0, finding.count) for finding in _breaks(together(*indexes))]

    assert counts((0, 4), (9, 9), (6, 8)) == [(5 * EACH + 8, 1)]
    assert counts((0, 4), (9, 10), (6, 8)) == [(5 * EACH + 8, 4), (7 * EACH + 8, 1)]
