"""The most memory that this process has held. Bytes; None where the system does not say: on Linux alone it does."""

from __future__ import annotations

import contextlib
import ctypes
import gc

_RESET, _STATUS = "/proc/self/clear_refs", "/proc/self/status"


def reset_peak() -> int | None:
    """Let memory that was held before not count; return the memory held now. Freed memory is given back to the system first."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # no other C library has it
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open(_RESET, "w") as file:
            file.write("5")
    except OSError:
        return None
    return _size("VmRSS")


def peak_bytes() -> int | None:
    """The most since `reset_peak`."""
    return _size("VmHWM")


def _size(name: str) -> int | None:
    try:
        with open(_STATUS) as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:")), None)
    except OSError:
        return None
