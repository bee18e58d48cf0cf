"""The program that Spark starts to get its Python workers (`spark.python.daemon.module`): it hands Spark's pipes to a process
that is ready.

Spark's own daemon has each worker load all that tasks need. `jobs.warm_workers` keeps a process that has loaded it already. Where
that does not answer, this becomes Spark's own daemon. Few modules are loaded here: Spark waits for them. Either way workers get
the login of S3 back that Spark's JVM was not to see.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from store_io.source.storage_options import take_over

PLACE = "STORE_AUDIT_WORKERS"  # the variable that names the socket of the process that is ready
TAKEN = b"1"
ANSWER_SECONDS = 120.0  # the process that is ready may have to compile the decoder first


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
