"""A store's files as objects of an S3-compatible server.

A file is opened by reading its beginning: the answer says how long the object is and its ETag, so nothing is asked beforehand.
What follows is asked for under that ETag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from store_io.base import locks
from store_io.base.crc import checksum
from store_io.base.errors import StoreChanged, Unreadable
from store_io.base.paths import bucket_and_key
from store_io.source.byte_file import ByteFile, Found
from store_io.source.disk_cache import remembered
from store_io.source.remote_file import Reading, RemoteFile
from store_io.source.s3_answers import CONTENT_RANGE, LONGEST, failures
from store_io.source.s3_client import client, is_code, problem

SECOND = 1_000_000_000  # ns
MOST_KEYS = 2_000_000  # of one listing; the largest store that was tried has 1.2 million files
MOST_FRUITLESS = 10  # pages one after the other that have no later key than those before: S3 lists in order
_UNORDERED = "--x-s3"  # the end of a directory bucket's name, which is listed in no order


class S3Folder:
    """A prefix of a bucket as a tree of files: "/" in keys divides folders. Links do not exist there."""

    def __init__(self, uri: str, since: int):
        self.bucket, self.root = bucket_and_key(uri)
        self._uri, self._since = uri, since

    def _key(self, relative: str) -> str:
        return "/".join(part for part in (self.root, relative) if part)

    def _shown(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def kind(self, relative: str) -> str:
        """ "file", "directory", or "" where nothing is there. Raises StoreError."""
        key = self._key(relative)
        if not relative:  # the listing that is needed next
            folder = any(self.walk("", 1))
        else:
            folder = any(listed(self.bucket, f"{key}/", most=1))
        return "directory" if folder else "file" if key and self._is_object(key) else ""

    def _is_object(self, key: str) -> bool:
        try:
            _asked(self._shown(key), lambda: client().head_object(Bucket=self.bucket, Key=key))
        except StoreChanged:
            return False
        return True

    def has(self, relative: str) -> bool:
        """Say whether there is anything of this name. Raises StoreError."""
        return bool(self.kind(relative))

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        """Return the object. Raises StoreChanged where it is gone, Unreadable."""
        return S3File(self.bucket, self._key(relative), path, Reading(self._uri, self._since, sparsely))

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        """Return everything below the folder `relative`; see `byte_file`. Raises StoreError.

        A key that is no path ("a//b", "..") is listed as special. Raises Unreadable where a name is an object and a folder: no
        file system has that, and only one of both could be read.
        """
        yield from remembered(self._uri, f"{relative}/ {depth}", self._since, lambda: self._listed(relative, depth))

    def _listed(self, relative: str, depth: int) -> list[Found]:
        base = self._key(relative)
        prefix = f"{base}/" if base else ""
        files: dict[str, Found] = {}
        folders: set[str] = set()
        for entry in listed(self.bucket, prefix, one_level=depth == 1):
            path = entry.key[len(prefix) :]
            parts = path.removesuffix("/").split("/")
            if not path:
                continue  # the folder itself, which some clients make an empty object of
            if any(part in ("", ".", "..") for part in parts):
                files[path] = path, "special", 0, 0
                continue
            folders.update("/".join(parts[:count]) for count in range(1, len(parts) + path.endswith("/")))
            if not path.endswith("/") and len(parts) <= depth:
                files[path] = path, "file", entry.size, _moment(entry)
        folders = {folder for folder in folders if folder.count("/") < depth}
        if both := sorted(folders & files.keys()):
            raise Unreadable(
                f"{self._shown(prefix + both[0])}: an object and a folder have this name; a store has only one of them"
            )
        return sorted([*files.values(), *((folder, "directory", 0, 0) for folder in folders)])


class Listed(NamedTuple):
    """An object, or with its own name alone what begins the names of several. stored: seconds since 1970."""

    key: str
    size: int = 0
    stored: float = 0
    etag: str = ""


def listed(bucket: str, prefix: str, one_level: bool = False, most: int = 0) -> Iterator[Listed]:
    """Yield the objects whose keys begin with the prefix. Raises StoreError, also for a listing that does not end.

    one_level: keys with a "/" after the prefix are one, which ends there.
    most: keys that are asked for at all; 0: all of them.
    """
    shown = f"s3://{bucket}/{prefix}".rstrip("/")
    asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    asked |= {"Delimiter": "/"} if one_level else {}
    asked |= {"MaxKeys": most} if most else {}
    count, last, fruitless = 0, "", 0
    while True:
        locks.check()
        page = _asked(shown, lambda: client().list_objects_v2(**asked))
        if "KeyCount" not in page and "Name" not in page:
            raise Unreadable(f"{shown}: cannot be listed: what answers there is no S3 server")
        found = _entries(page, prefix, shown)
        yield from found
        if most or not page.get("IsTruncated"):
            return
        count += len(found)
        newest = max((entry.key for entry in found), default="")
        fruitless = 0 if newest > last or found and bucket.endswith(_UNORDERED) else fruitless + 1
        last = max(last, newest)
        following = page.get("NextContinuationToken")
        if not following or following == asked.get("ContinuationToken"):
            raise Unreadable(f"{shown}: cannot be listed: the server says that there is more, and not where")
        if fruitless == MOST_FRUITLESS:
            raise Unreadable(f"{shown}: cannot be listed: the server says that there is more, and gives nothing new")
        if count > MOST_KEYS:
            raise Unreadable(f"{shown}: cannot be listed: the server gives more than {MOST_KEYS:,} names")
        asked["ContinuationToken"] = following


def _entries(page: Any, prefix: str, shown: str) -> list[Listed]:
    """Return the content of a page of a listing. Raises Unreadable for an answer that no server of S3 gives."""
    try:
        found = [Listed(common["Prefix"]) for common in page.get("CommonPrefixes", ())]
        for entry in page.get("Contents", ()):
            found.append(Listed(entry["Key"], int(entry["Size"]), entry["LastModified"].timestamp(), str(entry.get("ETag", ""))))
    except failures() as error:
        raise problem(error, shown) from error
    for entry in found:
        if not entry.key.startswith(prefix):
            raise Unreadable(f"{shown}: cannot be listed: the server gives {entry.key[:100]!r}, which does not begin so")
    return found


def _asked(shown: str, request: Callable[[], Any]) -> Any:
    """Return the answer. shown: begins the sentence if there is none."""
    try:
        return request()
    except failures() as error:
        raise problem(error, shown) from error


class S3File(RemoteFile):
    """One object. What follows its beginning is asked for under the same ETag."""

    def __init__(self, bucket: str, key: str, path: str, reading: Reading):
        self._bucket, self._key = bucket, key
        super().__init__((bucket, key), path, reading)

    def _first(self, most: int) -> tuple[bytes, int, str]:
        return _get(self._bucket, self._key, self.path, 0, most, None)

    def _part(self, start: int, size: int) -> bytes:
        data, length, etag = _get(self._bucket, self._key, self.path, start, size, self._version)
        if (length, etag) != (self.size, self._version):  # the server does not mind under which ETag it is asked
            raise StoreChanged(f"{self.path}: was replaced by another object while it was read")
        return data


def _moment(entry: Listed) -> int:
    """Return when it was stored, ns.

    S3 knows whole seconds: the rest is of the ETag, so another object of that second differs.
    """
    return int(entry.stored) * SECOND + checksum.crc32(entry.etag.encode()) % SECOND


def _get(bucket: str, key: str, path: str, start: int, most: int, etag: str | None) -> tuple[bytes, int, str]:
    """Return `most` bytes from `start` on unless the object ends before, its length, and its ETag. etag: that it must still have.

    Raises StoreChanged, Unreadable.
    """
    asked = {"Bucket": bucket, "Key": key, "Range": f"bytes={start}-{start + most - 1}"}
    if etag:
        asked["IfMatch"] = etag
    try:
        answer = client().get_object(**asked)
        size = _length(answer, start, most, path)
        data = answer["Body"].read()
    except failures() as error:
        if is_code(error, "InvalidRange", "416") and not start:
            return _empty(bucket, key, path)
        raise problem(error, path) from error
    if len(data) != min(most, size - start):
        raise Unreadable(f"{path}: cannot be read: the server sends {len(data)} bytes from {start} on of {size}")
    return data, size, answer.get("ETag", "")


def _empty(bucket: str, key: str, path: str) -> tuple[bytes, int, str]:
    """Read an object in which, as the server says, no range of bytes lies: an empty one. Raises StoreChanged, Unreadable."""
    answer = _asked(path, lambda: client().head_object(Bucket=bucket, Key=key))
    if answer.get("ContentLength") != 0:
        raise Unreadable(f"{path}: cannot be read: the server says that it has no bytes, and that it has some")
    return b"", 0, answer.get("ETag", "")


def _length(answer: Any, start: int, most: int, path: str) -> int:
    """Return the object's length, as the answer says. Raises Unreadable if that is no answer to a range."""
    told = CONTENT_RANGE.fullmatch(answer.get("ContentRange", ""))
    if told is None and not start and 0 <= answer.get("ContentLength", -1) <= most:
        size = int(answer["ContentLength"])  # all of a small object may come without being asked for
    elif told is None or int(told[1]) != start or int(told[2]) < start:
        raise Unreadable(f"{path}: cannot be read: the server does not answer with the range that is asked for")
    else:
        size = int(told[2])
    if size > LONGEST:
        raise Unreadable(f"{path}: cannot be read: the server says that it has {size:,} bytes, which no object has")
    if size and not answer.get("ETag"):
        raise Unreadable(f"{path}: cannot be read: the server gives no ETag, so nobody could see that the object is replaced")
    return size
