"""A repair that is stopped, wherever and by whatever, leaves nothing that looks finished; run again it completes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreError
from store_io.repair import store_writer
from store_io.repair.repair_copy import COPY_THREADS
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.repair_store import repair
from store_io.repair.repair_work import RepairRequest
from store_io.source import byte_source
from store_io.source.byte_source import StoreLocation
from tests.support import corpus_tools
from tests.support.repaired import content, plan_of, repaired, run_tasks

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


def test_killed_while_the_hidden_folder_goes(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    """However far the removal came, what is left still has its lock, or is empty: the next run finishes it."""
    hidden = tmp_path / ".new.repairing-00000000"
    real, removed = os.unlink, 0
    for stop_at in (1, 2, 5, 10**6):
        (hidden / "store" / "commitlog").mkdir(parents=True)
        for name in ("abort", "checkpoint", "commitlog/0", "commitlog/1"):
            (hidden / "store" / name).write_bytes(b"x")
        (hidden / "lock").write_bytes(b"")
        if (child := os.fork()) == 0:
            calls = 0

            def unlink(*words: Any, **more: Any) -> None:
                nonlocal calls
                calls += 1
                if calls == stop_at:  # noqa: B023
                    os.kill(os.getpid(), signal.SIGKILL)
                real(*words, **more)

            os.unlink = unlink  # type: ignore[assignment]
            store_writer._remove_folder(str(hidden))
            os._exit(0)
        os.waitpid(child, 0)
        left = [p.name for p in hidden.iterdir()] if hidden.exists() else []
        assert not left or "lock" in left
        removed += not left
        with store_writer.StoreWriter.beside(str(tmp_path / "new")):
            assert not hidden.exists()
    assert removed == 1 and not list(tmp_path.iterdir())


def test_of_two_repairs_into_one_target_the_first_one_s_report_stays(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path
) -> None:
    root, plan, whole = damaged
    report = tmp_path / "new.repair.json"
    request = RepairRequest("store", StoreLocation(str(root)), str(tmp_path / "new"), plan)
    said: list[str] = []

    def other_first(sentence: str) -> None:
        said.append(sentence)
        if sentence == "writing it to the disk":
            assert repair(request, run_tasks, lambda _: report.write_text("winner") and None).exit_code == 0

    with pytest.raises(store_writer.WriteFailed, match="another run was faster"):
        repair(request, run_tasks, lambda _: report.write_text("loser") and None, report.unlink, other_first)
    assert said[-1] == "writing it to the disk" and report.read_text() == "winner"
    assert content(tmp_path / "new") == whole and sorted(p.name for p in tmp_path.iterdir()) == ["new", "new.repair.json"]


def test_two_repairs_at_once(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root, plan, whole = damaged
    report, children = tmp_path / "new.repair.json", []
    for number in range(3):
        if (child := os.fork()) == 0:
            request = RepairRequest("store", StoreLocation(str(root)), str(tmp_path / "new"), plan)
            try:
                repair(request, run_tasks, lambda _: report.write_text(str(number)) and None, report.unlink)  # noqa: B023
            except StoreError:
                os._exit(3)
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0, 3, 3]
    assert report.read_text() == str(codes.index(0)) and content(tmp_path / "new") == whole
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", "new.repair.json"]


def test_a_report_goes_where_the_store_cannot_be_put(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "new.repair.json"
    request = RepairRequest("store", StoreLocation(str(damaged[0])), str(tmp_path / "new"), damaged[1])
    monkeypatch.setattr(store_writer, "_rename_new", lambda origin, target: bad_medium() if target.endswith("/new") else None)
    with pytest.raises(store_writer.WriteFailed):
        repair(request, run_tasks, lambda _: report.write_text("one") and None, report.unlink)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), StoreError("no")])
def test_a_copy_that_is_stopped_begins_no_further_file(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, begun, gate = tmp_path / "store", [], threading.Event()
    shutil.copytree(damaged[0], root)
    for number in range(200):
        (root / "index" / f"more{number}").write_bytes(b"")
    pool, real = concurrent.futures.ThreadPoolExecutor, concurrent.futures.ThreadPoolExecutor.shutdown

    def stopped(self: Any, work: Any, entries: Any) -> None:
        for entry in entries:
            self.submit(work, entry)
        raise problem

    def shutdown(self: Any, wait: bool = True, *, cancel_futures: bool = False) -> None:
        real(self, False, cancel_futures=cancel_futures)
        gate.set()  # only now does a copy end
        real(self, wait)

    def copy(self: Any, source: Any, path: str, to: str, mtime_ns: int = 0) -> None:
        begun.append(path)
        gate.wait()

    monkeypatch.setattr(pool, "map", stopped)
    monkeypatch.setattr(pool, "shutdown", shutdown)
    monkeypatch.setattr(store_writer.StoreWriter, "copy", copy)
    with pytest.raises(type(problem)):
        repaired(root, tmp_path / "new", damaged[1])
    assert len(begun) <= COPY_THREADS
    assert [p.name for p in tmp_path.iterdir()] == ["store"]
