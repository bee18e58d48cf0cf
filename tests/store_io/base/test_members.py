"""Sets of numbers, against NumPy's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from store_io.base.fingerprints import among, distinct

NUMBERS = st.lists(st.integers(-3, 12) | st.integers(-(1 << 63), (1 << 63) - 1), max_size=12).map(lambda v: np.array(v, np.int64))


@given(NUMBERS, NUMBERS)
def test_both_say_what_numpy_says(values: np.ndarray, wanted: np.ndarray) -> None:
    assert among(values, wanted).tolist() == np.isin(values, wanted).tolist()
    assert distinct(values) == len(np.unique(values))
