"""A copy that is read while it is made: never bytes that are not there yet, and never for ever."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import NotAFile, StoreChanged, StoreError
from store_io.base.failed_reads import every_read
from store_io.repair.copy_under_way import CopyUnderWay
from store_io.repair.writing import store_writer
from store_io.repair.writing.store_writer import StoreFileWriter, StoreWriter, WriteFailed
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.store_dir import list_store
from tests.support.processes.children import PATIENCE_SECONDS

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


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for ever fails."""
    real = threading.Condition.wait

    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        came = real(self, PATIENCE_SECONDS if timeout is None else timeout)
        assert came or timeout is not None, "waited for ever"
        return came

    monkeypatch.setattr(threading.Condition, "wait", wait)


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
        with every_read(), pytest.raises(StoreError, match="its copy has ended before byte"):
            with open_source(copying.location).open(NAME) as file:
                file.read(0, PIECE)  # no failed read, which would be told in the place of the failure
        with pytest.raises(WriteFailed, match="No space left"):
            copying.finish()


def test_what_is_no_file_of_the_copy_is_never_waited_for(store: Path, patience: None, tmp_path: Path) -> None:
    """A folder where a broker has a file, something special, what cannot be read, a link out of the store, an absent name."""
    (store / "checkpoint").mkdir()
    (store / "config").mkdir()
    os.mkfifo(store / "config" / "topics.json")
    (store / "config" / "consumerOffset.json").symlink_to("nowhere")
    (store / "config" / "delayOffset.json").symlink_to(tmp_path)
    (store / os.fsdecode(b"config/\xff")).write_bytes(b"x")
    with StoreWriter.beside(str(tmp_path / "new")) as writer, CopyUnderWay(StoreLocation(str(store)), writer) as copying:
        source = open_source(copying.location)
        assert len(copying.plan.copied.not_copied) == 4
        for path in ("checkpoint", "commitlog", "config"):
            with pytest.raises(NotAFile, match=path):
                source.open(path)
        for path in ("absent", *copying.plan.copied.not_copied):
            with pytest.raises(StoreError):
                source.open(path)
        for path in ("checkpoint", "config/topics.json", "absent", f"{NAME}/", ""):
            with pytest.raises(StoreChanged, match="no file that is copied"):
                copying.wait(path, 0)


def test_the_first_failure_is_told_and_no_file_that_it_has_stopped(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = f"commitlog/{PIECE * PIECES:020d}"
    (store / second).write_bytes(bytes(PIECE))

    def copy(self: Any, source: Any, path: str, to: str, mtime_ns: int, reached: Callable[[int], None]) -> None:
        reached(0)
        if path == second:
            raise WriteFailed(f"{path}: cannot be written: No space left on device")
        while True:  # until it is stopped
            reached(1)
            time.sleep(0.001)

    monkeypatch.setattr(StoreWriter, "copy", copy)
    with StoreWriter.beside(str(tmp_path / "new")) as writer, CopyUnderWay(StoreLocation(str(store)), writer) as copying:
        for _ in range(2):
            with pytest.raises(WriteFailed, match=f"{second}: cannot be written: No space"):
                copying.finish()
        with pytest.raises(StoreError, match=f"{NAME}: its copy has ended before"):
            copying.wait(NAME, PIECE)


def test_nothing_is_copied_before_it_is_entered_nor_after_its_end(store: Path, tmp_path: Path) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        before = set(threading.enumerate())  # one of them may end meanwhile
        copying = CopyUnderWay(StoreLocation(str(store)), writer)
        assert set(threading.enumerate()) <= before
        for act in (copying.finish, lambda: copying.wait(NAME, 0)):
            with pytest.raises(StoreError):
                act()
        with copying:
            copying.finish()
        assert set(threading.enumerate()) <= before and copying.finish().files == 1  # it is whole


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), RuntimeError("can't start new thread")])
def test_what_stops_its_start_leaves_no_thread(
    store: Path, tmp_path: Path, problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store / "checkpoint").write_bytes(bytes(PIECE))
    submitted, real = [], ThreadPoolExecutor.submit

    def submit(self: Any, *words: Any) -> Any:
        if submitted:
            raise problem
        submitted.append(words)
        return real(self, *words)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    before = set(threading.enumerate())
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        copying = CopyUnderWay(StoreLocation(str(store)), writer)
        with pytest.raises(type(problem)), copying:
            raise AssertionError
        assert submitted and set(threading.enumerate()) <= before
        with pytest.raises(StoreChanged):
            copying.finish()
