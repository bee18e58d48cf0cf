"""A segment through a bounded window, and the digest of its bytes in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.source.segment_window import DIGEST_PIECE_BYTES, PieceDigest


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
