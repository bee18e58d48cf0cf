"""The processor that ratios are of, and the most memory that this process has held.

Only ratios of one kind of processor compare: on others memory is faster or slower beside the processor.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
from functools import cache

from llvmlite import binding

_FIELDS = ("model name", "cpu family", "model")
# Bits of the vectors that a processor can multiply, and the features that this takes; the widest first.
_VECTORS = {512: ("avx512f", "avx512bw", "avx512vl", "avx512dq", "vpclmulqdq"), 256: ("avx2", "vpclmulqdq")}
_RESET, _STATUS = "/proc/self/clear_refs", "/proc/self/status"


@cache
def _known() -> dict[str, str]:
    """Return Linux's facts about the first processor."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in _FIELDS:
                    found.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    return found


def kind() -> str:
    """Return the processor's name, its maker's numbers, and the vectors that it multiplies.

    Many processors share one name, and a hypervisor may hide some instructions.
    """
    known = _known()
    name = known.get("model name") or platform.processor() or platform.machine()
    numbers = [f"{what} {known[field]}" for what, field in (("family", "cpu family"), ("model", "model")) if field in known]
    features = binding.get_host_cpu_features()
    bits = next((bits for bits, names in _VECTORS.items() if all(map(features.get, names))), None)
    return ", ".join([name, *([" ".join(numbers)] if numbers else []), *([f"vectors of {bits} bits"] if bits else [])])


def machine_text() -> str:
    """Return the processor and how busy it is, for the head of a table."""
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{kind()}; {os.cpu_count()} cores{busy}; Python {platform.python_version()}"


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
    """Return the most since `reset_peak`."""
    return _size("VmHWM")


def _size(name: str) -> int | None:
    try:
        with open(_STATUS) as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:")), None)
    except OSError:
        return None
