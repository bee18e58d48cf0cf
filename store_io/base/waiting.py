"""Waits for somebody else's answer, which a signal ends.

`jobs` hears signals, and hands down how to look for one. Python raises a signal's exception in the main thread alone: others end
because they look.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_SECONDS = 0.1  # of the pauses between the attempts of one thing: each is twice as long as the one before
LONGEST_SECONDS = 20.0
_LOOK_SECONDS = 0.2

_looks: list[Callable[[], None]] = []


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
