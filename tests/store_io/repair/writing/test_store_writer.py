"""The folder in which a new store is made: one run's alone, and gone when it ends."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from store_io.repair.repair_plan import RepairPlan
from store_io.repair.writing import store_writer
from tests.support.answers.repaired import repaired


def test_a_run_that_is_under_way_is_left_alone(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root, plan, _ = damaged
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as other:
        assert repaired(root, tmp_path / "new", plan).exit_code == 0
        assert Path(other.root).is_dir()
        with pytest.raises(store_writer.WriteFailed, match="exists by now"):
            other.publish()
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize(("umask", "named", "made"), [(0o022, 0o640, 0o600), (0o077, 0o600, 0o600), (0o000, 0o640, 0o600)])
def test_modes_are_the_sources_and_never_wider(
    umask: int, named: int, made: int, damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path
) -> None:
    """A file that the source lacks gets the narrowest of them."""
    shared, plan, _ = damaged
    root = Path(shutil.copytree(shared, tmp_path / "store"))  # other tests repair the shared store, too
    for path in [root, *root.rglob("*")]:
        path.chmod(0o750 if path.is_dir() else 0o440 if path.parent.name == "commitlog" else 0o640)
    (root / "lock").write_bytes(b"")
    (root / "lock").chmod(0o600)
    before = os.umask(umask)
    try:
        assert repaired(root, tmp_path / "new", plan).exit_code == 0
    finally:
        os.umask(before)
    modes = {str(p.relative_to(tmp_path / "new")): p.stat().st_mode & 0o7777 for p in [*(tmp_path / "new").rglob("*")]}
    assert modes["checkpoint"] == named & ~umask and modes["lock"] == 0o600
    for path, mode in modes.items():
        if (tmp_path / "new" / path).is_dir():
            assert mode == 0o750 & ~umask, path
        elif not (root / path).exists():
            assert mode == made, path
        elif path.startswith("commitlog/"):
            assert mode == (0o640 if named == 0o640 else 0o600) & ~umask | 0o600, path
    assert (tmp_path / "new").stat().st_mode & 0o7777 == 0o750 & ~umask


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


@pytest.mark.parametrize("name", ["../lock", "/etc/hostname", "link", "folder", "gone"])
def test_only_a_regular_file_of_the_workshop_comes_into_the_store(name: str, tmp_path: Path) -> None:
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        workshop = Path(writer.workshop())
        (workshop / "folder").mkdir()
        (workshop / "link").symlink_to("/etc/hostname")
        with pytest.raises(store_writer.WriteFailed):
            writer.take_in(name, "database/CURRENT")
        (workshop / "made").write_bytes(b"123")
        assert writer.take_in("made", "database/CURRENT") == 3
        assert (Path(writer.root) / "database" / "CURRENT").read_bytes() == b"123"
        assert not list(Path(writer.workshop()).iterdir())  # a new one is empty
        with pytest.raises(store_writer.WriteFailed):
            writer.take_in("made", "../outside")
    assert not list(tmp_path.iterdir())
