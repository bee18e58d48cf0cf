"""The folder in which numba keeps the decoders that it compiles. Standard library only."""

from __future__ import annotations

import contextlib
import os
import tempfile

from jobs.installation import SetupFailed, user_cache
from jobs.runtime.faults import say
from jobs.runtime.setup import state
from store_io.base.compiled.code_files import FOLDER, refusal, writable_by_others


def numba_cache() -> str:
    """Return a folder for compiled decoders that this user can write to, and nobody else. numba refuses to compile without one.

    The caller's own, the environment's, the user's cache; if none of them will do, one for temporary files, which is said. So is
    that code in a folder is not run, unless only the folders around are at fault, which this user may not be able to change.
    Raises SetupFailed.
    """
    named = os.environ.get(FOLDER)
    wanted = [named, str(state() / "numba") if state().is_dir() else None]
    if cache := user_cache():
        wanted.append(str(cache / "numba"))
    folders = [folder for folder in wanted if folder]
    for folder in folders:
        if not _is_writable(folder):
            continue
        if not (path := writable_by_others(folder)):
            return folder
        if folder == named or f"{path}/".startswith(f"{folder}/"):
            say(refusal(folder, path))
    tried = f"{' and '.join(folders)} cannot be used"
    try:
        folder = _own_temporary_folder()
    except OSError as problem:
        raise SetupFailed(f"no folder for compiled code: {tried}; {problem}") from None
    say(f"compiled code is kept in {folder}: {tried}")
    return folder


def _is_writable(folder: str) -> bool:
    try:
        # Others have no use for this user's code. Root's may be another user's environment, as in an image of a container.
        os.makedirs(folder, 0o700 if os.geteuid() else 0o755, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # what numba tries as well; os.access does not know every file system's mind
            return True
    except OSError:
        return False


def _own_temporary_folder() -> str:
    """Return the same folder in each run, unless another user owns it: code in it is run."""
    folder = os.path.join(tempfile.gettempdir(), f"store-audit-numba-{os.geteuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    ours = not os.path.islink(folder) and os.stat(folder).st_uid == os.geteuid() and not writable_by_others(folder)
    return folder if ours and _is_writable(folder) else tempfile.mkdtemp(prefix="store-audit-numba-")
