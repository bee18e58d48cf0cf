"""Times as people read them, and as tables hold them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line is read before there is an environment
    import numpy as np
    import pyarrow as pa

LAST_TIME_MS = 9_214_646_399_999  # the year 2261: what Python's and pandas' types hold as well; the first is 0, of 1970
_CALENDAR_MS = 253_402_300_799_999  # the end of the year 9999


def iso_time(milliseconds: int) -> str | None:
    """Return the time in UTC with milliseconds; None for what no calendar holds."""
    if not -62_135_596_800_000 <= milliseconds <= _CALENDAR_MS:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat() + f".{rest:03d}Z"


def time_text(milliseconds: int) -> str:
    """Return the time for a sentence; the number itself if no calendar holds it."""
    return iso_time(milliseconds) or f"{milliseconds} ms"


def second_text(ms: int) -> str:
    """Return a store time in UTC to the second; the bare number if it is outside of the calendar."""
    iso = iso_time(ms) if ms > 0 else None
    return iso[:19].replace("T", " ") if iso else f"{ms} ms"


def minute_text(ms: int) -> str:
    """Return a time to the minute, with its zone."""
    return f"{second_text(ms)[:16]} UTC"


def span_text(first_ms: int, last_ms: int) -> str:
    """Return a time window; the day appears once if it is the same. A store time of 0, which is damage, is no begin of it."""
    if first_ms <= 0 < last_ms <= _CALENDAR_MS:
        return f"times up to {second_text(last_ms)} UTC (the earliest is {first_ms:,}, which no broker writes)"
    first, last = second_text(first_ms), second_text(last_ms)
    unit = "" if last.endswith("ms") else " UTC"
    if first == last:
        return f"{first}{unit}"
    if first[:11] == last[:11] and unit:
        last = last[11:]
    return f"{first} to {last}{unit}"


def timestamps(milliseconds: np.ndarray) -> pa.Array:
    """Return times of ms since 1970, in UTC, as timestamps.

    Times outside of 1970 to 2261 are null: all kinds of timestamps can hold the others.
    """
    import numpy as np
    import pyarrow as pa

    outside = (milliseconds < 0) | (milliseconds > LAST_TIME_MS)
    return pa.array(np.where(outside, 0, milliseconds) * 1000, pa.timestamp("us", "UTC"), mask=outside)
