"""What the names in a copy are, and what is said of those that nobody models."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.rows import StoreFile
from store_io.audit.audit_store import run_local
from store_io.base.errors import NotAStore, Unreadable
from store_io.base.failed_reads import failed_reads
from store_io.broker.loading import Tree
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from store_io.source.local_folder import LocalFolder
from store_io.source.store_dir import StoreListing, changes_since, in_path_order, list_store, listing_notes, unreadable_parts
from store_io.wording.gaps import gap_text

Make = Callable[..., StoreListing]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes files (path -> size; None is a directory) and lists the store."""

    def build(files: dict[str, int | None] | None = None, parts: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> StoreListing:
        for name, size in {"commitlog/00000000000000000000": 8, **(files or {})}.items():
            path = tmp_path / name
            (path if size is None else path.parent).mkdir(parents=True, exist_ok=True)
            if size is not None:
                path.write_bytes(bytes(size))
        return list_store(StoreLocation(str(tmp_path), parts))

    return build


HEALTHY: dict[str, int | None] = {
    "consumequeue/T/0/00000000000000000000": 40,
    "consumequeue_ext/T/0/00000000000000000000": 40,
    "batchconsumequeue/B/0/00000000000000000000": 46,
    "index/20260101000000000": 100,
    "checkpoint": 4096,
    "abort": 3,
    "abort.bak": 0,
    "lock": 4,
    "config/topics.json": 2,
    "timerwheel": 10,
    "timerlog/00000000000000000000": 10,
    "compaction/position-checkpoint": 39,
    "compaction/compactionLog": None,
    "rocksdbstore/CURRENT": 16,
    "epochFileCheckpoint": 0,
}


def test_lists_everything_by_path_and_says_nothing_of_a_healthy_store(make: Make) -> None:
    listing = make(HEALTHY)
    paths = [e.path for e in listing.files]
    assert paths == sorted(paths)
    assert {p for p, size in HEALTHY.items() if size is not None} - set(paths) == {
        "rocksdbstore/CURRENT"
    }  # known by its name alone
    assert listing.unclean and listing.is_file("checkpoint") and not listing.is_file("commitlog")
    assert listing_notes(listing) == [] and unreadable_parts(listing) == []


def test_names_under_the_root_that_no_release_writes_are_notes_and_never_entered(make: Make) -> None:
    listing = make({"core.123": 1, "backup/commitlog/00000000000000000000": 1, "consumequeue/plain": 1, "config/anything": 1})
    assert [(f.code, f.file) for f in listing_notes(listing)] == [
        ("file_unrecognised", "backup"),
        ("file_unrecognised", "core.123"),
    ]
    assert listing.get("backup/commitlog") is None


def test_links_out_are_notes_and_make_the_audit_incomplete_where_a_broker_would_read(make: Make, tmp_path: Path) -> None:
    make()
    outside = tmp_path.parent / "outside"
    outside.mkdir(exist_ok=True)
    os.symlink(outside, tmp_path / "consumequeue")
    os.symlink(outside, tmp_path / "anything")
    os.mkfifo(tmp_path / "commitlog" / "fifo")
    listing = list_store(StoreLocation(str(tmp_path)))
    assert list(map(gap_text, unreadable_parts(listing))) == [
        "commitlog/fifo: not a file or a directory; not opened",
        "consumequeue: a link that leads out of the store; name its place with --consumequeue",
    ]
    assert [(f.code, f.file) for f in listing_notes(listing)] == [
        ("file_not_regular", "anything"),
        ("file_not_regular", "commitlog/fifo"),
        ("file_not_regular", "consumequeue"),
    ]


@pytest.mark.parametrize("name", ["config", "commitlog", "consumequeue", "index", "checkpoint"])
def test_a_part_that_is_no_folder_makes_the_audit_incomplete(name: str, tmp_path: Path) -> None:
    """Whatever is in the place of one that a broker would read: a FIFO, a socket, a device."""
    for part in ("commitlog", "consumequeue"):
        (tmp_path / "fifo" / part).mkdir(parents=True)
        (tmp_path / "socket" / part).mkdir(parents=True)
    for kind in ("fifo", "socket"):
        place = tmp_path / kind / name
        if place.exists():
            place.rmdir()
        os.mkfifo(place) if kind == "fifo" else os.mknod(place, stat.S_IFSOCK | 0o600)
        outcome = run_local(AuditRequest("s", StoreLocation(str(tmp_path / kind)), "5.3.3"))
        assert (outcome.exit_code, outcome.complete) == (3, False)
        assert f"{name}: not a file or a directory; not opened" in outcome.incomplete


@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "batchconsumequeue", "consumequeue_ext", "index"])
def test_a_file_in_the_place_of_a_folder_makes_the_audit_incomplete(name: str, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_text("{}")
    (tmp_path / name).write_bytes(bytes(1234))
    outcome = run_local(AuditRequest("s", StoreLocation(str(tmp_path)), "5.3.3"))
    assert (outcome.exit_code, outcome.complete) == (3, False)
    assert f"{name}: a file of 1,234 bytes where a folder is expected; not opened" in outcome.incomplete


def test_parts_elsewhere_take_the_place_of_those_inside(make: Make, tmp_path: Path) -> None:
    one, two = tmp_path.parent / "one", tmp_path.parent / "two"
    for folder, name in ((one, "00000000000000000008"), (two, "00000000000000000000"), (two, "00000000000000000008")):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"12345678")
    listing = make({}, (("commitlog", (str(one), str(two))),))
    assert [e.path for e in listing.files] == [
        "commitlog",
        "commitlog/00000000000000000000",
        "commitlog/00000000000000000008",
        "commitlog[2]/00000000000000000008",
    ]


def test_what_is_no_store_is_one_sentence(tmp_path: Path) -> None:
    empty, inner, other = tmp_path / "empty", tmp_path / "inner", tmp_path / "other"
    for folder in (empty, inner, other):
        folder.mkdir()
    (inner / "00000000000000000000").write_bytes(b"")
    (other / "config").mkdir()
    for path, words in (
        (empty, "an empty directory"),
        (inner, "a commitlog directory"),
        (other, "not a RocketMQ store"),
        (tmp_path / "none", "nothing of this name"),
    ):
        with pytest.raises(NotAStore, match=words) as caught:
            list_store(StoreLocation(str(path)))
        assert str(path) in str(caught.value)
    (other / "commitlog").mkdir()
    with pytest.raises(NotAStore, match=r"^index: .*nothing of this name"):
        list_store(StoreLocation(str(other), (("index", (str(tmp_path / "none"),)),)))


def test_a_store_that_changes_is_noticed(make: Make, tmp_path: Path) -> None:
    listing = make({"checkpoint": 10, "lock": 4})
    assert changes_since(listing) == []
    (tmp_path / "checkpoint").write_bytes(bytes(20))
    (tmp_path / "lock").unlink()
    (tmp_path / "abort").write_bytes(b"")
    assert list(map(gap_text, changes_since(listing))) == [
        "abort: appeared during the audit",
        "checkpoint: changed during the audit (10 bytes before, 20 after)",
        "lock: vanished during the audit",
    ]


def test_a_folder_above_a_store_names_the_store_in_it(tmp_path: Path) -> None:
    (tmp_path / "copies" / "broker-a" / "commitlog").mkdir(parents=True)
    (tmp_path / "copies" / "notes").mkdir()
    with pytest.raises(NotAStore) as told:
        list_store(StoreLocation(str(tmp_path / "copies")))
    assert str(told.value).endswith(f"not a RocketMQ store; name the store that is in it: {tmp_path}/copies/broker-a")
    (tmp_path / "copies" / "broker-a" / "commitlog").rmdir()
    with pytest.raises(NotAStore, match=r"so not a RocketMQ store$"):
        list_store(StoreLocation(str(tmp_path / "copies")))


@pytest.mark.parametrize(
    ("folder", "known"),
    [
        ("commitlog/lost+found", True), ("commitlog/old", True), ("consumequeue/lost+found", True), ("index/lost+found", True),
        ("consumequeue/T/lost+found", True), ("consumequeue/T/0/lost+found", True), ("config/lost+found", True),
        ("timerlog/old", True), ("consumequeue/T", False), ("consumequeue/T/0", False), ("config/topics", False),
        ("commitlog", False),
    ],
)  # fmt: skip
def test_a_folder_that_no_release_opens_may_be_closed_to_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, known: bool
) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    real = LocalFolder._entries

    def closed(path: str) -> object:
        if path.endswith(folder):
            raise Unreadable(f"{path}: cannot be listed: Permission denied")
        return real(path)

    monkeypatch.setattr(LocalFolder, "_entries", staticmethod(closed))
    with failed_reads() as failed:
        try:
            gaps: object = unreadable_parts(list_store(StoreLocation(str(tmp_path))))
        except Unreadable:
            gaps = "unreadable"
    assert (not failed and gaps == []) == known


@given(st.lists(st.text(st.sampled_from("ab/.0é\U00010000\ud800-["), min_size=1, max_size=6), max_size=20))
def test_files_are_in_the_order_of_their_paths_and_the_later_of_two_counts(paths: list[str]) -> None:
    files = [StoreFile(path, "file", number) for number, path in enumerate(paths)]
    wanted = {file.path: file for file in files}
    assert in_path_order(iter(files)) == tuple(wanted[path] for path in sorted(wanted))
    assert [*Tree(files).all] == [next(file for file in files if file.path == path) for path in sorted(wanted)]
