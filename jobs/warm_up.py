"""A short session that does once what an audit does, so that the JVM's class archive holds what it loads.

For `jobs.environment.class_archive`, in a process of its own: `python -m jobs.warm_up ARCHIVE`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from jobs import session


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main(archive: str) -> None:
    """Start Spark, list files, run Python workers, write and read Delta tables, and have the JVM leave the archive."""
    started = session.start(java_options=[f"-XX:ArchiveClassesAtExit={archive}"])
    spark = started.spark
    with tempfile.TemporaryDirectory(prefix="store-audit-") as folder:
        (Path(folder) / "segment").write_bytes(bytes(8))
        spark.read.format("binaryFile").load(f"{folder}/segment").select("path", "length", "modificationTime").collect()
        spark.range(0, 2, 1, 2).mapInArrow(_same, "id long").collect()
        rows = spark.createDataFrame([("run", 1, ["a"])], "run_id string, number long, texts array<string>")
        table = f"{folder}/table"
        for _ in range(2):
            rows.write.format("delta").mode("overwrite").option("replaceWhere", "run_id = 'run'").save(table)
        rows.write.format("delta").mode("append").save(table)
        spark.read.format("delta").load(table).where("number = 1").groupBy("run_id").count().collect()
    started.stop(wait=True)


if __name__ == "__main__":
    main(sys.argv[1])
