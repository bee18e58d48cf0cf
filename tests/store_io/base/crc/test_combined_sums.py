"""A digest that is made from known checksums is exactly that of the bytes."""

from __future__ import annotations

import threading
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from store_io.base.crc import checksum, combined_sums, known_sums
from store_io.source.piece_digest import DIGEST_PIECE_BYTES, PieceDigest

PIECE = 20_000


def sums_of(data: np.ndarray, parts: list[tuple[int, int]], first: int) -> np.ndarray:
    known = known_sums.no_sums(len(parts) * known_sums.LEAST_BYTES)
    for at, size in parts:
        place = known_sums.FIRST + known_sums.WORDS * known[known_sums.COUNT]
        known[place : place + known_sums.WORDS] = first + at, size, checksum.crc32(data[at : at + size].data)
        known[known_sums.COUNT] += 1
    return known


def sum_pieces(data: np.ndarray, first: int, piece: int, before: tuple[int, int], known: np.ndarray, sums: np.ndarray) -> Any:
    return combined_sums.sum_pieces(data, first, first + len(data), piece, *before, known, combined_sums.shift_table(), sums)


def pieces_of(data: np.ndarray) -> list[int]:
    return [zlib.crc32(data[at : at + PIECE].data) for at in range(0, len(data), PIECE)]


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_those_of_the_bytes(seed: int) -> None:
    """Parts in any order, that overlap, end in another piece, or lie partly or wholly beside what is asked for."""
    random = np.random.default_rng(seed)
    data = random.integers(0, 256, int(random.integers(1, 150_000)), np.uint8)
    cuts = sorted({0, len(data), *random.integers(0, len(data), int(random.integers(0, 6))).tolist()})
    parts = [(int(at), int(random.integers(1, 1 + min(30_000, len(data) - at)))) for at in random.integers(0, len(data), 12)]
    if seed % 4:
        parts.sort()
    first, found, filled, crc = int(random.integers(0, 1 << 40)), [], 0, 0
    known = sums_of(data, parts, first)
    for start, end in pairwise(cuts):
        sums = np.zeros(len(data) // PIECE + 1, np.int64)
        done, filled, crc = sum_pieces(data[start:end], first + start, PIECE, (filled, crc), known, sums)
        found += sums[:done].tolist()
    assert [*found, *([crc] if filled else [])] == pieces_of(data)


@pytest.mark.parametrize("length", [1, 767, 2047, 2048, 2049, 70_001, (1 << 18) - 1, 1 << 18, (1 << 20) - 1, 1 << 20])
def test_a_part_of_any_length(length: int) -> None:
    data = np.arange(length + 11, dtype=np.uint32).view(np.uint8)[: length + 11] * np.uint8(37) + np.uint8(5)
    known = sums_of(data, [(7, length)], 0)
    sums = np.zeros(1, np.int64)
    done, filled, crc = sum_pieces(data, 0, 1 << 21, (0, 0), known, sums)
    assert (done, filled, crc) == (0, len(data), zlib.crc32(data.data))


def test_what_is_known_is_not_read_again() -> None:
    data = np.arange(3 * DIGEST_PIECE_BYTES + 77, dtype=np.uint32).astype(np.uint8)
    parts = [(100, 50_000), (DIGEST_PIECE_BYTES - 5, 10), (2 * DIGEST_PIECE_BYTES, DIGEST_PIECE_BYTES), (len(data) - 9, 9)]
    known = sums_of(data, parts, 0)
    plain, quick, wrong = PieceDigest(), PieceDigest(), PieceDigest()
    plain.feed(data)
    quick.feed_known(data, 0, known)
    known[known_sums.FIRST + 2] ^= 1
    wrong.feed_known(data, 0, known)
    assert plain.text() == quick.text() != wrong.text()


def test_there_is_room_for_every_long_part_of_a_window() -> None:
    assert known_sums.no_sums(1 << 22)[known_sums.ROOM] == (1 << 22) // known_sums.LEAST_BYTES
    assert known_sums.no_sums(0).tolist() == [0, 0]


def test_a_table_that_is_replaced_while_it_is_used_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when another thread makes the cached table anew: nothing else holds the one that is used."""
    data = np.arange(100_000, dtype=np.uint32).astype(np.uint8)
    known, plain, quick = sums_of(data, [(100, 50_000)], 0), PieceDigest(), PieceDigest()
    made = combined_sums.shift_table

    def own_table() -> np.ndarray:
        numbers = made().copy()
        table = numbers.view()
        weakref.finalize(table, numbers.fill, 0)  # what lies there when nobody holds the table any more
        return table

    monkeypatch.setattr(combined_sums, "shift_table", own_table)
    plain.feed(data)
    quick.feed_known(data, 0, known)
    assert plain.text() == quick.text()


def test_threads_side_by_side_give_the_same_digest() -> None:
    data = np.arange(200_000, dtype=np.uint32).astype(np.uint8)
    known = sums_of(data, [(at, 2049) for at in range(100, len(data) - 2500, 2500)], 0)
    plain = PieceDigest()
    plain.feed(data)
    wanted, together = plain.text(), threading.Barrier(4)

    def digest() -> str:
        together.wait(60)
        quick = PieceDigest()
        quick.feed_known(data, 0, known)
        return quick.text()

    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            combined_sums.shift_table.cache_clear()
            assert {asked.result() for asked in [threads.submit(digest) for _ in range(4)]} == {wanted}
