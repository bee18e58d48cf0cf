"""The place from which this program runs: the project's folder, by spark-submit.sh, or an installed wheel, by the command
rmq-audit.

In a wheel the three packages are inside the package rocketmq_store_audit (setup.py). Nothing is set up there: Python and its
packages are those of the environment into which somebody installed it. Standard library only.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from store_io.base.errors import StoreError

DISTRIBUTION = "rocketmq-store-audit"  # its name for pip

_NAMES = __name__.split(".")
_PACKAGE = ".".join(_NAMES[:-2])  # of a wheel: rocketmq_store_audit

INSTALLED = bool(_PACKAGE)
ROOT = Path(__file__).resolve().parents[1]  # holds the three packages, pyproject.toml and examples/
IMPORTED_FROM = Path(__file__).resolve().parents[len(_NAMES) - 1]  # the folder on Python's path: ROOT, or site-packages
PACKAGES = (_PACKAGE,) if INSTALLED else ("jobs", "schemas", "store_io")

SPEAKER = "rmq-audit" if INSTALLED else "spark-submit.sh"  # begins what is said on standard error
COMMAND = "rmq-audit" if INSTALLED else "./spark-submit.sh"  # begins a usage line
_SCRIPT = ROOT / "spark-submit.sh"


def installed_entry(program: str) -> str:
    """Return the word with which a person calls the installed command: its name if a shell finds it by that, else its path.

    program: as this process was called.
    """
    own, found = os.path.abspath(program), shutil.which(COMMAND)
    if os.path.basename(own) != COMMAND or not os.path.exists(own):
        return COMMAND
    return COMMAND if found is not None and os.path.realpath(found) == os.path.realpath(own) else own


# Begins a command to paste, in any folder.
ENTRY = installed_entry(sys.argv[0]) if INSTALLED else str(_SCRIPT) if _SCRIPT.exists() else COMMAND


def module_name(name: str) -> str:
    """Return the name under which a module of the project, as `jobs.entry`, is imported here."""
    return f"{_PACKAGE}.{name}" if INSTALLED else name


def command_words() -> list[str]:
    """Return the words that begin a command line of this program in a process of its own."""
    return [sys.executable, "-P", "-m", module_name("jobs.entry")] if INSTALLED else [str(ROOT / "spark-submit.sh")]


def python_path(paths: str) -> str:
    """Return PYTHONPATH, completed so that a Python that is started finds the packages. An installed Python needs none."""
    others = [path for path in paths.split(os.pathsep) if path and path != str(IMPORTED_FROM)]
    return os.pathsep.join(others if INSTALLED else [str(IMPORTED_FROM), *others])


def user_cache() -> Path | None:
    """Return this program's folder in the user's cache; None for a user without HOME, as in a container."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "store-audit"
    try:
        return Path.home() / ".cache" / "store-audit"
    except RuntimeError:
        return None


def folder_of(package: str) -> Path | None:
    """Return the folder of an installed package, without loading it; None if it is not installed."""
    found = importlib.util.find_spec(package)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


class SetupFailed(StoreError):
    """The environment cannot be made or used; the sentence says what to do."""
