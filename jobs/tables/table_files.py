"""The address of a table, its files, and the error of all that read or write one. Without Spark.

A file is known before the table's log names it (`DataFile`), and as the newest version has it (`LiveFile`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from jobs.runtime.faults import reason
from jobs.tables.file_statistics import FileStatistics
from schemas.tables import RUN_ID
from store_io.base.errors import StoreError
from store_io.base.paths import bucket_and_key, is_hdfs, is_s3, name_node_and_path
from store_io.source.hdfs_client import client, failing
from store_io.source.s3_client import delta_options

_Found = TypeVar("_Found")


class TablesFailed(StoreError):
    """The result tables cannot be read or written."""


def of_table(uri: str, action: Callable[[], _Found]) -> _Found:
    """Return the result of an action on a table. Raises TablesFailed, which names the table, for any error."""
    try:
        return action()
    except TablesFailed:
        raise
    except Exception as problem:  # delta-rs's errors have no common kind
        raise TablesFailed(f"table {uri}: {reason(problem)}") from None


def is_local(uri: str) -> bool:
    """Say whether a table's or folder's address is a path of this machine."""
    return uri.startswith(("/", "file:"))


def is_remote(uri: str) -> bool:
    """Say whether the table lies in S3 or HDFS; there delta-rs alone commits (`jobs.tables.remote_log`)."""
    return is_s3(uri) or is_hdfs(uri)


def hadoop_path(uri: str) -> str:
    """Return the path of a table's local address.

    Not decoded: in Hadoop's addresses "%20" is three characters; in a user's `file:` URI (`byte_source.local_path`) it is a
    space.
    """
    return "/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


def delta_rs_misreads(path: str) -> bool:
    """Say whether delta-rs looks for a local path elsewhere or not at all.

    It decodes "%20", takes a backslash for a slash, and refuses control characters.
    """
    return re.search(r"[%\\\x00-\x1f\x7f]", path) is not None


def refuse_misread(uri: str) -> None:
    """Raise TablesFailed for a folder of this machine that delta-rs misreads."""
    if is_local(uri) and delta_rs_misreads(hadoop_path(uri)):
        odd = "'%', a backslash or a control character"
        raise TablesFailed(f"table {uri}: delta-rs cannot read below a folder that has {odd} in its name: rename it")


def refuse_links(table: str) -> None:
    """Raise TablesFailed if a table's folder on this machine is a link or has one below it.

    The place that a link names is not the table's, and delta-rs would write and remove files there. In S3 and HDFS there are no
    links.
    """
    if not is_remote(table) and (link := _link_in(hadoop_path(table).rstrip("/"))) is not None:
        raise TablesFailed(f"table {table}: {link} is a link: what it names is left alone; put that itself in the link's place")


def _link_in(path: str) -> str | None:
    """Return the path itself, or the first one below it, that is a link. Raises OSError."""
    if os.path.islink(path):
        return path
    with contextlib.suppress(FileNotFoundError), os.scandir(path) as entries:  # another command may remove a folder meanwhile
        for entry in entries:
            if entry.is_symlink():
                return entry.path
            if entry.is_dir(follow_symlinks=False) and (found := _link_in(entry.path)) is not None:
                return found
    return None


def delta_rs_options(uri: str) -> dict[str, str] | None:
    """Return the options by which delta-rs reaches the table: the login of S3. Raises StoreError; TablesFailed if it would look
    elsewhere.

    HDFS is asked once before, as delta-rs takes minutes to give up if no server answers.
    """
    if not is_remote(uri):
        return None
    server = "" if is_s3(uri) else name_node_and_path(uri)[0]
    bucket = bucket_and_key(uri)[0] if is_s3(uri) else ""
    if delta_rs_misreads(uri):
        raise TablesFailed(f"table {uri}: delta-rs would look elsewhere, as it decodes '%': choose another folder")
    if bucket:
        return delta_options(bucket)
    with failing(f"hdfs://{server}/", "cannot be reached"):
        client(server).get_file_info("/")
    return {}


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of one run in a table's folder that the table's log does not list yet. It is two names below the table.

    values: the values of all its rows in the columns by which a table may be partitioned.
    """

    uri: str
    size_bytes: int
    modified_ms: int
    statistics: FileStatistics
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the file's path below the table's folder."""
        return "/".join(self.uri.rsplit("/", 2)[1:])


@dataclass(frozen=True)
class LiveFile:
    """A file of a table's newest version.

    path: below the table's folder, or an address.
    values: those of the table's partition columns.
    low, high: the bounds of its run ids; rows: their number; None if the log does not say.
    modified_ms: the time at which it was made, ms since 1970.
    """

    path: str
    values: Mapping[str, str | None]
    low: str | None
    high: str | None
    size_bytes: int = 0
    modified_ms: int = 0
    rows: int | None = None

    def run_id(self) -> str | None:
        """Return the run whose rows the file has; None unless the log alone shows that it is one run."""
        if RUN_ID.name in self.values:
            return self.values[RUN_ID.name]
        return self.low if self.low is not None and self.low == self.high else None

    def may_hold(self, run_id: str) -> bool:
        """Say whether rows of this run may be in the file."""
        if RUN_ID.name in self.values:
            return self.values[RUN_ID.name] == run_id
        return self.low is None or self.high is None or self.low <= run_id <= self.high
