"""Files of a table: before its log names them, and as its newest version has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from schemas.tables import RUN_ID

Bounds = tuple[tuple[str, int | str | datetime, int | str | datetime], ...]


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of one run in a table's folder that the table's log does not list yet. It is two names below the table.

    values: the values of all its rows in the columns by which a table may be partitioned.
    bounds: column -> (smallest, largest), of int64, text and timestamp columns.
    """

    uri: str
    size_bytes: int
    modified_ms: int
    rows: int
    values: Mapping[str, str] = field(default_factory=dict)
    bounds: Bounds = ()

    @property
    def path(self) -> str:
        """Its path below the table's folder."""
        return "/".join(self.uri.rsplit("/", 2)[1:])


@dataclass(frozen=True)
class LiveFile:
    """A file of a table's newest version.

    path: below the table's folder, or an address.
    values: those of the table's partition columns.
    low, high: the bounds of its run ids; rows: their number; None if the log does not say.
    modified_ms: the time at which it was made, ms since 1970.
    """

    path: str
    values: Mapping[str, str | None]
    low: str | None
    high: str | None
    size_bytes: int = 0
    modified_ms: int = 0
    rows: int | None = None

    def run_id(self) -> str | None:
        """Return the run whose rows the file has; None unless the log alone shows that it is one run."""
        if RUN_ID.name in self.values:
            return self.values[RUN_ID.name]
        return self.low if self.low is not None and self.low == self.high else None

    def may_hold(self, run_id: str) -> bool:
        """Whether rows of this run may be in it."""
        if RUN_ID.name in self.values:
            return self.values[RUN_ID.name] == run_id
        return self.low is None or self.high is None or self.low <= run_id <= self.high
