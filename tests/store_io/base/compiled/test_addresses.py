"""Addresses of arrays: those that NumPy itself gives, of every kind of array."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.base.compiled.addresses import address_of
from store_io.formats.commitlog.message_columns import ROW_DTYPE

WORDS = np.arange(12, dtype=np.int64)
FIXED = np.arange(4, dtype=np.uint8)
FIXED.flags.writeable = False


@pytest.mark.parametrize(
    "array",
    [WORDS, WORDS[3:], WORDS.reshape(3, 4), WORDS[::2], WORDS[:0], np.zeros(2, ROW_DTYPE), FIXED, np.zeros(3, bool)],
    ids=["plain", "a part", "rows", "every second", "empty", "structured", "read-only", "flags"],
)
def test_it_is_where_the_first_byte_lies(array: np.ndarray) -> None:
    assert address_of(array) == array.__array_interface__["data"][0]
