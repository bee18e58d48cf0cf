"""The gaps of one audit, as they turn out."""

from __future__ import annotations

import pickle

import pytest

from schemas.gaps import Cause, Gap
from store_io.model.found_gaps import Gaps

A, B, C = (Gap(Cause.NOT_LISTED, path) for path in "abc")
LATE = Gap(Cause.TIME_LIMIT, values=("leftovers",))


def test_a_gap_that_is_there_is_not_added_again() -> None:
    gaps = Gaps([A])
    gaps.add([B, A, C])
    assert (gaps.found, gaps.broken) == ([A, B, C], False)


def test_what_cannot_be_read_ends_any_prediction() -> None:
    gaps = Gaps()
    gaps.cannot_read(A)
    assert (gaps.found, gaps.broken) == ([A], True)


def test_what_was_left_out_on_request_is_no_fault() -> None:
    gaps = Gaps([LATE, A])
    assert (gaps.on_purpose, gaps.faults) == ([LATE], [A])


@pytest.mark.parametrize("path", ["a", ""])
def test_a_failed_read_is_added_if_nothing_is_said_of_its_file(path: str) -> None:
    first, other = Gap(Cause.UNREADABLE, path, ("one",)), Gap(Cause.UNREADABLE, path, ("another",))
    gaps = Gaps([first])
    gaps.add_failed({"a": first, "b": other})
    assert gaps.found == ([first] if path else [first, other]) and set(gaps.failed) == {"a", "b"}


def test_a_gap_of_a_task_comes_back_as_it_was() -> None:
    assert pickle.loads(pickle.dumps(LATE)) == LATE and isinstance(pickle.loads(pickle.dumps(LATE)), Gap)
