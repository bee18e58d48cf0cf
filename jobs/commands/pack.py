"""pack --out FILE: the Python environment, and compiled code, as one archive for the executors of a cluster."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from jobs import installation
from jobs.cli import argument_places
from jobs.cli.options import Command
from jobs.runtime.faults import say
from store_io.base.compiled.code_files import BROUGHT, FOLDER
from store_io.base.errors import StoreError

_SPARKS_OWN = frozenset({"pyspark", "delta-spark"})  # an executor's Spark brings these
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_PYTHON = """\
#!/bin/sh
# The executor's Python {version} with the packages of this archive, wherever it was unpacked.
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
{code}="${{{code}:-$here/compiled}}" \
PYTHONPATH="$here/site-packages${{PYTHONPATH:+:$PYTHONPATH}}" exec python{version} "$@"
"""


def run(command: Command) -> int:
    """Write the archive that executors get by --archives."""
    target = argument_places.absolute(command.options["--out"])
    size = pack_environment(target)
    print(f"{target}: {size / 1e6:.0f} MB; use it with --archives {target}#environment (see docs/clusters.md)")
    return 0


def pack_environment(target: str) -> int:
    """Write the environment's packages to a .tar.gz for --archives; its size in bytes. Raises StoreError.

    bin/python in it is a script: a venv itself names its folder and its Python by their paths on this machine. So the
    executors need the same Python release (3.11, say) and the same kind of machine, and nothing else. `compiled/` has object
    files, which spare executors with this machine's processor the compiler.
    """
    release = f"{sys.version_info.major}.{sys.version_info.minor}"
    script = _PYTHON.format(version=release, code=BROUGHT).encode()
    fresh = Path(f"{target}.{os.getpid()}.part")
    try:
        with open(fresh, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for name in ("python", "python3"):
                    entry = tarfile.TarInfo(f"bin/{name}")
                    entry.mode, entry.size = 0o755, len(script)
                    archive.addfile(entry, io.BytesIO(script))
                for name, path in _package_files():
                    archive.add(path, f"site-packages/{name}", recursive=False, filter=_nobodys)
                with tempfile.TemporaryDirectory(prefix="store-audit-") as folder:
                    for path in object_files(folder):
                        archive.add(path, f"compiled/{path.name}", recursive=False, filter=_nobodys)
        os.replace(fresh, target)
        return os.path.getsize(target)
    except OSError as problem:
        fresh.unlink(missing_ok=True)
        raise StoreError(f"cannot write {target!r}: {problem.strerror or problem}") from None


def object_files(folder: str) -> list[Path]:
    """Return the files, made in this folder; none if that fails, which costs executors time and nothing else."""
    command = [sys.executable, "-P", "-m", installation.module_name("jobs.warm_up")]
    variables = {**os.environ, "PYTHONPATH": installation.python_path(""), FOLDER: folder}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        say(f"the archive has no compiled code, executors compile it themselves: {said}")
        return []
    return sorted(Path(folder).glob("*.object"))


def _package_files() -> Iterator[tuple[str, Path]]:
    """Yield every file of what pyproject.toml names and of what that pulls in: (name below site-packages, path)."""
    pins = tomllib.loads((installation.ROOT / "pyproject.toml").read_text("utf-8"))
    waiting, seen = list(pins["project"]["dependencies"]), set(_SPARKS_OWN)
    while waiting:
        requirement = waiting.pop()
        match = _REQUIREMENT.match(requirement)
        name = match.group().lower().replace("_", "-") if match else ""
        if name in seen or "extra ==" in requirement:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another platform or release of Python
            continue
        waiting += distribution.requires or []
        for file in distribution.files or []:
            if file.parts[0] != ".." and "__pycache__" not in file.parts:
                yield file.as_posix(), Path(str(distribution.locate_file(file)))


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
