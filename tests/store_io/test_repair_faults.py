"""A repair that is stopped, wherever and by whatever, leaves nothing that looks finished; run again it completes."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store_io import byte_source, store_writer
from store_io.errors import StoreError
from store_io.repair_plan import RepairPlan
from tests import corpus_tools
from tests.repaired import content, plan_of, repaired

WRITES = ("pwrite", "ftruncate", "copy_file_range", "mkdir", "utime", "fsync", "unlink")


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RepairPlan, dict[str, str]]:
    """A small store with a bridge to build, queues and an index to rebuild, its plan, and what a repair makes of it."""
    case = next(c for c in corpus_tools.cases() if c.name == "g79-498-reput")
    folder = tmp_path_factory.mktemp("damaged")
    root = case.unpack(folder)
    plan = plan_of(root, case.release, case.broker_conf)
    outcome = repaired(root, folder / "whole", plan)
    assert outcome.exit_code == 0 and outcome.report["bridges"] and outcome.report["queues"]
    return root, plan, content(folder / "whole")


class Counted:
    """Stands for the module os in the writer, and fails at the n-th call that changes something."""

    def __init__(self, stop_at: int, act: Callable[[], None]):
        self.calls, self.stop_at, self.act = 0, stop_at, act

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in WRITES:
            return real

        def call(*words: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls == self.stop_at:
                self.act()
            return real(*words, **more)

        return call


@contextlib.contextmanager
def failing(stop_at: int, act: Callable[[], None]) -> Iterator[Counted]:
    counted = Counted(stop_at, act)
    store_writer.os = counted  # type: ignore[attr-defined, assignment]
    try:
        yield counted
    finally:
        store_writer.os = os  # type: ignore[attr-defined]


def steps(root: Path, plan: RepairPlan, target: Path, count: int) -> list[int]:
    """Calls at which to stop, spread over a whole repair."""
    with failing(-1, lambda: None) as counted:
        assert repaired(root, target, plan).exit_code == 0
    shutil.rmtree(target)
    assert counted.calls > count
    return sorted({1 + i * (counted.calls - 1) // (count - 1) for i in range(count)})


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def bad_medium() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("act", [no_space, bad_medium])
def test_a_call_that_fails(damaged: tuple[Path, RepairPlan, dict[str, str]], act: Callable[[], None], tmp_path: Path) -> None:
    root, plan, whole = damaged
    for stop_at in steps(root, plan, tmp_path / "new", 12):
        with failing(stop_at, act), contextlib.suppress(StoreError):
            # A copy that the system refuses is tried again by hand, so one failed call need not end it.
            assert repaired(root, tmp_path / "new", plan).exit_code == 0
        if (tmp_path / "new").exists():
            assert content(tmp_path / "new") == whole
            shutil.rmtree(tmp_path / "new")
        assert not list(tmp_path.iterdir()), f"something is left after call {stop_at}"
    assert repaired(root, tmp_path / "new", plan).exit_code == 0
    assert content(tmp_path / "new") == whole


def test_killed_at_any_step(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root, plan, whole = damaged
    before = content(root)
    for stop_at in steps(root, plan, tmp_path / "new", 10):
        child = os.fork()
        if child == 0:
            with failing(stop_at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                repaired(root, tmp_path / "new", plan)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if (tmp_path / "new").exists():  # killed when it was in place already
            assert content(tmp_path / "new") == whole
            shutil.rmtree(tmp_path / "new")
        assert all(p.name.startswith(".new.repairing-") for p in tmp_path.iterdir())
    assert content(root) == before
    assert repaired(root, tmp_path / "new", plan).exit_code == 0
    assert content(tmp_path / "new") == whole
    assert [p.name for p in tmp_path.iterdir()] == ["new"], "what was left by those that were killed is removed"


def test_a_run_that_is_under_way_is_left_alone(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root, plan, _ = damaged
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as other:
        assert repaired(root, tmp_path / "new", plan).exit_code == 0
        assert Path(other.root).is_dir()
        with pytest.raises(store_writer.WriteFailed, match="exists by now"):
            other.publish()
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_a_source_that_changes_while_it_is_copied(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    shutil.copytree(damaged[0], root)
    segments = sorted((root / "commitlog").iterdir())
    real = store_writer.StoreWriter.copy

    def copy(self: Any, source: Any, path: str, to: str, mtime_ns: int = 0) -> None:
        if path.endswith(segments[0].name):
            data = bytearray(segments[-1].read_bytes())
            data[100] ^= 1
            segments[-1].write_bytes(data)
            os.utime(segments[-1], ns=(1, 1))
        real(self, source, path, to, mtime_ns)

    monkeypatch.setattr(store_writer.StoreWriter, "copy", copy)
    with pytest.raises(StoreError, match="not the one that the plan was made from"):
        repaired(root, tmp_path / "new", damaged[1])
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_source_that_cannot_be_read(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = byte_source._LocalFile._fill

    def fill(self: Any, position: int, view: memoryview) -> int:
        if self.path.startswith("commitlog/") and position >= 4096:
            bad_medium()
        return real(self, position, view)

    monkeypatch.setattr(byte_source._LocalFile, "_fill", fill)
    with pytest.raises(StoreError, match="commitlog/"):
        repaired(damaged[0], tmp_path / "new", damaged[1])
    assert not list(tmp_path.iterdir())


def test_too_little_space(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer.StoreWriter, "free_bytes", lambda self: 1000)
    with pytest.raises(store_writer.WriteFailed, match="1000 are free"):
        repaired(damaged[0], tmp_path / "new", damaged[1])
    assert not list(tmp_path.iterdir())


def test_no_file_is_a_link(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(damaged[0], root)
    inside = root / "config"
    inside.mkdir(exist_ok=True)
    (root / "kept").mkdir()
    (root / "kept" / "real.json").write_text("{}")
    (inside / "topics.json").symlink_to("../kept/real.json")
    plan = plan_of(root, damaged[1].release, damaged[1].broker_conf)
    assert repaired(root, tmp_path / "new", plan).exit_code == 0
    for path in (tmp_path / "new").rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or path.stat().st_nlink == 1
    assert (tmp_path / "new" / "config" / "topics.json").read_text() == "{}"
