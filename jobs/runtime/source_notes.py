"""Shows the notes of a source before its rows, such as an assumed release, on the driver's standard error.

Spark plans a source in a Python process of its own, whose standard error goes to the JVM's log. So it sends its sentences to the
driver, by a socket in the folder of the driver's JVM, and prints them itself only where nobody listens.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterable

from jobs.report.texts.text import printable

PLACE = "STORE_AUDIT_NOTES"  # the variable that names the socket, in the JVM's environment alone
_LONGEST = 60_000  # bytes of a sentence
_PATIENCE = 0.5  # seconds to wait for a listener whose queue is full
_END_SECONDS = 2.0
_said: set[str] = set()  # in this process


def say(notes: Iterable[str]) -> None:
    """Print each note once as long as this process lives, on standard error."""
    for note in dict.fromkeys(map(printable, notes)):
        if note not in _said and not _sent(note):
            _said.add(note)
            _print(note)


def _print(note: str) -> None:
    """Print a note. A standard error that is closed, or whose reader has ended, ends nothing."""
    with contextlib.suppress(OSError, ValueError):
        print(note, file=sys.stderr, flush=True)


def _sent(note: str) -> bool:
    place = os.environ.get(PLACE)
    if not place:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.settimeout(_PATIENCE)
            line.sendto(note.encode()[:_LONGEST], place)
        return True
    except OSError:
        return False


class Listener:
    """Prints the notes of sources of this process's JVM, each sentence once as long as this process lives.

    Spark plans a source anew for every query. Call `.close()` when Spark has ended.
    """

    def __init__(self, place: str) -> None:
        """Open the socket. If there can be none, nothing is heard.

        place: its path, in a folder of this user's alone.
        """
        self._line: socket.socket | None = None
        with contextlib.suppress(OSError):
            line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                line.bind(place)
            except OSError:
                line.close()
                raise
            self._line, self._place = line, place
            self._thread = threading.Thread(target=self._hear, args=(line,), daemon=True)
            self._thread.start()

    def _hear(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the socket is closed
            while heard := line.recv(_LONGEST):
                note = printable(heard.decode("utf-8", "replace"))
                if note not in _said:
                    _said.add(note)
                    _print(note)

    def close(self) -> None:
        """Wait until all that was said before is printed, as long as the folder of its socket is there."""
        if self._line is None:
            return
        line, self._line = self._line, None
        with line, contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.settimeout(_END_SECONDS)
            end.sendto(b"", self._place)
            self._thread.join(_END_SECONDS)
