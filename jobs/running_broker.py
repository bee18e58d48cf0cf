"""Signs that a broker still runs on a directory, for a person at a terminal. The clock decides no more than what is said here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from schemas.rows import StoreFile
from store_io.audit.checks.repaired_store import REPORT_SUFFIX
from store_io.base.paths import is_uri
from store_io.base.wording import count_text

_ABORT, _LOCK, _LOCKS = "abort", "lock", "/proc/locks"
_JUST_NOW = 120  # seconds: a broker flushes its checkpoint and tables more often


@dataclass(frozen=True)
class BrokerSigns:
    """The signs that a broker runs on a store, as sentences; "" without such a sign.

    held: who holds the broker's lock.
    written: which files are fresh.
    """

    held: str = ""
    written: str = ""

    def __bool__(self) -> bool:
        return bool(self.held or self.written)

    def sentences(self) -> list[str]:
        """Whatever there is to say, without full stops."""
        return list(filter(None, (self.held, self.written)))


def broker_signs(path: str, files: Iterable[StoreFile]) -> BrokerSigns:
    """Look for a broker that still runs on the store at this path. files: all of its listing."""
    if is_uri(path):
        return BrokerSigns()
    holder = _holder_of(os.path.join(path, _LOCK))
    held = f"{path}: {holder} holds the file {_LOCK} in it, so a broker runs on this directory and changes it"
    return BrokerSigns(held if holder else "", _written(path, files))


def _written(path: str, files: Iterable[StoreFile]) -> str:
    """Say which files were written just now, if the copy shows that it is not all of one moment.

    Other files or the abort file show that.
    """
    times = [entry.mtime_ns / 1e9 for entry in files if entry.kind == "file"]
    now = time.time()
    fresh = [each for each in times if 0 <= now - each < _JUST_NOW]
    if not fresh or max(times) > now:
        return ""
    if _repaired_at(path) >= max(fresh):
        return ""
    newest, running = now - max(fresh), os.path.lexists(os.path.join(path, _ABORT))
    if len(fresh) < len(times):
        said = f"{count_text(len(fresh), 'file')} of {len(times):,} {'was' if len(fresh) == 1 else 'were'} written just now"
        perhaps = "a broker still runs on this directory" if running else "it is still being copied, or a broker runs on it"
        return f"{path}: {said}, the newest {newest:.0f} s ago: perhaps {perhaps}"
    if not running:
        return ""
    return (
        f"{path}: the file {_ABORT} is there, and a file was written {newest:.0f} s ago: perhaps a broker still runs on this"
        " directory, or it was copied without its times (cp -a keeps them)"
    )


def _repaired_at(path: str) -> float:
    """When a repair wrote its report on this store, after all its files; 0 without one."""
    try:
        return os.stat(path + REPORT_SUFFIX).st_mtime
    except OSError:
        return 0


def _holder_of(path: str) -> str:
    """Name the process that holds a lock on this file, as a broker does while it runs; else "".

    It is "" too if this system does not say it.
    """
    try:
        status = os.stat(path)
        with open(_LOCKS, encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) < 8 or "->" in words:  # one that only waits for it
                    continue
                major, minor, inode = words[5].split(":")
                if int(inode) == status.st_ino and os.makedev(int(major, 16), int(minor, 16)) == status.st_dev:
                    process = int(words[4])
                    return f"process {process}" if process > 0 else "a process"  # -1: a lock of an open file, not of a process
    except (OSError, ValueError):
        return ""
    return ""


def refused(signs: BrokerSigns, what: str) -> str:
    """Why nothing is made of a directory whose lock a broker holds. what: the verb, as rescue."""
    return f"{signs.held}; stop the broker, copy the directory with its times (cp -a), and {what} the copy"
