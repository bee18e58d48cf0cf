"""Python workers that have loaded all that tasks need before Spark asks for the first of them.

The command forks once it has loaded what an audit needs, while its JVM is still starting: pyarrow, numba and the project are in
memory once for all. Spark starts this module as the program that gives it its Python workers (`spark.python.daemon.module`): it
hands Spark's pipes to the fork, which becomes PySpark's own daemon and forks workers as always. If the fork does not answer, the
program becomes Spark's own daemon, with which each worker loads all that tasks need. Few modules are loaded here: Spark waits for
them. Either way workers get the login of S3 back that Spark's JVM was not to see.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import NoReturn

from store_io.source.storage_options import take_over

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PLACE = "STORE_AUDIT_WORKERS"  # the variable that names the socket of the process that is ready
TAKEN = b"1"
ANSWER_SECONDS = 120.0  # the process that is ready may have to compile the decoder first


class WarmWorkers:
    """The process that is ready. `.close()` when Spark has ended."""

    def __init__(self, place: str) -> None:
        """Fork, from the main thread of a process whose threads all wait. place: of the socket; empty: there are none."""
        self._process = 0
        if not place:
            return
        with contextlib.ExitStack() as here, contextlib.ExitStack() as unless_forked:
            try:
                listening = here.enter_context(socket.socket(socket.AF_UNIX))
                listening.bind(place)
                listening.listen()
                alive, self._alive = os.pipe()
                here.callback(os.close, alive)
                unless_forked.callback(os.close, self._alive)
                gc.freeze()  # what is in memory by now stays there: no worker looks through it for garbage
                # A signal between the fork and `_let_go` would end the command a second time, in the child.
                here.callback(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS))
                self._process = os.fork()
            except OSError:  # a path that is too long for a socket, no more processes: Spark's own daemon does it
                return
            if self._process == 0:
                _be_ready(listening, alive)
            unless_forked.pop_all()

    def close(self) -> None:
        """End the process. The daemon that it became ends with Spark."""
        if self._process > 0:
            os.close(self._alive)
            with contextlib.suppress(OSError):
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
            self._process = 0


def _be_ready(listening: socket.socket, alive: int) -> NoReturn:
    """Wait until Spark wants its daemon, or until the command has ended, however it ended."""
    try:
        _let_go(keep={listening.fileno(), alive})
        _load()
        while True:
            ready, _, _ = select.select([listening.fileno(), alive], [], [])
            if alive in ready:
                break
            line, _ = listening.accept()
            if os.fork() == 0:
                os.close(alive)
                listening.close()
                _become_daemon(line)
            line.close()
    finally:
        os._exit(0)  # nothing that the command has left to do at its end is this process's


def _let_go(keep: set[int]) -> None:
    """Leave the command's terminal, its files and its locks, and the signals that are for it."""
    os.setpgid(0, 0)
    for kind in _SIGNALS:
        signal.signal(kind, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        if int(name) > 2 and int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _load() -> None:
    """Load what workers need and the command does not, and link the compiled decoder."""
    import pyspark.daemon
    import pyspark.worker  # noqa: F401

    from store_io.log.records.commitlog_columns import warm_up_decoder

    warm_up_decoder()
    gc.freeze()


def _become_daemon(line: socket.socket) -> NoReturn:
    """Run PySpark's daemon, on the pipes and with the variables of the process that Spark has started."""
    code = 1
    try:
        _, pipes, _, _ = socket.recv_fds(line, 1, 3)
        with line.makefile("rb") as lines:
            told = json.loads(lines.readline())
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        os.environ.clear()
        os.environ.update(told["variables"])
        os.chdir(told["folder"])
        sys.argv = [__name__, *told["words"]]
        line.sendall(TAKEN)
        from pyspark.daemon import manager

        manager()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)


def main() -> None:
    """Be the daemon, or wait until the one that has taken over ends."""
    take_over()  # what a user's own code in tasks reads the variables for, too
    if not _handed_over(os.environ.get(PLACE, "")):
        from pyspark.daemon import manager

        manager()


def _handed_over(place: str) -> bool:
    words = json.dumps({"variables": dict(os.environ), "words": sys.argv[1:], "folder": os.getcwd()}).encode()
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ANSWER_SECONDS)
            line.connect(place)
            socket.send_fds(line, [b"\n"], [0, 1, 2])
            line.sendall(words + b"\n")
            if line.recv(1) != TAKEN:
                return False
            line.settimeout(None)
            line.recv(1)  # Spark closes the daemon's input when this process ends: so it stays as long as the daemon does
            return True
    except OSError:
        return False


if __name__ == "__main__":
    main()
