"""The place of a finding."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The place of a finding: a path below the store root, and a byte, or None for a key."""

    path: str
    position: int | None
