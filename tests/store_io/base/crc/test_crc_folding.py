"""Folding is used where the processor can and where it is right for every length."""

from __future__ import annotations

import pytest

from store_io.base.crc import checksum


@pytest.mark.parametrize("wrong_at", [4, 64, 192, 256, 257, 516, 9001])
def test_folding_that_is_wrong_for_one_length_is_not_used(monkeypatch: pytest.MonkeyPatch, wrong_at: int) -> None:
    library = checksum.find_native("libz")
    if library is None or checksum.find_folding(library) is None:
        pytest.skip("this processor cannot fold, or there is no library")
    right = checksum.NativeEngine.crc32

    def wrong(self: checksum.NativeEngine, data: bytes, value: int = 0) -> int:
        return right(self, data, value) ^ (self.name.startswith("folding") and len(data) == wrong_at)

    monkeypatch.setattr(checksum.NativeEngine, "crc32", wrong)
    assert checksum.find_folding(library) is None
    checksum.native_engine.cache_clear()
    try:
        engine = checksum.native_engine()
        assert engine is not None and engine.name in checksum.NATIVE
        checksum.self_test()
    finally:
        checksum.native_engine.cache_clear()


def test_folding_is_used_where_the_processor_can(monkeypatch: pytest.MonkeyPatch) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    features = dict(binding.get_host_cpu_features())
    can = all(features.get(name) for name in ("avx512f", "avx512bw", "avx512vl", "avx512dq", "vpclmulqdq", "pclmul"))
    library = checksum.find_native("libz")
    if library is None:
        pytest.skip("there is no library here")
    assert (checksum.find_folding(library) is not None) == can
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: {**features, "vpclmulqdq": False})
    assert checksum.find_folding(library) is None
