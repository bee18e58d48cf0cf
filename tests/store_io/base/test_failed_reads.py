"""Failed reads are noted whatever becomes of their errors; only who says so does without them."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from schemas.advice import Cause, Gap
from store_io.base.errors import Denied, NotAFile, StoreChanged, StoreError, UnfitDonor, Unreadable, UsageError
from store_io.base.failed_reads import (
    MOST_NOTED,
    can_do_without,
    every_read,
    failed_reads,
    note,
    noted_unless,
    noting,
    unless_denied,
    with_every_read,
)
from store_io.base.tasks import PartlyRead, run_task


def fail(path: str, kind: type[StoreError] = Unreadable) -> None:
    """A read that fails, and an `except` that swallows it."""
    with contextlib.suppress(StoreError), noting(path):
        raise kind(f"{path}: fails")


def gap_of(path: str, cause: Cause = Cause.UNREADABLE) -> Gap:
    return Gap(cause, path, (f"{path}: fails",))


def test_a_swallowed_error_is_noted_once_for_each_file() -> None:
    with failed_reads() as failed:
        fail("a")
        fail("a", StoreChanged)
        fail("b", StoreChanged)
        fail("c", NotAFile)  # what lies there is content
    assert failed == {"a": gap_of("a"), "b": gap_of("b", Cause.CHANGED_WHILE_READ)}
    fail("nobody asks")


def test_an_inner_one_takes_its_own() -> None:
    with failed_reads() as outer:
        with failed_reads() as inner:
            fail("a")
        fail("b")
        with can_do_without("a reason"):
            fail("c")
    assert list(inner) == ["a"] and list(outer) == ["b"]


def test_every_read_raises_at_its_end() -> None:
    with pytest.raises(Unreadable, match="a: fails"), every_read():
        fail("a")
    with pytest.raises(KeyError), every_read():  # an error of its own counts more
        fail("a")
        raise KeyError
    with every_read():
        pass


def test_a_part_of_an_answer_is_not_given_after_a_read_that_failed() -> None:
    def parts(failing: str) -> Iterator[str]:
        for name in "abc":
            if name == failing:
                fail(name)
            yield name
        if failing == "end":
            fail("end")

    given: list[str] = []
    with pytest.raises(Unreadable, match="b: fails"):
        given.extend(with_every_read(parts("b")))
    with pytest.raises(Unreadable, match="end: fails"):
        given.extend(with_every_read(parts("end")))
    with failed_reads() as failed:
        for name in with_every_read(parts("")):
            given.append(name)
            fail(f"between {name} and the next")  # no read of the answer
    assert given == list("aabcabc") and len(failed) == 3


@pytest.mark.parametrize("kind", [StoreError, UnfitDonor, UsageError])
def test_what_may_only_follow_from_a_failed_read_is_not_said(kind: type[StoreError]) -> None:
    for fails in (False, True):
        with pytest.raises(StoreError) as raised, every_read():
            if fails:
                note("a", Unreadable("a: fails"))
            raise kind("it does not fit")
        assert str(raised.value) == ("a: fails" if fails and kind is not UsageError else "it does not fit")


@pytest.mark.parametrize(("kind", "noted"), [(Denied, []), (Unreadable, ["a"]), (StoreChanged, ["a"])])
def test_a_file_that_is_denied_may_not_be_needed(kind: type[StoreError], noted: list[str]) -> None:
    with failed_reads() as failed, contextlib.suppress(StoreError), noted_unless(Denied), noting("a"):
        raise kind("a: fails")
    assert list(failed) == noted


@pytest.mark.parametrize("denials", [0, 1, 2])
def test_a_file_that_is_denied_for_a_moment_is_read(denials: int) -> None:
    left = [Denied("a: no permission")] * denials

    def read() -> str:
        with noting("a"):
            if left:
                raise left.pop()
        return "bytes"

    with failed_reads() as failed:
        if denials < 2:
            assert unless_denied(read) == "bytes"
        else:
            with pytest.raises(Denied):
                unless_denied(read)
    assert not failed


def test_of_many_files_some_are_noted() -> None:
    with failed_reads() as failed:
        for number in range(MOST_NOTED + 5):
            note(str(number), Unreadable("fails"))
    assert len(failed) == MOST_NOTED


@dataclass(frozen=True)
class Swallowing:
    store: int = 0
    not_after: float = 0
    bytes_to_read: int = 0
    paths: tuple[str, ...] = ()
    fails: bool = True

    def run(self) -> str:
        if self.fails:
            fail("a")
        return "result"


def test_a_task_tells_what_it_swallowed() -> None:
    assert pickle.loads(pickle.dumps(run_task(Swallowing()))) == PartlyRead("result", {"a": gap_of("a")})
    assert run_task(Swallowing(fails=False)) == "result"
