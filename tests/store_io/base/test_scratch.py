"""Folders of temporary files: whose run is gone are removed, others stay."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobs.runtime import setup as environment
from store_io.base.scratch import PREFIX, Scratch, remove_left

KEEPER = "import time; from store_io.base.scratch import Scratch; print(Scratch().path, flush=True); time.sleep(60)"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_run_left_is_removed_by_the_next(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KEEPER],
        env={**os.environ, "PYTHONPATH": str(environment.ROOT), "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        (left / "blockmgr").mkdir()
        remove_left()
        assert left.is_dir(), "its run is still there"
        other.send_signal(signal.SIGKILL)
    assert left.is_dir()
    remove_left()
    assert not left.exists()


def test_nothing_else_is_removed(place: Path) -> None:
    mine = Scratch()
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "lock").touch()
    (place / f"{PREFIX}link").symlink_to("elsewhere")
    (place / f"{PREFIX}file").touch()
    (place / f"{PREFIX}no-lock").mkdir()
    (place / f"{PREFIX}fifo").mkdir()
    os.mkfifo(place / f"{PREFIX}fifo" / "lock")
    remove_left()
    assert (place / "elsewhere" / "lock").exists() and Path(mine.path).is_dir()
    assert {f"{PREFIX}link", f"{PREFIX}file", f"{PREFIX}no-lock"} <= set(os.listdir(place))
    mine.remove()
    assert not Path(mine.path).exists()


def test_a_folder_that_was_never_locked_is_removed_once_it_is_old(place: Path) -> None:
    young, old = place / f"{PREFIX}young", place / f"{PREFIX}old"
    young.mkdir()
    old.mkdir()
    os.utime(old, (1, 1))
    remove_left()
    assert young.is_dir() and not old.exists()


def test_a_folder_that_another_run_took_for_left_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[int] = []
    real = fcntl.flock

    def taken_once(handle: int, operation: int) -> None:
        locked.append(handle)
        if len(locked) == 1:
            raise BlockingIOError
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", taken_once)
    mine = Scratch()
    assert len(locked) == 2 and Path(mine.path).is_dir() and len(list(place.iterdir())) == 2
    mine.remove()


def test_a_folder_that_is_removed_before_it_is_locked_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run clears up between the moment when the lock is made and the moment when it is taken."""
    real, asked = fcntl.flock, list[int]()

    def late(handle: int, operation: int) -> None:
        asked.append(handle)
        if len(asked) == 1:
            remove_left()
            assert not any(place.iterdir())
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    mine = Scratch()
    assert Path(mine.path).is_dir() and len(asked) == 3  # late, by the other run, and anew
    mine.remove()


def test_a_folder_that_is_removed_before_it_has_a_lock_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the machine slept in between, or its clock was set."""
    real, made = tempfile.mkdtemp, list[str]()

    def old_at_first(prefix: str) -> str:
        made.append(real(prefix=prefix))
        if len(made) == 1:
            os.utime(made[0], (1, 1))
            remove_left()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", old_at_first)
    mine = Scratch()
    assert not Path(made[0]).exists() and Path(mine.path).is_dir() and mine.path == made[1]
    mine.remove()
