"""pyarrow without pandas, which it loads to see whether an array that it is given is one of pandas: 0.3 s of a short command."""

from __future__ import annotations

import sys


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
