"""Ctrl-C and a scheduler's SIGTERM, which end every command alike: cleaned up, and with 130 or 143.

Both raise KeyboardInterrupt. Python drops an exception where none can be raised (a finalizer, a callback of C code), so the
signal is remembered too, and long work asks `check` between its steps.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_came: list[int] = []


def _interrupt(number: int, _: FrameType | None) -> None:
    _came.append(number)
    raise KeyboardInterrupt


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Hear both signals for as long as this lasts, and only those that come meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        # CPython ends by the signal, whatever the exit code, where a KeyboardInterrupt has left an exec of source text, as each
        # dataclass and named tuple is made by. The next exec of text clears that mark.
        exec("")


def check() -> None:
    """Raise KeyboardInterrupt where a signal has come, also one whose exception was lost."""
    if _came:
        raise KeyboardInterrupt


def came() -> bool:
    """Whether one has come since `heard` began."""
    return bool(_came)


def exit_code() -> int:
    """What the shell expects of a process that a signal has ended."""
    return 128 + (_came[0] if _came else signal.SIGINT)
