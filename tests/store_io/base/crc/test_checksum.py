"""Every CRC-32 engine gives what crcmod's pure Python form gives: all short lengths, all alignments, split computations."""

from __future__ import annotations

import importlib
import time
import zlib
from collections.abc import Callable

import pytest
from crcmod import _crcfunpy
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.base.crc import checksum
from store_io.base.errors import StoreError

TABLE = importlib.import_module("crcmod.crcmod")._mkTable_r(0x104C11DB7, 32)  # as a name it is hidden by the package's own
MATERIAL = bytes(i * 167 + (i >> 4) & 0xFF for i in range(5000))


def reference(data: bytes, value: int = 0) -> int:
    """crcmod without its C part."""
    return int(_crcfunpy._crc32r(data, value ^ 0xFFFFFFFF, TABLE)) ^ 0xFFFFFFFF


def python_engines() -> list[tuple[str, Callable[..., int]]]:
    engines: list[tuple[str, Callable[..., int]]] = [("chosen", checksum.crc32), ("zlib", zlib.crc32)]
    for module in ("isal.isal_zlib", "zlib_ng.zlib_ng"):
        try:
            engines.append((module, importlib.import_module(module).crc32))
        except ImportError:
            continue
    return engines


def all_engines() -> list[tuple[str, Callable[..., int]]]:
    libraries = [engine for name in checksum.NATIVE if (engine := checksum.find_native(name)) is not None]
    return [*python_engines(), *((engine.name, engine.crc32) for engine in libraries)]


@pytest.mark.parametrize(("name", "engine"), all_engines())
def test_known_answer_lengths_and_alignments(name: str, engine: Callable[..., int]) -> None:
    assert engine(b"123456789") == reference(b"123456789") == 0xCBF43926
    for length in [*range(300), 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097]:
        data = MATERIAL[-length:] if length else b""
        assert engine(data) == reference(data), f"{name}: {length} bytes"
    for start in range(64):
        data = MATERIAL[start : start + 1000]
        assert engine(data) == reference(data), f"{name}: start {start}"


@pytest.mark.parametrize(("name", "engine"), all_engines())
@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 300))
def test_going_on_from_a_value(name: str, engine: Callable[..., int], data: bytes, cut: int) -> None:
    cut = min(cut, len(data))
    assert engine(data[cut:], engine(data[:cut])) == reference(data)


def test_body_crc_has_no_top_bit() -> None:
    data = next(bytes([i]) for i in range(256) if reference(bytes([i])) >> 31)
    assert checksum.body_crc(data) == reference(data) - (1 << 31)
    assert checksum.body_crc(memoryview(data)) == checksum.body_crc(data)


def test_self_test_is_quick_and_passes() -> None:
    checksum.self_test()
    start = time.thread_time()  # of the processor, which others may keep busy
    checksum.self_test()
    assert time.thread_time() - start < 0.3  # about 1 ms


@pytest.mark.parametrize("wrong_at", [0, 1, 15, 16, 17, 64, 9001])
def test_self_test_refuses_an_engine_that_is_wrong_for_one_length(monkeypatch: pytest.MonkeyPatch, wrong_at: int) -> None:
    right = checksum.crc32

    def engine(data: bytes, value: int = 0) -> int:
        if wrong_at < 64:
            return right(data, value) ^ (len(data) == wrong_at)
        return right(data, value) ^ (len(data) == wrong_at - wrong_at // 3)  # the second part of a split computation

    monkeypatch.setattr(checksum, "crc32", engine)
    with pytest.raises(StoreError, match="crcmod says"):
        checksum.self_test()


def test_self_test_refuses_a_wrong_native_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(checksum.NativeEngine):
        def crc32(self, data: bytes, value: int = 0) -> int:
            return 7

    monkeypatch.setattr(checksum, "native_engine", lambda: Wrong("broken", 1))
    with pytest.raises(StoreError, match="broken"):
        checksum.self_test()


def test_without_any_library_there_is_no_native_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksum, "NATIVE", {"isal": ("no_such_module_at_all", "crc32_gzip_refl")})
    checksum.native_engine.cache_clear()
    try:
        assert checksum.native_engine() is None
        checksum.self_test()
    finally:
        checksum.native_engine.cache_clear()


def test_two_checks_of_an_engine_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one comes while the first one has its text in memory, as another thread may."""
    engine = checksum.native_engine()
    assert engine is not None
    real, calls = checksum._function_at(engine.address), list[int]()

    def function(value: int, address: int, length: int) -> int:
        calls.append(length)
        if len(calls) == 1:
            assert engine.crc32(b"second") == zlib.crc32(b"second")
        return real(value, address, length)

    monkeypatch.setattr(checksum, "_function_at", lambda address: function)
    assert engine.crc32(b"the first") == zlib.crc32(b"the first") and calls == [9, 6]
