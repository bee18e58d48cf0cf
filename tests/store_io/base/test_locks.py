"""Threads share what is made once; a lock on a file that has lost its name is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from store_io.base.locks import ProcessLock, lock_named, made_once
from store_io.repair.writing import trial_writer
from store_io.source import hdfs_client, remote_file, s3_client, storage_options

SECONDS = 60  # after which a test fails that waits


def test_threads_that_ask_at_the_same_time_share_one_answer() -> None:
    """The first thread makes its answer until the second one has come to the lock, or past it."""
    second_is_there = threading.Event()

    class TellingLock:
        def __init__(self) -> None:
            self._lock = threading.Lock()

        def __enter__(self) -> None:
            if not self._lock.acquire(blocking=False):
                second_is_there.set()
                self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    made: list[object] = []
    first_is_in = threading.Event()

    @made_once()
    def answer() -> object:
        made.append(object())
        found = made[-1]
        if len(made) == 1:
            first_is_in.set()
            assert second_is_there.wait(SECONDS)
        else:
            second_is_there.set()
        return found

    answer._lock.own = TellingLock()  # type: ignore[assignment]

    def second() -> object:
        assert first_is_in.wait(SECONDS)
        return answer()

    with ThreadPoolExecutor(2) as threads:
        found = [asked.result() for asked in (threads.submit(answer), threads.submit(second))]
    assert found[0] is found[1] and len(made) == 1
    answer.cache_clear()
    assert answer() is not found[0]


@pytest.mark.parametrize("shared", [remote_file._grains_of, remote_file._threads, s3_client._connection, trial_writer._table])
def test_what_threads_share_is_made_once(shared: Any) -> None:
    assert type(shared) is type(made_once()(list))


@pytest.mark.parametrize("lock", [ProcessLock(), hdfs_client._making, storage_options._taking_over])
def test_a_process_that_was_forked_waits_for_no_thread_of_the_other(lock: ProcessLock) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.own:
            held.set()
            assert done.wait(SECONDS)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(hold)
        assert held.wait(SECONDS)
        if (process := os.fork()) == 0:
            os._exit(0 if lock.own.acquire(blocking=False) else 1)
        done.set()
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_an_answer_may_ask_for_another_one() -> None:
    @made_once()
    def factorial(number: int) -> int:
        return number * factorial(number - 1) if number else 1

    assert factorial(5) == 120


def test_a_lock_counts_as_long_as_the_file_has_its_name(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")

    def opened() -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT)

    def removed() -> None:
        os.unlink(path)

    def made_anew() -> None:
        os.unlink(path)
        os.close(opened())

    def nothing() -> None:
        pass

    changes: list[tuple[Callable[[], None], bool]] = [(nothing, True), (removed, False), (made_anew, False)]
    for change, counts in changes:
        handle = opened()
        change()
        assert lock_named(handle, path) is counts
        os.close(handle)
    one, other = opened(), opened()
    assert lock_named(one, path)
    with pytest.raises(BlockingIOError):
        lock_named(other, path)
    os.close(one)
    assert lock_named(other, path, wait=True)
    os.close(other)
