"""notebook: JupyterLab in this environment, so that a kernel sees the packages, Java and Spark as every other command does."""

from __future__ import annotations

import os
import sys

from jobs import installation
from jobs.cli.options import Command
from jobs.runtime import setup as environment
from jobs.runtime.compiled_code import numba_cache
from store_io.base.errors import StoreError, UsageError

FOLDER = installation.ROOT / "notebooks"
_PLACES = ("--ServerApp.root_dir", "--notebook-dir", "--root-dir", "--preferred-dir")


def run(command: Command) -> int:
    """Become JupyterLab; returns only if it cannot be started. Raises StoreError."""
    if command.spark:
        raise UsageError(f"{command.spark[0]} is Spark's: say it in the notebook, session.start(['{command.spark[0]}', ...])")
    words = list(command.arguments)
    # Jupyter takes a folder or a notebook as its one plain word; without one it opens the project's own.
    named = any(not word.startswith("-") and os.path.exists(word) or word.split("=")[0] in _PLACES for word in words)
    if FOLDER.is_dir() and not named:  # a wheel has no notebooks
        words.append(f"--ServerApp.root_dir={FOLDER}")
    try:
        os.execve(sys.executable, [sys.executable, "-P", "-m", "jupyterlab", *words], kernel_environment())
    except OSError as problem:
        raise StoreError(f"JupyterLab cannot be started: {problem.strerror or problem}") from None


def kernel_environment() -> dict[str, str]:
    """Return the variables that a kernel needs to import the packages and to start Spark: this process's, completed."""
    paths = installation.python_path(os.environ.get("PYTHONPATH", "")).split(os.pathsep)
    return {
        **os.environ,
        # ipykernel takes the first folder off the path where it is the kernel's working folder.
        "PYTHONPATH": os.pathsep.join([str(FOLDER), *filter(None, paths)]),
        "STORE_AUDIT_HOME": str(environment.home()),
        "JAVA_HOME": environment.java_runtime().home,
        "NUMBA_CACHE_DIR": numba_cache(),
        "JUPYTER_PREFER_ENV_PATH": "1",  # a kernel of the user's own called python3 would not be this environment
    }
