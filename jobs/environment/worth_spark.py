"""From which size on Spark is worth its start on one machine."""

from __future__ import annotations

SPARK_BYTES = 8 << 30  # so much is read in one process in the time that Spark needs to start


def worth_spark(size: int) -> bool:
    """Whether so many bytes to read are worth a Spark session that nobody asked for."""
    return size > SPARK_BYTES
