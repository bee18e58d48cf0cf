"""Prints are the same for the same sets, whatever their order and parts, and tell others apart."""

from __future__ import annotations

from random import Random

import numpy as np

from store_io.base.fingerprints import SEED, Prints, PrintSums, Stretches, finished, fold_bytes, fold_number, prints_of


def equal(one: Prints, other: Prints) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("stretch", "count", "total"))


def test_prints_do_not_depend_on_order_or_parts() -> None:
    random = Random(1)
    members = [(random.randrange(5), random.getrandbits(64)) for _ in range(50)]

    def of(chosen: list[tuple[int, int]]) -> Prints:
        return prints_of(np.array([n for n, _ in chosen], np.int64), np.array([h for _, h in chosen], np.uint64))

    whole = of(members)
    assert whole.stretch.tolist() == [0, 1, 2, 3, 4] and whole.count.sum() == 50
    assert equal(whole, of(members[::-1])) and equal(whole, of(members[:20]) + of(members[20:]))
    sums = PrintSums(Stretches(0, 5, 1))
    for part in (members[7:], members[:7]):
        sums.add(np.array([n for n, _ in part]), np.array([h for _, h in part], np.uint64))
    assert equal(whole, sums.prints) and not equal(whole, of([(members[0][0], 5), *members[1:]]))


def test_a_hash_is_of_all_bytes() -> None:
    data = np.frombuffer(b"\0\0\0\0\0\0\1\2", np.uint8)
    assert fold_bytes(SEED, data, 0, 8) == fold_number(SEED, 258) != fold_number(SEED, 259)
    assert fold_number(SEED, -1) == fold_bytes(SEED, np.full(8, 255, np.uint8), 0, 8)
    assert finished(fold_number(SEED, 1)) != finished(fold_number(SEED, 2))


def test_stretches() -> None:
    assert (Stretches(10, 30, 10).count, Stretches(10, 31, 10).count, Stretches(5, 5, 10).count) == (2, 3, 0)
