"""What dispatch appended to a queue, as columns: by file, by place, in chains, and as it was at an earlier moment."""

from __future__ import annotations

from store_io.broker.queues.queue_pieces import Piece, Pieces

UNIT = 20


def filled(*places: tuple[int, int]) -> Pieces:
    """(byte of the queue, entries) in files of 100 bytes; a piece's messages lie at ten times its byte."""
    pieces = Pieces()
    for start, count in places:
        file = start // 100 * 100
        pieces.append(Piece(file, start, count, start * 10, (start + (count - 1) * UNIT) * 10, 7))
    return pieces


def test_pieces_come_back_in_order_and_by_file() -> None:
    pieces = filled((0, 2), (40, 1), (100, 3))
    assert [(p.start, p.count) for p in pieces] == [(0, 2), (40, 1), (100, 3)]
    assert (len(pieces), pieces.newest.start) == (3, 100)
    assert [len(pieces.of_file(start)) for start in (0, 100, 200)] == [2, 1, 0]


def test_the_newest_piece_covers_what_it_was_written_over() -> None:
    part = filled((0, 5), (40, 1)).of_file(0)
    assert [(p.start, p.count) for p in part.covering(40, UNIT)] == [(40, 1), (0, 5)]
    assert [(p.start, p.count) for p in part.covering(60, UNIT)] == [(0, 5)]
    assert list(filled((0, 2)).of_file(0).covering(40, UNIT)) == []


def test_where_the_next_piece_begins() -> None:
    part = filled((20, 1), (80, 1)).of_file(0)
    assert [part.next_start(at, 100) for at in (0, 20, 80)] == [20, 80, 100]
    assert part.next_start(0, 10) == 10


def test_a_deleted_files_pieces_are_forgotten_and_a_snapshot_keeps_them() -> None:
    pieces = filled((0, 1), (100, 1))
    before = pieces.copy()
    pieces.drop_file(100)
    pieces.append(Piece(0, 20, 1, 9, 9, 7))
    assert [p.start for p in pieces] == [0, 20]
    assert [p.start for p in before] == [0, 100]
