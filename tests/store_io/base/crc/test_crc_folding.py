"""Folding is used where the processor can and where it is right for every length."""

from __future__ import annotations

import ctypes
import mmap
import zlib
from pathlib import Path

import pytest

from store_io.base.compiled import code_files
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


ALL_512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx2", "vpclmulqdq", "pclmul")


@pytest.mark.parametrize(
    ("lacking", "bits"), [((), 512), (("avx512bw",), 256), (("avx512f", "avx2"), None), (("vpclmulqdq",), None), (ALL_512, None)]
)
def test_the_widest_vectors_are_used(lacking: tuple[str, ...], bits: int | None) -> None:
    crc_folding = pytest.importorskip("store_io.base.crc.crc_folding")
    assert crc_folding.width_of({name: name not in lacking for name in ALL_512}) == bits


def folding() -> checksum.NativeEngine:
    library = checksum.find_native("libz")
    engine = library and checksum.find_folding(library)
    if engine is None:
        pytest.skip("this processor cannot fold, or there is no library")
    return engine


def test_folding_is_used_where_the_processor_can(monkeypatch: pytest.MonkeyPatch) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    features = dict(binding.get_host_cpu_features())
    can = features.get("vpclmulqdq") and features.get("avx2")
    library = checksum.find_native("libz")
    if library is None:
        pytest.skip("there is no library here")
    assert (checksum.find_folding(library) is not None) == bool(can)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: {**features, "vpclmulqdq": False})
    assert checksum.find_folding(library) is None


def test_its_code_is_kept_and_made_anew_where_it_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folding()
    from store_io.base.crc import crc_folding

    monkeypatch.setenv(code_files.FOLDER, str(tmp_path))
    assert folding().crc32(b"123456789") == 0xCBF43926
    (file,) = tmp_path.glob("crc32-*.object")
    whole = file.read_bytes()
    with monkeypatch.context() as patched:  # from the file alone
        patched.setattr(crc_folding, "_CODE", "json")
        patched.setattr(crc_folding, "_file_name", lambda bits: file.name)
        assert folding().crc32(b"123456789") == 0xCBF43926
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert folding().crc32(b"123456789") == 0xCBF43926 and file.read_bytes() == whole


def test_nothing_before_the_page_of_a_text_is_read() -> None:
    engine = folding()
    pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)(engine.address)
    pages[mmap.PAGESIZE :] = bytes(i * 7 & 0xFF for i in range(2 * mmap.PAGESIZE))
    try:  # reading the first page ends the process
        assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
        for start in (0, 1, 3, 60, 127, 128, 255, 256, 300):
            for length in (1, 4, 5, 64, 97, 128, 200, 256, 257, 1000):
                data = pages[mmap.PAGESIZE + start : mmap.PAGESIZE + start + length]
                for value in (0, 0x9E3779B9):
                    assert function(value, address + mmap.PAGESIZE + start, length) == zlib.crc32(data, value)
    finally:
        libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE)
