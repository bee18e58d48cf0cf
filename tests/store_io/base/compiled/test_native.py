"""The machine operations, each against what Python says of the same bytes."""

from __future__ import annotations

import hashlib
import os
import random
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
import numba
from numba import njit

from store_io.base.compiled import code_files, machine, native
from store_io.base.compiled.code_files import DIGEST_BYTES, read_code
from store_io.base.compiled.native import Address, kept, peek_i64
from store_io.base.locks import ProcessLock
from store_io.log.records.message_columns import ROW_DTYPE

DATA = np.frombuffer(random.Random(7).randbytes(256), np.uint8)


@njit
def _loads(at: Any) -> Any:
    return machine.load_u8(at), machine.load_i8(at), machine.load_i16(at), machine.load_i32(at), machine.load_i64(at)


@njit
def _masks(at: Any, other: Any) -> Any:
    return machine.equal_mask(at, 7), machine.unequal_mask(at, other), machine.block_masks(at)


@njit
def _bits(word: Any) -> Any:
    return machine.lowest_bit(word), machine.count_bits(word)


@njit
def _crc(at: Any, length: Any) -> Any:
    return machine.masked_crc32(at, length)


def test_loads_are_big_endian_and_signed() -> None:
    for start in range(64):
        raw = DATA[start : start + 8].tobytes()
        wanted = (raw[0], *(int.from_bytes(raw[:size], "big", signed=True) for size in (1, 2, 4, 8)))
        assert _loads(DATA.ctypes.data + start) == wanted


def test_masks_name_bytes_of_a_block_by_bits() -> None:
    left, right = DATA[:64].copy(), DATA[:64].copy()
    left[[3, 40]], right[[3, 41]] = 7, 7
    left[[5, 6, 8]] = 1, 2, 0

    def mask(found: np.ndarray) -> int:
        return sum(1 << int(i) for i in np.flatnonzero(found))

    equal, unequal, kinds = _masks(left.ctypes.data, right.ctypes.data)
    assert (equal, unequal) == (mask(left == 7), mask(left != right))
    assert tuple(kinds) == (mask(left == 1), mask(left == 2), mask(left == 0), mask(left > 127))


def test_bits_and_checksums() -> None:
    assert _bits(np.uint64(0b10100)) == (2, 2) and _bits(np.uint64(0)) == (64, 0)
    for length in (0, 1, 5, 63, 64, 65, 255):
        assert _crc(DATA.ctypes.data, length) == zlib.crc32(DATA[:length].tobytes()) & 0x7FFFFFFF


# ---- arrays that are called for by their address ---------------------------------------------------------------------


WORDS = np.arange(12, dtype=np.int64)
FIXED = np.arange(4, dtype=np.uint8)
FIXED.flags.writeable = False


@kept()
def _first_word(words: Address, number):  # type: ignore[no-untyped-def]
    return peek_i64(words + 8 * number)


@pytest.mark.parametrize(
    "array",
    [WORDS, WORDS[3:], WORDS.reshape(3, 4), WORDS[:0], WORDS[12:], np.zeros(2, ROW_DTYPE), FIXED, np.zeros(3, bool)],
    ids=["plain", "a part", "rows", "empty", "empty end", "structured", "read-only", "flags"],
)
def test_an_address_is_where_the_first_byte_lies(array: np.ndarray) -> None:
    assert native._address_of(array) == array.__array_interface__["data"][0]


@pytest.mark.parametrize("array", [WORDS[::2], WORDS.reshape(3, 4).T, WORDS.reshape(3, 4)[:, 1]])
def test_an_array_in_several_pieces_has_no_address(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="contiguous"):
        _first_word(array, 0)


def test_a_process_that_was_forked_compiles_under_its_own_lock() -> None:
    assert type(native._lock) is ProcessLock


def test_a_call_holds_the_array_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _first_word(WORDS, 5) == 5
    arrays = [np.full(3, 7, np.int64)]
    place, held = arrays[0].ctypes.data, weakref.ref(arrays[0])

    def called(address: int, number: int) -> bool:
        return (address, number) == (place, 1) and held() is not None

    # Whatever an earlier test of this process has loaded: the call goes to the dispatcher.
    monkeypatch.setattr(native, "takes_files", lambda: False)
    monkeypatch.setattr(native, "brought_folder", lambda: "")
    monkeypatch.setattr(_first_word, "by_dispatcher", called)
    was_held = _first_word(arrays.pop(), 1)
    assert was_held is True and held() is None


def test_an_address_is_no_argument() -> None:
    with pytest.raises(AttributeError):
        _first_word(WORDS.ctypes.data, 1)


# ---- object files ----------------------------------------------------------------------------------------------------


@kept()
def _spread(numbers, places, twice, factor):  # type: ignore[no-untyped-def]
    """Something of each kind of argument: arrays of one and two dimensions, a bool and a number."""
    total = np.int64(0)
    for i in range(len(numbers)):
        places[i, 0] = numbers[i] * factor
        places[i, 1] = len(numbers) + (1 if twice else 0)
        total += places[i, 0]
    return total, np.int64(places.shape[1])


@kept()
def _nothing(data):  # type: ignore[no-untyped-def]
    data[0] += 1


@kept()
def _quotient(one, other):  # type: ignore[no-untyped-def]
    return one // other


@kept()
def _half(number):  # type: ignore[no-untyped-def]
    return number / 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(code_files.FOLDER, str(tmp_path))
    code_files.start_quickly()
    for function in (_spread, _nothing, _quotient, _half):
        function._code.clear()
    yield tmp_path
    code_files.start_quickly(False)


def objects(folder: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in folder.glob("*.object"))


def spread(rows: np.ndarray, twice: bool) -> tuple[Any, list[list[int]]]:
    places = np.zeros((len(rows), 2), np.int64)
    return _spread(rows, places, twice, -3), places.tolist()


def test_an_object_file_does_what_numba_does(folder: Path) -> None:
    strided, plain = np.arange(12, dtype=np.int32)[::3], np.arange(5, dtype=np.int64)
    plain.flags.writeable = False
    asked = [(strided, True), (plain, False), (plain, True)]
    found = [spread(*question) for question in asked]
    assert found[0] == ((-54, 2), [[0, 5], [-9, 5], [-18, 5], [-27, 5]])
    data = np.full(2, 6, np.uint8)
    assert _nothing(data) is None and data.tolist() == [7, 6]
    assert objects(folder) == ["nothing", "spread", "spread"]
    code_files.start_quickly(False)
    assert [spread(*question) for question in asked] == found


def test_files_from_elsewhere_are_taken_and_none_are_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an executor that has unpacked them. Where others may write into the folder, code in it is not run."""
    data, linked = np.full(2, 6, np.uint8), []
    _nothing(data)
    code_files.start_quickly(False)
    link = native._linked
    monkeypatch.setattr(native, "_linked", lambda code, *words: linked.append(code.symbol) or link(code, *words))
    monkeypatch.setenv(code_files.BROUGHT, str(folder))
    for mode in (0o755, 0o777):
        folder.chmod(mode)
        code_files.brought_folder.cache_clear()
        _nothing._code.clear()
        _nothing(data)
        assert spread(np.arange(5), True)[0] == (-30, 2) and objects(folder) == ["nothing"]
        assert len(linked) == 1 and "nothing" in linked[0]
    assert data.tolist() == [9, 6]
    code_files.brought_folder.cache_clear()


def test_what_object_files_do_not_take_numba_does(folder: Path) -> None:
    """A number without 64 bits, a result of another type; and what is raised is raised."""
    assert _quotient(1 << 63, 1) % (1 << 64) == 1 << 63 and _half(5) == 2.5 and objects(folder) == []
    assert _quotient(-7, 2) == -4
    with pytest.raises(ZeroDivisionError):
        _quotient(1, 0)


def test_a_damaged_file_or_one_of_other_sources_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.zeros(1, np.uint8)
    _nothing(data)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for harm in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
        path.write_bytes(harm)
        _nothing._code.clear()
        _nothing(data)
        assert read_code(str(path)) is not None and _nothing._code
    made = native._machine().machine_code
    monkeypatch.setattr(native._machine(), "machine_code", None)  # it is there, so nothing is compiled
    _nothing._code.clear()
    _nothing(data)
    monkeypatch.setattr(native._machine(), "machine_code", made)
    monkeypatch.setattr(native, "FORM", 0)
    os.utime(path, (0, 0))
    _nothing._code.clear()
    _nothing(data)
    assert [other != path for other in folder.glob("*.object")] == [True] and data.tolist() == [6]


@pytest.fixture
def made(folder: Path) -> Path:
    """A sound object file."""
    _nothing(np.zeros(1, np.uint8))
    (path,) = folder.iterdir()
    assert read_code(str(path)) is not None
    return path


@pytest.fixture
def shared_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are in this user's group."""
    monkeypatch.setattr(code_files, "_private_group", lambda: None)


def test_what_others_may_have_written_is_not_run(made: Path, monkeypatch: pytest.MonkeyPatch, shared_group: None) -> None:
    folder = str(made.parent)
    for mode in (0o664, 0o646):
        made.chmod(mode)
        assert read_code(str(made)) is None
    made.chmod(0o644)
    for mode, safe in ((0o775, False), (0o757, False), (0o1777, False), (0o755, True)):
        made.parent.chmod(mode)
        assert (code_files.writable_by_others(folder) == "") == safe
    made.parent.chmod(0o777)
    monkeypatch.setattr(native, "_linked", None)
    _nothing._code.clear()
    code_files._writable.cache_clear()
    _nothing(np.zeros(1, np.uint8))  # numba's way
    made.parent.chmod(0o755)
    code_files._writable.cache_clear()
    assert not code_files.writable_by_others(folder + "/new") and code_files.writable_by_others(str(made)) == str(made)
    os.chown(made, 65534, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert read_code(str(made)) is None


def test_a_name_that_is_no_regular_file_is_not_waited_for(made: Path) -> None:
    link, pipe = made.parent / "link", made.parent / "pipe"
    link.symlink_to(made)
    os.mkfifo(pipe)
    assert read_code(str(link)) is read_code(str(pipe)) is read_code(str(made.parent)) is None


def test_a_head_that_is_no_pair_of_names_is_damage(made: Path) -> None:
    for head in (b"5", b"[]", b'["a", 1]', b"null", b"{}"):
        data = head + b"\ncode"
        made.write_bytes(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() + data)
        assert read_code(str(made)) is None


def test_releases_that_share_a_folder_leave_each_other_their_files(made: Path) -> None:
    kind = made.name.rpartition("-")[0]
    fresh, old = (made.with_name(f"{kind}-{digest * 32}.object") for digest in "ab")
    for path in (fresh, old):
        path.write_bytes(b"")
    os.utime(old, (0, 0))
    os.utime(made, (0, 0))
    code_files.write_code(str(made), code_files.CodeFile("a", "none", b""))
    assert sorted(made.parent.glob("*.object")) == sorted([made, fresh])


def test_another_numba_makes_other_code(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert numba.__version__ in code_files.numba_version()
    types = native._Types((None,))
    before = _nothing._file_name(types)
    monkeypatch.setattr(native, "numba_version", lambda: "0")
    assert _nothing._file_name(types) != before


def test_where_nothing_can_be_kept_it_is_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(code_files.FOLDER, str(tmp_path / "file"))
    data = np.zeros(1, np.uint8)
    _nothing(data)
    assert data[0] == 1


def test_who_else_may_have_put_code_into_a_folder_is_found(tmp_path: Path, shared_group: None) -> None:
    inner = tmp_path / "top" / "inner"
    inner.mkdir(parents=True)
    file = inner / "code"
    file.touch(0o644)
    (inner / "link").symlink_to("code")

    def found(top: int, inside: int, own: int) -> str:
        for path, mode in ((inner.parent, top), (inner, inside), (file, own)):
            path.chmod(mode)
        return code_files.writable_by_others(str(inner.parent))

    assert found(0o755, 0o755, 0o644) == found(0o700, 0o775, 0o666) == code_files.writable_by_others(f"{tmp_path}/none") == ""
    assert found(0o755, 0o775, 0o644) == str(inner)
    assert found(0o755, 0o755, 0o664) == found(0o711, 0o755, 0o646) == str(file)
    for mode in (0o777, 0o1777, 0o770):
        assert found(mode, 0o755, 0o644) == str(inner.parent)
    if os.geteuid() == 0:
        for path in (inner / "link", file, inner, inner.parent):
            os.chown(path, 65534, 65534, follow_symlinks=False)
            assert found(0o700, 0o700, 0o600) == str(path)
            os.chown(path, 0, 0, follow_symlinks=False)


def test_a_group_of_this_user_alone_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = tmp_path / "folder", tmp_path / "folder" / "code"
    folder.mkdir()
    file.touch()
    own = tmp_path.stat().st_gid
    for path in (folder, file):
        path.chmod(0o775)
    for group, blamed in ((own, ""), (own + 1, str(folder)), (None, str(folder))):
        monkeypatch.setattr(code_files, "_private_group", lambda group=group: group)
        assert code_files.writable_by_others(str(folder)) == blamed
    monkeypatch.setattr(code_files, "_private_group", lambda: own)
    monkeypatch.setattr(code_files, "_has_list", lambda place: place == str(file))
    assert code_files.writable_by_others(str(folder)) == str(file)
    monkeypatch.setattr(code_files, "_has_list", lambda place: False)
    file.chmod(0o777)
    assert code_files.writable_by_others(str(folder)) == str(file)


@pytest.mark.parametrize(
    ("name", "members", "private"),
    [("u", [], True), ("u", ["u"], True), ("u", ["u", "v"], False), ("users", [], False), ("users", ["u"], False)],
)
def test_which_group_is_of_this_user_alone(name: str, members: list[str], private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_files.pwd, "getpwuid", lambda user: SimpleNamespace(pw_gid=7, pw_name="u"))
    monkeypatch.setattr(code_files.grp, "getgrgid", lambda group: SimpleNamespace(gr_gid=7, gr_name=name, gr_mem=members))
    assert code_files._private_group() == (7 if private else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders to others")
def test_a_folder_around_that_another_user_could_replace_is_blamed(tmp_path: Path) -> None:
    around = tmp_path / "around"
    folder = around / "deeper" / "code"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to("around/deeper")
    through = str(tmp_path / "link" / "code")
    assert code_files.writable_by_others(str(folder)) == code_files.writable_by_others(through) == ""
    for mode, blamed in ((0o757, str(around)), (0o1777, "")):  # the folder is not theirs to rename
        around.chmod(mode)
        assert code_files.writable_by_others(str(folder)) == code_files.writable_by_others(through) == blamed
    around.chmod(0o755)
    os.chown(around, 65534, 65534)
    for asked in (str(folder), through, f"{folder}/none"):
        assert code_files.writable_by_others(asked) == str(around) and not code_files.writable_by_others(asked, around=False)
    os.chown(around, 0, 0)
    os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
    assert code_files.writable_by_others(through) == str(tmp_path / "link") and not code_files.writable_by_others(str(folder))
    (tmp_path / "circle").symlink_to("circle")
    assert code_files.writable_by_others(str(tmp_path / "circle" / "x"))
