"""The dataclasses between the packages: plain values that travel."""

from __future__ import annotations

from schemas.rows import INDEX_RUN_DTYPE, RUN_DTYPE


def test_runs_name_no_field_twice_and_hold_physical_offsets_in_64_bits() -> None:
    for dtype in (RUN_DTYPE, INDEX_RUN_DTYPE):
        names = dtype.names or ()
        assert len(set(names)) == len(names)
        assert {dtype[name].itemsize for name in names if name.endswith("phy_offset")} == {8}
