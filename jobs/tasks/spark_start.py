"""From which size on Spark is worth its start, and what is left out of a process that wants to start quickly."""

from __future__ import annotations

import sys

SPARK_BYTES = 8 << 30  # so much is read in one process in the time that Spark needs to start


def worth_spark(size: int) -> bool:
    """Whether so many bytes to read are worth a Spark session that nobody asked for."""
    return size > SPARK_BYTES


def leave_pandas_out() -> None:
    """Have pyarrow take it that there is no pandas, for all of this process, unless that is loaded already.

    For commands that give pyarrow nothing of pandas. A call of pyarrow for pandas' own kinds (`to_pandas`) gets them as always.
    """
    if "pandas" in sys.modules:
        return
    import numpy as np
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array(np.zeros(1))  # pyarrow tries once
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)
