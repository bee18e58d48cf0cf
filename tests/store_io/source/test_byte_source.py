"""Only regular files of the store are opened, only to read, and what goes wrong is one sentence."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs
import pytest

from store_io.base.errors import NotAFile, NotAStore, StoreChanged, Unreadable, UsageError
from store_io.source.arrow_folder import ArrowFolder
from store_io.source.byte_source import ByteSource, StoreLocation, check_root, folder_of, open_source, shown
from store_io.source.local_folder import LocalFolder

SEGMENT = "commitlog/00000000000000000000"


@pytest.fixture(params=["local", "pyarrow"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, ByteSource]:
    """A store with one file, reached in both ways."""
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    (root / SEGMENT).write_bytes(bytes(range(100)))
    location = StoreLocation(str(root))
    if request.param == "local":
        return root, open_source(location)
    folder = ArrowFolder(pafs.LocalFileSystem(), str(root))
    return root, ByteSource(location, folder, {})


def kinds(source: ByteSource, name: str = "commitlog") -> dict[str, str]:
    return {entry.path: entry.kind for entry in source.list_tree(name)}


def test_reads_ranges_of_a_file(store: tuple[Path, ByteSource]) -> None:
    _, source = store
    with source.open(SEGMENT) as file:
        assert file.size == 100 and file.path == SEGMENT
        assert file.read(10, 3) == b"\x0a\x0b\x0c"
        assert file.read(98, 10) == b"\x62\x63"
        assert file.read(100, 10) == b"" and file.read(500, 1) == b""
        buffer = np.zeros(8, np.uint8)
        assert file.read_into(96, buffer) == 4
        assert buffer.tolist() == [96, 97, 98, 99, 0, 0, 0, 0]


def test_a_small_file_is_read_whole_unless_it_is_large(store: tuple[Path, ByteSource]) -> None:
    _, source = store
    assert source.read_small(SEGMENT) == bytes(range(100))
    with pytest.raises(NotAFile, match="100 bytes, more than the 99"):
        source.read_small(SEGMENT, 99)


def test_a_vanished_file_and_a_directory_are_sentences(store: tuple[Path, ByteSource]) -> None:
    _, source = store
    with pytest.raises(StoreChanged, match="commitlog/none: is not there any more"):
        source.open("commitlog/none")
    with pytest.raises(NotAFile, match="commitlog: a directory, not a file"):
        source.open("commitlog")


def test_a_file_that_shrinks_underneath_is_an_error_and_not_a_short_read(store: tuple[Path, ByteSource]) -> None:
    root, source = store
    with source.open(SEGMENT) as file:
        os.truncate(root / SEGMENT, 40)
        with pytest.raises(StoreChanged, match="had 100 bytes and ended at 40"):
            file.read(30, 20)


@pytest.mark.parametrize("path", ["../store/x", "commitlog/../../x", "/etc/passwd", "", "commitlog//x", "a\0b", "."])
def test_a_path_that_is_none_of_a_store_is_refused(store: tuple[Path, ByteSource], path: str) -> None:
    with pytest.raises(NotAFile):
        store[1].open(path)


def test_lists_everything_below_a_folder(store: tuple[Path, ByteSource]) -> None:
    root, source = store
    (root / "commitlog" / "sub" / "deep").mkdir(parents=True)
    (root / "commitlog" / "sub" / "_hidden").write_bytes(b"x")
    (root / "commitlog" / ".dot").write_bytes(b"")
    entries = source.list_tree("commitlog")
    assert [(e.path, e.kind, e.size) for e in entries] == [
        ("commitlog/.dot", "file", 0),
        (SEGMENT, "file", 100),
        ("commitlog/sub", "directory", 0),
        ("commitlog/sub/_hidden", "file", 1),
        ("commitlog/sub/deep", "directory", 0),
    ]
    assert entries[1].mtime_ns == os.stat(root / SEGMENT).st_mtime_ns
    assert [e.path for e in source.names()] == ["commitlog"]
    assert source.list_tree("absent") == []


def test_no_fifo_socket_or_outward_link_is_opened_or_followed(tmp_path: Path) -> None:
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_bytes(b"s")
    os.mkfifo(root / "commitlog" / "fifo")
    os.symlink(tmp_path / "secret" / "file", root / "commitlog" / "out")
    os.symlink(tmp_path / "secret", root / "commitlog" / "outdir")
    os.symlink("/dev/zero", root / "commitlog" / "zero")
    os.symlink("nowhere", root / "commitlog" / "dangling")
    os.symlink("loop", root / "commitlog" / "loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "commitlog" / "socket"))
        source = open_source(StoreLocation(str(root)))
        assert kinds(source) == {
            "commitlog/dangling": "unreadable",
            "commitlog/fifo": "special",
            "commitlog/loop": "unreadable",
            "commitlog/out": "link_out",
            "commitlog/outdir": "link_out",
            "commitlog/socket": "special",
            "commitlog/zero": "link_out",
        }
        for name in ("fifo", "socket", "out", "outdir/file", "zero", "loop"):
            with pytest.raises(NotAFile):
                source.open(f"commitlog/{name}")
        with pytest.raises(NotAFile, match="a FIFO, not a file"):
            source.open("commitlog/fifo")


def test_every_file_of_a_folder_is_judged_by_itself(tmp_path: Path) -> None:
    """What is remembered of a folder opens no link in it, and a folder that is a link opens nothing outside."""
    root = tmp_path / "store"
    queue = root / "consumequeue" / "T" / "0"
    queue.mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_bytes(b"s")
    (queue / "file").write_bytes(b"q")
    os.symlink(tmp_path / "secret" / "file", queue / "out")
    os.symlink("file", queue / "in")
    os.symlink(tmp_path / "secret", root / "consumequeue" / "T" / "1")
    os.symlink("0", root / "consumequeue" / "T" / "2")
    source = open_source(StoreLocation(str(root)))
    for _ in range(2):
        for path in ("0/file", "0/in", "2/file", "2/in"):
            with source.open(f"consumequeue/T/{path}") as file:
                assert file.read(0, 2) == b"q"
        for path in ("0/out", "1/file", "2/out"):
            with pytest.raises(NotAFile, match="a link that leads out of the store"):
                source.open(f"consumequeue/T/{path}")


def test_a_whole_part_that_links_out_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "00000000000000000000").write_bytes(b"x")
    root = tmp_path / "store"
    root.mkdir()
    os.symlink(tmp_path / "elsewhere", root / "commitlog")
    source = open_source(StoreLocation(str(root)))
    assert [(e.path, e.kind) for e in source.names()] == [("commitlog", "link_out")]
    assert source.list_tree("commitlog") == []


def test_links_inside_the_store_are_followed_once_and_circles_end(tmp_path: Path) -> None:
    root = tmp_path / "store"
    for name in "abc":
        (root / "commitlog" / name).mkdir(parents=True)
        (root / "commitlog" / name / "file").write_bytes(b"12")
    os.symlink("../b", root / "commitlog" / "a" / "to_b")
    os.symlink("../c", root / "commitlog" / "b" / "to_c")
    os.symlink("../a", root / "commitlog" / "c" / "to_a")
    os.symlink("..", root / "commitlog" / "a" / "up")
    os.symlink("b/file", root / "commitlog" / "alias")
    source = open_source(StoreLocation(str(root)))
    found = kinds(source)
    assert found["commitlog/alias"] == "file" and found["commitlog/a/up"] == "link_out"
    assert found["commitlog/a/to_b"] == "directory" and found["commitlog/a/to_b/file"] == "file"
    assert found["commitlog/a/to_b/to_c/to_a/to_b"] == "link_out"  # a circle
    assert source.read_small("commitlog/alias") == b"12"
    assert len(found) < 30


def test_a_name_that_is_no_text_is_shown_and_not_opened(tmp_path: Path) -> None:
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(root / "commitlog") + b"/caf\xe9")).write_bytes(b"x")
    source = open_source(StoreLocation(str(root)))
    assert kinds(source) == {"commitlog/caf\\xe9": "unreadable"}


def test_parts_that_lie_elsewhere_are_one_folder_and_twin_names_stay_apart(tmp_path: Path) -> None:
    root, one, two = tmp_path / "store", tmp_path / "one", tmp_path / "two"
    for folder in (root / "commitlog", one, two / "sub"):
        folder.mkdir(parents=True)
    (root / "commitlog" / "ignored").write_bytes(b"")
    (one / "00").write_bytes(b"first")
    (two / "00").write_bytes(b"second")
    (two / "05").write_bytes(b"five")
    (two / "sub" / "x").write_bytes(b"deep")
    source = open_source(StoreLocation(str(root), (("commitlog", (str(one), f"file://{two}")),)))
    assert [(e.path, e.kind) for e in source.names()] == [("commitlog", "directory")]
    assert [e.path for e in source.list_tree("commitlog")] == [
        "commitlog/00",
        "commitlog/05",
        "commitlog/sub",
        "commitlog/sub/x",
        "commitlog[2]/00",
    ]
    contents = {path: source.read_small(path) for path in ("commitlog/00", "commitlog[2]/00", "commitlog/05", "commitlog/sub/x")}
    assert list(contents.values()) == [b"first", b"second", b"five", b"deep"]
    assert folder_of("commitlog[2]/00") == "commitlog" and folder_of("consumequeue/T[2]/0/00") == "consumequeue/T[2]/0"


def test_a_link_from_one_part_into_another_stays_inside_the_store(tmp_path: Path) -> None:
    root, index = tmp_path / "store", tmp_path / "index"
    (root / "commitlog").mkdir(parents=True)
    index.mkdir()
    (index / "20260101000000000").write_bytes(b"i")
    os.symlink(index / "20260101000000000", root / "commitlog" / "link")
    source = open_source(StoreLocation(str(root), (("index", (str(index),)),)))
    assert kinds(source) == {"commitlog/link": "file"}
    assert source.read_small("commitlog/link") == b"i"


def test_the_source_keeps_its_access_times(store: tuple[Path, ByteSource]) -> None:
    root, source = store
    if not isinstance(source._root, LocalFolder) or os.stat(root).st_uid != os.geteuid():
        pytest.skip("only a local file of one's own can be read without a trace")
    for path in (root / SEGMENT, root / "commitlog"):
        os.utime(path, (1, 1))  # older than the change: a read would mark it
    source.list_tree("commitlog")
    source.read_small(SEGMENT)
    assert [os.stat(path).st_atime for path in (root / SEGMENT, root / "commitlog")] == [1, 1]


def test_holes_of_a_sparse_file_can_be_skipped(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    with open(root / "sparse", "wb") as file:
        file.truncate(1 << 22)
        file.seek(1 << 21)
        file.write(b"x")
    with open_source(StoreLocation(str(root))).open("sparse") as file:
        data = file.next_data(0)
        assert data <= 1 << 21  # 0 where the file system cannot tell
        assert file.read(data, (1 << 21) - data).count(0) == (1 << 21) - data
        assert file.next_data((1 << 21) + 1) >= (1 << 21) + 1
        assert file.next_data(1 << 30) == file.size


@pytest.mark.parametrize("year", [1600, 2400])
def test_a_file_of_any_time_is_listed(tmp_path: Path, year: int) -> None:
    (tmp_path / "abort").write_bytes(b"")
    seconds = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    with contextlib.suppress(OSError):  # the file system has no such time
        os.utime(tmp_path / "abort", (seconds, seconds))
    (entry,) = open_source(StoreLocation(str(tmp_path))).names()
    assert abs(entry.mtime_ns) <= (1 << 63) - 1 and entry.kind == "file"


def test_a_wrong_root_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotAStore, match="there is nothing of this name"):
        check_root(str(tmp_path / "none"))
    with pytest.raises(NotAStore, match="a file, not a store directory"):
        check_root(f"file://{tmp_path}/file")
    with pytest.raises(UsageError, match="another machine"):
        check_root("file://host/store")
    with pytest.raises(UsageError, match="not a URI that can be read"):
        check_root("gopher://host/store")
    with pytest.raises(Unreadable):
        check_root("a\0b")


def test_what_a_uri_carries_to_log_in_is_never_shown() -> None:
    assert shown("s3://key:secret@bucket/a@b") == "s3://bucket/a@b"
    assert shown("/a//b@c") == "/a//b@c"
    with pytest.raises(UsageError) as caught:
        check_root("gopher://key:secret@host/store")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("parts", [(("config", ("/a",)),), (("index", ("/a", "/b")),), (("commitlog", ()),)])
def test_only_known_parts_lie_elsewhere(parts: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    with pytest.raises(UsageError):
        open_source(StoreLocation("/a", parts))
