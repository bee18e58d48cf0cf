"""Times as people read them."""

from __future__ import annotations

import numpy as np


def iso_time(milliseconds: int) -> str | None:
    """UTC with milliseconds; None for what no calendar holds."""
    if not -62_135_596_800_000 <= milliseconds <= 253_402_300_799_999:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return str(np.datetime64(seconds, "s")) + f".{rest:03d}Z"


def time_text(milliseconds: int) -> str:
    """The same for a sentence; the number itself where no calendar holds it."""
    return iso_time(milliseconds) or f"{milliseconds} ms"
