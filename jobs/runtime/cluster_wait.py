"""Says what a cluster keeps a command waiting for: Spark itself waits without a word, for hours if need be."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from jobs.cli.terminal import clear_line, redraws
from jobs.installation import SPEAKER
from jobs.report.texts.text import printable

APPLICATION, EXECUTOR = "to start this application", "an executor"
PATIENCE_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_END_SECONDS = 5.0

Say = Callable[[str], None]


def say(sentence: str) -> None:
    """Print a sentence on standard error, in a line of its own."""
    _write(f"{SPEAKER}: {printable(sentence)}\n")


def say_as_json(sentence: str) -> None:
    """Say a sentence as JSON, for standard error with a JSON object per line (`--progress json`)."""
    _write(json.dumps({"phase": "waiting", "said": sentence}) + "\n")


def _write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
        print(f"{clear_line() if redraws(sys.stderr) else ''}{line}", end="", file=sys.stderr, flush=True)


class Waiting:
    """For how long the same thing is waited for."""

    def __init__(self, master: str):
        self._master = master
        self._what, self._since, self._said = "", 0.0, False

    def seen(self, what: str, now: float, application: str = "") -> str:
        """Return the sentence to say now, mostly none.

        what: APPLICATION, EXECUTOR, or "" if nothing is waited for.
        now: seconds.
        application: its id, once it has one.
        """
        if what != self._what:
            self._what, self._since, self._said = what, now, False
        if not what or self._said or now - self._since < PATIENCE_SECONDS:
            return ""
        self._said = True
        wanted = f"{self._master} {what}" if what == APPLICATION else f"{what} from {self._master}"
        look = _place(self._master, application)
        if what == APPLICATION:
            return (
                f"waiting for {wanted}: look {look} whether it is queued there or files are still being sent, and whether cores"
                " and memory are free"
            )
        return (
            f"waiting for {wanted}: look {look} whether a machine is there that has as many cores and as much memory free as"
            " --executor-cores and --executor-memory ask for"
        )


def _place(master: str, application: str) -> str:
    if master.startswith("yarn"):
        return f"with 'yarn application -status {application}'" if application else "with 'yarn application -list'"
    if master.startswith("k8s"):
        return "with 'kubectl describe pods'"
    return "at the master's page" + (f", application {application}," if application else "")


class ClusterWatch:
    """A thread that looks whether a Spark that starts, or runs, is kept waiting. `.started(context)` once it runs; `.close()`."""

    def __init__(self, master: str, say: Say):
        """say: takes a sentence."""
        self._waiting, self._say = Waiting(master), say
        self._context: Any = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="cluster-watch", daemon=True)
        self._thread.start()

    def started(self, context: Any) -> None:
        """Look for the application's executors from now on: it runs."""
        self._context = context

    def close(self) -> None:
        """End the watch before the JVM ends, which it asks."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_SECONDS)

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                context = self._context
                what = APPLICATION if context is None else _wanted(context)
                application = "" if context is None else str(context.applicationId)
            except Exception:  # the connection to the JVM is gone: whoever works with it says so
                return
            if sentence := self._waiting.seen(what, time.monotonic(), application):
                self._say(sentence)


def _wanted(context: Any) -> str:
    """Return EXECUTOR if tasks wait and there is no executor."""
    tracker = context._jsc.sc().statusTracker()
    if not len(tracker.getActiveStageIds()):
        return ""
    return EXECUTOR if len(tracker.getExecutorInfos()) <= 1 else ""  # the driver is one of them
