"""Turns an exception into one line, and into an exit code. Standard library only: a command may fail before Spark is there.

Spark's exceptions ask the JVM for their text, and may outlive it. So only this module calls `str` on one.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
from typing import Any

from jobs.installation import SPEAKER
from jobs.report.texts.text import printable
from jobs.runtime import interrupts
from store_io.base.errors import StoreError
from store_io.source.storage_options import without_secrets

TRACEBACK = "STORE_AUDIT_TRACEBACK"  # the variable that asks for one
_MOST = 500
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_ROOM_WORDS = tuple(map(os.strerror, _NO_ROOM))
_CAUSE = "↳"  # delta-rs draws its causes as a tree, a line each, below a first line that names only the kind
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def reason(problem: BaseException) -> str:
    """Say why, in one line, without a stack. Never raises."""
    try:
        text = _text(problem)
    except Exception:  # the JVM that held the text has ended
        text = ""
    lines = [line.strip() for line in without_secrets(text).splitlines() if line.strip()]
    if any(_CAUSE in line for line in lines[1:]):
        return ": ".join(filter(None, (_COLOUR.sub("", line).strip(f" {_CAUSE}") for line in lines)))[:_MOST]
    return lines[0][:_MOST] if lines else type(problem).__name__


def _text(problem: BaseException) -> str:
    java: Any = getattr(problem, "java_exception", None)
    if java is not None:
        while java.getCause() is not None:
            java = java.getCause()
        return str(java.getMessage() or java.getClass().getName())
    if isinstance(problem, OSError):
        return problem.strerror or str(problem)
    described = getattr(problem, "_desc", None)  # PySpark's own: its `str` wants the JVM too
    return described if isinstance(described, str) and described.strip() else str(problem)


def fault_sentence(problem: BaseException) -> str:
    """Return the sentence on an exception that no command foresees."""
    why, name = reason(problem), type(problem).__name__
    return f"stopped by a fault of this program: {name}" + (f": {why}" if why != name else "")


def is_no_room(problem: BaseException | None) -> bool:
    """Say whether an error, or one from which it follows, says that a disk is full.

    It says so by its number; errors of the JVM and of delta-rs keep no number, but the words of the system.
    """
    while problem is not None:
        if isinstance(problem, OSError):
            if problem.errno in _NO_ROOM:
                return True
        elif not isinstance(problem, StoreError) and any(words in reason(problem) for words in _NO_ROOM_WORDS):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def is_sparks(problem: BaseException) -> bool:
    """Say whether Spark, or the connection to it, raised this."""
    return any(kind.__module__.split(".")[0] in ("pyspark", "py4j") for kind in type(problem).__mro__)


def ending(code: int) -> str:
    """Say how a process ended, by its return code as `subprocess` gives it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def sentence_and_code(problem: BaseException) -> tuple[str, int]:
    """Return (sentence, exit code) for the error that has ended a command.

    It is raised again if it is no Exception or interrupt.
    """
    if os.environ.get(TRACEBACK) and not isinstance(problem, KeyboardInterrupt | SystemExit):
        traceback.print_exception(problem)
    if isinstance(problem, BrokenPipeError):  # the reader of the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", StoreError.exit_code
    if interrupts.came() or isinstance(problem, KeyboardInterrupt):  # whatever the interrupted call made of it
        return "", interrupts.exit_code()
    if isinstance(problem, StoreError):
        return str(problem), problem.exit_code
    if isinstance(problem, Exception):
        return f"{fault_sentence(problem)} ({TRACEBACK}=1 shows where)", StoreError.exit_code
    raise problem


def say(sentence: object, speaker: str = SPEAKER) -> None:
    """Print a sentence, or the sentence of an error, as one line of standard error. It may hold a user's text."""
    print(f"{speaker}: {printable(sentence)}", file=sys.stderr, flush=True)
