"""Where something lies, as a finding says it."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Where a finding says that something is: a path below the store root, and a byte; None: a key, no byte."""

    path: str
    position: int | None
