"""The place of a finding in a segment, and a finding on one message."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from schemas.finding_codes import Code
from schemas.rows import Finding, QueueKey


class Span(NamedTuple):
    """Bytes [start, end) of a file; both are None if the place is a key."""

    path: str
    start: int | None
    end: int | None


def message_finding(code: Code, span: Span, row: np.void, key: QueueKey, **more: Any) -> Finding:
    """Return a finding on one message of queue `key`, a row of `message_columns`."""
    of: dict[str, Any] = {"phy_offset": int(row["phy_offset"]), "queue_offset": int(row["queue_offset"])}
    return Finding(code, *span, topic=key[0], queue_id=key[1], **of | more)


class Place(NamedTuple):
    """The place of a finding: a path below the store root, and a byte, or None for a key."""

    path: str
    position: int | None
