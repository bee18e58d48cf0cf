"""Ctrl-C and a scheduler's SIGTERM, which end every command alike: cleaned up, and with 130 or 143.

Both raise KeyboardInterrupt. Python drops an exception where none can be raised (a finalizer, a callback of C code), so the
signal is remembered too, and long work asks `check` between its steps. Python would print a dropped exception with its traceback;
that of a signal is not printed, because the command reports the signal at its end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

_came: list[int] = []
_first_only_in: list[int] = []  # the process, while `first_only` lasts


def _interrupt(number: int, _: FrameType | None) -> None:
    if _first_only_in and os.getpid() != _first_only_in[0]:
        os._exit(128 + number)
    _came.append(number)
    if not _first_only_in or len(_came) == 1:
        raise KeyboardInterrupt


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Hear both signals for as long as this lasts, and only those that come meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    report_dropped = sys.unraisablehook

    def dropped(met: sys.UnraisableHookArgs) -> None:
        if not (_came and met.exc_type is KeyboardInterrupt):
            report_dropped(met)

    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = report_dropped
        for number, handler in before.items():
            signal.signal(number, handler)
        # CPython ends by the signal, whatever the exit code, where a KeyboardInterrupt has left an exec of source text, as each
        # dataclass and named tuple is made by. The next exec of text clears that mark.
        exec("")


@contextlib.contextmanager
def first_only() -> Iterator[None]:
    """Ignore a second signal within `heard`, as it would stop the cleaning up. Forked processes end at once."""
    _first_only_in.append(os.getpid())
    try:
        yield
    finally:
        _first_only_in.clear()


def check() -> None:
    """Raise KeyboardInterrupt if a signal arrived, also one whose exception was lost."""
    if _came:
        raise KeyboardInterrupt


def came() -> bool:
    """Say whether a signal has arrived since `heard` began."""
    return bool(_came)


@contextlib.contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads that may wait for a server. Unlike a ThreadPoolExecutor's alone, they are not waited for after a signal."""
    with contextlib.ExitStack() as without_signal:
        pool = ThreadPoolExecutor(count)
        without_signal.callback(pool.shutdown)
        try:
            yield pool
        except KeyboardInterrupt:
            without_signal.pop_all()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def leave(code: int) -> int:
    """Return the code to end the process with.

    After a signal the process ends here if threads are left: Python would wait for them.
    """
    if _came and any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def exit_code() -> int:
    """Return the code that the shell expects of a process that a signal has ended."""
    return 128 + (_came[0] if _came else signal.SIGINT)
