"""Which files below a folder are opened, by whatever process: the kernel's own count (inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_OPEN, _IN_ISDIR, _IN_Q_OVERFLOW = 0x20, 0x40000000, 0x4000
_HEAD = struct.Struct("iIII")  # watch, what happened, cookie, length of the name


@contextmanager
def opened_below(folder: Path) -> Iterator[list[str]]:
    """A list that is filled when the block has ended: a path below the folder for each time that a regular file was opened."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert handle >= 0, os.strerror(ctypes.get_errno())
    opened: list[str] = []
    try:
        watched = {}
        for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            watch = libc.inotify_add_watch(handle, os.fsencode(place), _IN_OPEN)
            assert watch >= 0, os.strerror(ctypes.get_errno())
            watched[watch] = place
        yield opened
        while content := _read(handle):
            while content:
                watch, what, _, length = _HEAD.unpack_from(content)
                name = content[_HEAD.size : _HEAD.size + length].rstrip(b"\0")
                content = content[_HEAD.size + length :]
                assert not what & _IN_Q_OVERFLOW, "more happened than was kept"
                if not what & _IN_ISDIR:
                    opened.append((watched[watch] / os.fsdecode(name)).relative_to(folder).as_posix())
    finally:
        os.close(handle)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1 << 20)
    except BlockingIOError:
        return b""
