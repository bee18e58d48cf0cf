"""Object files of compiled code in the folder for such code, and the sources of which they are made. They are no files of a
store.

Kept for what somebody waits for: by these files `query` of the example takes 0.85 s of processor time, `explain` 1.14 s; by code
that numba keeps 1.17 s and 1.72 s, as numba itself has to be loaded.
"""

from __future__ import annotations

import errno
import grp
import hashlib
import importlib.util
import json
import os
import pwd
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from glob import escape, glob
from pathlib import Path
from typing import Any, NamedTuple

BROUGHT = "STORE_AUDIT_CODE"  # the variable that names a folder of object files from elsewhere: out of what `pack` makes
FOLDER = "NUMBA_CACHE_DIR"  # the variable that names the folder for compiled code; without it, it lies beside the source
DIGEST_BYTES = 16
_MOST_LINKS = 40  # as Linux follows
KEPT_SECONDS = 14 * 86_400  # of files with other digests: releases and machines may share a folder


@cache
def source_of(module: str) -> bytes:
    """Return a module's source; numba forgets kept code when the function's own changes, and knows nothing of other modules."""
    found = importlib.util.find_spec(module) if module not in sys.modules else sys.modules[module].__spec__
    if found is None:
        return b""
    try:
        return importlib.util.decode_source(Path(found.origin or "").read_bytes()).encode()
    except OSError:  # in a zip
        loader: Any = found.loader
        return (loader.get_source(module) or "").encode()


def numba_version() -> str:
    """Return the text that names numba's release, without loading numba."""
    found = importlib.util.find_spec("numba")
    home = os.path.dirname(found.origin or "") if found else ""
    try:
        with open(os.path.join(home, "_version.py"), encoding="utf-8") as file:
            return file.read()
    except OSError:  # in a zip, or built in another way
        from importlib.metadata import version

        return version("numba")


class _Quickly:
    asked = False


def start_quickly(asked: bool = True) -> None:
    """Have this process take object files: it answers one question, and numba would take most of its time."""
    _Quickly.asked = asked


def takes_files() -> bool:
    """Say whether numba takes object files."""
    return _Quickly.asked


@cache
def brought_folder() -> str:
    """Return the folder of object files that came with the packages. It is empty without any, or if its code may not be run.

    The folders around it are a cluster's, whose user starts this process too.
    """
    folder = os.environ.get(BROUGHT, "")
    return folder if os.path.isdir(folder) and not writable_by_others(folder, around=False) else ""


class CodeFile(NamedTuple):
    """An object file and how its function is called, as `machine.MachineCode`."""

    symbol: str
    result: str
    code: bytes


def code_folder(source: str) -> str:
    """Return the folder for the code of a source file. It is empty without one, or if its code may not be run."""
    beside = os.path.join(os.path.dirname(source), "__pycache__")
    folder = os.environ.get(FOLDER) or (beside if os.path.isdir(os.path.dirname(source)) else "")
    return folder if folder and not _writable(folder) else ""


def writable_by_others(folder: str, around: bool = True) -> str:
    """Return the first path through which another user than root may have put code into the folder. Empty: there is none. A
    folder that is not there has none.

    around: a folder or link on the way to it counts, too: who can change that can put another folder in its place.
    """
    try:
        for path in _way_to(folder) if around else ():
            status = os.lstat(path)
            if not _is_ours(status, path, sticky=bool(status.st_mode & stat.S_ISVTX) or stat.S_ISLNK(status.st_mode)):
                return path
        top = os.stat(folder)
        if not stat.S_ISDIR(top.st_mode) or not _is_ours(top, folder):
            return folder
        reached = top.st_mode & (stat.S_IXGRP | stat.S_IXOTH)  # else what lies in it is shut off, whatever its own mode is
        for place, folders, files in os.walk(folder):
            for path in (os.path.join(place, name) for name in (*folders, *files)):
                with suppress(FileNotFoundError):  # another process has replaced it
                    status = os.lstat(path)
                    if not _is_ours(status, path, sticky=not reached or stat.S_ISLNK(status.st_mode)):
                        return path
    except FileNotFoundError:
        return ""
    except OSError:
        return folder
    return ""


_writable = cache(writable_by_others)  # of a process, which asks before each function


def _way_to(folder: str) -> Iterator[str]:
    """Yield each folder and link that the system passes on its way to the folder, without the folder itself."""
    path, ahead = "/", [name for name in os.path.abspath(folder).split("/") if name]
    links = 0
    yield path
    while ahead:
        path = os.path.normpath(os.path.join(path, ahead.pop(0)))
        is_link = os.path.islink(path)
        if is_link or ahead:
            yield path
        if is_link:
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(path)
            ahead = [name for name in target.split("/") if name] + ahead
            path = "/" if target.startswith("/") else os.path.dirname(path)


def _is_ours(status: os.stat_result, place: str | int, sticky: bool = False) -> bool:
    """Say whether nobody but this user and root can write to a file, or into a folder.

    place: its path or descriptor.
    sticky: others who may write there cannot replace what is not theirs.
    """
    if status.st_uid not in (0, os.geteuid()):
        return False
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return sticky or not others or others == stat.S_IWGRP and status.st_gid == _private_group() and not _has_list(place)


def _private_group() -> int | None:
    """Return the group that only this user is in, or None. Systems make such a group for each user and then let groups write."""
    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return None
    return group.gr_gid if group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name} else None


def _has_list(place: str | int) -> bool:
    """Say whether a list names further users who may write: the mode then says nothing of the group."""
    try:
        return bool(os.getxattr(place, "system.posix_acl_access"))
    except OSError:
        return False


@cache
def trusted(folder: str) -> bool:
    """Say whether code in the folder may be run; says once why not."""
    if path := writable_by_others(folder):
        warnings.warn(refusal(folder, path), stacklevel=2)
    return not path


def refusal(folder: str, path: str) -> str:
    """Return the sentence on a folder whose code is not run. path: as `writable_by_others` found it."""
    return (
        f"compiled code in {folder!r} is not run, because another user may have put code there (see the owner and the mode of"
        f" {path!r}); remove that folder, or have {FOLDER} name a folder that only you can write to"
    )


def read_code(path: str) -> CodeFile | None:
    """Read a file of `write_code`. None if it is not whole, no regular file, or others may have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not _is_ours(status, descriptor):
                return None
            digest, data = file.read(DIGEST_BYTES), file.read()
        if hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() != digest:
            return None
        head, _, code = data.partition(b"\n")
        symbol, result = json.loads(head)
    except (OSError, ValueError, TypeError):
        return None
    return CodeFile(symbol, result, code) if isinstance(symbol, str) and isinstance(result, str) else None


def write_code(path: str, code: CodeFile) -> None:
    """Keep it, whole or not at all."""
    data = json.dumps([code.symbol, code.result]).encode() + b"\n" + code.code
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".object-")
        try:
            with open(descriptor, "wb") as file:
                file.write(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() + data)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        for older in glob(f"{escape(path.rpartition('-')[0])}-*.object"):  # of sources that have changed, or another machine's
            if older != path and os.stat(older).st_mtime < time.time() - KEPT_SECONDS:
                os.unlink(older)
