"""A folder of temporary files, the JVM's above all. One that a killed run has left is removed by the next run.

A run locks a file in its folder; the system releases the lock however the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
import time

from store_io.base.locks import lock_named

PREFIX = "store-audit-scratch-"
_LOCK = "lock"
_NEVER_LOCKED_AFTER = 3600  # seconds


class Scratch:
    """One folder, made on creation. `.path`; `.remove()` when done."""

    def __init__(self) -> None:
        """Raises OSError."""
        while not self._made():
            pass
        atexit.register(self.remove)

    def _made(self) -> bool:
        """Say whether this made a folder and locked it. Another run may take an unlocked one for abandoned and remove it."""
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        try:
            self._handle = os.open(f"{self.path}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return False
        try:
            made = lock_named(self._handle, f"{self.path}/{_LOCK}")
        except BlockingIOError:
            made = False
        except OSError:  # if nothing can be locked, nothing is taken for abandoned either
            made = True
        if not made:
            os.close(self._handle)
        return made

    def remove(self) -> None:
        atexit.unregister(self.remove)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def remove_left() -> None:
    """Remove this user's folders of runs that are no more. Never raises: they only take up room."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    try:
        handle = os.open(f"{path}/{_LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:  # its run is about to make the lock, or was killed before it could
        if time.time() - status.st_mtime > _NEVER_LOCKED_AFTER:
            shutil.rmtree(path, ignore_errors=True)
        return
    try:
        if lock_named(handle, f"{path}/{_LOCK}"):  # raises if its run is still there
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
