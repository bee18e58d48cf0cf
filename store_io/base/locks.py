"""Does work once, or one at a time, for threads of a process or processes that lock a file.

A signal ends the wait for somebody else's answer. `jobs` hears signals, and hands down how to look for one. Python raises a
signal's exception in the main thread alone: others end because they look.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
import time
from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from typing import Generic, TypeVar

_T = TypeVar("_T")
FIRST_SECONDS = 0.1  # of the pauses between the attempts of one thing: each is twice as long as the one before
LONGEST_SECONDS = 20.0
_LOOK_SECONDS = 0.2
_looks: list[Callable[[], None]] = []


class ProcessLock:
    """A lock for the threads of one process: `with lock.own:`. A process that was forked begins with another, which is free."""

    def __init__(self) -> None:
        self._begin_anew()
        # The thread that holds the lock while another one forks does not exist in the new process.
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self.own = threading.RLock()


class _MadeOnce(Generic[_T]):
    """A function whose answers are kept. `.cache_clear()` forgets them."""

    def __init__(self, make: Callable[..., _T], most: int | None):
        self._answers = lru_cache(most)(make)
        self.cache_clear = self._answers.cache_clear
        update_wrapper(self, make)
        self._lock = ProcessLock()

    def __call__(self, *asked: Hashable) -> _T:
        with self._lock.own:
            return self._answers(*asked)


def made_once(most: int | None = None) -> Callable[[Callable[..., _T]], _MadeOnce[_T]]:
    """Keep a function's answers as `lru_cache(most)` does, but let threads that ask at the same time share one answer.

    `lru_cache` alone lets each of these threads make an answer: one of them is then used and thrown away.
    """
    return lambda make: _MadeOnce(make, most)


def lock_named(handle: int, path: str, wait: bool = False) -> bool:
    """Lock an open file; return False if the path is no longer this file's.

    Another process may remove a file that is not locked yet. The lock then protects nothing, because the next process opens
    another file of that name. Begin anew.
    wait: until nobody else holds the lock. Raises BlockingIOError if another process holds it, OSError if the file system has no
    locks.
    """
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        named, opened = os.stat(path), os.fstat(handle)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def look_with(look: Callable[[], None]) -> None:
    """Have all waits of this process ended by what `look` raises."""
    _looks[:] = [look]


def check() -> None:
    """Raise what the look for a signal raises; nothing if nobody looks."""
    for look in _looks:
        look()


def pause(attempts: int) -> None:
    """Wait for a half to all of the pause's length after so many attempts.

    So many that failed together do not come back together.
    """
    seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (attempts - 1)) * random.uniform(0.5, 1)
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _LOOK_SECONDS))
    check()
