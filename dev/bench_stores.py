"""Sample stores on disk, in a scratch folder that is gone when the measuring ends, however it ends."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dev.sample_kinds import FAMILIES, ROCKSDB, Pairs, Piece
from dev.sample_store import SampleStore, sample_pieces
from store_io.base.errors import StoreError

BODIES = (200, 1024, 16384)  # nominal, bytes


class BenchFailed(StoreError):
    """The stores or commands to be measured cannot be made or do not work."""


@contextlib.contextmanager
def scratch_folder(parent: str | None, keep: bool) -> Iterator[Path]:
    """Yield a new folder below `parent` (None: the system's own for such things). Removed afterwards unless it is to be kept."""
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
    """Write the store's files under `root`. Bytes that no piece fills are a hole, as in a broker's preallocated files."""
    write_pieces(root, sample_pieces(store))


def write_pieces(root: Path, pieces: Iterable[Piece | Pairs]) -> None:
    """Write any pieces into a folder."""
    databases: dict[Path, Any] = {}
    try:
        for piece in pieces:
            if isinstance(piece, Pairs):
                _put_pairs(databases, root / piece.folder, piece)
                continue
            path = root / piece.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "r+b" if path.exists() else "wb") as file:
                file.truncate(piece.file_bytes)
                file.seek(piece.position)
                file.write(piece.data.data)
    except OSError as problem:
        raise BenchFailed(f"{root}: cannot write the store: {problem.strerror or problem}") from None
    finally:
        for folder, database in databases.items():
            database.close()
            for rest in (*folder.glob("LOG*"), folder / "rocksdict-config.json"):  # no broker leaves these there
                rest.unlink(missing_ok=True)


def can_write(store: SampleStore) -> bool:
    """Say whether what writes this kind is installed."""
    return store.kind != ROCKSDB or importlib.util.find_spec("rocksdict") is not None


def _put_pairs(databases: dict[Path, Any], folder: Path, part: Pairs) -> None:
    """Put them into the database of the folder, which is made with the first of them."""
    import rocksdict

    if folder not in databases:
        folder.mkdir(parents=True, exist_ok=True)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_compression_type(rocksdict.DBCompressionType.zstd())
        families = dict.fromkeys(FAMILIES, options)
        databases[folder] = rocksdict.Rdict(str(folder), options, families)
    family = databases[folder].get_column_family_handle(part.family)
    batch = rocksdict.WriteBatch(raw_mode=True)
    for key, value in part.pairs:
        batch.put(key, value, family)
    databases[folder].write(batch)
