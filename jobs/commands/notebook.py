"""notebook: JupyterLab in this environment, so that a kernel sees the packages, Java and Spark as every other command does.

With --run one notebook runs without a window.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from jobs import installation
from jobs.cli.options import Command
from jobs.runtime import setup as environment
from jobs.runtime.compiled_code import numba_cache
from jobs.runtime.faults import say
from jobs.runtime.output import write_local
from store_io.base.errors import StoreError, UsageError

FOLDER = installation.ROOT / "notebooks"
RUN, PARAMETER = "--run", "-p"
FAILED = 1  # a cell that raises, as a script that does
_PLACES = ("--ServerApp.root_dir", "--notebook-dir", "--root-dir", "--preferred-dir")


def run(command: Command) -> int:
    """Become JupyterLab; returns only if it cannot be started. Raises StoreError.

    With --run: run that notebook, and return 0, or 1 if a cell raises.
    """
    if command.spark:
        raise UsageError(f"{command.spark[0]} is Spark's: say it in the notebook, session.start(['{command.spark[0]}', ...])")
    words = list(command.arguments)
    if RUN in words:
        return _run_one(words)
    # Jupyter takes a folder or a notebook as its one plain word; without one it opens the project's own.
    named = any(not word.startswith("-") and os.path.exists(word) or word.split("=")[0] in _PLACES for word in words)
    if FOLDER.is_dir() and not named:  # a wheel has no notebooks
        words.append(f"--ServerApp.root_dir={FOLDER}")
    try:
        os.execve(sys.executable, [sys.executable, "-P", "-m", "jupyterlab", *words], kernel_environment())
    except OSError as problem:
        raise StoreError(f"JupyterLab cannot be started: {problem.strerror or problem}") from None


def _run_one(words: Sequence[str]) -> int:
    """Run a notebook from the top, and write it with what it shows as HTML beside it. Raises UsageError, StoreError."""
    path, given = _asked(words)
    from nbclient import NotebookClient  # of the dependency group, as what `import_module` loads
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    try:
        found = import_module("nbformat").read(path, 4)
    except Exception as problem:  # what is no notebook raises errors of many kinds
        raise UsageError(f"{RUN} {path!r}: cannot be read as a notebook: {str(problem).splitlines()[0][:200]}") from None
    _put_parameters(found, given, path)
    os.environ.update(kernel_environment())
    around = {"metadata": {"path": os.path.dirname(os.path.abspath(path))}}
    code, page = 0, f"{path.removesuffix('.ipynb')}.html"
    try:
        NotebookClient(found, timeout=None, kernel_name="python3", resources=around).execute()
    except CellExecutionError as problem:
        code, failed = FAILED, f"{problem.ename}: {problem.evalue}"
    except DeadKernelError:
        code, failed = FAILED, "its kernel has ended in the middle; is memory short?"
    if code:
        say(f"{path}: {failed}; {page} shows it")
    try:
        write_local(os.path.abspath(page), [_html(found).encode()])
    except OSError as problem:
        raise StoreError(f"{page}: cannot write: {problem.strerror or problem}") from None
    print(page)
    return code


def _html(found: Any) -> str:
    text: str = import_module("nbconvert").HTMLExporter().from_notebook_node(found)[0]
    return text


def _asked(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return (the notebook, its parameters). A value is Python's, such as 5 or None, or else a text; a path becomes absolute."""
    path, given = "", {}
    left = list(words)
    while left:
        option, value = left.pop(0), left.pop(0) if left else ""
        name, equals, text = value.partition("=")
        if option == RUN and not path and os.path.isfile(value):
            path = value
        elif option == PARAMETER and equals and name.isidentifier():
            try:
                given[name] = ast.literal_eval(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                given[name] = os.path.abspath(text) if os.path.exists(text) else text
        elif option == RUN:
            raise UsageError(f"{RUN} {value!r}: " + ("one notebook at a time" if path else "there is no such file"))
        else:
            raise UsageError(f"notebook {RUN} FILE.ipynb takes {PARAMETER} NAME=VALUE besides, not {option!r} {value!r}")
    return path, given


def _put_parameters(found: Any, given: dict[str, Any], path: str) -> None:
    """Put a cell with the parameters after the one that has their defaults, which is tagged so. Raises UsageError."""
    places = [n for n, cell in enumerate(found.cells) if "parameters" in cell.metadata.get("tags", [])]
    known: list[str] = []
    source = "\n".join(line for line in found.cells[places[0]].source.splitlines() if line[:1] not in "%!") if places else ""
    try:
        defaults = ast.parse(source)
    except SyntaxError as problem:
        raise UsageError(f"{path}: the cell of parameters is not plain Python: {problem.msg}, line {problem.lineno}") from None
    for node in ast.walk(defaults):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.append(node.id)
    for name in given:
        if name not in known:
            raise UsageError(f"{PARAMETER} {name}=...: the parameters of {path!r} are {', '.join(known) or 'none'}")
    if given:
        lines = [f"{name} = {value!r}" for name, value in given.items()]
        found.cells.insert(places[0] + 1, import_module("nbformat").v4.new_code_cell("\n".join(lines)))


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
