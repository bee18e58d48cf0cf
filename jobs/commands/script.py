"""run: a Python script with Spark and the data sources ready, as `notebook` has them."""

from __future__ import annotations

import os
import sys
import traceback
from types import CodeType, ModuleType, TracebackType

from jobs.cli.options import Command
from jobs.cli.parser import is_cluster_mode
from store_io.base.errors import StoreError, UsageError

FAILED = 1  # a script that raises, as of Python itself


def run(command: Command) -> int:
    """Run the script and return its exit code: that of sys.exit, 0 at its end, 1 if it raises.

    Python's traceback is shown then.
    """
    if not command.arguments:
        raise UsageError("run takes a script: run SCRIPT.py [its arguments]")
    if is_cluster_mode(command.spark):
        raise UsageError("run runs the script on this machine: of Spark's deploy modes it takes --deploy-mode client alone")
    path = command.arguments[0]
    code = _compiled(path)
    from jobs import sources
    from jobs.runtime import session

    with session.start(command.spark) as started:
        sources.register(started.spark)
        script = ModuleType("__main__")
        script.__dict__.update({"__file__": path, "spark": started.spark, "sources": sources})
        ours, sys.modules["__main__"] = sys.modules["__main__"], script  # where Spark looks for what a script defines
        sys.argv = list(command.arguments)
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as Python does: a script imports what is beside it
        try:
            exec(code, script.__dict__)
        except SystemExit as end:
            return _exit_code(end)
        except Exception as problem:
            _show(problem)
            return FAILED
        finally:
            sys.modules["__main__"] = ours
    return 0


def _compiled(path: str) -> CodeType:
    """Compile the script. Raises UsageError for what is no script."""
    try:
        if os.path.isdir(path):
            raise UsageError(f"run {path!r}: it is a folder; name a Python file in it")
        if not os.path.isfile(path):
            raise UsageError(f"run {path!r}: there is no such file")
        with open(path, "rb") as file:
            code: CodeType = compile(file.read(), path, "exec", dont_inherit=True)
            return code
    except OSError as problem:
        raise UsageError(f"run {path!r}: {problem.strerror or problem}") from None
    except (SyntaxError, ValueError) as problem:
        raise UsageError(f"run {path!r}: is not Python: {problem}") from None


def _exit_code(end: SystemExit) -> int:
    """Return the exit code as Python has it: a text is printed, and ends with 1."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return FAILED


def _show(problem: Exception) -> None:
    """Print the traceback from the script on; of what cannot be read, such as a store, the sentence alone."""
    if isinstance(problem, StoreError):
        print(problem, file=sys.stderr)
        return
    trace: TracebackType | None = problem.__traceback__
    print("".join(traceback.format_exception(type(problem), problem, trace.tb_next if trace else None)), end="", file=sys.stderr)
