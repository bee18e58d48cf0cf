"""Times as people read them, and as tables hold them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line is read before there is an environment
    import numpy as np
    import pyarrow as pa

LAST_TIME_MS = 9_214_646_399_999  # the year 2261: what Python's and pandas' types hold as well; the first is 0, of 1970


def iso_time(milliseconds: int) -> str | None:
    """Return the time in UTC with milliseconds; None for what no calendar holds."""
    if not -62_135_596_800_000 <= milliseconds <= 253_402_300_799_999:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat() + f".{rest:03d}Z"


def time_text(milliseconds: int) -> str:
    """Return the time for a sentence; the number itself if no calendar holds it."""
    return iso_time(milliseconds) or f"{milliseconds} ms"


def timestamps(milliseconds: np.ndarray) -> pa.Array:
    """Return times of ms since 1970, in UTC, as timestamps.

    Times outside of 1970 to 2261 are null: all kinds of timestamps can hold the others.
    """
    import numpy as np
    import pyarrow as pa

    outside = (milliseconds < 0) | (milliseconds > LAST_TIME_MS)
    return pa.array(np.where(outside, 0, milliseconds) * 1000, pa.timestamp("us", "UTC"), mask=outside)
