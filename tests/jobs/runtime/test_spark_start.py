"""From which size on Spark is started unasked, and a process that leaves pandas out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jobs.runtime import setup as environment
from jobs.runtime.spark_start import SPARK_BYTES, worth_spark

CODE = """
import sys
from jobs.runtime.spark_start import leave_pandas_out
leave_pandas_out()
import numpy as np, pyarrow as pa
table = pa.table({"a": pa.array(np.arange(3)), "b": pa.array(["x", None, "z"], pa.string())})
assert "pandas" not in sys.modules
assert table.to_pandas()["b"].isna().sum() == 1 and "pandas" in sys.modules
leave_pandas_out()
assert sys.modules["pandas"] is not None
"""


@pytest.mark.parametrize(("size", "worth"), [(0, False), (SPARK_BYTES, False), (SPARK_BYTES + 1, True)])
def test_more_than_eight_gigabytes_are_worth_it(size: int, worth: bool) -> None:
    assert worth_spark(size) == worth and SPARK_BYTES == 8 * 1024**3


def test_pandas_is_loaded_for_whom_asks_alone() -> None:
    subprocess.run([sys.executable, "-c", CODE], cwd=environment.ROOT, check=True, timeout=120)
