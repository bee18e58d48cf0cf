"""A segment through a bounded window, and the digest of its bytes in pieces."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from store_io.source.byte_file import ByteFile
from store_io.source.piece_digest import DIGEST_PIECE_BYTES, PieceDigest
from store_io.source.segment_window import SegmentWindow


@pytest.mark.parametrize("lead", [0, 7, DIGEST_PIECE_BYTES])
@pytest.mark.parametrize("count", [0, 3, DIGEST_PIECE_BYTES - 7, 3 * DIGEST_PIECE_BYTES + 1])
def test_zeros_that_nobody_has_give_the_digest_of_zeros(lead: int, count: int) -> None:
    one, two = PieceDigest(), PieceDigest()
    for digest in (one, two):
        digest.feed(np.ones(lead, np.uint8))
    one.feed(np.zeros(count, np.uint8))
    two.feed_zeros(count)
    assert one.text() == two.text()


def test_the_digest_of_any_number_of_zeros_is_told_at_once() -> None:
    digests = [PieceDigest() for _ in range(3)]
    for digest, count in zip(digests, (1 << 62, (1 << 62) + 1, (1 << 62) + DIGEST_PIECE_BYTES), strict=True):
        digest.feed_zeros(count)
    assert len({d.text() for d in digests}) == 3


class _Holed(ByteFile):
    """Random bytes with a hole of zeros in the middle."""

    def __init__(self, random: Random, size: int):
        self.path, self.size = "holed", size
        self.data = np.frombuffer(random.randbytes(size), np.uint8).copy()
        self.hole = size // 3, size // 2
        self.data[slice(*self.hole)] = 0

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        part = self.data[position : position + len(buffer)]
        memoryview(buffer)[: len(part)] = part
        return len(part)

    def next_data(self, position: int) -> int:
        return self.hole[1] if self.hole[0] <= position < self.hole[1] else position


@pytest.mark.parametrize("seed", range(12))
def test_the_digest_is_that_of_the_bytes_however_the_window_moves(seed: int) -> None:
    random = Random(seed)
    file = _Holed(random, random.randrange(1, 3 * DIGEST_PIECE_BYTES))
    plain = PieceDigest()
    plain.feed(file.data)
    window = SegmentWindow(file, file.size, random.choice([1_000, 300_000, 2_000_000]), digest=True)
    at = 0
    for _ in range(random.randrange(30)):
        step = random.choice(["on", "far", "back", "zeros"])
        if step == "on":
            window.hold(at := min(file.size, at + random.randrange(1 + window.end - min(at, window.end))))
        elif step in ("far", "back"):
            window.hold(at := random.randrange(file.size))
        else:
            at = max(at, window.skip_zeros(at, 8))
    assert window.digest() == plain.text()
