"""The gaps of one audit, as they turn out."""

from __future__ import annotations

import pickle

import pytest

from schemas.advice import Cause, Gap
from store_io.model.found_gaps import Gaps

LATE = Gap(Cause.TIME_LIMIT, values=("leftovers",))


@pytest.mark.parametrize("path", ["a", ""])
def test_a_failed_read_is_added_if_nothing_is_said_of_its_file(path: str) -> None:
    first, other = Gap(Cause.UNREADABLE, path, ("one",)), Gap(Cause.UNREADABLE, path, ("another",))
    gaps = Gaps([first])
    gaps.add_failed({"a": first, "b": other})
    assert gaps.found == ([first] if path else [first, other]) and set(gaps.failed) == {"a", "b"}


def test_a_gap_of_a_task_comes_back_as_it_was() -> None:
    assert pickle.loads(pickle.dumps(LATE)) == LATE and isinstance(pickle.loads(pickle.dumps(LATE)), Gap)
