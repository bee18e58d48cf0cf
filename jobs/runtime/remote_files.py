"""Files of result folders that do not lie on this machine. Errors are OSError, with a sentence as `strerror`."""

from __future__ import annotations

import contextlib
import errno
import io
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from store_io.base.errors import StoreError
from store_io.base.paths import bucket_and_key, is_hdfs, is_s3, name_node_and_path
from store_io.source import hdfs_client
from store_io.source.s3_client import asking, client, is_code, reason
from store_io.source.s3_folder import listed

if TYPE_CHECKING:
    from hdfs_native import FileWriter

TEMPORARY = ".writing"
_IN_MEMORY = 8 << 20  # of a file that is being made; what is longer waits on this machine's disk


class RemoteFiles(Protocol):
    """Whole files of one tree. Names are relative, with "/"."""

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file in place of an earlier one; nobody sees a part of it."""

    def read(self, name: str, most: int | None = None) -> bytes:
        """Return a whole file, or its first `most` bytes and one more. Raises FileNotFoundError."""

    def remove(self, name: str) -> None:
        """Remove a file. Raises FileNotFoundError if there is none and the file system says so."""

    def make_folder(self, name: str) -> None:
        """Make a folder if it is missing; "" is the tree itself."""

    def try_to_write(self, name: str) -> None:
        """Make something of this name, which nothing has, and remove it."""


class S3Files:
    """A prefix of a bucket. It has no folders, and shows an object once it is whole."""

    def __init__(self, uri: str):
        self.bucket, self.root = bucket_and_key(uri)

    def key(self, name: str) -> str:
        """Return the object's key."""
        return "/".join(part for part in (self.root, name) if part)

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """See `RemoteFiles`."""
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as whole:
            for part in parts:
                whole.write(part)
            whole.seek(0)
            with self._asking():
                client().put_object(Bucket=self.bucket, Key=self.key(name), Body=whole)

    def try_to_write(self, name: str) -> None:
        """See `RemoteFiles`."""
        self.write(name, ())
        self.remove(name)

    def read(self, name: str, most: int | None = None) -> bytes:
        """See `RemoteFiles`."""
        with self._asking():
            body = client().get_object(Bucket=self.bucket, Key=self.key(name))["Body"]
            return bytes(body.read(None if most is None else most + 1))

    def remove(self, name: str) -> None:
        """See `RemoteFiles`."""
        with self._asking():
            client().delete_object(Bucket=self.bucket, Key=self.key(name))

    def make_folder(self, name: str) -> None:
        """See `RemoteFiles`. Asks whether the bucket is there."""
        if not name:
            with self._asking():
                client().list_objects_v2(Bucket=self.bucket, Prefix=self.key(""), MaxKeys=1)

    def remove_empty(self, name: str) -> None:
        """Do nothing: nothing is left of a folder when its objects are gone."""

    def names(self) -> Iterator[tuple[str, int, float]]:
        """Yield (name, bytes, seconds since 1970 when it was written) of every object of the tree. Raises OSError."""
        prefix = self.key("") + "/" if self.root else ""
        with self._asking():
            for found in listed(self.bucket, prefix):
                yield found.key.removeprefix(prefix), found.size, found.stored

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            with asking(_failed):
                yield
        except StoreError as problem:
            raise OSError(errno.EIO, str(problem)) from problem


def _failed(problem: Exception) -> OSError:
    return OSError(errno.ENOENT if is_code(problem, "NoSuchKey", "404") else errno.EIO, reason(problem))


class HdfsFiles:
    """A folder in HDFS. A file is written under another name and renamed once it is whole, which HDFS does in one step."""

    def __init__(self, uri: str):
        self.server, path = name_node_and_path(uri)
        self._root = path.rstrip("/")

    def path(self, name: str) -> str:
        """Return the file's path in HDFS."""
        return f"{self._root}/{name}" if name else self._root or "/"

    def write(self, name: str, parts: Iterable[bytes], new: bool = False) -> None:
        """Write a file; see `RemoteFiles`.

        new: raise OSError if such a file exists.
        """
        folder, _, last = self.path(name).rpartition("/")
        temporary = f"{folder}/.{last}.{secrets.token_hex(4)}{TEMPORARY}"
        try:
            with self.open_output_stream(temporary) as file:
                for part in parts:
                    file.write(part)
            with _hdfs_failing():
                hdfs_client.client(self.server).rename(temporary, self.path(name), overwrite=not new)
        except BaseException:
            with contextlib.suppress(OSError):
                self._delete(temporary)
            raise

    def open_output_stream(self, path: str) -> BinaryIO:
        """Return a new file at this path in HDFS, to write; readers see it while it grows. Raises OSError, as its methods do."""
        with _hdfs_failing():
            return cast(BinaryIO, _HdfsStream(hdfs_client.data_client(self.server).create(path)))

    def try_to_write(self, name: str) -> None:
        """See `RemoteFiles`. A folder: processes that are forked from one that has written files could use HDFS no more."""
        self.make_folder(name)
        self.remove(name)

    def read(self, name: str, most: int | None = None) -> bytes:
        """See `RemoteFiles`."""
        with _hdfs_failing():
            reader = hdfs_client.data_client(self.server).read(self.path(name))
            size = len(reader) if most is None else min(len(reader), most + 1)
            return bytes(reader.read_range(0, size)) if size else b""

    def size(self, name: str) -> int:
        """Return a file's length, bytes."""
        with _hdfs_failing():
            return int(hdfs_client.client(self.server).get_file_info(self.path(name)).length)

    def remove(self, name: str) -> None:
        """See `RemoteFiles`."""
        if not self._delete(self.path(name)):
            raise FileNotFoundError(errno.ENOENT, "is not there")

    def _delete(self, path: str) -> bool:
        with _hdfs_failing():
            return bool(hdfs_client.client(self.server).delete(path))

    def remove_empty(self, name: str) -> None:
        """Remove a folder that holds nothing. Raises OSError for another one."""
        self._delete(self.path(name))  # which HDFS refuses for a folder with files, without `recursive`

    def names(self) -> Iterator[tuple[str, int, float]]:
        """Yield the files as `S3Files` does; none if there is no such folder."""
        above = self._root + "/"
        with contextlib.suppress(FileNotFoundError), _hdfs_failing():
            for found in hdfs_client.client(self.server).list_status(self.path(""), recursive=True):
                if not found.isdir:
                    yield found.path.removeprefix(above), found.length, found.modification_time / 1000

    def make_folder(self, name: str) -> None:
        """See `RemoteFiles`."""
        with _hdfs_failing():
            hdfs_client.client(self.server).mkdirs(self.path(name), create_parent=True)


class _HdfsStream(io.RawIOBase):
    """A stream to a file of HDFS, with errors as OSError."""

    def __init__(self, writer: FileWriter):
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with _hdfs_failing():
            return self._writer.write(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with _hdfs_failing():
                self._writer.close()


@contextlib.contextmanager
def _hdfs_failing() -> Iterator[None]:
    try:
        yield
    except StoreError as problem:
        raise OSError(errno.EIO, str(problem)) from problem
    except BaseException as problem:
        if not hdfs_client.is_from_client(problem):
            raise
        absent = isinstance(problem, FileNotFoundError)
        raise OSError(errno.ENOENT if absent else errno.EIO, hdfs_client.reason(problem)) from problem


class ArrowFiles:
    """A tree on any other file system that pyarrow reaches."""

    def __init__(self, uri: str):
        """Raises OSError, ValueError, ArrowException."""
        from pyarrow import fs

        self._system, root = fs.FileSystem.from_uri(uri)
        self._root = root.rstrip("/") or "/"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """See `RemoteFiles`."""
        whole = self._system.type_name in ("gcs", "abfs")  # they show an object once it is whole; elsewhere a rename does it
        target = self._path(name) if whole else f"{self._path(name)}.{secrets.token_hex(4)}{TEMPORARY}"
        try:
            with self._system.open_output_stream(target) as file:
                for part in parts:
                    file.write(part)
            if not whole:
                self._system.move(target, self._path(name))
        except BaseException:
            with contextlib.suppress(OSError):
                self._system.delete_file(target)
            raise

    def try_to_write(self, name: str) -> None:
        """See `RemoteFiles`."""
        self.write(name, ())
        self.remove(name)

    def read(self, name: str, most: int | None = None) -> bytes:
        """See `RemoteFiles`."""
        with self._system.open_input_stream(self._path(name)) as file:
            return bytes(file.read(None if most is None else most + 1))

    def remove(self, name: str) -> None:
        """See `RemoteFiles`."""
        self._system.delete_file(self._path(name))

    def make_folder(self, name: str) -> None:
        """See `RemoteFiles`."""
        self._system.create_dir(self._path(name), recursive=True)


def remote_files(uri: str) -> RemoteFiles:
    """Return the tree at that address. Raises OSError, ValueError, StoreError, pyarrow's errors."""
    if is_hdfs(uri):
        return HdfsFiles(uri)
    return S3Files(uri) if is_s3(uri) else ArrowFiles(uri)
