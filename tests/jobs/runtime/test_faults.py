"""What an exception says in one line, whoever raised it."""

from __future__ import annotations

import errno
import os
import signal
from typing import Any

import pytest

from jobs.runtime.faults import ending, fault_sentence, is_no_room, is_sparks, reason
from store_io.base.errors import StoreError


class Java:
    """An exception of the JVM, as py4j shows it."""

    def __init__(self, message: str | None, cause: Java | None = None):
        self.message, self.cause = message, cause

    def getCause(self) -> Java | None:
        return self.cause

    def getMessage(self) -> str | None:
        return self.message

    def getClass(self) -> Any:
        return type("Class", (), {"getName": staticmethod(lambda: "java.lang.Odd")})


def of_java(java: Any) -> Exception:
    problem = Exception("the outermost")
    problem.java_exception = java  # type: ignore[attr-defined]
    return problem


class Gone(Exception):
    """Its text is not to be had any more."""

    def __str__(self) -> str:
        raise RuntimeError("the JVM has ended")


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (ValueError("one\ntwo"), "one"),
        (ValueError("\n  first  \n"), "first"),
        (ValueError(), "ValueError"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "No space left on device"),
        (of_java(Java("outer", Java("the cause"))), "the cause"),
        (of_java(Java(None)), "java.lang.Odd"),
        (Gone(), "Gone"),
    ],
)
def test_the_reason_is_one_line(problem: BaseException, text: str) -> None:
    assert reason(problem) == text


@pytest.mark.parametrize(
    ("cause", "full"),
    [
        (OSError(errno.ENOSPC, "whatever the system calls it"), True),
        (OSError(errno.EACCES, os.strerror(errno.ENOSPC)), False),
        (of_java(Java("outer", Java(f"x: {os.strerror(errno.EDQUOT)}"))), True),
        (ValueError("no number"), False),
        (StoreError(os.strerror(errno.ENOSPC)), False),  # a sentence of this program decides nothing
    ],
)
def test_a_full_disk_is_seen_behind_the_error_that_follows_from_it(cause: Exception, full: bool) -> None:
    try:
        try:
            raise cause
        except Exception:
            raise StoreError("cannot write") from None
    except StoreError as problem:
        assert is_no_room(problem) is full


def test_a_reason_is_bounded() -> None:
    assert len(reason(ValueError("x" * 10_000))) == 500


def test_a_fault_of_this_program_is_called_one() -> None:
    assert fault_sentence(KeyError("k")) == "stopped by a fault of this program: KeyError: 'k'"
    assert fault_sentence(KeyError()) == "stopped by a fault of this program: KeyError"


def test_whose_exception_it_is() -> None:
    from py4j.protocol import Py4JNetworkError

    assert is_sparks(Py4JNetworkError("lost")) and not is_sparks(ValueError("ours"))


def test_how_a_process_ended() -> None:
    assert [ending(code) for code in (0, 3, -signal.SIGKILL, -250)] == ["exit code 0", "exit code 3", "SIGKILL", "signal 250"]


def test_the_causes_that_delta_rs_draws_below_its_first_line() -> None:
    drawn = "Kernel error -> Generic S3 error\n   \x1b[31m↳\x1b[0m Error performing GET\n    \x1b[31m↳\x1b[0m HTTP error\n\n"
    assert reason(OSError(drawn)) == "Kernel error -> Generic S3 error: Error performing GET: HTTP error"
