"""Whatever fails in a source is noted by the file's path in the store, and what lies there is not taken for a failure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from store_io.base.errors import NotAFile, StoreError, Unreadable
from store_io.base.failed_reads import failed_reads
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.remote_file import Reading, RemoteFile
from tests.support.failing_reads import KINDS, Failure, failing_calls

SEGMENT = "commitlog/00000000000000000000"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of one segment, in a folder that a link leads to."""
    root = tmp_path / "store"
    (root / "log").mkdir(parents=True)
    (root / "commitlog").symlink_to("log")
    (root / SEGMENT).write_bytes(bytes(range(100)))
    return root


def read(source: ByteSource) -> None:
    with source.open(SEGMENT) as file:
        file.read(10, 20)


def listed(source: ByteSource) -> None:
    source.names()
    source.list_tree("commitlog")


@pytest.mark.parametrize(("names", "failures"), KINDS, ids=["system", "server"])
@pytest.mark.parametrize("work", [read, listed])
def test_each_call_that_fails_is_noted_or_changes_nothing(
    store: Path, work: Callable[[ByteSource], None], names: Sequence[str], failures: Sequence[Failure]
) -> None:
    with failing_calls([store], names) as calls:
        work(open_source(StoreLocation(str(store))))
    told = 0
    for number in range(calls.count):
        failure = failures[number % len(failures)]
        with failing_calls([store], names, number, failure) as failing, failed_reads() as failed:
            try:
                work(open_source(StoreLocation(str(store))))
            except StoreError as problem:
                assert isinstance(problem, Unreadable) and problem.gap() in failed.values(), failing.failed
        told += bool(failed)
    assert told > calls.count // 2


def test_what_is_no_file_is_no_failed_read(store: Path) -> None:
    os.mkfifo(store / "config")
    source = open_source(StoreLocation(str(store)))
    with failed_reads() as failed:
        for path in ("config", "commitlog", "../x"):
            with pytest.raises(NotAFile):
                source.open(path)
        assert {entry.kind for entry in source.names()} == {"directory", "special"}
    assert not failed


class Cut(RemoteFile):
    """A file of a server whose answers to all but the first request break off."""

    def _first(self, most: int) -> tuple[bytes, int, str]:
        return bytes(min(most, 10 << 20)), 10 << 20, "version"

    def _part(self, start: int, size: int) -> bytes:
        raise Unreadable(f"{self.path}: cannot be read: {size} bytes from {start} on did not come")


def test_an_answer_that_breaks_off_is_noted() -> None:
    file = Cut(("server", "cut"), SEGMENT, Reading("s3://server", 0))
    with failed_reads() as failed, pytest.raises(Unreadable):
        file.read(0, 9 << 20)
    assert list(failed) == [SEGMENT]
