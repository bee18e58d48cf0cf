"""The copy that a repair works on: refused, or whole."""

from __future__ import annotations

import concurrent.futures
import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreError
from store_io.repair.copy_under_way import CopyUnderWay
from store_io.repair.repair_copy import COPY_THREADS, check_source, mode_beside
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.writing import store_writer
from store_io.source.byte_source import StoreLocation
from store_io.source.local_folder import LocalFile
from tests.support.answers.repaired import content, plan_of, previewed, repaired
from tests.support.damage import invert_byte
from tests.support.stores import corpus_tools, dledger_stores
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.corpus_tools import Case

CASES = corpus_tools.plain_cases()


NOTHING = {"g32-480-commitlog-empty", "g41-533-fresh"}  # no segment


def bad_medium() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("donor", [False, True])
@pytest.mark.parametrize("case", [c for c in CASES if c.name in NOTHING], ids=lambda case: case.name)
def test_a_copy_without_a_segment_is_refused_before_anything_is_done(case: Case, donor: bool, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    before, plan = content(tmp_path), plan_of(root, case.release, case.broker_conf)
    for act in (repaired, previewed):
        with pytest.raises(StoreError) as told:
            act(root, tmp_path / "new", plan, donor=StoreLocation(str(tmp_path)) if donor else None)
        assert str(told.value).startswith(f"nothing to repair from: {root}/commitlog holds no segment")
    assert content(tmp_path) == before


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_a_log_without_a_message_is_refused_and_nothing_is_left(policy: str, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3")
    for i in range(20):
        builder.put(Message(topic="T", queue_id=0, body=b"body%d" % i))
    store = builder.write(tmp_path / "store")
    for segment in (store.root / "commitlog").iterdir():
        segment.write_bytes(bytes(segment.stat().st_size))
    plan, before = plan_of(store.root, "5.3.3", store.broker_conf), content(tmp_path)
    for act in (repaired, previewed):
        with pytest.raises(StoreError, match=r"nothing to repair from: no segment of .* holds a message; find another copy"):
            act(store.root, tmp_path / "new", plan, policy)
    assert content(tmp_path) == before


def test_a_source_that_changes_while_it_is_copied(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    shutil.copytree(damaged[0], root)
    last = max((root / "commitlog").iterdir())
    real = store_writer.StoreWriter.copy

    def copy(self: Any, source: Any, path: str, *words: Any) -> None:
        if path.endswith(last.name):  # planned, and none of its bytes copied; other files are copied beside it
            invert_byte(last, 100, 1)
            os.utime(last, ns=(1, 1))
        real(self, source, path, *words)

    monkeypatch.setattr(store_writer.StoreWriter, "copy", copy)
    with pytest.raises(StoreError, match="not the one that the plan was made from"):
        repaired(root, tmp_path / "new", damaged[1])
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_source_that_cannot_be_read(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LocalFile._fill

    def fill(self: Any, position: int, view: memoryview) -> int:
        if self.path.startswith("commitlog/") and position >= 4096:
            bad_medium()
        return real(self, position, view)

    monkeypatch.setattr(LocalFile, "_fill", fill)
    with pytest.raises(StoreError, match="commitlog/"):
        repaired(damaged[0], tmp_path / "new", damaged[1])
    assert not list(tmp_path.iterdir())


def test_too_little_space(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer.StoreWriter, "free_bytes", lambda self: 1000)
    with pytest.raises(store_writer.WriteFailed, match="1000 are free"):
        repaired(damaged[0], tmp_path / "new", damaged[1])
    assert not list(tmp_path.iterdir())
    with store_writer.StoreWriter.beside(str(tmp_path / "new")) as writer:
        writer.require(1000, "it needs")
        with pytest.raises(store_writer.WriteFailed, match=r": it needs 1001 bytes, 1000 are free there$"):
            writer.require(1001, "it needs")


def test_no_file_is_a_link(damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(damaged[0], root)
    inside = root / "config"
    inside.mkdir(exist_ok=True)
    (root / "kept").mkdir()
    (root / "kept" / "real.json").write_text("{}")
    (inside / "topics.json").symlink_to("../kept/real.json")
    plan = plan_of(root, damaged[1].release, damaged[1].broker_conf)
    assert repaired(root, tmp_path / "new", plan).exit_code == 0
    for path in (tmp_path / "new").rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or path.stat().st_nlink == 1
    assert (tmp_path / "new" / "config" / "topics.json").read_text() == "{}"


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), StoreError("no")])
def test_a_copy_that_is_stopped_begins_no_further_file(
    damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path, problem: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, begun, gate = tmp_path / "store", [], threading.Event()
    shutil.copytree(damaged[0], root)
    for number in range(200):
        (root / "index" / f"more{number}").write_bytes(b"")
    pool, real = concurrent.futures.ThreadPoolExecutor, concurrent.futures.ThreadPoolExecutor.shutdown

    def stopped(self: Any) -> None:
        raise problem

    def shutdown(self: Any, wait: bool = True, *, cancel_futures: bool = False) -> None:
        real(self, False, cancel_futures=cancel_futures)
        gate.set()  # only now does a copy end
        real(self, wait)

    def copy(self: Any, source: Any, path: str, *words: Any) -> None:
        begun.append(path)
        gate.wait()

    monkeypatch.setattr(CopyUnderWay, "location", property(stopped))
    monkeypatch.setattr(CopyUnderWay, "finish", stopped)
    monkeypatch.setattr(pool, "shutdown", shutdown)
    monkeypatch.setattr(store_writer.StoreWriter, "copy", copy)
    with pytest.raises(type(problem)):
        repaired(root, tmp_path / "new", damaged[1])
    assert len(begun) <= COPY_THREADS
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_the_log_of_one_node_of_a_group_is_refused_with_what_to_do(tmp_path: Path) -> None:
    store = dledger_stores.build(tmp_path / "store")
    location = StoreLocation(str(store.root))
    check_source(location, store.broker_conf + "dLegerPeers=n0-127.0.0.1:1;\n")
    with pytest.raises(StoreError, match="let it copy the log from the others"):
        check_source(location, store.broker_conf + "dLegerPeers=n0-127.0.0.1:1;n1-127.0.0.1:2\n")


def test_a_dledger_log_without_data_is_refused(tmp_path: Path) -> None:
    store = dledger_stores.build(tmp_path / "store")
    for path in (store.root / dledger_stores.FOLDER / "data").iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="no data file of DLedger"):
        check_source(StoreLocation(str(store.root)), store.broker_conf)


@pytest.mark.parametrize(
    ("root", "folder", "segment", "other", "most"),
    [
        (0o755, 0o755, 0o644, 0o644, 0o644), (0o755, 0o755, 0o600, 0o644, 0o600), (0o755, 0o755, 0o640, 0o600, 0o640),
        (0o700, 0o755, 0o644, 0o644, 0o600), (0o755, 0o710, 0o666, 0o644, 0o640), (0o755, 0o755, 0o400, 0o644, 0o600),
    ],
)  # fmt: skip
def test_a_file_beside_the_new_store_is_read_by_nobody_who_cannot_read_the_segments(
    root: int, folder: int, segment: int, other: int, most: int, damaged: tuple[Path, RepairPlan, dict[str, str]], tmp_path: Path
) -> None:
    store = Path(shutil.copytree(damaged[0], tmp_path / "store"))
    for path in store.rglob("*"):
        path.chmod(0o755 if path.is_dir() else other)
    for path in (store / "commitlog").iterdir():
        path.chmod(segment)
    (store / "commitlog").chmod(folder)
    store.chmod(root)
    assert mode_beside(StoreLocation(str(store))) == most
