"""Where numba keeps the decoders that it compiles. Standard library only."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

from jobs.environment.installation import SetupFailed, say, user_cache
from jobs.environment.setup import state


def numba_cache() -> str:
    """A folder that can be written to, for compiled decoders; numba refuses to compile without one.

    The caller's own, the environment's, the user's cache; where none of them can be written to, one for temporary files, which is
    said. Raises SetupFailed.
    """
    wanted = [os.environ.get("NUMBA_CACHE_DIR"), str(state() / "numba") if state().is_dir() else None]
    if cache := user_cache():
        wanted.append(str(cache / "numba"))
    folders = [folder for folder in wanted if folder]
    for folder in folders:
        if _is_writable(folder):
            return folder
    tried = f"{' and '.join(folders)} cannot be written to"
    try:
        folder = _own_temporary_folder()
    except OSError as problem:
        raise SetupFailed(f"no folder for compiled code: {tried}; {problem}") from None
    say(f"compiled code is kept in {folder}: {tried}")
    return folder


def _is_writable(folder: str) -> bool:
    try:
        os.makedirs(folder, 0o755, exist_ok=True)  # code in a folder that others may write to is not run
        with tempfile.TemporaryFile(dir=folder):  # what numba tries as well; os.access does not know every file system's mind
            return True
    except OSError:
        return False


def _own_temporary_folder() -> str:
    """The same folder in each run, unless another user owns it: code in it is run."""
    folder = os.path.join(tempfile.gettempdir(), f"store-audit-numba-{os.geteuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return folder if ours and _is_writable(folder) else tempfile.mkdtemp(prefix="store-audit-numba-")
