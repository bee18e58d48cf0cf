"""Sample stores on disk, in a scratch folder that is gone when the measuring ends, however it ends."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from store_io.base.errors import StoreError
from store_io.sample_store import SampleStore, sample_pieces


class BenchFailed(StoreError):
    """What is to be measured cannot be made or does not work."""


@contextlib.contextmanager
def scratch_folder(parent: str | None, keep: bool) -> Iterator[Path]:
    """A new folder below `parent` (None: the system's own for such things); removed afterwards unless it is to be kept."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="store-audit-bench-", dir=parent))
    except OSError as problem:
        raise BenchFailed(f"cannot make a folder in {parent or tempfile.gettempdir()!r}: {problem.strerror}") from None
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def write_store(root: Path, store: SampleStore) -> None:
    """Write the store's files under `root`. What no piece fills is a hole, as in a broker's preallocated files."""
    try:
        for piece in sample_pieces(store):
            path = root / piece.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "r+b" if path.exists() else "wb") as file:
                file.truncate(piece.file_bytes)
                file.seek(piece.position)
                file.write(piece.data.data)
    except OSError as problem:
        raise BenchFailed(f"{root}: cannot write the store: {problem.strerror or problem}") from None
