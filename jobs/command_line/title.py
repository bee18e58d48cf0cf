"""Hides parts of a command line from other users of this machine (`ps`)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection


def hide(secrets: Collection[str]) -> None:
    """Overwrite these words everywhere in this process's title. Linux alone: elsewhere nothing is changed."""
    if not secrets or sys.platform != "linux":
        return
    import ctypes  # every command comes here, few have a secret

    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, of proc_pid_stat(5)
        if not 0 < start < end:
            return
        title = ctypes.string_at(start, end - start)
        for secret in map(os.fsencode, filter(None, secrets)):  # an empty word is everywhere
            place = title.find(secret)
            while place >= 0:
                ctypes.memset(start + place, ord("*"), len(secret))
                place = title.find(secret, place + len(secret))
