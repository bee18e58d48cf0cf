"""Finds signs that a copy is not at rest: a broker that runs on it, lengths that Spark sees otherwise.

The signs of a broker are for a person at a terminal. The clock decides no more than what is said there.

The lengths are those of the segments in Spark's own file systems (Hadoop's), never content. Our own listing decides what is read;
Spark's is the second witness that a copy does not change while it is audited, and that Spark's file system of that address sees
the files that we see.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from schemas.advice import Cause, Gap
from schemas.layouts.store_names import REPORT_SUFFIX
from schemas.rows import StoreFile
from store_io.base.paths import is_uri
from store_io.base.wording import count_text

if TYPE_CHECKING:
    from pyspark import SparkContext

_ABORT, _LOCK, _LOCKS = "abort", "lock", "/proc/locks"
_JUST_NOW = 120  # seconds: a broker flushes its checkpoint and tables more often
THREADS = 16  # of a file system elsewhere, each of whose answers takes its time


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
        """Return the signs as sentences, without full stops."""
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
    """Return when a repair wrote its report on this store, after all its files; 0 without a report."""
    try:
        return os.stat(path + REPORT_SUFFIX).st_mtime_ns / 1e9  # as that of the files: two moments of one tick are equal
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
    """Say why nothing is made of a directory whose lock a broker holds. what: the verb, as rescue."""
    return f"{signs.held}; stop the broker, copy the directory with its times (cp -a), and {what} the copy"


class _Listed(Protocol):
    """An audit that has its store's listing."""

    def segment_addresses(self) -> Any:
        """Return (path, address, size) of each segment."""


def listing_problems(context: SparkContext, audits: Sequence[_Listed]) -> list[list[Gap]]:
    """Return for each audit a gap for each segment of which Spark sees another length than we do."""
    jvm: Any = context._jvm
    java_context: Any = context._jsc
    path_of, conf = jvm.org.apache.hadoop.fs.Path, java_context.hadoopConfiguration()

    def length_of(address: str) -> int | None:
        try:
            path = path_of(address if is_uri(address) else f"file:{address}")
            return int(path.getFileSystem(conf).getFileStatus(path).getLen())
        except Exception:  # a file system that Spark does not know, or a file that has just vanished: our own listing counts
            return None

    wanted = [(number, *row) for number, audit in enumerate(audits) for row in audit.segment_addresses()]
    found: list[list[Gap]] = [[] for _ in audits]
    with ThreadPoolExecutor(THREADS if any(is_uri(address) for _, _, address, _ in wanted) else 1) as threads:
        lengths = threads.map(length_of, (address for _, _, address, _ in wanted))
        for (number, name, _, size), length in zip(wanted, lengths, strict=True):
            if length is not None and length != size:
                found[number].append(Gap(Cause.LISTED_OTHERWISE, name, (length, size)))
    return found
