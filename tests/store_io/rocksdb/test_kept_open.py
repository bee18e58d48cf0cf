"""Databases that stay open while an audit runs: one process for all of its readers, and nothing that is left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store_io.audit import audit_store
from store_io.outcome.plan_writer import audit_plan
from store_io.rocksdb import database as database_module
from store_io.rocksdb.database import Database
from store_io.rocksdb.kept_open import MOST_IDLE, databases_kept_open
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.answers import product
from tests.support.stores.rocksdb_stores import keyed_store, write_database

pytest.importorskip("rocksdict")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The processes that were started. None of them may be left."""
    processes: list[Any] = []
    start = database_module.start_process

    def noted(*words: str) -> Any:
        processes.append(start(*words))
        return processes[-1]

    monkeypatch.setattr(database_module, "start_process", noted)
    yield processes
    assert all(process.returncode is not None for process in processes)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in ("a", "b", "c", "d"):
        write_database(tmp_path / "store" / name, {"default": [(b"%d" % i, name.encode()) for i in range(100)]})
    return tmp_path / "store"


def opened(store: Path, folder: str = "a") -> Database:
    source = open_source(StoreLocation(str(store)))
    return Database(source, folder, source.list_tree(folder))


def values(store: Path, folder: str = "a") -> set[bytes]:
    with opened(store, folder) as database:
        return {value for batch in database.scan("default") for _, value in batch.pairs()}


def test_an_audit_opens_its_database_once_and_says_the_same(
    started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = keyed_store(tmp_path / "store").write()
    shared = product.audit(store.root, "5.3.3", store.broker_conf).outcome
    assert len(started) == 1
    monkeypatch.setattr(audit_store, "databases_kept_open", contextlib.nullcontext)
    assert audit_plan(product.audit(store.root, "5.3.3", store.broker_conf).outcome) == audit_plan(shared)
    assert len(started) > 3


def test_readers_one_after_the_other_share_a_process_and_two_at_a_time_do_not(started: list[Any], store: Path) -> None:
    with databases_kept_open():
        assert values(store) == values(store) == {b"a"} and len(started) == 1
        with opened(store) as one, opened(store) as other:
            assert one.get("default", b"1") == other.get("default", b"1") == b"a"
        assert len(started) == 2 and sum(process.poll() is None for process in started) == 1
    assert values(store) == {b"a"} and len(started) == 3


def test_few_stay_open_and_their_folders_go(started: list[Any], store: Path) -> None:
    folders = []
    with databases_kept_open():
        for name in ("a", "b", "c", "d"):
            with opened(store, name) as database:
                folders.append(database._private.path)  # type: ignore[union-attr]
            assert values(store, name) == {name.encode()}
        assert len(started) == 4 and sum(process.poll() is None for process in started) == MOST_IDLE
        assert [os.path.exists(folder) for folder in folders] == [False, False, True, True]
    assert not any(map(os.path.exists, folders))


def test_a_process_that_was_not_asked_to_the_end_or_is_lost_is_not_taken_again(started: list[Any], store: Path) -> None:
    with databases_kept_open():
        with opened(store) as database:
            next(database.scan("default"))
        assert values(store) == {b"a"} and len(started) == 2
        with opened(store):
            started[-1].kill()
            started[-1].wait()
        assert values(store) == {b"a"} and len(started) == 3


def test_a_process_that_ended_while_nothing_was_asked_is_not_taken_again(started: list[Any], store: Path) -> None:
    with databases_kept_open():
        assert values(store) == {b"a"}
        started[-1].kill()
        started[-1].wait()
        assert values(store) == {b"a"} and len(started) == 2


def test_changed_files_are_another_database(started: list[Any], store: Path) -> None:
    with databases_kept_open():
        assert values(store) == {b"a"}
        next((store / "a").glob("*.sst")).touch()
        assert values(store) == {b"a"} and len(started) == 2


def test_a_fork_starts_its_own(started: list[Any], store: Path) -> None:
    """It would share the pipes with the process that it was made from."""
    with databases_kept_open():
        assert values(store) == {b"a"}
        child = os.fork()
        if child == 0:
            good = values(store) == {b"a"} and len(started) == 2 and started[1].poll() is not None
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert values(store) == {b"a"} and len(started) == 1
