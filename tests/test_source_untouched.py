"""An audit leaves the store as it was: names, sizes, modes, times of change and digests; nothing is opened to be written."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.repair.plan_repair_section import steps_tasks
from store_io.source.byte_source import StoreLocation
from tests.support.stores import corpus_tools

WATCHED: list[str] = []  # the store being audited, while it is
TOUCHED: list[str] = []
HOOKED: list[bool] = []
CHANGING = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.utime", "os.chmod", "os.link", "os.symlink"}


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not WATCHED:
        return
    names = [os.fspath(a) for a in arguments if isinstance(a, (str, os.PathLike))]
    if not any(str(name).startswith(WATCHED[0]) for name in names):
        return
    if event in CHANGING:
        TOUCHED.append(f"{event} {names}")
    elif event == "open":
        _, mode, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if writes or isinstance(mode, str) and set(mode) & set("wax+"):
            TOUCHED.append(f"open {names} {mode} {flags}")


@contextmanager
def watched(root: Path) -> Iterator[None]:
    if not HOOKED:  # a hook stays as long as the process, and each file that any test opens passes it
        sys.addaudithook(_watch)
        HOOKED.append(True)
    WATCHED.append(str(root))
    try:
        yield
    finally:
        WATCHED.clear()


def snapshot(root: Path) -> dict[str, tuple[Any, ...]]:
    """Name -> everything about it that a reader may not change."""
    found: dict[str, tuple[Any, ...]] = {}
    for folder, names, files in os.walk(root):
        for name in [*names, *files, "."]:
            path = Path(folder) / name
            status = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path.relative_to(root))] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, digest)
    return found


@pytest.mark.parametrize(
    "case",
    [
        *corpus_tools.cases("g04", "g11-", "g113", "g41", "g72", "g75", "g76", "g78", "g83"),
        *(pytest.param(case, marks=pytest.mark.soak) for case in corpus_tools.cases("g5x-533-broker-live")),
    ],
    ids=lambda c: c.name,
)
def test_audit_changes_nothing(case: corpus_tools.Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    before = snapshot(root)
    TOUCHED.clear()
    with watched(root):
        outcome = run_local(AuditRequest("store", StoreLocation(str(root)), case.release, case.broker_conf))
        for task in steps_tasks(outcome, StoreLocation(str(root))):
            task.run()
    assert not TOUCHED
    assert snapshot(root) == before
