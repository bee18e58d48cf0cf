"""Where an array's bytes are, for calls of compiled code that are made for each batch of messages."""

from __future__ import annotations

import ctypes

import numpy as np

_at = ctypes.c_char.from_buffer


def address_of(array: np.ndarray) -> int:
    """The address of the array's first byte; the array has to outlive its use.

    `array.ctypes.data` says the same in three times the time: 2.3 µs, and a batch of 4 MiB asks for more than ten.
    """
    try:
        return ctypes.addressof(_at(array.data))
    except (TypeError, ValueError):  # it is read-only, empty, or not contiguous
        return int(array.ctypes.data)
