"""Folding is used where the processor can and where it is right for every length."""

from __future__ import annotations

import ctypes
import mmap
import zlib
from collections.abc import Iterable
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
    pytest.importorskip("llvmlite")
    from store_io.base.crc import crc_folding

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


def agrees_with_zlib(address: int, starts: Iterable[int], lengths: Iterable[int]) -> bool:
    """The function of that address, on texts in two pages with pages on either side that nobody may read."""
    pages, page = mmap.mmap(-1, 4 * mmap.PAGESIZE), mmap.PAGESIZE
    place = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None)
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)(address)
    text = pages[page : 3 * page] = bytes(i * 7 + (i >> 8) & 0xFF for i in range(2 * page))
    guards = [(ctypes.c_void_p(place + at), ctypes.c_size_t(page)) for at in (0, 3 * page)]
    try:  # reading one of them ends the process
        assert not any(libc.mprotect(*guard, 0) for guard in guards)
        return all(
            function(value, place + page + at, length) == zlib.crc32(text[at : at + length], value)
            for length in lengths
            for start in starts
            for at in ((start, 2 * page - length - start) if start + length <= 2 * page else ())
            for value in (0, 0x9E3779B9)
        )
    finally:
        for guard in guards:
            libc.mprotect(*guard, mmap.PROT_READ | mmap.PROT_WRITE)


def test_nothing_beside_the_pages_of_a_text_is_read() -> None:
    starts = (0, 1, 3, 60, 127, 128, 255, 256, 300)
    assert agrees_with_zlib(folding().address, starts, (0, 1, 4, 5, 64, 97, 128, 200, 256, 257, 1000, 4096, 8192))


# Four products of 128 bits, for processors that have no larger ones.
EMULATED = """
define <8 x i64> @"emulated_product"(<8 x i64> %a, <8 x i64> %b, i8 %which) {
PAIRS
  %l = shufflevector <2 x i64> %s0, <2 x i64> %s1, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %h = shufflevector <2 x i64> %s2, <2 x i64> %s3, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %r = shufflevector <4 x i64> %l, <4 x i64> %h, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  ret <8 x i64> %r
}
"""
PAIR = """
  %aN = shufflevector <8 x i64> %a, <8 x i64> undef, <2 x i32> <i32 LOW, i32 HIGH>
  %bN = shufflevector <8 x i64> %b, <8 x i64> undef, <2 x i32> <i32 LOW, i32 HIGH>
  %pN = call <2 x i64> @"llvm.x86.pclmulqdq"(<2 x i64> %aN, <2 x i64> %bN, i8 0)
  %qN = call <2 x i64> @"llvm.x86.pclmulqdq"(<2 x i64> %aN, <2 x i64> %bN, i8 17)
  %cN = icmp eq i8 %which, 0
  %sN = select i1 %cN, <2 x i64> %pN, <2 x i64> %qN
"""


def test_512_bits_are_right_on_processors_that_have_256(monkeypatch: pytest.MonkeyPatch) -> None:
    folding()
    from llvmlite import binding

    from store_io.base.compiled import object_code
    from store_io.base.crc import crc_folding, folding_code

    wide = folding_code._WIDTHS[512]
    monkeypatch.setattr(folding_code, "NAME", "emulated_crc32")
    monkeypatch.setitem(folding_code._WIDTHS, 512, wide._replace(product="emulated_product"))
    pairs = "".join(
        PAIR.replace("N", str(n)).replace("LOW", str(2 * n)).replace("HIGH", str(2 * n + 1)) for n in range(wide.lanes // 2)
    )
    lines = [line for line in folding_code.code_of(512).splitlines() if not (line.startswith("declare") and "emulated" in line)]
    library = checksum.find_native("libz")
    assert library is not None
    binding.add_symbol(crc_folding.LIBRARY, library.address)
    code = object_code.made("\n".join([*lines, EMULATED.replace("PAIRS", pairs)]))
    address = object_code.address_of("emulated_crc32", code)
    assert agrees_with_zlib(address, (0, 3, 255, 256, 300), [*range(520), 1000, 4096, 8192])
