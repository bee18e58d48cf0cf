"""The project's own checks: lint, format, types and tests. All are run; the first failure's code counts.

On two cores none waits for another: lint, types and the tests that use Spark, which wait for its JVM much of the time, run one
after the other, and the tests without Spark beside them. Those are two processes, as there are many more of them, and give way:
what runs one after the other cannot be shared out, and would have a core of two idle at its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from jobs import installation
from jobs.cli.command_table import SLOW_MARKS
from jobs.cli.options import Command
from jobs.runtime import setup as environment
from jobs.runtime.compiled_code import numba_cache
from store_io.base.compiled.code_files import FOLDER

_LINT = (
    ("ruff", ["-m", "ruff", "check"]),
    ("format", ["-m", "ruff", "format", "--check"]),
    ("mypy", ["-m", "mypy"]),
)
_NOT_SLOW = f"not ({' or '.join(SLOW_MARKS)})"  # as in pyproject.toml
_PYTEST = ["-m", "pytest", "-p", "no:cacheprovider"]
WITH_SPARK = [*_PYTEST, "-m", f"spark and {_NOT_SLOW}"]
WITHOUT_SPARK = [*_PYTEST, "-n", "2", "--dist", "loadfile", "-m", f"not spark and {_NOT_SLOW}"]


def run(command: Command) -> int:
    """Run everything, or pytest alone with the arguments that were given."""
    if command.arguments:
        return _run("pytest", ["-m", "pytest", *command.arguments])
    with tempfile.TemporaryFile() as kept:
        words = [sys.executable, *WITHOUT_SPARK]
        beside = subprocess.Popen(["nice", "-n", "5", *words], cwd=installation.ROOT, env=_variables(), stdout=kept, stderr=kept)
        try:
            codes = [_run(name, words) for name, words in (*_LINT, ("tests with Spark", WITH_SPARK))]
            codes.append(beside.wait())
        finally:
            beside.kill()
            beside.wait()
            print("== tests without Spark", flush=True)
            kept.seek(0)
            print(kept.read().decode(errors="backslashreplace"), end="", flush=True)
    return next((code for code in codes if code), 0)


def _run(name: str, words: Sequence[str]) -> int:
    print(f"== {name}", flush=True)
    return subprocess.run([sys.executable, *words], cwd=installation.ROOT, env=_variables()).returncode


def _variables() -> dict[str, str]:
    """Return the environment variables of the checks.

    Many tests start Pythons of their own, so bytecode is kept even if the user has turned that off (images of containers do):
    without it each of them compiles the whole project, a second of a core. What numba compiles is kept where the set-up and
    each command keep it: beside its source a new checkout has none, and each process would compile it, the decoder alone in 10 s.
    """
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return own | {"PYTHONPYCACHEPREFIX": str(environment.state() / "bytecode"), FOLDER: numba_cache()}
