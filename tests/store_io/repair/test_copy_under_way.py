"""A copy that is read while it is made: never bytes that are not there yet, and never for ever."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreChanged
from store_io.repair.copy_under_way import CopyUnderWay
from store_io.repair.writing import store_writer
from store_io.repair.writing.store_writer import StoreFileWriter, StoreWriter, WriteFailed
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store

PIECE, PIECES = 4096, 8
NAME = "commitlog/00000000000000000000"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One segment of some pieces, the last one a hole."""
    path = tmp_path / "store" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(bytes([number + 1]) * PIECE for number in range(PIECES - 1)))
    os.truncate(path, PIECE * PIECES)
    return tmp_path / "store"


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Lets the copy take its next piece."""
    steps, real = threading.Semaphore(0), os.copy_file_range

    def slowly(*words: Any) -> int:
        steps.acquire()
        return real(*words)

    monkeypatch.setattr(StoreFileWriter, "_clone", lambda self, file: False)
    monkeypatch.setattr(store_writer, "COPY_BYTES", PIECE)
    monkeypatch.setattr(os, "copy_file_range", slowly)
    yield steps.release
    for _ in range(PIECES):
        steps.release()


def test_a_read_waits_for_its_bytes_and_for_no_others(store: Path, step: Callable[[], None], tmp_path: Path) -> None:
    data = (store / NAME).read_bytes()
    with StoreWriter.beside(str(tmp_path / "new")) as writer, CopyUnderWay(StoreLocation(str(store)), writer) as copying:
        source = open_source(copying.location)
        with source.open(NAME) as file:
            for number in range(3):
                threading.Timer(0.01, step).start()
                assert file.read(number * PIECE, PIECE) == data[number * PIECE : (number + 1) * PIECE]
            threading.Timer(0.01, lambda: [step() for _ in range(PIECES)]).start()
            assert file.next_data((PIECES - 1) * PIECE) == file.size  # only a whole copy knows its holes
        assert copying.finish().bytes == len(data) and (Path(writer.root) / NAME).read_bytes() == data


def test_its_names_are_those_of_the_whole_copy(store: Path, step: Callable[[], None], tmp_path: Path) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer, CopyUnderWay(StoreLocation(str(store)), writer) as copying:
        before = list_store(copying.location).by_path
        threading.Timer(0.01, lambda: [step() for _ in range(PIECES)]).start()
        packed = pickle.dumps(copying.location)  # waits, because another process cannot
        assert pickle.loads(packed) == writer.location and type(pickle.loads(packed)) is StoreLocation
        after = list_store(writer.location).by_path
        assert [(p, e.kind, e.size) for p, e in before.items()] == [(p, e.kind, e.size) for p, e in after.items()]
        assert before[NAME].mtime_ns == after[NAME].mtime_ns == (store / NAME).stat().st_mtime_ns


def test_a_copy_that_fails_ends_who_waits_for_it(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*words: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(StoreFileWriter, "_clone", lambda self, file: False)
    monkeypatch.setattr(os, "copy_file_range", no_space)
    with StoreWriter.beside(str(tmp_path / "new")) as writer, CopyUnderWay(StoreLocation(str(store)), writer) as copying:
        with pytest.raises(StoreChanged, match="its copy has ended before byte"):
            copying.wait(NAME, PIECE)
        with pytest.raises(WriteFailed, match="No space left"):
            copying.finish()
