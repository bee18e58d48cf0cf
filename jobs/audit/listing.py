"""The segments as Spark lists them: `binaryFile` with path, length and time, never content.

Our own listing decides what is read; Spark's is the second witness that a copy does not change while it is audited, and that
executors see the files that the driver sees. Explicit paths, because Spark's own listing hides names with `_` or `.`.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from store_io.audit.audit_store import StoreAudit
from store_io.base.paths import is_uri


def listing_problems(spark: SparkSession, audits: Sequence[StoreAudit]) -> list[list[str]]:
    """For each audit, sentences where Spark sees another length of a segment than we do."""
    numbered = enumerate(audits)
    wanted = {address: (i, name, size) for i, audit in numbered for name, address, size in audit.segment_addresses()}
    found: list[list[str]] = [[] for _ in audits]
    if not wanted:
        return found
    paths = [escaped(address) for address in wanted]
    try:
        rows = spark.read.format("binaryFile").load(paths).select("path", "length", "modificationTime").collect()
    except Exception:  # a file system that Spark does not know, or a file that has just vanished: our own listing counts
        return found
    for row in rows:
        known = wanted.get(_plain(row["path"])) or wanted.get(row["path"])
        if known is not None and row["length"] != known[2]:
            found[known[0]].append(f"{known[1]}: {row['length']} bytes by Spark's listing, {known[2]} by ours")
    return found


def escaped(address: str) -> str:
    """The address with Hadoop's wildcard characters escaped; local ones as file: URIs are read by every file system setting."""
    return "".join("\\" + c if c in "*?[]{}\\^" else c for c in address)


def _plain(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and not is_uri(uri.replace("file:", "", 1)) else uri
