"""Gaps of a DLedger log get as many entries as indexes are missing, in exactly their bytes, or none at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from store_io.kinds.dledger.ledger_parts import BRIDGE, FILLER, HEADER, GapBytes, Piece, fill_gap

LEAST = 150


def nothing(base: int, position: int) -> int:
    return 0


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 3000), st.booleans()), min_size=1, max_size=4), st.integers(0, 40))
def test_pieces_fill_the_rooms_or_there_are_none(sizes: list[tuple[int, int, bool]], entries: int) -> None:
    rooms = [GapBytes(4096 * k, start, start + size, exact) for k, (start, size, exact) in enumerate(sizes)]
    pieces = fill_gap(rooms, entries, LEAST, nothing)
    if pieces is None:
        return
    assert sum(piece.kind == BRIDGE for piece in pieces) == entries
    for room in rooms:
        at = room.start
        for piece in (p for p in pieces if p.base == room.base):
            assert piece.start == at and (piece.kind == FILLER or piece.end - piece.start >= LEAST)
            assert piece.kind == BRIDGE or not room.exact and piece.end == room.end and piece.end - piece.start >= 8
            at = piece.end
        assert at == room.end


def test_an_entry_whose_message_is_whole_keeps_its_place() -> None:
    rooms = [GapBytes(0, 100, 900, True)]
    sizes = {148: 252}
    pieces = fill_gap(rooms, 2, LEAST, lambda base, position: sizes.get(position, 0))
    assert pieces == [Piece(HEADER, 0, 100, 400), Piece(BRIDGE, 0, 400, 900)]


def test_no_index_is_left_over_and_none_is_given_twice() -> None:
    assert fill_gap([GapBytes(0, 100, 900, True)], 0, LEAST, nothing) is None
    assert fill_gap([GapBytes(0, 100, 900, True)], 6, LEAST, nothing) is None
    assert fill_gap([GapBytes(0, 100, 900, True)], 5, LEAST, nothing) is not None
