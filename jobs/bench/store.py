"""Sample stores on disk, in a scratch folder that is gone when the measuring ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from store_io.base.errors import StoreError
from store_io.sample_store import SampleStore, sample_pieces

OPEN_FILES = 256


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
    with contextlib.ExitStack() as stack:
        files = _Files(root)
        stack.callback(files.close)
        try:
            for piece in sample_pieces(store):
                files.write(piece.path, piece.file_bytes, piece.position, piece.data.data)
        except OSError as problem:
            raise BenchFailed(f"{root}: cannot write the store: {problem.strerror or problem}") from None


class _Files:
    """Files being written, the ones used last kept open."""

    def __init__(self, root: Path):
        self._root = root
        self._open: OrderedDict[str, int] = OrderedDict()

    def write(self, path: str, size: int, position: int, data: memoryview) -> None:
        handle = self._open.pop(path, None)
        if handle is None:
            if len(self._open) >= OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
            full = self._root / path
            full.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(full, os.O_WRONLY | os.O_CREAT, 0o644)
            os.truncate(handle, size)
        self._open[path] = handle
        while data:
            done = os.pwrite(handle, data, position)
            position, data = position + done, data[done:]

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])
