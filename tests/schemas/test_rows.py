"""The dataclasses between the packages: plain values that travel."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass

import pytest

from schemas import rows
from schemas.rows import INDEX_RUN_DTYPE, RUN_DTYPE, Cuts, Finding, MappedFile, StoreFile

CLASSES = [value for value in vars(rows).values() if is_dataclass(value) and isinstance(value, type)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_says_what_it_is(kind: type) -> None:
    assert kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(")
    assert fields(kind)


def test_values_travel_and_compare() -> None:
    for value in (StoreFile("a", "file", 3), MappedFile("a", 0, 3), Cuts((1,), {("T", 0): (2,)}), Finding("c", "f", 0, 1)):
        assert pickle.loads(pickle.dumps(value)) == value


def test_runs_name_no_field_twice_and_hold_physical_offsets_in_64_bits() -> None:
    for dtype in (RUN_DTYPE, INDEX_RUN_DTYPE):
        names = dtype.names or ()
        assert len(set(names)) == len(names)
        assert {dtype[name].itemsize for name in names if name.endswith("phy_offset")} == {8}
