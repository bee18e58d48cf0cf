"""Short commands do not load pandas; who asks pyarrow for it still gets it."""

from __future__ import annotations

import subprocess
import sys

from jobs.runtime import setup as environment

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


def test_pandas_is_loaded_for_whom_asks_alone() -> None:
    subprocess.run([sys.executable, "-c", CODE], cwd=environment.ROOT, check=True, timeout=120)
