"""Each file goes to the disk after its last write, and only then."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest

from store_io.repair.writing import store_writer
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import StoreLocation, open_source


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was flushed, since it was emptied last."""
    names: list[str] = []
    monkeypatch.setattr(store_writer, "_sync_path", lambda path: names.append(Path(path).name))
    return names


def now(writer: StoreWriter, flushed: list[str]) -> set[str]:
    flushed.clear()
    writer.flush()
    return set(flushed)


def test_what_was_not_written_since_is_not_flushed_again(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        for name in ("a/one", "a/two", "b/three"):
            writer.create(name, 10)
        assert now(writer, flushed) == {"store", "a", "b", "one", "two", "three"}
        assert now(writer, flushed) == set()
        writer.write("a/one", 0, b"x")
        assert now(writer, flushed) == {"one"}
        writer.zero("a/two", 0, 5)
        writer.set_time("b/three", 10**18)
        assert now(writer, flushed) == {"two", "three"}
        writer.move("a/two", "c/two")
        assert now(writer, flushed) == {"a", "c", "two", "store"}
        writer.remove("c")
        assert now(writer, flushed) == {"store"}
        writer.put("c/two", b"new")
        assert now(writer, flushed) == {"store", "c", "two"}
        writer.create("c/four", 3)
        writer.flush_file("c/four")
        assert now(writer, flushed) == {"c"}
        (Path(writer.workshop()) / "made").write_bytes(b"made")
        writer.take_in("made", "c/d/made")
        assert now(writer, flushed) == {"store", "c", "d", "made"}
        (Path(writer.workshop()) / "again").write_bytes(b"made")
        writer.take_in("again", "c/d/again")
        assert now(writer, flushed) == {"d", "again"}


def test_a_store_is_put_in_its_place_once_all_of_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[tuple[str, str]] = []
    bad, rename = ["one"], store_writer._rename_new

    def sync(path: str) -> None:
        if Path(path).name in bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        did.append(("flush", path))

    def moved(origin: str, target: str) -> None:
        rename(origin, target)
        did.append(("rename", target))

    monkeypatch.setattr(store_writer, "_sync_path", sync)
    monkeypatch.setattr(store_writer, "_rename_new", moved)
    target = str(tmp_path / "new")
    with StoreWriter.beside(target) as writer:
        writer.create("a/one", 10)
        for act in (writer.flush, writer.publish):
            with pytest.raises(store_writer.WriteFailed, match=f"^{target}/a/one: cannot be written: "):
                act()
        assert not os.path.exists(target) and "one" not in {Path(path).name for _, path in did}
        bad.clear()
        writer.publish()
        *before, last, parent = did
        assert {(act, os.path.relpath(path, writer.root)) for act, path in before} == {
            ("flush", "."), ("flush", "a"), ("flush", "a/one"),
        }  # fmt: skip
        assert (last, parent) == (("rename", target), ("flush", str(tmp_path)))


def test_a_narrower_mode_is_flushed(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        for root in (tmp_path / "source", Path(writer.root)):
            for name in ("one", "two"):
                (root / "a").mkdir(parents=True, exist_ok=True)
                (root / "a" / name).touch()
                (root / "a" / name).chmod(0o640)
        (tmp_path / "source" / "a" / "two").chmod(0o600)
        writer.flush()
        writer.narrow(open_source(StoreLocation(str(tmp_path / "source"))))
        assert now(writer, flushed) == {"two"}


def test_a_folder_that_takes_a_removed_one_s_name_is_flushed_with_all_in_it(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        for name in ("a/in/one", "ab/one"):
            writer.create(name, 10)
        writer.flush()
        writer.remove("a")
        assert now(writer, flushed) == {"store"}
        writer.create("a/in/one", 20)
        assert now(writer, flushed) == {"store", "a", "in", "one"}


def test_an_open_file_is_never_flushed_for_good(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("one", 10)
        with writer.open("one") as file:
            file.write(0, b"x")
            for _ in range(2):  # whoever has it open may have written to it since
                assert "one" in now(writer, flushed)
            file.write(1, b"y")
        assert now(writer, flushed) == {"one"}


@pytest.mark.parametrize("replaced", [False, True], ids=["written", "its folder replaced"])
def test_what_changes_while_it_is_flushed_is_flushed_again(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def sync(path: str) -> None:
        names.append(Path(path).name)
        if names == ["one"] and not replaced:
            writer.write("a/one", 0, b"x")
        elif names == ["one"]:
            writer.remove("a")
            writer.create("a/one", 20)

    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("a/one", 10)
        monkeypatch.setattr(store_writer, "_sync_path", sync)
        writer.flush_file("a/one")
        assert now(writer, names) == {"store", "a", "one"} and now(writer, names) == set()


def test_what_a_removal_that_failed_has_left_is_flushed(
    tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        for name in ("a/one", "a/two"):
            writer.create(name, 10)
        writer.flush()
        with monkeypatch.context() as patch, pytest.raises(store_writer.WriteFailed, match="a: cannot be written"):
            patch.setattr(os, "rmdir", lambda *_, **__: os.open("/", os.O_WRONLY))
            writer.remove("a")
        assert now(writer, flushed) == {"store", "a"}


def test_a_flush_is_one_of_the_system_and_an_error_of_it_ends_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        for name in ("one", "two", "three"):
            writer.create(name, 1)
        writer.flush_file("gone")  # a step may have removed it meanwhile

        def fsync(descriptor: int) -> None:
            if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/two"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(store_writer.WriteFailed, match=r"new/two: cannot be written: Input/output error"):
            writer.publish()
        assert not (tmp_path / "new").exists() and not writer.published


def test_once_another_process_may_write_all_is_flushed(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("one", 10)
        writer.flush()
        other = pickle.loads(pickle.dumps(writer))
        assert other == writer
        other.write("one", 0, b"x")
        for _ in range(2):
            assert now(other, flushed) == {"store", "one"}
        for _ in range(2):
            assert now(writer, flushed) == {"store", "one"}
