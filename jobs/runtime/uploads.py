"""Puts a folder of this machine into S3 or HDFS: whole, or not to be taken for whole.

HDFS renames a folder in one step: everything goes below another name first. S3 has no such step: an object of the name
UPLOAD_MARK is there first and goes last, and every command refuses a store that holds it. What the server has by then is compared
with what was sent: names and lengths, in S3 ETags, too. Each part of an object is sent with its MD5, which the server compares;
HDFS has checksums of its own.

Two runs may have the same target. No file replaces another, and a run removes only what it has put there itself.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from jobs.cli.parser import master_of, uses_other_machines
from jobs.runtime.faults import say
from jobs.runtime.remote_files import TEMPORARY, HdfsFiles, S3Files
from schemas.layouts.store_names import UPLOAD_MARK
from store_io.base.errors import StoreError, UsageError
from store_io.base.paths import is_hdfs, is_s3
from store_io.source.hdfs_client import client as hdfs_client
from store_io.source.hdfs_client import failing
from store_io.source.s3_client import asking, client, is_code, reason
from store_io.source.s3_folder import listed

PART_BYTES = 32 << 20  # of an object that is longer: it is there once all parts are
THREADS = 4  # each holds a part
HDFS_THREADS = 32  # each holds 1 MiB, and waits up to half a second for the NameNode to hear of a file's last block
_MARK = b"An upload to this folder is under way, or was broken off: what is here is not whole.\n"


class UploadFailed(StoreError):
    """The folder made here could not be put in its place. All that had been put there is removed, or marked as not whole."""


class Target(Protocol):
    """A folder in S3 or HDFS that is still to be made."""

    uri: str

    def check_new(self, text: str, beside: Sequence[str] = ()) -> None:
        """Raise UsageError if it exists already, or something of its name with one of these suffixes.

        Raises StoreError if the server does not answer.
        text: as it was given with --to.
        """

    def put(self, folder: str, last: Sequence[str] = ()) -> None:
        """Put all files of a folder of this machine there. Raises UploadFailed.

        last: files that come after all others, in this order.
        """

    def put_beside(self, path: str, suffix: str) -> None:
        """Put one file of this machine beside the folder, whole; its name there is the folder's with this suffix.

        Raises UploadFailed, also if a file of that name exists.
        """

    def remove_beside(self, suffix: str) -> None:
        """Remove a file that `put_beside` has put there, if that can be."""


def target_of(uri: str) -> Target:
    """Return the target. Raises UsageError for what nothing can be put into."""
    if is_s3(uri):
        return _S3Target(uri)
    if is_hdfs(uri):
        return _HdfsTarget(uri)
    raise UsageError(
        f"--to {uri!r}: a folder of this machine or one that is mounted here, s3://BUCKET/FOLDER or hdfs://HOST:PORT/FOLDER"
    )


def refuse_elsewhere(spark_words: Sequence[str]) -> None:
    """Raise UsageError if tasks run on other machines. Files that go to a URI are made in a folder of this machine first."""
    if uses_other_machines(spark_words):
        raise UsageError(
            f"--to a URI, with master {master_of(spark_words)}: it is made in a folder of this machine first, which others do not"
            " see; leave the master out, or name a folder that is mounted on all"
        )


def _files(folder: str, last: Sequence[str]) -> dict[str, int]:
    """Return path below the folder -> length, of its regular files, in the order in which they are put."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found[os.path.relpath(path, folder)] = os.path.getsize(path)
    order = {name: number for number, name in enumerate(last, 1)}
    return {name: found[name] for name in sorted(found, key=lambda name: (order.get(name, 0), name))}


def _side_by_side(action: Callable[[str], Any], names: Sequence[str], last: Sequence[str], threads: int = THREADS) -> None:
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(action, [name for name in names if name not in last]))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for name in names:
        if name in last:
            action(name)


def _compare(uri: str, sent: dict[str, Any], there: dict[str, Any]) -> None:
    for name in sorted(sent.keys() | there.keys()):
        if sent.get(name) != there.get(name):
            raise UploadFailed(
                f"{uri}/{name}: {there.get(name, 'not there')} after the upload, {sent.get(name, 'nothing')} was sent"
            )


class _AlreadyThere(UploadFailed):
    """Another run has put it there."""

    def __init__(self, uri: str):
        super().__init__(f"{uri}: another run has put it there meanwhile; nothing is replaced")


class _S3Target:
    def __init__(self, uri: str):
        self._files = S3Files(uri)
        self._run = {"run": secrets.token_hex(16)}  # metadata of what this run puts there
        if not self._files.root:
            raise UsageError(f"--to {uri!r}: a bucket alone; name a folder in it")
        self.uri = f"s3://{self._files.bucket}/{self._files.root}"

    def check_new(self, text: str, beside: Sequence[str] = ()) -> None:
        found = [key for key, _, _ in self._listed(f"{self._files.root}/", 1)]
        for name in (self._files.root + suffix for suffix in beside):
            found += [key for key, _, _ in self._listed(name) if key == name]
        if found:
            broken = found[0].endswith(f"/{UPLOAD_MARK}")
            left = "an upload that was not finished" if broken else " and ".join(map(repr, found))
            act = "remove it" if broken else "keep that elsewhere"
            raise UsageError(f"--to {text!r}: holds {left}; nothing is replaced: {act}, or name another folder")

    def put(self, folder: str, last: Sequence[str] = ()) -> None:
        files = _files(folder, last)
        tried: set[str] = set()
        sent: dict[str, tuple[int, str]] = {}
        prefix = f"{self._files.root}/"

        def one(name: str) -> None:
            tried.add(name)
            sent[name] = files[name], self._put(prefix + name, os.path.join(folder, name), files[name])

        with asking(self._failed):
            try:
                self._put_new(prefix + UPLOAD_MARK, Body=_MARK)
            except _AlreadyThere:
                raise UploadFailed(f"{self.uri}: another upload to it is under way, or was broken off") from None
        try:
            for key, _, _ in self._listed(prefix, 2):  # another run may have ended since this one began
                if key != prefix + UPLOAD_MARK:
                    raise _AlreadyThere(self._uri(key))
            _side_by_side(one, list(files), last)
            there = {key.removeprefix(prefix): (size, etag) for key, size, etag in self._listed(prefix)}
            there.pop(UPLOAD_MARK, None)
            _compare(self.uri, sent, there)
            with asking(self._failed):
                client().delete_object(**self._place(prefix + UPLOAD_MARK))
        except BaseException:
            with contextlib.suppress(Exception):  # the mark goes last, and stays where an object could not be removed
                for name in sorted(tried):
                    if name in sent or self._own_etag(prefix + name):
                        client().delete_object(**self._place(prefix + name))
                client().delete_object(**self._place(prefix + UPLOAD_MARK))
            raise

    def put_beside(self, path: str, suffix: str) -> None:
        try:
            self._put(self._files.root + suffix, path, os.path.getsize(path))
        except OSError as problem:
            raise UploadFailed(f"{self.uri}{suffix}: cannot be written: {problem.strerror or problem}") from None

    def remove_beside(self, suffix: str) -> None:
        with contextlib.suppress(Exception):
            if self._own_etag(self._files.root + suffix):
                client().delete_object(**self._place(self._files.root + suffix))

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self._files.bucket, "Key": key}

    def _uri(self, key: str) -> str:
        return f"s3://{self._files.bucket}/{key}"

    def _put(self, key: str, path: str, size: int) -> str:
        """Put an object and return its ETag. Raises _AlreadyThere."""
        place = self._place(key)
        with asking(self._failed), open(path, "rb") as file:
            if size <= PART_BYTES:
                data = file.read()
                return self._put_new(key, Body=data, ContentMD5=_md5(data))
            upload = client().create_multipart_upload(**place, Metadata=self._run)["UploadId"]
            try:
                parts: list[dict[str, Any]] = []
                while data := file.read(PART_BYTES):
                    number = len(parts) + 1
                    answer = client().upload_part(**place, UploadId=upload, PartNumber=number, Body=data, ContentMD5=_md5(data))
                    parts.append({"PartNumber": number, "ETag": answer["ETag"]})
                whole = {"UploadId": upload, "MultipartUpload": {"Parts": parts}}
                return self._if_new(key, lambda: client().complete_multipart_upload(**place, **whole, IfNoneMatch="*"))
            except BaseException:
                with contextlib.suppress(Exception):
                    client().abort_multipart_upload(**place, UploadId=upload)
                raise

    def _put_new(self, key: str, **how: Any) -> str:
        return self._if_new(key, lambda: client().put_object(**self._place(key), **how, Metadata=self._run, IfNoneMatch="*"))

    def _if_new(self, key: str, put: Callable[[], Any]) -> str:
        """Put an object if it is new, and return its ETag. Raises _AlreadyThere, ClientError."""
        from botocore.exceptions import ClientError

        try:
            return str(put()["ETag"])
        except ClientError as problem:
            if not is_code(problem, "PreconditionFailed", "ConditionalRequestConflict", "412"):
                raise
            etag = ""
            with contextlib.suppress(ClientError):  # the client sends a request again whose answer was lost: then it is ours
                etag = self._own_etag(key)
            if not etag:
                raise _AlreadyThere(self._uri(key)) from None
            return etag

    def _own_etag(self, key: str) -> str:
        """Return the ETag of an object that this run has put there; "" if there is none or another's. Raises ClientError."""
        from botocore.exceptions import ClientError

        try:
            answer = client().head_object(**self._place(key))
        except ClientError as problem:
            if is_code(problem, "NoSuchKey", "404"):
                return ""
            raise
        return str(answer["ETag"]) if answer["Metadata"] == self._run else ""

    def _listed(self, prefix: str, most: int | None = None) -> Iterator[tuple[str, int, str]]:
        """Yield (key, length, ETag) of each object."""
        for entry in listed(self._files.bucket, prefix, most=most or 0):
            yield entry.key, entry.size, entry.etag

    def _failed(self, problem: Exception) -> UploadFailed:
        return UploadFailed(f"{self.uri}: cannot be written: {reason(problem)}")


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


class _HdfsTarget:
    def __init__(self, uri: str):
        self._files = HdfsFiles(uri)
        self._path = self._files.path("")
        if self._path == "/":
            raise UsageError(f"--to {uri!r}: the root of HDFS; name a folder in it")
        self.uri = f"hdfs://{self._files.server}{self._path}"

    def check_new(self, text: str, beside: Sequence[str] = ()) -> None:
        found = []
        for path in (self._path, *(self._path + suffix for suffix in beside)):
            with (
                failing(f"hdfs://{self._files.server}{path}", "cannot be looked up"),
                contextlib.suppress(FileNotFoundError),
            ):
                hdfs_client(self._files.server).get_file_info(path)
                found.append(repr(path))
        if found:
            there = f"{' and '.join(found)} {'is' if len(found) == 1 else 'are'} there"
            raise UsageError(f"--to {text!r}: {there}; nothing is replaced: keep that elsewhere, or name another folder")
        around, _, name = self._path.rpartition("/")
        unfinished = re.compile(rf"\.{re.escape(name)}(\.[a-z.]+)?\.[0-9a-f]{{8}}{re.escape(TEMPORARY)}")
        with contextlib.suppress(FileNotFoundError, RuntimeError):  # what is wrong with the folder the upload says
            for entry in hdfs_client(self._files.server).list_status(around or "/"):
                if unfinished.fullmatch(entry.path.rpartition("/")[2]):
                    left = f"hdfs://{self._files.server}{entry.path}"
                    say(f"warning: {left} is left from an upload that was broken off, unless one is under way; then remove it")

    def put(self, folder: str, last: Sequence[str] = ()) -> None:
        around, _, name = self._path.rpartition("/")
        below = HdfsFiles(f"hdfs://{self._files.server}{around}/.{name}.{secrets.token_hex(4)}{TEMPORARY}")
        files = _files(folder, last)

        def one(name: str) -> None:
            with open(os.path.join(folder, name), "rb") as file, below.open_output_stream(below.path(name)) as there:
                while data := file.read(1 << 20):
                    there.write(data)

        asked = hdfs_client(self._files.server)
        try:
            below.make_folder("")
            for where, folders, _ in os.walk(folder):
                for inner in folders:
                    below.make_folder(os.path.relpath(os.path.join(where, inner), folder))
            _side_by_side(one, list(files), last, HDFS_THREADS)
            with failing(self.uri, "cannot be listed"):
                found = [entry for entry in asked.list_status(below.path(""), recursive=True) if not entry.isdir]
            there = {entry.path.removeprefix(below.path("") + "/"): entry.length for entry in found}
            _compare(self.uri, dict(files), there)
            with failing(self.uri, "cannot be put in place"):
                asked.rename(below.path(""), self._path)
        except BaseException as problem:
            with contextlib.suppress(Exception):
                asked.delete(below.path(""), recursive=True)
            if isinstance(problem, OSError):
                raise UploadFailed(f"{self.uri}: cannot be written: {problem.strerror or problem}") from problem
            if isinstance(problem, StoreError):
                raise UploadFailed(str(problem)) from problem
            raise

    def put_beside(self, path: str, suffix: str) -> None:
        around, name = self._beside(suffix)
        try:
            with open(path, "rb") as file:
                around.write(name, iter(lambda: file.read(1 << 20), b""), new=True)
        except OSError as problem:
            raise UploadFailed(f"{self.uri}{suffix}: cannot be written: {problem.strerror or problem}") from None

    def remove_beside(self, suffix: str) -> None:
        around, name = self._beside(suffix)
        with contextlib.suppress(OSError):
            around.remove(name)

    def _beside(self, suffix: str) -> tuple[HdfsFiles, str]:
        around, _, name = self._path.rpartition("/")
        return HdfsFiles(f"hdfs://{self._files.server}{around}"), name + suffix
