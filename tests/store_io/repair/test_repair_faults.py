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

from store_io.base.errors import StoreError
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.repair_store import repair
from store_io.repair.repair_work import RepairRequest
from store_io.repair.writing import store_writer
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import content, repaired, run_tasks

MANY = 30  # steps under the mark soak
WRITES = ("pwrite", "ftruncate", "copy_file_range", "mkdir", "utime", "fsync", "unlink")


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


SPREADS = [
    pytest.param(act, count, marks=pytest.mark.soak if count == MANY else ())
    for act, count in ((no_space, 7), (bad_medium, 5), (no_space, MANY), (bad_medium, MANY))
]


@pytest.mark.parametrize(("act", "count"), SPREADS)
def test_a_call_that_fails(
    damaged: tuple[Path, RepairPlan, dict[str, str]], act: Callable[[], None], count: int, tmp_path: Path
) -> None:
    root, plan, whole = damaged
    for stop_at in steps(root, plan, tmp_path / "new", count):
        with failing(stop_at, act), contextlib.suppress(StoreError):
            # A copy that the system refuses is tried again by hand, so one failed call need not end it.
            assert repaired(root, tmp_path / "new", plan).exit_code == 0
        if (tmp_path / "new").exists():
            assert content(tmp_path / "new") == whole
            shutil.rmtree(tmp_path / "new")
        assert not list(tmp_path.iterdir()), f"something is left after call {stop_at}"
    assert repaired(root, tmp_path / "new", plan).exit_code == 0
    assert content(tmp_path / "new") == whole


@pytest.mark.parametrize("count", [6, pytest.param(MANY, marks=pytest.mark.soak)])
def test_killed_at_any_step(damaged: tuple[Path, RepairPlan, dict[str, str]], count: int, tmp_path: Path) -> None:
    root, plan, whole = damaged
    before = content(root)
    for stop_at in steps(root, plan, tmp_path / "new", count):
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
