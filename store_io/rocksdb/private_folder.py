"""A folder of our own in which RocksDB finds the files of a copy's database. The library leaves a file wherever it opens a
database.

Only regular files of the store come into it, and only under names that RocksDB gives. Small databases are copied, through the
byte source like all that is read: that leaves no access time, and works on every file system. Large ones on a local disk are
linked to; large ones elsewhere are not read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from types import TracebackType

from schemas.rows import StoreFile
from store_io.base.errors import NotAFile, Unreadable
from store_io.base.paths import is_uri
from store_io.base.scratch import Scratch, remove_left
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, DerivedLocation, local_path

# What an opened database reads. Options are given by the reader; IDENTITY and LOCK have no effect.
_READ = re.compile(r"CURRENT|MANIFEST-[0-9]{1,20}|[0-9]{1,20}\.(sst|log)")
_OTHER = re.compile(r"IDENTITY|LOCK|LOG(\.old\..*)?|OPTIONS-[0-9]+(\.dbtmp)?|[0-9]+\.dbtmp|rocksdict-config\.json")

COPIED_BYTES = 256 << 20  # a database of so much is copied rather than linked to
FETCHED_BYTES = 4 << 30  # of one that is on no local disk
MAX_FILES = 10_000
_STEP = 1 << 20


def is_database_name(name: str) -> bool:
    """Say whether RocksDB gives such a name to a file."""
    return bool(_READ.fullmatch(name) or _OTHER.fullmatch(name))


def is_database(names: Sequence[str]) -> bool:
    """Say whether a folder with files of these names holds, or held, a database."""
    return any(
        name == "CURRENT" or name.startswith("MANIFEST-") or name.endswith(".sst") for name in names if _READ.fullmatch(name)
    )


class PrivateFolder:
    """A context manager: `path` is the folder, which is gone when it ends.

    size: the bytes of the database's files.

    Raises Unreadable if a file cannot be had, NotAFile if a name is no file, or the database is too large for it.
    """

    def __init__(self, source: ByteSource, files: Sequence[StoreFile]):
        kept_back = next((f.path for f in files if f.kind not in ("file", "directory") and _READ.fullmatch(_name(f))), "")
        if kept_back:  # without it RocksDB would call sound files damaged
            raise NotAFile(f"{kept_back}: no regular file, so the queues' database was not opened")
        chosen = [f for f in files if f.kind == "file" and _READ.fullmatch(_name(f))]
        self.size = sum(f.size for f in chosen)
        where = chosen[0].path.rpartition("/")[0] if chosen else ""
        if len(chosen) > MAX_FILES:
            raise NotAFile(f"{where}/: a database of {len(chosen):,} files, more than the {MAX_FILES:,} that are opened")
        local = not isinstance(source.location, DerivedLocation) and local_path(source.location.root) is not None
        local = local and not any(is_uri(source.address(f.path)) for f in chosen[:1])
        if not local and self.size > FETCHED_BYTES:
            raise NotAFile(
                f"{where}/: a database of {self.size:,} bytes that is on no local disk, more than the {FETCHED_BYTES:,} that are"
                " fetched"
            )
        if not local:  # another machine's worker that was killed may have left one, and nobody else removes it there
            remove_left()
        self._folder = Scratch()
        self.path = self._folder.path
        try:
            for file in chosen:
                with source.open(file.path) as opened:  # raises where it is no regular file of this store
                    if local and self.size > COPIED_BYTES:
                        os.symlink(os.path.realpath(source.address(file.path)), os.path.join(self.path, _name(file)))
                    else:
                        self._copy(opened, _name(file))
        except BaseException:
            self._folder.remove()
            raise

    def _copy(self, opened: ByteFile, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        target = os.open(os.path.join(self.path, name), flags, 0o600)
        try:
            for at in range(0, opened.size, _STEP):
                view = memoryview(opened.read(at, min(_STEP, opened.size - at)))
                while len(view):
                    view = view[os.write(target, view) :]
        except OSError as error:
            raise Unreadable(f"{opened.path}: cannot be copied to {tempfile.gettempdir()}: {error.strerror}") from error
        finally:
            os.close(target)

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.remove()


def _name(file: StoreFile) -> str:
    return file.path.rpartition("/")[2]
