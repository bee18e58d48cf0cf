"""Pieces of a segment: together they are the walk from its start, whatever its bytes are."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.formats.commitlog.message_columns import Columns, RecordCheck, TopicTable
from store_io.formats.commitlog.segment_walk import FAST, Decoding, decoder_of, stray_chain, walk_batches
from store_io.rules.releases import broker_rules
from store_io.scan.pieces import LEAST_BYTES, Piece, PieceWalk, likely_start, pieces_of, proof
from store_io.scan.resync import Resync
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow
from tests.support.stores.segments_with_records import write_segment_with_records


class _Walker:
    """Walks of one segment."""

    def __init__(self, path: Path, window_bytes: int) -> None:
        self.name, base = f"commitlog/{path.name}", int(path.name)
        file = open_source(StoreLocation(str(path.parent.parent))).open(self.name)
        self.window = SegmentWindow(file, file.size, window_bytes)
        self.check = RecordCheck.audit_of(base, broker_rules(), self.name)
        self.decoding = Decoding(decoder_of(FAST), self.window, Columns(500), TopicTable())

    def walk(self, start: int, high: int) -> tuple[list[int], int]:
        """(where messages are that begin before `high`, the first place at or beyond it at which the walk stands)."""
        resync = Resync(self.window, self.name, self.check.base_offset, self.check, False)
        found: list[int] = []
        at = start
        while at < high:
            batches = walk_batches(self.decoding, self.check, at, self.window.size)
            while True:
                try:
                    rows = self.decoding.columns.rows[: next(batches)]
                except StopIteration as stop:
                    at, verdict = stop.value
                    break
                met = np.append(rows["position"], rows["position"][-1] + rows["total_size"][-1])
                beyond = int(np.searchsorted(met, high))
                found += met[: min(beyond, len(rows))].tolist()
                if beyond < len(met):
                    return found, int(met[beyond])
            if at < high:
                resume = resync.judge(at, verdict, lambda start: stray_chain(self.decoding, self.check, start)).resume
                at = self.window.size if resume is None else resume
        return found, at


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 40), damages=st.integers(0, 6), window=st.sampled_from([300, 1 << 12]))
def test_pieces_that_are_proven_are_the_walk_from_the_start(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, damages: int, window: int
) -> None:
    path = write_segment_with_records(tmp_path_factory.mktemp("store"), random.Random(seed), damages)
    walker = _Walker(path, window)
    whole, _ = walker.walk(0, walker.window.size)
    pieces = pieces_of(walker.window.size, count, 1)
    found: list[list[int]] = []
    walks: list[PieceWalk] = []
    for piece in pieces:
        start = likely_start(walker.window, walker.name, walker.check, piece)
        assert start is None or piece.low <= start < piece.high
        rows, end = walker.walk(start, piece.high) if start is not None else ([], piece.low)
        found.append(rows)
        walks.append(PieceWalk(start, end))
    while (proven := proof(pieces, walks)).again is not None:
        number, again = proven.number, proven.again
        found[number], end = walker.walk(*again)
        walks[number] = PieceWalk(again.low, end)
    assert [at for number in proven.counted for at in found[number]] == whole


def test_a_record_in_a_body_begins_no_piece_that_counts() -> None:
    pieces = [Piece(0, 100), Piece(100, 200), Piece(200, 300)]
    assert proof(pieces, [PieceWalk(0, 120), PieceWalk(110, 210), PieceWalk(210, 300)]) == ([0], 1, Piece(120, 200))
    assert proof(pieces, [PieceWalk(0, 120), PieceWalk(120, 210), PieceWalk(210, 300)]) == ([0, 1, 2], 3, None)
    assert proof(pieces, [PieceWalk(0, 250), PieceWalk(120, 210), PieceWalk(210, 300)]) == ([0], 2, Piece(250, 300))
    assert proof(pieces, [PieceWalk(0, 300), PieceWalk(None, 100), PieceWalk(None, 200)]) == ([0], 3, None)


def test_a_piece_is_worth_a_task() -> None:
    assert pieces_of(1 << 30, 4) == [Piece(n << 28, n + 1 << 28) for n in range(4)]
    assert len(pieces_of(3 * LEAST_BYTES - 1, 100)) == 2
    assert pieces_of(5, 100) == [Piece(0, 5)]
    assert pieces_of(0, 3) == [Piece(0, 0)]
