"""Processes and threads that tests start, and what is waited for of them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

PATIENCE_SECONDS = 300  # nothing takes that long: who waits in vain has met a fault, on a busy machine too


def until(there: Callable[[], object], what: str) -> None:
    """Wait for what another process does, where nothing tells of it. An event of a thread is waited for by itself."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not there():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)


def state_of(process: int) -> str:
    """The process's letter in /proc: S where it sleeps, Z or "" when it has ended."""
    with suppress(OSError), open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
    return ""


def open_files() -> set[str]:
    """What this process has open, by number and name."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of this listing
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
    return found


def end_with_parent() -> None:
    """Called in a new process (`preexec_fn`): Linux ends it when its parent ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
