"""How fast all tasks of one machine read together, so that a broker beside them keeps its share of the disk.

One small file in the machine's folder for temporary files holds the moment from which the next read may begin. Each read moves it
on by the time that it takes at its rate, under a lock, and then sleeps until its own moment, whichever process of this user it
belongs to. So over any span of time all of them together read no more than the rate allows, and one piece of each besides.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

PIECE_BYTES = 1 << 20  # of a larger read: the sleep comes before each
_FORGET_SECONDS = 600.0  # a moment further ahead is from before the machine's last start
_MOMENT = struct.Struct("<d")


@dataclass(frozen=True)
class ReadRate:
    """bytes_per_second: more than 0.  place: the file; "": this user's on this machine."""

    bytes_per_second: int
    place: str = ""
    now: Callable[[], float] = time.monotonic  # the machine's own clock, the same for all processes
    sleep: Callable[[float], None] = time.sleep

    def wait(self, size: int) -> None:
        """Sleep until this many bytes may be read. Raises OSError where the file cannot be used."""
        handle = self._open()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            now, content = self.now(), os.pread(handle, _MOMENT.size, 0)
            free = _MOMENT.unpack(content)[0] if len(content) == _MOMENT.size else now
            begin = free if now <= free <= now + _FORGET_SECONDS else now  # a NaN is neither
            os.pwrite(handle, _MOMENT.pack(begin + size / self.bytes_per_second), 0)
        finally:
            os.close(handle)  # and with it the lock
        if begin > now:
            self.sleep(begin - now)

    def _open(self) -> int:
        """A descriptor of its own for each read: one that a fork has inherited would share its lock."""
        place = self.place or f"{tempfile.gettempdir()}/store-audit-rate-{os.geteuid()}"
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        entry = os.fstat(handle)
        if stat.S_ISREG(entry.st_mode) and entry.st_uid == os.geteuid() and entry.st_nlink == 1:
            return handle
        os.close(handle)
        raise OSError(f"{place}, which keeps the time for --max-rate, is not a file of this user's alone")
