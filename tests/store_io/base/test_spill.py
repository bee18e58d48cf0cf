"""Bytes in temporary files: what was put in is read back, nothing stays behind, and a full disk is a sentence."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from store_io.base import spill as subject
from store_io.base.packed import PackedMap
from store_io.base.spill import NotReadBack, Spilled, spill


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subject, "_files", subject._Files())
    return tmp_path


def _read(part: Spilled | bytes) -> bytes:
    assert isinstance(part, Spilled)
    return part.read()


def _open_files(folder: Path) -> int:
    return sum(os.readlink(f"/proc/self/fd/{fd}").startswith(str(folder)) for fd in os.listdir("/proc/self/fd") if _is_open(fd))


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_files_have_no_name_and_go_with_what_they_hold(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FILE_BYTES", 1000)
    parts = [(bytes([n]) * (n * 50), spill(bytes([n]) * (n * 50))) for n in range(20)]
    assert all(_read(part) == data for data, part in parts) and pickle.loads(pickle.dumps(parts[7][1])) == parts[7][0]
    assert not list(folder.iterdir()) and _open_files(folder) > 5
    del parts
    gc.collect()
    assert _open_files(folder) == 1  # the one that is written to


def test_a_killed_process_leaves_nothing(folder: Path) -> None:
    kept = "import os, signal; from store_io.base.spill import spill; kept = spill(b'x' * 100000)"
    code, root = f"{kept}; os.kill(os.getpid(), signal.SIGKILL)", Path(__file__).parents[3]
    ended = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(folder)}, cwd=root, check=False)
    assert ended.returncode == -9 and not list(folder.iterdir())


def test_a_child_process_does_not_write_into_its_parents_file() -> None:
    mine = spill(b"parent")
    assert isinstance(mine, Spilled)
    child = os.fork()
    if not child:
        os._exit(0 if _read(spill(b"CHILD!")) == b"CHILD!" and mine.read() == b"parent" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _read(spill(b"second")) == b"second" and mine.read() == b"parent"


def test_on_a_full_disk_values_stay_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    made: PackedMap[str, int] = PackedMap()
    monkeypatch.setattr("store_io.base.packed.FEW", 1)
    made.add({"a": 1, "b": 2})
    assert made.packs and dict(made) == {"a": 1, "b": 2}


def test_without_a_folder_for_temporary_files_bytes_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(subject, "_files", subject._Files())
    monkeypatch.setattr("tempfile.TemporaryFile", none)
    assert spill(b"kept") == b"kept"


def test_a_file_that_lost_its_end_is_a_sentence() -> None:
    part = spill(b"0123456789")
    assert not isinstance(part, bytes)
    os.ftruncate(part._file.descriptor, 4)
    with pytest.raises(NotReadBack, match="holds 4 bytes of 10"):
        part.read()
