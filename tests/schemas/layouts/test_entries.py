"""The entries' dtypes against the layouts that the readers of single fields use."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from schemas.layouts import consumequeue_layout, entries, index_layout


@pytest.mark.parametrize(
    ("dtype", "stored", "size"),
    [
        (entries.ENTRY_DTYPE, entries.STORED_ENTRY_DTYPE, consumequeue_layout.ENTRY_BYTES),
        (entries.BATCH_DTYPE, entries.STORED_BATCH_DTYPE, consumequeue_layout.BATCH_ENTRY_BYTES),
        (entries.INDEX_DTYPE, entries.STORED_INDEX_DTYPE, index_layout.ENTRY_BYTES),
    ],
)
def test_an_entry_has_its_size_in_either_byte_order(dtype: np.dtype, stored: np.dtype, size: int) -> None:
    assert dtype.itemsize == stored.itemsize == size
    assert dtype.names == stored.names and dtype != stored


def test_fields_stand_where_the_formats_say() -> None:
    packed = struct.pack(consumequeue_layout.ENTRY_FORMAT, 1 << 40, 77, -5)
    assert np.frombuffer(packed, entries.STORED_ENTRY_DTYPE)[0].tolist() == (1 << 40, 77, -5)
    assert entries.ENTRY_DTYPE.fields["size"][1] == consumequeue_layout.ENTRY_SIZE_POSITION  # type: ignore[index]
    packed = struct.pack(index_layout.ENTRY_FORMAT, 9, 1 << 40, 3, 8)
    assert np.frombuffer(packed, entries.STORED_INDEX_DTYPE)[0].tolist() == (9, 1 << 40, 3, 8)
