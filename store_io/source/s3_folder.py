"""A store's files as objects of an S3-compatible server.

Requests are what this costs. A file is opened by reading its first block: the answer says how long the object is and its
ETag, so nothing is asked beforehand. Later blocks are asked for under that ETag, so two objects are never mixed. Where one
block is read after the other, the next ones are on their way.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from store_io.base import checksum
from store_io.base.errors import StoreChanged, Unreadable
from store_io.base.paths import bucket_and_key
from store_io.source.byte_source import BasicFile, ByteFile, Found
from store_io.source.s3_client import client, is_code, problem

BLOCK_BYTES = 4 << 20
AHEAD = 2  # blocks that are read before they are asked for
KEPT_BYTES = 96 << 20  # of all files of a process; a queue's file has two blocks
ENTRY_BYTES = 500  # that keeping a block takes besides its bytes, about
KEPT_OBJECTS = 100_000  # whose length and ETag are kept
ATTEMPTS = 4  # of a block whose connection breaks in its middle: botocore tries again only until an answer begins
SECOND = 1_000_000_000  # ns
_THREADS = 16


BlockName = tuple[str, str, str, int]  # bucket, key, ETag, number


class Opened(NamedTuple):
    """An object as the answer to a first request described it. asked: when that was sent, ns."""

    size: int
    etag: str
    asked: int


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

    def open(self, relative: str, path: str) -> ByteFile:
        """The object. Raises StoreChanged where it is gone, Unreadable."""
        return S3File(self.bucket, self._key(relative), path, self._since)

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        """Everything below the folder `relative`; see `byte_source`. Raises StoreError.

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


class S3File(BasicFile):
    """One object, read in blocks of BLOCK_BYTES that all files of the process share.

    since: ns; what the process read of the object after that is used again without a request.
    """

    def __init__(self, bucket: str, key: str, path: str, since: int):
        self.path, self._bucket, self._key = path, bucket, key
        opened = _kept().opened(bucket, key, since)
        if opened is None:
            now = time.time_ns()
            first, size, self._etag = _get(bucket, key, path, 0, None)
            opened = Opened(size, self._etag, now)
            _kept().put(self._name(0), first)
            _kept().put_opened(bucket, key, opened)
        self.size, self._etag = opened.size, opened.etag
        self._waiting: dict[int, Future[bytes]] = {}
        self._last = 0

    def _name(self, block: int) -> BlockName:
        return self._bucket, self._key, self._etag, block

    def _fill(self, position: int, view: memoryview) -> int:
        block, within = divmod(position, BLOCK_BYTES)
        data = self._block(block)
        part = data[within : within + len(view)]
        view[: len(part)] = part
        return len(part)

    def _block(self, block: int) -> bytes:
        kept = _kept()
        data = kept.get(self._name(block))
        waiting = self._waiting.pop(block, None)
        if data is None:
            data = waiting.result() if waiting is not None else self._fetch(block)
            kept.put(self._name(block), data)
        if block == self._last + 1:
            self._read_ahead(block)
        self._last = block
        return data

    def _read_ahead(self, block: int) -> None:
        for passed in [number for number in self._waiting if not block < number <= block + AHEAD]:
            self._waiting.pop(passed).cancel()
        for following in range(block + 1, block + 1 + AHEAD):
            if (
                following * BLOCK_BYTES < self.size
                and following not in self._waiting
                and _kept().get(self._name(following)) is None
            ):
                self._waiting[following] = _threads(os.getpid()).submit(self._fetch, following)

    def _fetch(self, block: int) -> bytes:
        data, size, etag = _get(self._bucket, self._key, self.path, block, self._etag)
        if (size, etag) != (self.size, self._etag):  # the server does not mind under which ETag it is asked
            raise StoreChanged(f"{self.path}: was replaced by another object while it was read")
        return data

    def close(self) -> None:
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting = {}


class KeptBlocks:
    """What a process keeps of objects: the blocks that were used last, up to KEPT_BYTES, and lengths. Threads may share it."""

    def __init__(self, most_bytes: int = KEPT_BYTES):
        self._most = most_bytes
        self._bytes = 0
        self._blocks: OrderedDict[BlockName, bytes] = OrderedDict()
        self._opened: OrderedDict[tuple[str, str], Opened] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: BlockName) -> bytes | None:
        """The block, None where it is not kept."""
        with self._lock:
            if name in self._blocks:
                self._blocks.move_to_end(name)
            return self._blocks.get(name)

    def put(self, name: BlockName, data: bytes) -> None:
        """Keep it, in place of those that were not used for longest."""
        with self._lock:
            if name in self._blocks:
                self._bytes -= _held(self._blocks.pop(name))
            self._blocks[name] = data
            self._bytes += _held(data)
            while self._bytes > self._most and len(self._blocks) > 1:
                self._bytes -= _held(self._blocks.popitem(last=False)[1])

    def opened(self, bucket: str, key: str, since: int) -> Opened | None:
        """The object as it was asked for since then; None: ask the server."""
        with self._lock:
            found = self._opened.get((bucket, key))
        return found if found is not None and found.etag and found.asked >= since else None

    def put_opened(self, bucket: str, key: str, opened: Opened) -> None:
        """Keep it, in place of the oldest."""
        with self._lock:
            self._opened.pop((bucket, key), None)
            self._opened[bucket, key] = opened
            if len(self._opened) > KEPT_OBJECTS:
                self._opened.popitem(last=False)


def _held(data: bytes) -> int:
    return len(data) + ENTRY_BYTES


@functools.lru_cache(maxsize=1)
def _kept_of(process: int) -> KeptBlocks:
    return KeptBlocks()


def _kept() -> KeptBlocks:
    return _kept_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "read-ahead")


def _moment(entry: dict[str, Any]) -> int:
    """When it was stored, ns. S3 knows whole seconds: the rest is of the ETag, so another object of that second differs."""
    version = checksum.crc32(str(entry.get("ETag", "")).encode()) % SECOND
    return int(entry["LastModified"].timestamp()) * SECOND + version


def _get(bucket: str, key: str, path: str, block: int, etag: str | None) -> tuple[bytes, int, str]:
    """One block, the object's length, and its ETag. etag: that it must still have. Raises StoreChanged, Unreadable."""
    from botocore.exceptions import BotoCoreError, ClientError

    start = block * BLOCK_BYTES
    asked = {"Bucket": bucket, "Key": key, "Range": f"bytes={start}-{start + BLOCK_BYTES - 1}"}
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
        size = _length(answer, start, path)
        try:
            data = answer["Body"].read()
        except BotoCoreError as error:
            if not left:
                raise problem(error, path) from error
            continue
        if len(data) != min(BLOCK_BYTES, size - start):
            raise Unreadable(f"{path}: cannot be read: the server sends {len(data)} bytes from {start} on of {size}")
        break
    return data, size, answer.get("ETag", "")


def _length(answer: Any, start: int, path: str) -> int:
    """The object's length, by what comes before its bytes. Raises Unreadable where that is no answer to a range."""
    told = re.fullmatch(r"bytes ([0-9]{1,19})-[0-9]{1,19}/([0-9]{1,19})", answer.get("ContentRange", ""))
    if told is None and not start and answer.get("ContentLength", BLOCK_BYTES + 1) <= BLOCK_BYTES:
        size = int(answer["ContentLength"])  # all of a small object may come without being asked for
    elif told is None or int(told[1]) != start or int(told[2]) < start:
        raise Unreadable(f"{path}: cannot be read: the server does not answer with the range that is asked for")
    else:
        size = int(told[2])
    if size and not answer.get("ETag"):
        raise Unreadable(f"{path}: cannot be read: the server gives no ETag, so nobody could see that the object is replaced")
    return size
