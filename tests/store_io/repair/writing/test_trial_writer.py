"""A trial store: after any writes it reads as the store that the same writes make of a copy, and the copy is as it was."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
from pathlib import Path

import pytest

from store_io.repair.writing.store_writer import StoreWriter, WriteFailed
from store_io.repair.writing.trial_writer import TrialWriter
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.answers.repaired import content

NAMES = ("commitlog/0", "commitlog/1", "consumequeue/a/0/0", "consumequeue/a/0/1", "index/x", "checkpoint")


def copy_of_a_store(folder: Path) -> Path:
    for number, name in enumerate(NAMES):
        path = folder / "store" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number + 1]) * (50 + 10 * number) + bytes(9000 * (number % 2)))
        os.utime(path, ns=(number, 1000 + number))
    return folder / "store"


def start(writer: StoreWriter, root: Path) -> None:
    source = open_source(StoreLocation(str(root)))
    for folder in sorted({str(Path(name).parent) for name in NAMES} - {"."}):
        writer.make_folder(folder)
        for entry in source.list_tree(folder.split("/")[0]):
            if entry.kind == "directory":
                writer.make_folder(entry.path)
    for name in NAMES:
        writer.copy(source, name, name, (root / name).stat().st_mtime_ns)


def act(writer: StoreWriter, rng: random.Random) -> str:
    """One write; the name of what stopped it, "" where nothing did."""
    name, start, size = rng.choice([*NAMES, "new/file", "consumequeue/a/1/0"]), rng.randrange(120), rng.randrange(1, 60)
    other = rng.choice([*NAMES, "moved"])
    try:
        match rng.randrange(9):
            case 0 | 1:
                writer.write(name, start, rng.randbytes(size))
            case 2:
                writer.zero(name, start, start + size)
            case 3:
                writer.resize(name, start)
            case 4:
                writer.create(name, start)
            case 5:
                writer.move(name, other)
            case 6:
                writer.remove(rng.choice([name, name, name.rpartition("/")[0] or name]))
            case 7:
                writer.put(name, rng.randbytes(size))
                writer.set_time(name, 77)
            case 8:
                (Path(writer.workshop()) / "made").write_bytes(rng.randbytes(size))
                writer.take_in("made", rng.choice([name, other]))
    except WriteFailed:
        return "refused"
    return ""


def read(writer: StoreWriter) -> dict[str, bytes]:
    source = open_source(writer.location)
    names = source.names()
    files = [*names, *(f for n in names if n.kind == "directory" for f in source.list_tree(n.path))]
    found = {f.path: b"" for f in files if f.kind == "directory"}
    for entry in (f for f in files if f.kind == "file"):
        with source.open(entry.path) as file:
            assert file.size == entry.size
            data = file.read(0, file.size)
            at = 0
            while at < file.size:  # data and holes, as a scan skips them
                at, before = file.next_data(at), at
                assert not any(data[before:at])
                at = max(at + 1, file.next_hole(at)) if at < file.size else at
            half = file.size // 3
            assert file.read(half, 40) == data[half : half + 40]
        found[entry.path] = data
    return found


@pytest.mark.parametrize("seed", [n if n < 10 else pytest.param(n, marks=pytest.mark.soak) for n in range(60)])
def test_it_reads_as_what_the_same_writes_make(seed: int, tmp_path: Path) -> None:
    root, rng = copy_of_a_store(tmp_path), random.Random(seed)
    before = content(root)
    (tmp_path / "scratch").mkdir()
    with (
        StoreWriter.beside(str(tmp_path / "new")) as real,
        TrialWriter.below(str(tmp_path / "scratch"), str(tmp_path / "new"), StoreLocation(str(root))) as trial,
    ):
        start(real, root)
        start(trial, root)
        for _ in range(30):
            seed_of_act = rng.random()
            assert act(real, random.Random(seed_of_act)) == act(trial, random.Random(seed_of_act))
            assert read(trial) == read(real)
        with multiprocessing.get_context("fork").Pool(1) if seed == 0 else _Here() as elsewhere:
            assert elsewhere.apply(read_at, (trial.location,)) == read_at(real.location)
    assert content(root) == before and not list((tmp_path / "scratch").iterdir())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["scratch", "store"]


def read_at(location: StoreLocation) -> dict[str, bytes]:
    source = open_source(location)
    entries = [f for name in ("commitlog", "consumequeue", "index") for f in source.list_tree(name) if f.kind == "file"]
    return {entry.path: source.read_small(entry.path) for entry in entries}


class _Here:
    """Stands for a pool of one process."""

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *error: object) -> None: ...

    def apply(self, function: object, words: tuple[object, ...]) -> object:
        assert callable(function)
        return function(*words)


def test_what_a_killed_dry_run_left_goes_with_the_next_one(tmp_path: Path) -> None:
    root = copy_of_a_store(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if (child := os.fork()) == 0:
        with TrialWriter.below(str(scratch), str(tmp_path / "new"), StoreLocation(str(root))) as trial:
            trial.create("index/y", 100)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(scratch.iterdir())) == 1
    with TrialWriter.below(str(scratch), str(tmp_path / "new"), StoreLocation(str(root))):
        assert len(list(scratch.iterdir())) == 1
    assert not list(scratch.iterdir())
    shutil.rmtree(root)
