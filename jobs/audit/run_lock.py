"""One run at a time into one --out: a second one would remove and overwrite files that the first speaks of.

The lock is flock's on a file that exists as long as the run: it ends with the process, however that ends. A remote --out
(s3://, hdfs://) has nothing of the kind; there two runs are the caller's to keep apart.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator

from store_io.base.errors import UsageError
from store_io.base.locks import lock_named
from store_io.base.paths import is_uri

LOCK_FILE = ".lock"
_UNABLE = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}


@contextlib.contextmanager
def hold(out: str, run_id: str, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder of --out, which is made if it is missing.

    warn: takes a sentence if nothing can be locked.

    Raises UsageError if another run holds it: nothing of that run is touched then. Any other fault of the folder is reported when
    something is written there.
    """
    handle = None if is_uri(out) else _take(out, warn)
    if handle is None:
        yield
        return
    path = f"{out}/{LOCK_FILE}"
    try:
        with contextlib.suppress(OSError):  # only for the sentence that a second run says
            os.ftruncate(handle, 0)
            os.write(handle, f"run {run_id}, process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # before it is unlocked: a run that locks the file then sees that it has no name any more
        os.close(handle)


def _take(out: str, warn: Callable[[str], None]) -> int | None:
    """Return the locked file; None if the folder or its file system allows none."""
    path = f"{out}/{LOCK_FILE}"
    while True:
        try:
            os.makedirs(out, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        try:
            if lock_named(handle, path):
                return handle
        except BlockingIOError:
            holder = os.read(handle, 300).decode("utf-8", "replace")
            os.close(handle)
            raise UsageError(f"--out {out!r}: {holder or 'another run'} is writing there; wait, or name another folder") from None
        except OSError as problem:
            os.close(handle)
            if problem.errno not in _UNABLE:
                return None
            warn(f"--out {out!r}: its file system has no locks; a second run into it at the same time would mix with this one")
            return None
        os.close(handle)  # the run that held it has removed it: a file of that name, if there is one, is another
