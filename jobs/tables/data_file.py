"""A file of a table before its log names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that lies in a table's folder and is not in its log yet.

    partition: its values of the table's partition columns but run_id.  bounds: column -> (smallest, largest) of int64 columns.
    """

    uri: str
    size_bytes: int
    modified_ms: int
    rows: int
    partition: tuple[str, ...] = ()
    bounds: tuple[tuple[str, int, int], ...] = ()
