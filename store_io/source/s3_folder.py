"""A store's files as objects of an S3-compatible server.

A file is opened by reading its first block: the answer says how long the object is and its ETag, so nothing is asked beforehand.
Later blocks are asked for under that ETag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from store_io.base.crc import checksum
from store_io.base.errors import StoreChanged, Unreadable
from store_io.base.paths import bucket_and_key
from store_io.source.byte_file import ByteFile, Found
from store_io.source.remote_file import Reading, RemoteFile
from store_io.source.s3_client import client, is_code, problem

ATTEMPTS = 4  # of a block whose connection breaks in its middle: botocore tries again only until an answer begins
SECOND = 1_000_000_000  # ns


class S3Folder:
    """A prefix of a bucket as a tree of files: "/" in keys divides folders. Links do not exist there."""

    def __init__(self, uri: str, since: int):
        self.bucket, self.root = bucket_and_key(uri)
        self._since = since

    def _key(self, relative: str) -> str:
        return "/".join(part for part in (self.root, relative) if part)

    def _shown(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def kind(self, relative: str) -> str:
        """ "file", "directory", or "" where nothing is there. Raises StoreError."""
        key = self._key(relative)
        prefix = f"{key}/" if key else ""
        listed = self._page(key, Prefix=prefix, MaxKeys=1)
        if listed.get("Contents"):
            return "directory"
        return "file" if key and self._is_object(key) else ""

    def _is_object(self, key: str) -> bool:
        try:
            self._asked(key, lambda: client().head_object(Bucket=self.bucket, Key=key))
        except StoreChanged:
            return False
        return True

    def has(self, relative: str) -> bool:
        """Whether there is anything of this name. Raises StoreError."""
        return bool(self.kind(relative))

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        """The object. Raises StoreChanged where it is gone, Unreadable."""
        return S3File(self.bucket, self._key(relative), path, Reading(self._since, sparsely))

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        """Everything below the folder `relative`; see `byte_file`. Raises StoreError.

        A key that is no path ("a//b", "..") is listed as special. Raises Unreadable where a name is an object and a folder: no
        file system has that, and only one of both could be read.
        """
        base = self._key(relative)
        prefix = f"{base}/" if base else ""
        files: dict[str, Found] = {}
        folders: set[str] = set()
        for entry in self._listed(prefix, depth == 1):
            path = entry["Key"][len(prefix) :]
            parts = path.removesuffix("/").split("/")
            if not path:
                continue  # the folder itself, which some clients make an empty object of
            if any(part in ("", ".", "..") for part in parts):
                files[path] = path, "special", 0, 0
                continue
            folders.update("/".join(parts[:count]) for count in range(1, len(parts) + path.endswith("/")))
            if not path.endswith("/") and len(parts) <= depth:
                files[path] = path, "file", int(entry["Size"]), _moment(entry)
        folders = {folder for folder in folders if folder.count("/") < depth}
        if both := sorted(folders & files.keys()):
            raise Unreadable(
                f"{self._shown(prefix + both[0])}: an object and a folder have this name; a store has only one of them"
            )
        yield from sorted([*files.values(), *((folder, "directory", 0, 0) for folder in folders)])

    def _listed(self, prefix: str, one_level: bool) -> Iterator[dict[str, Any]]:
        asked: dict[str, Any] = {"Prefix": prefix}
        if one_level:
            asked["Delimiter"] = "/"
        while True:
            page = self._page(prefix, **asked)
            yield from ({"Key": common["Prefix"]} for common in page.get("CommonPrefixes", ()))
            yield from page.get("Contents", ())
            if not page.get("IsTruncated"):
                return
            following = page.get("NextContinuationToken")
            if not following or following == asked.get("ContinuationToken"):
                raise Unreadable(f"{self._shown(prefix)}: cannot be listed: the server says that there is more, and not where")
            asked["ContinuationToken"] = following

    def _page(self, key: str, **asked: Any) -> Any:
        page = self._asked(key, lambda: client().list_objects_v2(Bucket=self.bucket, **asked))
        if "KeyCount" not in page and "Name" not in page:
            raise Unreadable(f"{self._shown(key)}: cannot be listed: what answers there is no S3 server")
        return page

    def _asked(self, key: str, request: Callable[[], Any]) -> Any:
        """The answer. key: for the sentence where there is none."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return request()
        except (BotoCoreError, ClientError) as error:
            raise problem(error, self._shown(key)) from error


class S3File(RemoteFile):
    """One object. Later blocks are asked for under the ETag of the first one."""

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


def _moment(entry: dict[str, Any]) -> int:
    """When it was stored, ns. S3 knows whole seconds: the rest is of the ETag, so another object of that second differs."""
    version = checksum.crc32(str(entry.get("ETag", "")).encode()) % SECOND
    return int(entry["LastModified"].timestamp()) * SECOND + version


def _get(bucket: str, key: str, path: str, start: int, most: int, etag: str | None) -> tuple[bytes, int, str]:
    """`most` bytes from `start` on unless the object ends before, its length, and its ETag. etag: that it must still have.

    Raises StoreChanged, Unreadable.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    asked = {"Bucket": bucket, "Key": key, "Range": f"bytes={start}-{start + most - 1}"}
    if etag:
        asked["IfMatch"] = etag
    for left in reversed(range(ATTEMPTS)):
        try:
            answer = client().get_object(**asked)
        except ClientError as error:
            if is_code(error, "InvalidRange", "416") and not start:
                return b"", 0, ""  # no range of bytes fits an empty object
            raise problem(error, path) from error
        except BotoCoreError as error:  # it has been tried again already
            raise problem(error, path) from error
        size = _length(answer, start, most, path)
        try:
            data = answer["Body"].read()
        except BotoCoreError as error:
            if not left:
                raise problem(error, path) from error
            continue
        if len(data) != min(most, size - start):
            raise Unreadable(f"{path}: cannot be read: the server sends {len(data)} bytes from {start} on of {size}")
        break
    return data, size, answer.get("ETag", "")


def _length(answer: Any, start: int, most: int, path: str) -> int:
    """The object's length, by what comes before its bytes. Raises Unreadable where that is no answer to a range."""
    told = re.fullmatch(r"bytes ([0-9]{1,19})-[0-9]{1,19}/([0-9]{1,19})", answer.get("ContentRange", ""))
    if told is None and not start and answer.get("ContentLength", most + 1) <= most:
        size = int(answer["ContentLength"])  # all of a small object may come without being asked for
    elif told is None or int(told[1]) != start or int(told[2]) < start:
        raise Unreadable(f"{path}: cannot be read: the server does not answer with the range that is asked for")
    else:
        size = int(told[2])
    if size and not answer.get("ETag"):
        raise Unreadable(f"{path}: cannot be read: the server gives no ETag, so nobody could see that the object is replaced")
    return size
