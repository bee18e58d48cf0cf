"""A process of our own that works with RocksDB, how it is started and how it ends. Bad bytes may make the library take all
of the process's memory, or end the process.

It runs a program of the project by that program's text, which works from an archive of the project too, and finds packages where
we do.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from contextlib import suppress

Process = subprocess.Popen[bytes]


def start_process(package: str, program: str, folder: str, *flags: str) -> Process:
    """Start a Python process with pipes for input and output. Raises OSError.

    package, program: the place of its text.
    folder: the folder of our own in which it runs.
    flags: Python's, beside -P.
    """
    text = (pkgutil.get_data(package, program) or b"").decode("utf-8")
    return subprocess.Popen(
        # From a folder of our own, and without it on the path (-P): else a json.py in a copy would be run.
        [sys.executable, "-P", *flags, "-c", text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def end_process(process: Process) -> None:
    """End it, whatever it does, with its pipes."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()


def how_it_ended(process: Process) -> str:
    """Say in words how a process ends or has ended."""
    code = process.wait()
    return f"signal {-code}" if code < 0 else f"exit code {code}"
