"""Notes each read of a store that fails, whatever becomes of the error: no `except` keeps an answer from being incomplete.

A file may fail to be read once, where its own scan succeeds: a disk, a network file system or a server does that. So the places
that all reads go through (`source.byte_source`, `source.byte_file`) note a failed one here, and whoever answers for the result
(an audit, a task, a repair) asks for what was noted. What may do without a read says so by `can_do_without`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar

from schemas.advice import Gap
from store_io.base import locks
from store_io.base.errors import Denied, StoreError, Unreadable, UsageError
from store_io.base.paths import is_inner_path

_T = TypeVar("_T")
_END: Any = object()
MOST_NOTED = 100  # files: of a disk that is gone, every file fails

_noted: ContextVar[dict[str, Gap] | None] = ContextVar("failed_reads", default=None)


@contextlib.contextmanager
def failed_reads() -> Iterator[Mapping[str, Gap]]:
    """Give a mapping, path to gap, that takes what fails to be read inside, by this thread. An inner one takes its own."""
    failed: dict[str, Gap] = {}
    before = _noted.set(failed)
    try:
        yield failed
    finally:
        _noted.reset(before)


class noting:
    """Note under this path that a read has failed, and pass the error on. A class, as every read of a store comes by here."""

    __slots__ = ("_path",)

    def __init__(self, path: str):
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Unreadable):
            note(self._path, error)
        elif isinstance(error, StoreError):
            _name_path(self._path, error)


def note(path: str, error: Unreadable) -> None:
    """Note that this read has failed. The first failure of a file is kept."""
    _name_path(path, error)
    _keep(path, error.gap())


def _name_path(path: str, error: StoreError) -> None:
    """Name in the error the file or folder below the store's root, if none is named yet."""
    inner = path.rstrip("/")
    if not error.path and is_inner_path(inner):
        error.path = inner


def _keep(path: str, gap: Gap) -> None:
    failed = _noted.get()
    if failed is not None and len(failed) < MOST_NOTED:
        failed.setdefault(path, gap)


@contextlib.contextmanager
def every_read() -> Iterator[None]:
    """Raise Unreadable at the end if any read inside has failed, even one whose error was caught.

    It also replaces another StoreError, which may only follow from the failed read.
    """
    follows: StoreError | None = None
    with failed_reads() as failed:
        try:
            yield
        except (Unreadable, UsageError):
            raise
        except StoreError as error:
            follows = error
    for gap in failed.values():
        raise Unreadable.again(gap) from follows
    if follows is not None:
        raise follows


def with_every_read(parts: Iterable[_T]) -> Iterator[_T]:
    """Pass on these parts of an answer. Raises Unreadable before a part for which any read has failed, and at the end.

    Each part is made under its own `every_read`: what the caller does between two parts is not noted here.
    """
    making = iter(parts)
    while True:
        with every_read():
            part = next(making, _END)
        if part is _END:
            return
        yield part


@contextlib.contextmanager
def noted_unless(kind: type[Unreadable]) -> Iterator[None]:
    """Note failed reads inside, unless they end with an error of this kind, which the caller reports in another way.

    Such is a file that this user may not read and a broker may not need, or a database that the library does not read.
    """
    failed: Mapping[str, Gap] = {}
    try:
        with failed_reads() as failed:
            yield
    except kind:
        failed = {}
        raise
    finally:
        for path, gap in failed.items():
            _keep(path, gap)


def unless_denied(read: Callable[[], _T]) -> _T:
    """Give what is read of a file that a broker may not need. Raises Denied, without a note, if this user may not read the file,
    now and when asked again: a server or a mount may deny it for a moment."""
    try:
        with noted_unless(Denied):
            return read()
    except Denied:
        locks.pause(1)
        with noted_unless(Denied):
            return read()


@contextlib.contextmanager
def can_do_without(why: str) -> Iterator[None]:
    """Surround reads whose failure changes no answer. why: for the reader of the code; a test lists all of these places."""
    with failed_reads():
        yield
