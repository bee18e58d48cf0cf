"""Databases that stay open while one audit, or one partition of tasks, runs in this process. Opening one costs a copy of its
files and a process, some fifty milliseconds, and an audit reads the same database again and again: its ends, its entries, and
those for each segment.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from store_io.rocksdb.private_folder import COPIED_BYTES, PrivateFolder
from store_io.rocksdb.process import Process, end_process

MOST_IDLE = 2  # databases that stay open while nothing reads them


@dataclass(frozen=True)
class OpenDatabase:
    """A database that a process of its own holds open.

    private: the folder with its files.
    process: reads them.
    said: what it answered when it had opened them.
    """

    private: PrivateFolder
    process: Process
    said: dict[str, object]

    def end(self) -> None:
        """End the process, and remove the folder."""
        end_process(self.process)
        self.private.__exit__(None, None, None)


@dataclass
class _Idle:
    """The databases that are open and not read at the moment.

    databases: by store, files and how they are read; the one that was read last is at the end.
    owner: the process that may use them, as a fork shares the pipes.
    """

    owner: int = field(default_factory=os.getpid)
    databases: dict[Hashable, OpenDatabase] = field(default_factory=dict)


_idle: ContextVar[_Idle | None] = ContextVar("idle databases", default=None)


@contextmanager
def databases_kept_open() -> Iterator[None]:
    """While this lasts, a database that was read stays open in this thread for the next reader. All are closed at its end."""
    if _own() is not None:  # an audit within another one's work
        yield
        return
    idle = _Idle()
    token = _idle.set(idle)
    try:
        yield
    finally:
        _idle.reset(token)
        if idle.owner == os.getpid():
            for database in idle.databases.values():
                database.end()


def take_open(key: Hashable) -> OpenDatabase | None:
    """Return one that is open and that nobody reads. key: the store, the files, and how they are read."""
    idle = _own()
    found = idle.databases.pop(key, None) if idle is not None else None
    if found is not None and found.process.poll() is not None:  # it ended meanwhile
        found.end()
        return None
    return found


def give_back(key: Hashable, database: OpenDatabase) -> None:
    """Keep it for the next reader, or end it. It waits for a request."""
    idle = _own()
    if idle is None or key in idle.databases:
        database.end()
        return
    if database.private.size > COPIED_BYTES:  # of such one stays: where it was fetched, its copy takes as much room
        for other in [name for name, one in idle.databases.items() if one.private.size > COPIED_BYTES]:
            idle.databases.pop(other).end()
    idle.databases[key] = database
    if len(idle.databases) > MOST_IDLE:
        idle.databases.pop(next(iter(idle.databases))).end()


def _own() -> _Idle | None:
    idle = _idle.get()
    return idle if idle is not None and idle.owner == os.getpid() else None
