"""Processes that tests start."""

from __future__ import annotations

import ctypes
import signal
import sys


def end_with_parent() -> None:
    """Called in a new process (`preexec_fn`): Linux ends it when its parent ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
