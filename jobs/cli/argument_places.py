"""Places that a command line names: files, folders and URIs; and that nothing is written into a store. Standard library only."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, QUEUES
from store_io.base.errors import UsageError
from store_io.base.java.java_compat import decode_utf8
from store_io.base.paths import bucket_and_key, is_hdfs, is_s3, is_uri, name_node_and_path

_OF_STORES = (COMMITLOG, QUEUES, BATCH_QUEUES)  # folders that only a store has
_NAME_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_NAME_BYTES = 200  # a folder's name may have 255; "-2" and a file's suffix must fit too
CONF_BYTES = 1 << 20
SALT_BYTES = 4096
TOPIC_BYTES = (1 << 15) + 1  # the longest name that a record can hold, and a line end


def absolute(text: str, base: str | None = None) -> str:
    """Return an absolute local path (also for file: URIs), or any other URI unchanged. Raises UsageError."""
    if "\0" in text:
        raise UsageError(f"path {text!r}: a zero byte")
    if is_uri(text):
        if is_s3(text):
            bucket_and_key(text)  # a login in it is refused before anything repeats it
        if is_hdfs(text):
            name_node_and_path(text)
        parts = urlsplit(text)
        if ":" in parts.netloc.rpartition("@")[0]:  # before anything repeats it; abfs://CONTAINER@ACCOUNT/ has none
            raise UsageError(
                f"an address of {parts.scheme}:// holds a password or a key, which results would repeat:"
                " set it in the environment"
            )
        if parts.scheme.lower() != "file":
            return text
        if parts.netloc not in ("", "localhost"):
            raise UsageError(f"{text!r}: a file: URI names a file of this machine")
        text = unquote(parts.path, errors="surrogateescape")
    return os.path.abspath(os.path.join(base or os.getcwd(), text))


def last_part(path: str) -> str:
    """Return the last part of a path or URI. It is the name of a bare bucket or host, and "store" for the root."""
    text = path
    if is_uri(path):
        parts = urlsplit(path)
        text = parts.path.strip("/") or parts.netloc
    return text.rstrip("/").rpartition("/")[2] or "store"


def join(folder: str, name: str) -> str:
    return folder.rstrip("/") + "/" + name


def folder_name(name: str) -> str:
    """Return the name as a folder's: bytes outside of [A-Za-z0-9._-] become %XX.

    A name that a file system would refuse is cut.
    """
    encoded = [chr(b) if b in _NAME_KEPT else f"%{b:02X}" for b in name.encode("utf-8", "surrogateescape")]
    while sum(map(len, encoded)) > _NAME_BYTES:
        encoded.pop()
    return "".join(encoded)


def refuse_not_utf8(option: str, place: str) -> None:
    """Raise UsageError for a place of the tables that Java has no name for."""
    try:
        place.encode("utf-8")
    except UnicodeEncodeError:
        more = "; name another, or another place for the tables with --tables" if option == "--out" else ""
        raise UsageError(f"{option} {place!r}: not UTF-8, and Spark cannot write its tables there{more}") from None


def tables_at(option: str, uri: str) -> str:
    """Return the address of tables, absolute. option: how the user calls it. Raises UsageError for an empty one."""
    if not uri.strip():
        raise UsageError(f"{option} is empty: it names the tables that audits wrote (DIR/tables of their --out DIR)")
    found = absolute(uri)
    refuse_not_utf8(option, found)
    return found


def refuse_inside(target: str, option: str, roots: Sequence[str]) -> None:
    """Raise UsageError if the target lies inside one of these stores' folders: links and mounts are followed."""
    refuse_all_inside([(option, target)], roots)


def refuse_all_inside(written: Sequence[tuple[str, str]], roots: Sequence[str]) -> None:
    """Raise UsageError if one of several (option, target) lies inside one of these stores' folders.

    Every folder of the stores is compared: any may be mounted elsewhere as well.
    """
    known: dict[str | tuple[int, int], str] = {}
    for root in filter(None, roots):
        for identity in _identities_within(root):
            known.setdefault(identity, root)
    for option, target in written:
        for folder in _folders_above(target):
            for identity in _identities(folder):
                if identity in known:
                    raise UsageError(
                        f"{option}: {target!r} lies inside the store {known[identity]!r}; a store is never written to"
                    )


def refuse_inside_any(target: str, option: str) -> None:
    """Raise UsageError if the target lies below any folder of this machine with a store's content."""
    for folder in [] if is_uri(target) else _folders_above(target)[1:]:
        held = next((name for name in _OF_STORES if os.path.isdir(join(folder, name))), None)
        if held is not None:
            raise UsageError(
                f"{option}: {target!r} lies inside {folder!r}, which holds {held}/ as a store does; a store is never written to"
            )


def _folders_above(path: str) -> list[str]:
    """Return the path itself and every folder above it, links resolved."""
    if is_uri(path):
        parts = _normal_uri(path).split("/")
        return ["/".join(parts[:count]) for count in range(len(parts), 2, -1)]
    real = os.path.realpath(path)
    return [real, *map(str, Path(real).parents)]


def _identities(path: str) -> list[str | tuple[int, int]]:
    """Return the identities of a folder: its resolved name, and its inode, for a folder that is mounted twice."""
    if is_uri(path):
        return [_normal_uri(path)]
    real = os.path.realpath(path)
    with contextlib.suppress(OSError):
        status = os.stat(real)
        return [real, (status.st_dev, status.st_ino)]
    return [real]


def _identities_within(root: str) -> Iterator[str | tuple[int, int]]:
    """Yield the root's own identities, and the inode of each folder below it. A folder that cannot be read has none to be met."""
    yield from _identities(root)
    if not is_uri(root):
        for folder, _, _ in os.walk(os.path.realpath(root)):
            with contextlib.suppress(OSError):
                status = os.stat(folder)
                yield status.st_dev, status.st_ino


def _normal_uri(uri: str) -> str:
    parts = urlsplit(uri)
    scheme = "s3" if is_s3(uri) else parts.scheme.lower()
    path = os.path.normpath("/" + unquote(parts.path).strip("/"))  # some clients decode, others do not: both are kept out
    return f"{scheme}://{parts.netloc.lower() if scheme == 'hdfs' else parts.netloc}{path if path != '/' else ''}"


def open_regular(path: str) -> BinaryIO:
    """Return the file, or a pipe that the shell handed down (/dev/fd/N).

    Raises OSError; ValueError for a FIFO, device or directory, which could keep a reader waiting without end.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISFIFO(mode) and os.path.realpath(path).startswith("/proc/"):
            os.set_blocking(handle, True)  # its writer may still be at work
        elif not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "a FIFO" if stat.S_ISFIFO(mode) else "a device"
            raise ValueError(f"{kind}, not a file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str, limit: int) -> bytes:
    """Return a file's bytes. Raises OSError; ValueError for what is no file, or has more bytes."""
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"more than {limit:,} bytes")
    return content


def read_broker_conf(path: str) -> str:
    """Return the text of a properties file, one character per byte as Java reads it. Raises OSError; ValueError over 1 MiB."""
    return read_regular(path, CONF_BYTES).decode("latin-1")


def read_salt(path: str, option: str) -> str:
    """Return the text in a file with a salt for redaction. Raises UsageError, naming the option."""
    try:
        return read_regular(absolute(path), SALT_BYTES).decode("latin-1").strip()
    except (OSError, ValueError) as problem:
        raise UsageError(f"{option} {path!r}: {reason_of(problem)}") from None


def read_topic(path: str) -> str:
    """Return the topic whose name the file holds, as a broker reads its bytes. Raises UsageError."""
    try:
        content = read_regular(absolute(path), TOPIC_BYTES)
    except (OSError, ValueError) as problem:
        raise UsageError(f"--topic-file {path!r}: {reason_of(problem)}") from None
    if content.endswith(b"\r\n"):
        raise UsageError(
            f"--topic-file {path!r}: ends in CR and LF, as Windows ends a line: end it in LF alone, or in nothing if the name"
            " itself ends in CR"
        )
    return decode_utf8(content.removesuffix(b"\n"))


def reason_of(problem: Exception) -> str:
    return (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)
