"""The segments as Spark's own file systems (Hadoop's) see them: their length, never content.

Our own listing decides what is read; this is the second witness that a copy does not change while it is audited, and that
Spark's file system of that address sees the files that we see.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from schemas.advice import Cause, Gap
from store_io.audit.audit_store import StoreAudit
from store_io.base.paths import is_uri

if TYPE_CHECKING:
    from pyspark import SparkContext

    from jobs.audit.one_store import WholeStore

THREADS = 16  # of a file system elsewhere, each of whose answers takes its time


def listing_problems(context: SparkContext, audits: Sequence[StoreAudit | WholeStore]) -> list[list[Gap]]:
    """For each audit, a gap for each segment of which Spark sees another length than we do."""
    jvm: Any = context._jvm
    java_context: Any = context._jsc
    path_of, conf = jvm.org.apache.hadoop.fs.Path, java_context.hadoopConfiguration()

    def length_of(address: str) -> int | None:
        try:
            path = path_of(address if is_uri(address) else f"file:{address}")
            return int(path.getFileSystem(conf).getFileStatus(path).getLen())
        except Exception:  # a file system that Spark does not know, or a file that has just vanished: our own listing counts
            return None

    wanted = [(number, *row) for number, audit in enumerate(audits) for row in audit.segment_addresses()]
    found: list[list[Gap]] = [[] for _ in audits]
    with ThreadPoolExecutor(THREADS if any(is_uri(address) for _, _, address, _ in wanted) else 1) as threads:
        lengths = threads.map(length_of, (address for _, _, address, _ in wanted))
        for (number, name, _, size), length in zip(wanted, lengths, strict=True):
            if length is not None and length != size:
                found[number].append(Gap(Cause.LISTED_OTHERWISE, name, (length, size)))
    return found
