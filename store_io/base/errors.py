"""Errors that stop an audit; damage is not here, that is a Finding. A class's docstring is its meaning, `exit_code` the
contract's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from schemas.advice import Cause, Gap


class StoreError(Exception):
    """The store cannot be audited, or not completely.

    path: the file or folder of the store that could not be read, as the read itself has noted it (`failed_reads`).
    """

    exit_code = 3
    cause: ClassVar[Cause] = Cause.ERROR
    path = ""

    def gap(self, path: str = "") -> Gap:
        """Return the gap that this error leaves in an audit. path: the file concerned, if no read has noted it."""
        return Gap(self.cause, self.path or path, (str(self),))

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows in the place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(StoreError):
    """The arguments or the settings do not make sense; nothing was read."""

    exit_code = 2
    cause = Cause.WRONG_ARGUMENTS


class RefusedSetting(UsageError):
    """A line of broker.conf that no broker works with. why: about the line."""

    def __init__(self, why: str):
        super().__init__(f"broker.conf: {why}")
        self.why = why

    def __reduce__(self) -> tuple[type[RefusedSetting], tuple[str]]:
        return type(self), (self.why,)

    def within(self, file: str) -> str:
        """Return the sentence for whoever named the file: which one it is, and what to do."""
        return f"{file}: {self.why}; correct the line or leave it out"


class NotAStore(StoreError):
    """The path does not hold a RocketMQ store."""

    cause = Cause.NOT_A_STORE


class NotAFile(StoreError):
    """The name is no regular file, or the file is too large for its kind. Reading again changes nothing."""

    cause = Cause.NOT_A_FILE


class Unreadable(StoreError):
    """A file or folder cannot be looked up, opened, listed or read. Another try may succeed: see `failed_reads`."""

    cause = Cause.UNREADABLE

    @classmethod
    def again(cls, gap: Gap) -> Unreadable:
        """Return an error with the text of one that has left this gap."""
        return cls(str(gap.values[0]))


class Denied(Unreadable):
    """The system or the server does not let this user read it."""

    cause = Cause.DENIED


class Unreached(Unreadable):
    """No server answers at this address, or the server has no such bucket. `check_root` calls the address no store then."""

    cause = Cause.UNREACHED


class StoreChanged(Unreadable):
    """A file vanished, grew or shrank while it was read."""

    cause = Cause.CHANGED_WHILE_READ

    @classmethod
    def in_size(cls, path: str, size: int, listed: int) -> StoreChanged:
        """Return the error of a file that has another length, in bytes, than the listing of its store."""
        error = cls(f"{path}: {size:,} bytes, {listed:,} when the copy was listed")
        error.path = path
        return error


class FormUnread(Unreadable):
    """No form of a config/ table has an entry, and another form could not be read this time. A repair without the table works."""


class UnfitDonor(StoreError):
    """The second copy is a store that has nothing to give to this log."""


def parsed(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    """Parse a text that anybody may have written: whatever is wrong with it is a ValueError. parse: as `json.loads`."""
    try:
        return parse(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as problem:
        if "int_max_str_digits" in str(problem):  # Python's own sentence names a setting of its own
            raise ValueError("it has a number of too many digits") from None
        raise
