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

from schemas.layouts.store_names import REPORT_SUFFIX, RESEND_SUFFIX
from store_io.base.errors import StoreError
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.repair_store import repair
from store_io.repair.repair_work import RepairOutcome, RepairRequest
from store_io.repair.writing import store_writer
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import content, repaired, run_tasks

MANY = 30  # steps under the mark soak
WRITES = ("pwrite", "ftruncate", "copy_file_range", "mkdir", "utime", "fsync", "unlink", "link")


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


def told(text: str) -> Callable[[RepairOutcome, str], None]:
    """Writes the report and a list of a repair, with that text."""

    def keep(_: RepairOutcome, folder: str) -> None:
        for suffix in (REPORT_SUFFIX, RESEND_SUFFIX):
            Path(folder, f"new{suffix}").write_text(text)

    return keep


BOTH = [f"new{REPORT_SUFFIX}", f"new{RESEND_SUFFIX}"]


def test_of_two_repairs_into_one_target_the_first_one_s_report_stays(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path
) -> None:
    root, plan, whole = damaged
    request = RepairRequest("store", StoreLocation(str(root)), str(tmp_path / "new"), plan)
    said: list[str] = []

    def other_first(sentence: str) -> None:
        said.append(sentence)
        if sentence == "writing it to the disk":
            assert repair(request, run_tasks, told("winner")).exit_code == 0

    with pytest.raises(store_writer.WriteFailed, match="another run was faster"):
        repair(request, run_tasks, told("loser"), other_first)
    assert said[-1] == "writing it to the disk" and {(tmp_path / name).read_text() for name in BOTH} == {"winner"}
    assert content(tmp_path / "new") == whole and sorted(p.name for p in tmp_path.iterdir()) == ["new", *BOTH]


@pytest.mark.parametrize("left", BOTH)
def test_a_file_of_another_store_that_came_meanwhile_stays_and_nothing_is_put_there(
    left: str, damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path
) -> None:
    root, plan, _ = damaged
    request = RepairRequest("store", StoreLocation(str(root)), str(tmp_path / "new"), plan)

    def meanwhile(sentence: str) -> None:
        if sentence == "writing it to the disk":
            (tmp_path / left).write_text("earlier")

    with pytest.raises(store_writer.WriteFailed, match=f"{left}: exists by now"):
        repair(request, run_tasks, told("later"), meanwhile)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(left, "earlier")]


def test_two_repairs_at_once(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root, plan, whole = damaged
    children = []
    for number in range(3):
        if (child := os.fork()) == 0:
            request = RepairRequest("store", StoreLocation(str(root)), str(tmp_path / "new"), plan)
            try:
                repair(request, run_tasks, told(str(number)))
            except StoreError:
                os._exit(3)
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0, 3, 3]
    assert {(tmp_path / name).read_text() for name in BOTH} == {str(codes.index(0))} and content(tmp_path / "new") == whole
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", *BOTH]


@pytest.mark.parametrize("links", [True, False])
def test_a_report_goes_where_the_store_cannot_be_put(
    links: bool, damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a file system without links."""
    real = store_writer._rename_new

    def no_link(origin: str, target: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def rename(origin: str, target: str) -> None:
        if target.endswith("/new"):
            assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == BOTH, "they are there before the store"
            bad_medium()
        real(origin, target)

    request = RepairRequest("store", StoreLocation(str(damaged[0])), str(tmp_path / "new"), damaged[1])
    monkeypatch.setattr(store_writer, "_rename_new", rename)
    if not links:
        monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(store_writer.WriteFailed, match="new: cannot be written"):
        repair(request, run_tasks, told("one"))
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_taken_back_is_named(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, report = os.unlink, str(tmp_path / BOTH[0])
    request = RepairRequest("store", StoreLocation(str(damaged[0])), str(tmp_path / "new"), damaged[1])
    monkeypatch.setattr(store_writer, "_rename_new", lambda origin, target: bad_medium())
    monkeypatch.setattr(os, "unlink", lambda path, **more: bad_medium() if path == report else real(path, **more))
    with pytest.raises(store_writer.WriteFailed, match=f"new: cannot be written: .*; remove {report}, which this run cannot"):
        repair(request, run_tasks, told("one"))
    assert [p.name for p in tmp_path.iterdir()] == [BOTH[0]]


@pytest.mark.parametrize("moment", ["link", "rename", "published"])
def test_killed_between_the_renames(
    moment: str, damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run knows which files are those of a store that never got its place, and removes no others."""
    root, plan, whole = damaged
    request = RepairRequest("store", StoreLocation(str(root)), str(tmp_path / "new"), plan)
    if (child := os.fork()) == 0:
        linked, renamed = os.link, store_writer._rename_new

        def link(origin: str, target: str) -> None:
            linked(origin, target)
            if moment == "link":
                os.kill(os.getpid(), signal.SIGKILL)

        def rename(origin: str, target: str) -> None:
            if moment == "published":
                renamed(origin, target)
            os.kill(os.getpid(), signal.SIGKILL)

        os.link, store_writer._rename_new = link, rename  # type: ignore[assignment]
        repair(request, run_tasks, told("killed"))
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    there = sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith("."))
    assert there == {"link": BOTH[:1], "rename": BOTH, "published": ["new", *BOTH]}[moment]
    left = {str(tmp_path / name) for name in there}
    if moment == "published":
        (tmp_path / "new").rename(tmp_path / "moved")
        left = set()
    assert store_writer.left_beside(str(tmp_path / "new")) == left
    (tmp_path / BOTH[1]).unlink(missing_ok=True)
    (tmp_path / BOTH[1]).write_text("another's")
    assert str(tmp_path / BOTH[1]) not in store_writer.left_beside(str(tmp_path / "new"))
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        hidden = [Path(writer.folder).name]
        kept = [BOTH[1]] if moment != "published" else ["moved", *BOTH]
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*hidden, *kept])
    assert (tmp_path / BOTH[1]).read_text() == "another's"
    (tmp_path / BOTH[1]).unlink()
    (tmp_path / BOTH[0]).unlink(missing_ok=True)
    repair(request, run_tasks, told("next"))
    assert content(tmp_path / "new") == whole and {(tmp_path / name).read_text() for name in BOTH} == {"next"}
