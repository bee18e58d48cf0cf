"""Reads paths and addresses by their text. Standard library only: the command line is read before anything is installed."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from store_io.base.errors import UsageError

S3_SCHEMES = ("s3", "s3a")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_LOGIN = re.compile(r"//[^/\s]*@")
_NAME_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}|arn:[A-Za-z0-9:_-]{1,254}")


def is_uri(text: str) -> bool:
    """Say whether the text is a URI and no local path: a scheme of two letters or more, then ":/"."""
    return _URI.match(text) is not None


def is_inner_path(path: str) -> bool:
    """Say whether a relative path stays below its folder: names joined by "/", none of them empty, "." or ".."."""
    return "\0" not in path and not any(name in ("", ".", "..") for name in path.split("/"))


def without_login(text: str) -> str:
    """Return the text without what an address in it may carry to log in."""
    return _LOGIN.sub("//", text)


def is_s3(uri: str) -> bool:
    """Say whether the URI names an object or a prefix of such a server."""
    return urlsplit(uri).scheme.lower() in S3_SCHEMES


def is_hdfs(uri: str) -> bool:
    """Say whether the URI names a file or folder in HDFS."""
    return urlsplit(uri).scheme.lower() == "hdfs"


def name_node_and_path(uri: str) -> tuple[str, str]:
    """Return HOST:PORT or the name service of an HDFS address, and the path, without "/" at its end.

    Raises UsageError for what names no server, which is not quoted: it may be a login; and for paths that HDFS has no files at,
    or that other clients change.
    """
    server, _, path = uri.partition("://")[2].partition("/")
    if not _NAME_NODE.fullmatch(server):
        raise UsageError(
            "an HDFS address is hdfs://HOST:PORT/FOLDER, or hdfs://NAME/FOLDER with a name service of the Hadoop configuration,"
            " without a login; the user is HADOOP_USER_NAME"
        )
    path = path.strip("/")
    _check_folder(f"hdfs://{server}", path, "HDFS")
    return server.lower(), f"/{path}"


def _check_folder(server: str, path: str, kind: str) -> None:
    if path and (any(part in ("", ".", "..") for part in path.split("/")) or re.search(r"[?#\x00-\x1f\x7f]", path)):
        raise UsageError(
            f"{f'{server}/{path}'!r}: a folder in {kind} has a name without '//', '.', '..', '?', '#' and control characters"
        )


def bucket_and_key(uri: str) -> tuple[str, str]:
    """Return the bucket, and the key without "/" at either end.

    Raises UsageError for what names no bucket, which is not quoted: it may be a login. So for parts that other clients change
    ("//", ".", "..", "?", "#"), as two of them would mean different objects.
    """
    bucket, _, key = uri.partition("://")[2].partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise UsageError("an S3 address is s3://BUCKET/FOLDER, without a login; this one does not begin with a bucket's name")
    key = key.strip("/")
    _check_folder(f"s3://{bucket}", key, "S3")
    return bucket, key
