"""Each file goes to the disk after its last write, and only then."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from store_io.repair.writing import store_writer
from store_io.repair.writing.store_writer import StoreWriter


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


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_a_folder_that_takes_another_one_s_name_is_flushed_with_all_in_it(tmp_path: Path, flushed: list[str], how: str) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        for name in ("a/in/one", "ab/one"):
            writer.create(name, 10)
        writer.flush()
        if how == "removed":
            writer.remove("a")
        else:
            writer.move("a", "c")
        assert now(writer, flushed) == ({"store"} if how == "removed" else {"store", "c", "in", "one"})
        writer.create("b/in/one", 20)
        writer.move("b", "a")
        assert now(writer, flushed) == {"store", "a", "in", "one"}


def test_an_open_file_is_never_flushed_for_good(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("one", 10)
        with writer.open("one") as file:
            file.write(0, b"x")
            assert "one" in now(writer, flushed)
            file.write(1, b"y")
        assert now(writer, flushed) == {"one"}


def test_once_another_process_may_write_all_is_flushed(tmp_path: Path, flushed: list[str]) -> None:
    with StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.create("one", 10)
        writer.flush()
        other = pickle.loads(pickle.dumps(writer))
        assert other == writer
        other.write("one", 0, b"x")
        for _ in range(2):
            assert now(writer, flushed) == {"store", "one"}
