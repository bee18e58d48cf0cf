"""CRC-32 of bodies: the fastest engine of this machine, checked against crcmod before it is trusted.

Python code calls `crc32` and `crc32_combine`, compiled code the address of a C function (`native_engine`). All are CRC-32
ISO-HDLC as in zlib. crcmod is the reference because it shares no code with them; it is far too slow to be an engine.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import crcmod
import numpy as np

from store_io.base.errors import StoreError
from store_io.base.locks import made_once

try:
    ENGINE, _library = "isal", importlib.import_module("isal.isal_zlib")
except ImportError:  # no build of it for this machine
    ENGINE, _library = "zlib-ng", importlib.import_module("zlib_ng.zlib_ng")
crc32: Callable[..., int] = _library.crc32
crc32_combine: Callable[[int, int, int], int] = _library.crc32_combine
_PAGE_BYTES = 4096


@dataclass(frozen=True)
class NativeEngine:
    """A C function `uint32 f(uint32 crc, const void *bytes, size_t length)` with zlib's meaning of crc. Its result may come with
    undefined upper bits if the library's own type is wider."""

    name: str
    address: int

    def crc32(self, data: bytes, value: int = 0) -> int:
        """Call the function through ctypes: slow, for checks.

        The bytes around the text are not zero, and it begins in the middle of a page, so that every effect of an engine on its
        neighbours shows.
        """
        around = np.full((len(data) // _PAGE_BYTES + 3) * _PAGE_BYTES, 0xA5, np.uint8)
        place = around.ctypes.data
        place += -place % _PAGE_BYTES + _PAGE_BYTES // 2
        ctypes.memmove(place, data, len(data))
        return int(_function_at(self.address)(value, place, len(data)))


@cache
def _function_at(address: int) -> Callable[[int, int, int], int]:
    return ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)(address)


# name -> module, and the C function that its shared object carries; libz comes with the standard library's own module.
# Fastest first.
NATIVE = {
    "isal": ("isal.isal_zlib", "crc32_gzip_refl"),
    "zlib-ng": ("zlib_ng.zlib_ng", "zng_crc32_z"),
    "libz": ("zlib", "crc32_z"),
}


def find_native(name: str) -> NativeEngine | None:
    """Return one engine of `NATIVE`; None if this process cannot reach it."""
    module, symbol = NATIVE[name]
    try:
        function = getattr(ctypes.CDLL(importlib.import_module(module).__file__), symbol)
    except (ImportError, OSError, AttributeError):
        return None
    address = ctypes.cast(function, ctypes.c_void_p).value
    return NativeEngine(name, address) if address else None


@made_once()
def native_engine() -> NativeEngine | None:
    """Return the fastest C function that this process can reach; None if no library offers one."""
    return next((engine for name in NATIVE if (engine := find_native(name)) is not None), None)


def array_crc32(data: np.ndarray, value: int = 0) -> int:
    """Return the `crc32` of an array's bytes, by the engine of compiled code: for long arrays.

    Raises ValueError if the bytes do not lie one after the other.
    """
    if not data.flags.c_contiguous:
        raise ValueError("the array is not contiguous")
    engine = native_engine()
    return _function_at(engine.address)(value, data.ctypes.data, data.nbytes) if engine is not None else crc32(data.data, value)


def body_crc(body: bytes | memoryview) -> int:
    """Return the BODYCRC field's value for this body: CRC-32 ISO-HDLC with the top bit cleared."""
    return crc32(body) & 0x7FFFFFFF


_SELF_TEST_LENGTHS = (*range(262), *range(511, 518), 767, 1023, 1025, 4099, 9001)


@cache
def _known_answers() -> list[tuple[bytes, int]]:
    """Return texts and what crcmod says of them."""
    reference = crcmod.mkCrcFun(0x104C11DB7, initCrc=0, rev=True, xorOut=0xFFFFFFFF)
    material = bytes(i * i * 31 + (i >> 3) & 0xFF for i in range(_SELF_TEST_LENGTHS[-1]))
    texts = [material[len(material) - length :] for length in _SELF_TEST_LENGTHS]
    return [(text, reference(text)) for text in texts]


def _wrong_length(engine: Callable[..., int]) -> tuple[int, int, int] | None:
    """Return (length, the engine's value, crcmod's) of the first text whose CRC the engine gets wrong, or None."""
    for data, expected in _known_answers():
        third = len(data) // 3
        # The second part of a split computation starts from the first part's value, as streamed CRCs do.
        for actual in (engine(data), engine(data[third:], engine(data[:third]))):
            if actual != expected:
                return len(data), actual, expected
    return None


def self_test() -> None:
    """Check every engine in use against crcmod, in a few milliseconds. Raises StoreError naming the two values."""
    engines: list[tuple[str, Callable[..., int]]] = [(ENGINE, crc32)]
    native = native_engine()
    if native is not None:
        engines.append((f"{native.name} (native)", native.crc32))
    for name, engine in engines:
        wrong = _wrong_length(engine)
        if wrong is not None:
            length, actual, expected = wrong
            raise StoreError(f"CRC-32 engine {name}: 0x{actual:08x} over {length} bytes, crcmod says 0x{expected:08x}")


@made_once()
def trust() -> None:
    """Run `self_test` once a process: before its first CRC counts."""
    self_test()
