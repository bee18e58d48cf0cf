"""How full the disk of a new store will be."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from jobs.repair.disk_of_target import on_its_disk
from schemas.first_day import StartMoment

# 1000 blocks, of which 400 are used, and 100 are root's alone
DISK = SimpleNamespace(f_frsize=4096, f_blocks=1000, f_bfree=600, f_bavail=500)


def test_the_new_store_counts_as_df_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: DISK)
    assert on_its_disk(StartMoment(5), "/new/store", 0) == StartMoment(5, disk_used=44.44, disk_size=900 * 4096)
    assert on_its_disk(StartMoment(5), "/new/store", 365 * 4096) == StartMoment(5, disk_used=85.0, disk_size=900 * 4096)
    assert on_its_disk(StartMoment(5), "/new/store", 9999 * 4096).disk_used == 100.0


def test_what_is_named_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: DISK)
    named = StartMoment(5, disk_used=10.0)
    assert on_its_disk(named, "/new/store", 0) == StartMoment(5, disk_used=10.0, disk_size=900 * 4096)
    empty = SimpleNamespace(f_frsize=4096, f_blocks=0, f_bfree=0, f_bavail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: empty)
    assert on_its_disk(StartMoment(5), "/new/store", 0) == StartMoment(5)
