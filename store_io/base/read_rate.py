"""Bounds how fast all tasks of one machine read together, so that a broker beside them keeps its share of the disk.

One small file in the machine's folder for temporary files holds the moment from which the next read may begin. Each read moves it
on by the time that it takes at its rate, under a lock, and then sleeps until its own moment, whichever process of this user it
belongs to. So over any span of time all of them together read no more than the rate allows, and one piece of each besides.

Other users may write into that folder, too. If the file of the usual name is not this user's alone, another file takes its
place, whose name begins with the usual one: nobody else can know that name before the file is there.
"""

from __future__ import annotations

import glob
import os
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from store_io.base.locks import lock_named

PIECE_BYTES = 1 << 20  # of a larger read: the sleep comes before each
_FORGET_SECONDS = 600.0  # a moment further ahead is from before the machine's last start
_MOMENT = struct.Struct("<d")


@dataclass(frozen=True)
class ReadRate:
    """A bound on the bytes read in a second, shared by processes through a file.

    bytes_per_second: more than 0.
    place: the file; "": this user's on this machine.
    """

    bytes_per_second: int
    place: str = ""
    now: Callable[[], float] = time.monotonic  # the machine's own clock, the same for all processes
    sleep: Callable[[float], None] = time.sleep

    def wait(self, size: int) -> None:
        """Sleep until this many bytes may be read. Raises OSError if the file cannot be used."""
        handle = self._locked()
        try:
            now, content = self.now(), os.pread(handle, _MOMENT.size, 0)
            free = _MOMENT.unpack(content)[0] if len(content) == _MOMENT.size else now
            begin = free if now <= free <= now + _FORGET_SECONDS else now  # a NaN is neither
            os.pwrite(handle, _MOMENT.pack(begin + size / self.bytes_per_second), 0)
        finally:
            os.close(handle)  # and with it the lock
        if begin > now:
            self.sleep(begin - now)

    def _locked(self) -> int:
        """Return a descriptor of its own for each read: one that a fork has inherited would share its lock."""
        place = self.place or f"{tempfile.gettempdir()}/store-audit-rate-{os.geteuid()}"
        made = False
        while True:
            found = next(((handle, path) for path in _places(place) if (handle := _own(path, path == place)) is not None), None)
            if found is None:
                if made:
                    raise OSError(f"{place}, which keeps the time for --max-rate, cannot be opened")
                os.close(tempfile.mkstemp(prefix=f"{os.path.basename(place)}-", dir=os.path.dirname(place))[0])
                made = True
            elif lock_named(*found, wait=True):
                return found[0]
            else:
                os.close(found[0])  # something that clears up has removed it meanwhile


def _places(place: str) -> Iterator[str]:
    """Yield the usual file, then those beside it in an order that is the same for all processes."""
    yield place
    yield from sorted(glob.iglob(f"{glob.escape(place)}-*"))


def _own(path: str, make: bool) -> int | None:
    """Return the file, open; None if it is not a file of this user's alone."""
    try:
        handle = os.open(path, (os.O_CREAT if make else 0) | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError:
        return None
    entry = os.fstat(handle)
    if stat.S_ISREG(entry.st_mode) and entry.st_uid == os.geteuid() and entry.st_nlink == 1:
        return handle
    os.close(handle)
    return None
