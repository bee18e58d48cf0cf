"""A database of a copy: its entries, or one sentence, whatever its bytes are."""

from __future__ import annotations

import errno
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from store_io.base.errors import NotAFile, StoreError
from store_io.base.scratch import PREFIX
from store_io.rocksdb import database as database_module
from store_io.rocksdb import private_folder
from store_io.rocksdb.database import Database, DatabaseDamaged, DatabaseUnread
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.damage import invert_byte
from tests.support.stores.rocksdb_stores import write_database

PAIRS = [(b"key%05d" % i, b"value%d" % i) for i in range(3000)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_database(tmp_path / "store" / "db", {"default": PAIRS, "other": [(b"a", b"1")]})
    return tmp_path / "store"


def opened(store: Path) -> Database:
    source = open_source(StoreLocation(str(store)))
    return Database(source, "db", source.list_tree("db"))


def entries(store: Path, family: str = "default", **keys: bytes) -> list[tuple[bytes, bytes]]:
    with opened(store) as database:
        return [pair for batch in database.scan(family, **keys) for pair in batch.pairs()]


def names(folder: Path) -> dict[str, tuple[int, int, int]]:
    return {p.name: (p.stat().st_size, p.stat().st_mtime_ns, p.stat().st_atime_ns) for p in folder.iterdir()}


def test_all_entries_of_each_family(store: Path) -> None:
    with opened(store) as database:
        assert set(database.families) == {"default", "other"}
        assert len(database.live_files) == 2
        assert [pair for batch in database.scan("default") for pair in batch.pairs()] == PAIRS
        assert [pair for batch in database.scan("other") for pair in batch.pairs()] == [(b"a", b"1")]
        assert list(database.scan("absent")) == []


def test_a_range_and_a_limit(store: Path) -> None:
    assert entries(store, first=b"key00100", end=b"key00103") == PAIRS[100:103]
    with opened(store) as database:
        assert [p for batch in database.scan("default", b"key00100", limit=1) for p in batch.pairs()] == PAIRS[100:101]


def test_one_key_is_looked_up_in_the_newest_table(store: Path) -> None:
    """Where a broker looks one up, bad bytes of an older table do not matter to it."""
    with opened(store) as database:
        assert (database.get("default", b"key00100"), database.get("default", b"no"), database.get("absent", b"a")) == (
            b"value100",
            None,
            None,
        )
    (table,) = [path for path in (store / "db").glob("*.sst") if path.stat().st_size > 4096]
    write_database(store / "db", {"default": [(b"key00100", b"new")], "other": []})
    invert_byte(table, 100, 1)
    with opened(store) as database:
        assert database.get("default", b"key00100") == b"new"
        with pytest.raises(DatabaseDamaged):
            database.get("default", b"key00101")
        with pytest.raises(DatabaseDamaged):
            list(database.scan("default", b"key00100"))


def test_batches_are_bounded(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BATCH_ROWS", 1000)
    with opened(store) as database:
        assert [len(batch) for batch in database.scan("default")] == [1000, 1000, 1000]


def test_what_only_the_write_ahead_log_holds_is_read(tmp_path: Path) -> None:
    write_database(tmp_path / "store" / "db", {"default": PAIRS[:5]}, flush=False)
    assert entries(tmp_path / "store") == PAIRS[:5]


@pytest.mark.parametrize("linked", [False, True])
def test_nothing_of_the_source_changes(store: Path, linked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if linked:
        monkeypatch.setattr(private_folder, "COPIED_BYTES", 0)
    before = {name: what[: 2 if linked else 3] for name, what in names(store / "db").items()}
    (store / "db").chmod(0o500)
    try:
        assert entries(store) == PAIRS
    finally:
        (store / "db").chmod(0o700)
    assert {name: what[: 2 if linked else 3] for name, what in names(store / "db").items()} == before


def table(folder: Path) -> Path:
    return max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)


def manifest(folder: Path) -> Path:
    return next(folder.glob("MANIFEST-*"))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bad block": (lambda f: invert_byte(table(f), 100), "*.sst"),
    "a missing table": (lambda f: table(f).unlink(), "*.sst"),
    "a cut table": (lambda f: os.truncate(table(f), 500), "*.sst"),
    "a garbage table": (lambda f: table(f).write_bytes(random.Random(1).randbytes(table(f).stat().st_size)), "*.sst"),
    "a garbage MANIFEST": (lambda f: manifest(f).write_bytes(random.Random(1).randbytes(3000)), "MANIFEST-*"),
    "a bit of MANIFEST": (lambda f: invert_byte(manifest(f), 30), "MANIFEST-*"),
    "a missing MANIFEST": (lambda f: manifest(f).unlink(), "MANIFEST-*"),
    "a cut CURRENT": (lambda f: (f / "CURRENT").write_bytes(b"MANIF"), "CURRENT"),
    "no CURRENT": (lambda f: (f / "CURRENT").unlink(), "CURRENT"),
    "CURRENT that leads elsewhere": (lambda f: (f / "CURRENT").write_bytes(b"MANIFEST-../../x\n"), "CURRENT"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_one_sentence_with_its_file(store: Path, what: str) -> None:
    damage, file = DAMAGE[what]
    damage(store / "db")
    with pytest.raises(DatabaseDamaged) as caught:
        entries(store)
    assert Path(caught.value.path).match(f"db/{file}"), str(caught.value)
    assert str(store) not in str(caught.value) and PREFIX not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_entries_before_a_bad_block_are_given(tmp_path: Path) -> None:
    pairs = [(b"key%06d" % i, random.Random(i).randbytes(20)) for i in range(9000)]
    write_database(tmp_path / "store" / "db", {"default": pairs})
    invert_byte(table(tmp_path / "store" / "db"), table(tmp_path / "store" / "db").stat().st_size // 2)
    got = []
    with opened(tmp_path / "store") as database, pytest.raises(DatabaseDamaged):
        for batch in database.scan("default"):
            got += batch.pairs()
    assert 0 < len(got) < 9000 and got == pairs[: len(got)]


@pytest.mark.parametrize(
    ("bounds", "pairs", "sentence"),
    [
        ({"GROWTH_BYTES": 1 << 20, "GROWTH": 10}, [(b"%05d" % i, 60_000) for i in range(400)], "10 times as much"),
        ({"ENTRY_BYTES": 1 << 20}, [(b"a", 2 << 20)], "an entry of 2,097,153 bytes"),
        ({"CHILD_BYTES": 384 << 20}, [(b"a", 250 << 20)], "at most 384 MiB of memory"),
    ],
    ids=["growth", "entry", "memory"],
)
def test_more_than_may_be_held_is_a_sentence(
    bounds: dict[str, int], pairs: list[tuple[bytes, int]], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_database(tmp_path / "store" / "db", {"default": [(key, bytes(size)) for key, size in pairs]})
    for name, value in bounds.items():
        monkeypatch.setattr(database_module, name, value)
    with pytest.raises(DatabaseUnread, match=sentence):
        entries(tmp_path / "store")


def test_a_lost_process_is_the_same_sentence_for_each_later_question(store: Path) -> None:
    with Database(
        open_source(StoreLocation(str(store))), "db", open_source(StoreLocation(str(store))).list_tree("db")
    ) as database:
        assert database._process is not None
        database._process.kill()
        for _ in range(2):
            with pytest.raises(DatabaseUnread, match=r"was lost \(signal 9|was lost"):
                list(database.scan("default"))
            with pytest.raises(DatabaseUnread, match="was lost"):
                database.get("default", b"1")


def test_a_silent_process_is_a_sentence(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "SILENT_SECONDS", 0.0)
    with pytest.raises(DatabaseUnread, match="no answer"):
        entries(store)


def test_without_the_package_it_is_a_sentence(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rocksdict.py").write_text("raise ImportError('no', name='rocksdict')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(DatabaseUnread, match=r"rocksdict.* is not installed"):
        entries(store)


def test_no_code_of_the_current_folder_is_run(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "json.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.chdir(store)
    assert len(entries(store)) == len(PAIRS)
    assert not (tmp_path / "run").exists()


def test_what_a_killed_run_leaves_is_found_by_the_next(store: Path) -> None:
    with opened(store) as database:
        assert Path(database._private.path).name.startswith(PREFIX)  # type: ignore[union-attr]


def test_a_link_that_leads_out_and_a_fifo_are_not_opened(store: Path, tmp_path: Path) -> None:
    sst = table(store / "db")
    sst.rename(tmp_path / sst.name)
    sst.symlink_to(tmp_path / sst.name)
    with pytest.raises(NotAFile, match="no regular file"):  # nobody read it, so nothing is called damaged
        entries(store)
    sst.unlink()
    os.mkfifo(sst)
    with pytest.raises(NotAFile, match="no regular file"):
        entries(store)


def test_a_file_that_became_a_link_after_the_listing(store: Path, tmp_path: Path) -> None:
    source = open_source(StoreLocation(str(store)))
    files = source.list_tree("db")
    sst = table(store / "db")
    sst.rename(tmp_path / sst.name)
    sst.symlink_to(tmp_path / sst.name)
    with pytest.raises(NotAFile), Database(source, "db", files):
        pass


@pytest.mark.parametrize("seed", range(6))
def test_any_bytes(store: Path, seed: int) -> None:
    """Every file of the database overwritten somewhere: entries or one of the errors, never anything else."""
    chance = random.Random(seed)
    for path in sorted((store / "db").iterdir()):
        data = bytearray(path.read_bytes())
        for _ in range(chance.randrange(3)):
            if data:
                at = chance.randrange(len(data))
                data[at : at + 4] = chance.randbytes(4)
        path.write_bytes(data)
    try:
        entries(store)
    except StoreError as error:
        assert "\n" not in str(error) and "Traceback" not in str(error)


@pytest.mark.parametrize("number", [errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.ENODATA, errno.EREMOTEIO, errno.EACCES])
def test_what_the_system_says_of_the_medium_is_a_read_that_failed(number: int) -> None:
    said, is_of_medium = "IO error: While pread offset 0 len 53: 000012.sst: ", database_module._OF_MEDIUM.search
    assert is_of_medium(said + os.strerror(number)) and not is_of_medium(f"Corruption: 000012.sst: {os.strerror(number)}")
    for of_bytes in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL):
        assert not is_of_medium(said + os.strerror(of_bytes))
