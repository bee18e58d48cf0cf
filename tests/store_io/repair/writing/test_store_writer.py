"""The folder in which a new store is made: one run's alone, and gone when it ends."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from store_io.base.locks import lock_named
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.writing import store_writer
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.local_folder import LocalFile
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


def test_what_cannot_be_removed_keeps_nothing_else_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.unlink

    def unlink(path: Any, **more: Any) -> None:
        if os.path.basename(path) == "held":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(path, **more)

    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        for folder in ("a", "b", "c"):
            for name in ("early", "held", "late"):
                writer.create(f"{folder}/{name}", 1)
        monkeypatch.setattr(os, "unlink", unlink)
    assert sorted(str(p.relative_to(writer.folder)) for p in tmp_path.rglob("*") if p.is_file()) == [
        "lock", "store/a/held", "store/b/held", "store/c/held",
    ]  # fmt: skip
    monkeypatch.undo()
    with store_writer.StoreWriter.beside(str(tmp_path / "new")):
        assert not Path(writer.folder).exists()


@pytest.mark.parametrize("moment", ["before it has a lock", "before the lock is held"])
def test_a_hidden_folder_that_another_run_took_for_a_rest_is_made_anew(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, mkdir = list[str](), os.mkdir

    def gone_once(folder: str) -> None:
        if not gone:
            gone.append(folder)
            shutil.rmtree(folder)

    def made(path: str, mode: int) -> None:
        mkdir(path, mode)
        if moment == "before it has a lock":
            gone_once(path)

    def locked(lock: int, path: str, wait: bool) -> bool:
        gone_once(os.path.dirname(path))
        return lock_named(lock, path, wait)

    monkeypatch.setattr(os, "mkdir", made)
    monkeypatch.setattr(store_writer, "lock_named", locked)
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        assert gone and gone != [writer.folder] and [str(p) for p in tmp_path.iterdir()] == [writer.folder]
    assert not list(tmp_path.iterdir())


def test_zeros_far_into_a_file(tmp_path: Path) -> None:
    """A position of more than 32 bits reaches the system whole."""
    far = 1 << 32
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("large", far + 100)
        for at in (0, far):
            writer.write("large", at, b"x" * 100)
        writer.zero("large", far + 10, far + 90)
        with (Path(writer.root) / "large").open("rb") as file:
            assert file.read(100) == b"x" * 100
            file.seek(far)
            assert file.read() == b"x" * 10 + bytes(80) + b"x" * 10


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


@pytest.mark.parametrize("by_the_system", [True, False])
def test_a_name_that_exists_is_never_replaced(by_the_system: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_the_system:  # in one step: a check before the rename would leave time for another run
        monkeypatch.setattr(os, "rename", None)
    else:
        monkeypatch.setattr(store_writer, "_system_call", lambda *_: None)
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("one", 1)
        writer.create("two", 2)
        with pytest.raises(store_writer.WriteFailed, match="two: cannot be written: File exists"):
            writer.move("one", "two")
        writer.move("one", "three")
        assert {p.name: p.stat().st_size for p in Path(writer.root).iterdir()} == {"two": 2, "three": 1}


HOLE, WINDOW = 1 << 16, 1 << 14


@pytest.mark.parametrize("way", ["by the system", "through a window", "without knowing its holes"])
def test_a_copy_has_the_same_bytes_holes_and_time_and_says_how_far_it_came(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "COPY_BYTES", WINDOW)
    monkeypatch.setattr(store_writer, "WINDOW_BYTES", WINDOW)
    monkeypatch.setattr(store_writer.StoreFileWriter, "_clone", lambda *_: False)
    if way != "by the system":  # as from a source that is no folder
        monkeypatch.setattr(LocalFile, "descriptor", lambda _: None)
    if way == "without knowing its holes":  # as if the file changed while it is copied
        monkeypatch.setattr(LocalFile, "next_hole", lambda _, at: at)
    root = tmp_path / "source"
    root.mkdir()
    with (root / "file").open("wb") as file:
        file.truncate(4 * HOLE)
        file.seek(HOLE)
        file.write(b"x" * (WINDOW + 4096))
    said: list[int] = []
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.copy(open_source(StoreLocation(str(root))), "file", "to", 10**18, said.append)
        copied = Path(writer.root) / "to"
        assert copied.read_bytes() == (root / "file").read_bytes() and copied.stat().st_mtime_ns == 10**18
        assert copied.stat().st_blocks <= 2 * WINDOW // 512  # the windows that hold data
        writer.copy(open_source(StoreLocation(str(root))), "file", "again", 0)
        assert time.time() - (Path(writer.root) / "again").stat().st_mtime < 3600  # a time that nobody knows is none to keep
    whole = range(HOLE + WINDOW, 4 * HOLE + 1, WINDOW)
    assert said == [0, *(whole if way == "without knowing its holes" else (HOLE + WINDOW, HOLE + WINDOW + 4096))]


@pytest.mark.parametrize("holes", [True, False])
def test_zeros_are_put_and_neither_size_nor_time_changes(holes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "_ZEROS", bytes(10))
    if not holes:
        monkeypatch.setattr(store_writer, "_punch", lambda *_: False)
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.put("one", b"x" * (1 << 15))
        writer.set_time("one", 10**18)
        made = Path(writer.root) / "one"
        blocks = made.stat().st_blocks
        for start, end in ((5, 5), (4096, 12289)):
            writer.zero("one", start, end)
        assert made.read_bytes() == b"x" * 4096 + bytes(8193) + b"x" * (20479) and made.stat().st_mtime_ns == 10**18
        assert made.stat().st_blocks == blocks - (16 if holes else 0)
