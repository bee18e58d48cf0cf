"""What a rescue looks at before any work."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from jobs.rescue import first_look
from store_io.base.errors import StoreError


def test_a_lock_that_a_process_holds_is_seen(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_bytes(b"lock")
    now = time.time_ns()
    assert first_look._look_for_a_broker(str(tmp_path), now) == ()  # nothing holds it, and no abort file is there
    with lock.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        if first_look._holder_of(str(lock)):  # a system whose /proc/locks says it
            with pytest.raises(StoreError, match=f"process {os.getpid()} holds the file lock in it, so a broker runs"):
                first_look._look_for_a_broker(str(tmp_path), now)
    assert first_look._holder_of(str(tmp_path / "none")) == 0


def test_a_file_of_this_minute_beside_abort_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "abort").touch()
    (warning,) = first_look._look_for_a_broker(str(tmp_path), time.time_ns())
    assert "perhaps a broker still runs on this directory" in warning
    assert first_look._look_for_a_broker(str(tmp_path), time.time_ns() - 600 * 10**9) == ()
    assert first_look._look_for_a_broker("s3://bucket/store", time.time_ns()) == ()
